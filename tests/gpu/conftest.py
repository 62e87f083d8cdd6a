"""A fake GPU for the tests of the GPU layer."""

from __future__ import annotations

import lzma
import os
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fasim.gpu import driver as gpu_driver
from fasim.gpu import profiling
from fasim.gpu.device import Device
from tests.gpu.fake_driver import FakeDriver, install
from tests.gpu.test_ncu_reader import DATA, elf_files

#: keeps its arguments, the environment and the file with the launches
NCU = """#!/bin/sh
if [ "$1" = --version ]; then
    echo "Version 2025.3.1.0 (build 36398880) (public-release)"
    exit 0
fi
printf '%s\\n' "$@" > "{folder}/arguments"
env > "{folder}/environment"
for each; do file="$last"; last="$each"; done
cp "$file" "{folder}/launches.pickle"
while [ "$1" != -o ]; do shift; done
cp "{report}" "$2"
echo "==PROF== Report: $2"
"""


@pytest.fixture
def gpu(monkeypatch):
    """An H200 that the simulator plays, behind a fake pycuda."""
    driver = FakeDriver()
    install(monkeypatch, driver)
    yield driver
    gpu_driver.pycuda_driver.cache_clear()


@pytest.fixture
def device(gpu):
    """The device in use."""
    with Device() as device:
        yield device


@dataclass(frozen=True)
class FakeNcu:
    """An ncu that makes the report of test_ncu_reader.py of whatever it is asked; cubins: the machine code of its four launches.

    chosen: which of the report's launches are read, all if empty.
    """

    folder: Path
    report: Path
    cubins: list[bytes]
    chosen: list[int] = field(default_factory=list)

    @property
    def arguments(self) -> list[str]:
        """What it was called with."""
        return (self.folder / "arguments").read_text().splitlines()

    @property
    def launches(self) -> Path:
        """The file that the replay process was to read."""
        return self.folder / "launches.pickle"


@pytest.fixture(scope="session")
def sample_report(tmp_path_factory):
    """The report, and the machine code in it."""
    path = tmp_path_factory.mktemp("sample") / "fa_v21.ncu-rep"
    path.write_bytes(lzma.decompress((DATA / "ncu_fa_v21.ncu-rep.xz").read_bytes()))
    return path, elf_files(path.read_bytes())


@pytest.fixture
def ncu(sample_report, tmp_path_factory, monkeypatch):
    """Puts the fake ncu on the PATH."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pytest.importorskip("ncu_report", exc_type=ImportError)
    folder, (report, cubins) = tmp_path_factory.mktemp("ncu"), sample_report
    script = folder / "ncu"
    script.write_text(NCU.format(folder=folder, report=report))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    made = FakeNcu(folder, report, cubins)
    read = profiling.read_report

    def some(path):
        found = read(path)
        return [found[i] for i in made.chosen] if made.chosen else found

    monkeypatch.setattr(profiling, "read_report", some)
    return made
