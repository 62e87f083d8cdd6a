"""Tracing what lasts long or never ends: progress on a terminal, Ctrl-C, --max-instructions."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fasim.cli import progress
from fasim.cli.launching import Call
from fasim.cli.run_options import RunOptions
from fasim.cli.target import prepare
from fasim.cli.trace import make_session
from fasim.cli.trace_out import write_trace
from fasim.report.trace_select import TraceFilters

ENDLESS = """extern "C" __global__ void endless(int* p) {
  int x = 1;
  while (x != 0) { x |= 1; asm volatile("" : "+r"(x)); }
  p[threadIdx.x] = x;
}
"""
WORDS = ["endless.cu", "--grid", "1", "--block", "32", "--arg", "p=i32[32]:zeros"]


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    path = tmp_path / "endless.cu"
    path.write_text(ENDLESS)
    return path


def read_until(descriptor: int, wanted: str, seconds: float) -> str:
    """What a terminal shows until a text comes, or its end."""
    text, until = "", time.monotonic() + seconds
    while wanted not in text and time.monotonic() < until:
        try:
            text += os.read(descriptor, 4096).decode(errors="replace")
        except OSError:  # the other side has gone
            break
    return text


@pytest.mark.skipif(os.name == "nt", reason="signals and terminals")
@pytest.mark.parametrize("suffix", [".json", ".pftrace"])
def test_ctrl_c_while_the_cta_is_walked(suffix: str, endless: Path, tmp_path: Path) -> None:
    """The display comes and goes, the older file stays, no other is left."""
    import pty

    out = tmp_path / f"t{suffix}"
    out.write_text("old")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "fasim", "run", *WORDS, "--trace-out", out.name]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    try:
        shown = read_until(ours, "warp instructions", 60)
        assert "tracing endless" in shown and re.search(r"\d+/\? warp", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown))
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        shown = read_until(ours, "no such text", 20)
        assert process.wait(20) == 130 and time.monotonic() - started < 1.5
    finally:
        process.kill()
        process.communicate()
        os.close(ours)
    assert shown.replace("\r", "").endswith("interrupted\n") and "Traceback" not in shown
    assert out.read_text() == "old" and sorted(path.name for path in tmp_path.iterdir()) == ["endless.cu", out.name]


def test_progress_of_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows how far it is to the end on the first way; on the second one, which writes, it is known."""
    told: list[tuple[int, int | None]] = []
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress._Bar, "update", lambda self, done, total: told.append((done, total)))
    summary = write_trace(prepare(["fa_v21", "--n", "64", "--heads", "1"], RunOptions(), []), tmp_path / "t.json", TraceFilters(warp=1))
    total = max(filter(None, (total for _, total in told)))
    steps = list(range(256, total, 256))
    assert told == [*((step, None) for step in steps), *((step, total) for step in steps)] and 0 < summary.events < total


def test_trace_honours_max_instructions(endless: Path) -> None:
    options = RunOptions(grid="2", block="32", args=("p=i32[32]:zeros",), max_instructions=500)
    call = Call([str(endless)], options, [], 0.0)
    session = make_session(prepare(call.words, options, []), call)
    for cta in ("0", "1"):
        session.choose_cta(cta)
        session.go_to("end")
        assert "executed 500 warp instructions" in session.message and session.stepper.position == 500
