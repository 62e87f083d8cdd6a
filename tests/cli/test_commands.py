"""The other commands, and what only a process of its own can show."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import pytest

import fasim
from fasim import kernels
from fasim.cli import doctor, progress, run
from fasim.toolchain.cache import cached
from fasim.warp.jit import machine_key

SPIN = """
extern "C" __global__ void spin(int* p) {
  int x = 1;
  for (long long i = 0; i < 1000000000000; ++i) { x = x * 3 + 1; asm volatile("" : "+r"(x)); }
  p[blockIdx.x] = x;
}
"""


def command(*words, **options):
    return subprocess.run([sys.executable, "-m", "fasim", *words], capture_output=True, text=True, timeout=120, **options)


def test_version_in_a_process(tmp_path):
    done = command("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"fasim {fasim.__version__}\n", "")


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["kernels", "--help"], ["doctor", "--help"], ["cache", "--help"]])
def test_help(fasim_command, words):
    done = fasim_command(*words)
    assert (done.code, done.err) == (0, "") and "Usage: fasim" in done.out


@pytest.mark.parametrize(("words", "message"), [(["rnu"], "rnu"), (["doctor", "--jsno"], "--jsno"), (["kernels", "fa"], "fa_v2")])
def test_wrong_commands(fasim_command, words, message):
    done = fasim_command(*words)
    assert (done.code, done.out) == (2, "") and message in done.err


def test_kernels(fasim_command):
    done = fasim_command("kernels")
    for name in kernels.names():
        assert f"{name}: {kernels.load(name).title}\n" in done.out
    alone = fasim_command("kernels", "gemm_mma").out
    assert "06_gemm_mma.cu" in alone and "a multiple of 8" in alone and "axpy" not in alone
    record = fasim_command("kernels", "--json").record
    assert [entry["name"] for entry in record] == kernels.names()
    assert {"flag": "--head-dim", "default": 64, "choices": [64, 128]}.items() <= record[-1]["options"][3].items()


def test_doctor_on_a_healthy_machine(fasim_command):
    done = fasim_command("doctor")
    assert done.code == 0 and "The simulator has what it needs." in done.out
    record = fasim_command("doctor", "--json").record
    assert record["healthy"] and {row["name"] for row in record["findings"]} >= {"Python", "NVRTC", "CUDA headers", "GPU", "ncu"}


def test_doctor_names_the_command_that_mends(fasim_command, monkeypatch):
    def absent():
        raise ImportError("No module named 'numba'")

    rows = [("numba", True, "pip install numba", absent), ("ncu", False, "install it", absent)]
    monkeypatch.setattr(doctor, "CHECKS", rows)
    done = fasim_command("doctor")
    assert done.code == 4
    assert "MISSING  numba" in done.out and "pip install numba" in done.out and "absent   ncu" in done.out
    assert not fasim_command("doctor", "--json").record["healthy"]
    monkeypatch.setattr(doctor, "CHECKS", rows[1:])
    assert fasim_command("doctor").code == 0


def test_missing_compiler_is_exit_code_4(fasim_command, monkeypatch, tmp_path):
    from fasim.toolchain import nvrtc

    monkeypatch.setenv("FASIM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(nvrtc, "library_paths", list)
    nvrtc.library.cache_clear()
    try:
        done = fasim_command("run", "axpy", "--json")
    finally:
        monkeypatch.undo()
        nvrtc.library.cache_clear()
    assert done.code == 4 and "pip install" in done.err
    assert done.record["type"] == "ToolMissing"


def test_cache_clears_only_its_own_files(fasim_command, monkeypatch, tmp_path):
    monkeypatch.setenv("FASIM_CACHE_DIR", str(tmp_path / "kept"))
    assert "0 files" in fasim_command("cache").out
    cached("ab" + "0" * 62, ".module", lambda: b"data")
    (tmp_path / "kept" / "mine.txt").write_text("mine")
    (tmp_path / "kept" / "ab" / "mine.txt").write_text("mine")
    assert "1 files" in fasim_command("cache").out
    assert fasim_command("cache", "--clear").code == 0
    assert sorted(path.name for path in (tmp_path / "kept").rglob("*.*")) == ["mine.txt", "mine.txt"]


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(("grid", "options"), [("1", []), ("8", ["--json"])])
def test_interrupt(fasim_command, tmp_path, grid, options):
    """SIGINT ends a launch in the main thread and one in worker threads within a second."""
    (tmp_path / "spin.cu").write_text(SPIN)
    words = ["run", "spin.cu", "--grid", grid, "--block", "32", "--arg", "p=i32[8]:zeros", *options]
    # fills the caches, so that the process below is soon at its launch
    assert fasim_command(*words, "--max-instructions", "1000").code == 1
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-m", "fasim", *words], cwd=tmp_path, **pipes)
    try:
        time.sleep(3)
        assert process.poll() is None
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert time.monotonic() - started < 1.5
    finally:
        process.kill()
    assert process.returncode == 130
    assert err.endswith("interrupted\n") and "Traceback" not in err
    if options:
        assert '"exit_code": 130' in out


def test_progress_bar_shows_only_on_terminals_and_long_runs(capfd, monkeypatch):
    with progress.progress_bar("kernel") as callback:
        assert callback is None
    bar = progress._Bar("kernel")
    bar.update(1, 4)
    bar.close()
    assert capfd.readouterr().err == ""
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes standard error for a terminal
    bar = progress._Bar("kernel")
    bar.update(1, 4)
    bar.update(4, 4)
    bar.close()
    assert "4/4 CTAs" in re.sub(r"\x1b\[[\d;]*m", "", capfd.readouterr().err)


def test_first_start_is_announced_once(capfd, monkeypatch, tmp_path):
    monkeypatch.setenv("FASIM_CACHE_DIR", str(tmp_path))
    run._announce_first_start()
    assert capfd.readouterr().err.startswith("compiling the machine, once: ")
    cached(machine_key(), ".machine", lambda: b"compiled")
    run._announce_first_start()
    assert capfd.readouterr().err == ""


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([sys.executable, "-m", "fasim", "kernels"], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (RuntimeError("odd"), 70, "This is a bug in fasim."),
        (OSError(28, "No space left on device"), 2, "error: No space left on device: output"),
        (MemoryError("8 TiB"), 2, "error: out of memory: 8 TiB"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_what_no_command_expects(fasim_command, monkeypatch, error, code, message):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr("fasim.cli.kept.show", fail)
    done = fasim_command("cache")
    assert (done.code, done.out) == (code, "") and message in done.err
    assert ("Traceback" in done.err) == (code == 70)


def test_nothing_heavy_is_imported_before_it_is_needed(tmp_path):
    code = (
        "import sys\nfrom fasim.cli.main import main\nmain(['--version'])\n"
        "print(sorted({'numpy', 'numba', 'matplotlib', 'rich.progress', 'rich.table'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
