"""Occupancy against ncu: every recording's launch__occupancy_limit_* and the shared memory that the driver chose."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from fasim.arch import architecture
from fasim.gpu.recording_file import find_recordings
from fasim.sm.occupancy import occupancy

RECORDINGS = find_recordings([Path(__file__).parents[2] / "recordings"])
#: where the driver chose one size less than is expected
SMALLER = {"shared_atomics", "shared_pad_not_allocated.allocated", "gauss_jordan_f64", "named_barriers_7"}


def test_limits_are_those_of_ncu() -> None:
    arch, compared = architecture("sm_90"), 0
    for path in RECORDINGS:
        # the figures alone: reading all counters of all recordings takes a minute
        profile = json.loads(zipfile.ZipFile(path).read("run.json"))["profile"]
        if profile is None:
            continue
        launch = {name.removeprefix("launch__"): value for name, value in profile["launch"].items()}
        given = int(launch["block_size"]), int(launch["registers_per_thread"]), int(launch["shared_mem_per_block"]) - 1024
        config = int(launch["shared_mem_config_size"])
        found = occupancy(arch, *given, int(launch["barrier_count"]), smem_config_bytes=config)
        ncu = {name: int(launch[f"occupancy_limit_{name}"]) for name in found.limits}
        assert found.limits == ncu, path.stem
        expected = occupancy(arch, *given, int(launch["barrier_count"]))
        assert (expected.smem_config_bytes == config) != (path.stem in SMALLER), path.stem
        assert expected.ctas == found.ctas == min(ncu.values()), path.stem
        compared += 1
    assert compared > 400


@pytest.mark.parametrize(
    ("threads", "registers", "smem", "ctas", "binding"),
    [
        (128, 180, 36864, 2, ("registers",)),
        (1024, 32, 0, 2, ("warps", "registers")),
        (32, 16, 0, 32, ("blocks", "shared_mem", "barriers")),
        (256, 255, 0, 1, ("registers",)),
        (128, 32, 227 * 1024 - 1024, 1, ("shared_mem",)),
    ],
)
def test_what_binds(threads: int, registers: int, smem: int, ctas: int, binding: tuple[str, ...]) -> None:
    found = occupancy(architecture("sm_90"), threads, registers, smem)
    assert (found.ctas, found.binding) == (ctas, binding)
    assert found.active_warps == ctas * threads // 32
