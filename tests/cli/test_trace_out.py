"""`--trace-out`: files, errors, and the size that is said beforehand."""

from __future__ import annotations

import json
import re
import shutil
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command

from fasim.cli.app import app
from fasim.cli.job import Job
from fasim.cli.run_options import RunOptions
from fasim.cli.target import prepare
from fasim.cli.trace_out import check_trace_path, size_text, trace_filters, write_trace
from fasim.errors import MemoryAccessError, UsageError
from fasim.report import trace_write
from fasim.report.trace_select import TraceFilters
from fasim.report.trace_write import FORMATS


def job() -> Job:
    return prepare(["fa_v21", "--n", "128", "--bc", "32", "--heads", "2"], RunOptions(), [])


def test_a_trace_says_what_it_is_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = job()
    before = [value.value.copy() for value in made.args if value.is_array]
    summary = write_trace(made, tmp_path / "t.json", TraceFilters(warp=1, tile=0), cta=(0, 1))
    trace = json.loads((tmp_path / "t.json").read_text())
    assert trace["cta"] == [0, 1, 0] and trace["grid"] == [1, 2, 1] and trace["block"] == [128, 1, 1] and trace["warps"] == 4
    assert trace["kernel"] == "fa_v21" and trace["source"] == "10_fa_v21.cu" and trace["arch"] == "sm_90" and trace["compiler"]
    assert trace["options"]["heads"] == 2 and trace["dynamic_smem_bytes"] == made.dynamic_smem_bytes
    assert trace["checked"] is True
    assert trace["event_count"] == summary.events == len(trace["events"]) > 0
    assert summary.size_bytes == (tmp_path / "t.json").stat().st_size
    assert all(a.tobytes() == b.value.tobytes() for a, b in zip(before, [v for v in made.args if v.is_array]))
    assert capsys.readouterr().err == "" and [path.name for path in tmp_path.iterdir()] == ["t.json"]
    assert write_trace(made, tmp_path / "t.pftrace", TraceFilters(warp=1, tile=0), cta=(0, 1)).events == summary.events


def test_a_long_trace_says_its_size_first(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_write, "LONG_EVENTS", 5000)
    path = tmp_path / "t.json"
    summary = write_trace(job(), path, TraceFilters())
    said = re.fullmatch(rf"trace of ([\d,]+) warp instructions: about ([\d.]+) MB in {path}\n", capsys.readouterr().err)
    assert said is not None and int(said[1].replace(",", "")) == summary.events > 5000
    assert 0.5 < float(said[2]) * 1e6 / summary.size_bytes < 1.5
    path.write_text("old")
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(9, 9, 100_000))
    with pytest.raises(UsageError, match=r"the trace takes about .* MB, 100 KB are free; choose less with --warp, --tile or --steps"):
        write_trace(job(), path, TraceFilters())
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_fault_is_raised_when_the_file_is_complete(tmp_path: Path) -> None:
    source = tmp_path / "bad.cu"
    source.write_text('extern "C" __global__ void bad(int *p) { p[threadIdx.x] = 1; if (threadIdx.x == 3) p[5000] = 2; }\n')
    made = prepare([str(source)], RunOptions(grid="1", block="32", args=("i32[32]:zeros",)), [])
    with pytest.raises(MemoryAccessError) as found:
        write_trace(made, tmp_path / "t.json", TraceFilters())
    trace = json.loads((tmp_path / "t.json").read_text())
    assert trace["fault"]["message"] == str(found.value) and trace["fault"]["lanes"] == "0x00000008"
    assert trace["fault"]["where"]["line"] == 1 and trace["events"]
    assert not np.any(made.args[0].value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("t.txt", r"known are \.html \(.*\), \.json \(.*\), \.pftrace \(opens in ui\.perfetto\.dev\).*; name the file .*t\.json"),
        ("t", r"name the file .*t\.json"),
        ("none/t.json", r"there is no directory '.*none'"),
        ("", r"this is a directory; name a file in it"),
    ],
)
def test_a_path_that_cannot_be(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        check_trace_path(tmp_path / name)
    with pytest.raises(UsageError, match=r"CTA \(1, 0, 0\): the grid is \(1, 2, 1\)"):
        write_trace(job(), tmp_path / "t.json", TraceFilters(), cta=(1, 0, 0))


def test_suffixes() -> None:
    (option,) = [each for each in get_command(app).commands["run"].params if "--trace-out" in each.opts]
    assert option.metavar == f"FILE{'|'.join(FORMATS)}" and check_trace_path(Path("T.JSON")) is None


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1234, "1.23 KB"), (123_456_789, "123 MB"), (5e12, "5e+03 GB")]
)
def test_sizes(size: float, text: str) -> None:
    assert size_text(size) == text


def test_filters_of_options() -> None:
    assert trace_filters(None, None, None) == TraceFilters()
    assert trace_filters(1, -1, "S = QK^T, O_PV") == TraceFilters(1, -1, ("S = QK^T", "O_PV"))
    for text in ("", "S_QK,"):
        with pytest.raises(UsageError, match=r"--steps '.*': names or texts of steps are expected"):
            trace_filters(None, None, text)
