"""One run of ncu, with shell scripts in its place that print what ncu prints."""

from __future__ import annotations

import itertools
import os
import stat
import time
from pathlib import Path

import pytest

from fasim.errors import CompileError, ExecutionError, FasimError, NotModelled, ToolMissing, UsageError
from fasim.gpu.ncu import COUNTERS, SECTIONS, ncu_version, run_ncu
from fasim.toolchain import tools

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the scripts are for a POSIX shell")

#: answers --version; keeps its arguments; finds the report's place; leaves the profiled command in "$@"
HEAD = """#!/bin/sh
if [ "$1" = --version ]; then
    echo "NVIDIA (R) Nsight Compute Command Line Profiler"
    echo "Copyright (c) 2018-2025 NVIDIA Corporation"
    echo "Version 2025.3.1.0 (build 36398880) (public-release)"
    exit 0
fi
printf '%s\\n' "$@" > "${0%/*}/arguments"
while [ "$1" != -o ]; do shift; done
out=$2; shift 2
echo "==PROF== Connected to process 4711 (/usr/bin/python3.12)"
"""
REPORT = """printf report > "$out"
echo "==PROF== Profiling \\"k\\": 0%....50%....100% - 20 passes"
echo "==PROF== Disconnected from process 4711"
echo "==PROF== Report: $out"
"""
#: runs the command and says what ncu says if it fails
COMMAND = """"$@"
code=$?
echo "==PROF== Disconnected from process 4711"
if [ $code != 0 ]; then
    echo "==ERROR== The application returned an error code ($code)."
    echo "==WARNING== No kernels were profiled."
    exit $code
fi
"""
KILLED = """echo "==PROF== Trying to shutdown target application"
echo "==ERROR== The application returned an error code (9)."
echo "==ERROR== An error occurred while trying to profile."
echo "==WARNING== No kernels were profiled."
exit 9
"""


@pytest.fixture
def ncu(tmp_path, monkeypatch):
    """Puts a script in the place of ncu."""

    def put(body: str) -> Path:
        path = tmp_path / "bin" / "ncu"
        path.parent.mkdir(exist_ok=True)
        path.write_text(HEAD + body)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    (tmp_path / "out").mkdir()
    return put


@pytest.fixture
def report(tmp_path) -> Path:
    return tmp_path / "out" / "x.ncu-rep"


def shell(text: str) -> list[str]:
    return ["/bin/sh", "-c", text]


def test_a_run(ncu, report):
    script = ncu(COMMAND + REPORT)
    assert run_ncu(shell('test "$A" = b'), report, env={"A": "b", "PATH": "/usr/bin:/bin"}) == "2025.3.1.0"
    assert report.read_text() == "report"
    assert list(report.parent.iterdir()) == [report]
    words = (script.parent / "arguments").read_text().splitlines()
    pairs = list(itertools.pairwise(words))
    for pair in [("--clock-control", "none"), ("--target-processes", "all"), ("--profile-from-start", "off"), ("--import-source", "no")]:
        assert pair in pairs
    assert [b for a, b in pairs if a == "--section"] == list(SECTIONS)
    assert [b.split(",") for a, b in pairs if a == "--metrics"] == [list(COUNTERS)]
    assert "-f" in words and words[-3:] == shell('test "$A" = b')


def test_the_program_may_write_error_and_yet_succeed(ncu, report):
    ncu(COMMAND + REPORT)
    run_ncu(shell("echo 'error: not at all' >&2"), report)
    assert report.exists()


NOT_READY = {
    "permission": (
        "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0. "
        "For instructions on enabling permissions and to get more information see https://developer.nvidia.com/ERR_NVGPUCTRPERM",
        r"may not read .* Run as root, .*NVreg_RestrictProfilingToAdminUsers=0.*https://developer.nvidia.com/ERR_NVGPUCTRPERM",
    ),
    "chip": (
        "==ERROR== Profiling is not supported on device 0. To find out supported GPUs refer --list-chips option.",
        r"does not support this GPU.*--list-chips.*https://",
    ),
    "wsl": (
        "==ERROR== Profiling is not supported on device 0 as it uses the Windows Subsystem for Linux (WSL).",
        r"Windows Subsystem for Linux.*newer driver",
    ),
    "driver": ("==ERROR== Cuda driver is not compatible with Nsight Compute.", r"ncu and the driver do not fit.*nvidia-smi"),
    "busy": (
        "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) is concurrently "
        "collecting profiling data.",
        r"another tool holds .*dcgmi profile --pause",
    ),
}


@pytest.mark.parametrize("end", [KILLED, COMMAND, COMMAND + REPORT], ids=["killed", "ran on", "report all the same"])
@pytest.mark.parametrize("name", NOT_READY)
def test_machine_that_is_not_ready(ncu, report, name, end):
    said, expected = NOT_READY[name]
    ncu(f"echo '{said}'\n{end}")
    # the program, killed or robbed of its GPU, has last words too: they are not what matters
    with pytest.raises(ToolMissing, match=rf"ncu 2025.3.1.0 cannot profile here: .*{expected}") as caught:
        run_ncu(shell("echo 'error: cuLaunchKernel failed' >&2; exit 2"), report)
    assert caught.value.exit_code == 4
    assert list(report.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "kind"), [(1, ExecutionError), (2, UsageError), (3, NotModelled), (4, ToolMissing), (5, CompileError), (77, FasimError)]
)
@pytest.mark.parametrize("own_code", ["exit $code", "exit 1", "exit 0"])
def test_the_program_failed(ncu, report, code, kind, own_code):
    ncu(COMMAND.replace("exit $code", own_code))
    with pytest.raises(FasimError) as caught:
        run_ncu(shell(f"echo warning >&2; echo 'error: first' >&2; echo 'error: no GPU here: get one' >&2; exit {code}"), report)
    assert type(caught.value) is kind
    assert str(caught.value) == "no GPU here: get one"
    assert caught.value.exit_code == code
    assert kind.exit_code != 77


OTHER = {
    "metric": (
        "echo '==ERROR== Failed to find metric regex:^nonsense(\\.|$)'\nexit 1",
        r"ncu 2025.3.1.0 failed with exit code 1: ==ERROR== Failed to find metric regex",
    ),
    "crash": (COMMAND, r"failed with exit code 139: ==ERROR== The application returned an error code \(139\)"),
    "killed": ("echo '==ERROR== LaunchFailed'\n" + KILLED, r"exit code 9: ==ERROR== LaunchFailed / .*\(9\)"),
    "killed, and ncu says 0": ("echo '==ERROR== LaunchFailed'\n" + KILLED.replace("exit 9", ""), r"==ERROR== LaunchFailed"),
    "option": ("echo \"==ERROR== unrecognised option '--import-source'\" >&2\nexit 1", r"unrecognised option '--import-source'"),
    "silence": ("exit 3", r"exit code 3: ==PROF== Connected"),
    "no kernel": ("echo '==WARNING== No kernels were profiled.'", r"no kernel between cuProfilerStart and cuProfilerStop"),
    "no report": ("", r"no kernel between cuProfilerStart and cuProfilerStop"),
}


@pytest.mark.parametrize("name", OTHER)
def test_other_failures(ncu, report, name):
    body, expected = OTHER[name]
    ncu(body)
    report.write_text("an earlier one")
    with pytest.raises(FasimError, match=expected) as caught:
        run_ncu(shell("exit 139"), report)
    assert type(caught.value) is FasimError
    assert report.read_text() == "an earlier one"
    assert list(report.parent.iterdir()) == [report]


def test_a_report_written_before_the_failure_is_not_kept(ncu, report):
    ncu(REPORT + KILLED)
    with pytest.raises(FasimError, match="exit code 9"):
        run_ncu(shell("true"), report)
    assert list(report.parent.iterdir()) == []


def test_too_long(ncu, report, tmp_path):
    ncu(f'"$@" &\necho $! > {tmp_path}/pid\nwait\n' + REPORT)
    start = time.monotonic()
    with pytest.raises(FasimError, match=r"did not end within 0.5 s"):
        run_ncu(shell("exec sleep 30"), report, timeout_seconds=0.5)
    assert time.monotonic() - start < 10
    assert list(report.parent.iterdir()) == []
    pid = int((tmp_path / "pid").read_text())
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            break
        if state in "ZX":
            break
        time.sleep(0.05)
    else:
        pytest.fail("the profiled program still runs")


def test_no_ncu(report, tmp_path, monkeypatch):
    monkeypatch.setattr(tools, "_in", lambda roots, file: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match=r"ncu is neither .* put ncu on the PATH") as caught:
        run_ncu(shell("true"), report)
    assert caught.value.exit_code == 4


def test_ncu_that_does_not_start(ncu, report):
    ncu("").write_text("#!/no/such/interpreter\n")
    with pytest.raises(FasimError, match="cannot be started"):
        run_ncu(shell("true"), report)


def test_ncu_without_a_version(ncu):
    ncu("").write_text("#!/bin/sh\necho what\nexit 1\n")
    with pytest.raises(FasimError, match="does not tell its version: what"):
        ncu_version()


def test_no_folder_for_the_report(ncu, tmp_path):
    ncu(REPORT)
    with pytest.raises(UsageError, match=r"cannot be written to .*nowhere"):
        run_ncu(shell("true"), tmp_path / "nowhere" / "x.ncu-rep")
