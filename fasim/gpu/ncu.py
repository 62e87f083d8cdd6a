"""Nsight Compute's command line: which counters a profile needs, and one run of ncu with everything that can go wrong in it.

Source: Nsight Compute CLI manual, "Command Line Options" (https://docs.nvidia.com/nsight-compute/NsightComputeCli/index.html).
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from fasim.errors import CompileError, ExecutionError, FasimError, NotModelled, ToolMissing, UsageError
from fasim.toolchain.tools import find_tool

#: what ncu collects by groups: counters and samples an instruction; launch and occupancy
SECTIONS = ("SourceCounters", "LaunchStats", "Occupancy")

#: raw counters by ncu's names. All of them exist on GA10x, GA100, AD10x, GH100, GB100 and GB20x (asked of libnvperf_host, release 2026.3):
#: ncu refuses the whole run for one name that the GPU has not, so what only some have must not be added here.
COUNTERS = (
    # wavefronts of shared memory, which the simulation must give. The first is more than the sum of the others: copies into shared memory
    # are in it, and with several CTAs an SM the stores and it contain arbitration, which changes from run to run
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",
    # those of them that are there because of bank conflicts
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum",
    # shared, global and local memory together: what the pipe is busy with
    "l1tex__data_pipe_lsu_wavefronts.sum",
    # duration in cycles: of the whole launch, and of an SM from its first CTA to its last
    "sm__cycles_elapsed.max",
    "sm__cycles_active.avg",
    "sm__cycles_active.sum",
    # duration in ns
    "gpu__time_duration.sum",
    # warp instructions by a hardware counter: equals the sum of inst_executed, which ncu gets by patching the code
    "smsp__inst_executed.sum",
    # tensor-core instructions
    "sm__inst_executed_pipe_tensor.sum",
    # traffic of the L2 in sectors of 32 bytes, and of the memory in bytes
    "lts__t_sectors.sum",
    "dram__bytes.sum",
)

_REPORT_NAME = "profile.ncu-rep"
_PERMISSION_PAGE = "https://developer.nvidia.com/ERR_NVGPUCTRPERM"

#: what ncu prints where the machine is not ready, and what to do about it
_NOT_READY = (
    (
        r"ERR_NVGPUCTRPERM",
        "this user may not read the GPU's performance counters. Run as root, or have the driver's module loaded with "
        f"NVreg_RestrictProfilingToAdminUsers=0; a container also needs --cap-add=SYS_ADMIN. How: {_PERMISSION_PAGE}",
    ),
    (
        r"==ERROR==.*Profiling is not supported on device .*WSL",
        "ncu cannot profile in this Windows Subsystem for Linux. It needs Windows 11 and a newer driver, or Windows or Linux itself",
    ),
    (
        r"==ERROR==.*Profiling is not supported on device",
        "this ncu does not support this GPU. `ncu --list-chips` names those that it does; install a release of Nsight Compute that lists "
        "yours (the newest knows no GPU before Turing): https://developer.nvidia.com/tools-overview/nsight-compute/get-started",
    ),
    (
        r"Cuda driver is not compatible with Nsight Compute",
        "ncu and the driver do not fit. Update the driver, or take the Nsight Compute of the CUDA release that `nvidia-smi` shows",
    ),
    (
        r"Profiling failed because a driver resource was unavailable",
        "another tool holds the GPU's performance counters. End other profilers; on servers with DCGM run `dcgmi profile --pause` first "
        "and `dcgmi profile --resume` afterwards",
    ),
)

_CHILD_CODE = re.compile(r"==ERROR== The application returned an error code \((\d+)\)")
#: the error classes by what the command line returns for them
_BY_EXIT_CODE: dict[int, type[FasimError]] = {
    kind.exit_code: kind for kind in (ExecutionError, UsageError, NotModelled, ToolMissing, CompileError)
}


def ncu_version() -> str:
    """The version of the ncu that would run, for example `2025.3.1.0`.

    Raises: ToolMissing if there is none; FasimError if it does not run.
    """
    _, output, errors = _execute([find_tool("ncu"), "--version"], None, 60)
    found = re.search(r"^Version (\S+)", output, re.MULTILINE)
    if not found:
        raise FasimError(f"ncu does not tell its version: {_last_lines(output + errors)}")
    return found[1]


def ncu_command(command: Sequence[str], report: Path) -> list[str]:
    """The command line that profiles `command` into `report`.

    Clocks are left as they are. Only what runs between cuProfilerStart and cuProfilerStop is profiled, in any process of `command`.
    Raises: ToolMissing if there is no ncu.
    """
    options = ["--clock-control", "none", "--target-processes", "all", "--profile-from-start", "off", "--import-source", "no"]
    sections = [word for name in SECTIONS for word in ("--section", name)]
    # ncu replaces %p, %h and the like in the name
    place = str(report).replace("%", "%%")
    return [find_tool("ncu"), *options, *sections, "--metrics", ",".join(COUNTERS), "-f", "-o", place, *command]


def run_ncu(command: Sequence[str], report: Path, *, env: Mapping[str, str] | None = None, timeout_seconds: float = 600) -> str:
    """Profile a command and leave the report at `report`, where any earlier one stays if this run fails.

    command: a program that launches between cuProfilerStart and cuProfilerStop. If it fails, its last words on stderr are
    `error: ...`, and it exits with the code of its FasimError. env: its environment, this process's if None.
    Returns: ncu's version.
    Raises: ToolMissing if ncu is not there, or may not or cannot profile this GPU; what `command` failed with, as the class of its exit
    code; else FasimError with ncu's own last lines.
    """
    version = ncu_version()
    try:
        folder = tempfile.TemporaryDirectory(dir=report.parent, prefix=".ncu-")
    except OSError as error:
        raise UsageError(f"the profile cannot be written to {report.parent}: {error.strerror}") from error
    with folder as name:
        made = Path(name) / _REPORT_NAME
        code, output, errors = _execute(ncu_command(command, made), env, timeout_seconds)
        failure = _failure(code, output, errors, made.is_file(), version)
        if failure:
            raise failure
        os.replace(made, report)
    return version


def _failure(code: int, output: str, errors: str, has_report: bool, version: str) -> FasimError | None:
    """What went wrong, None if nothing did. ncu kills the program when it fails itself, so its own reasons are looked for first."""
    text = f"{output}\n{errors}"
    for pattern, advice in _NOT_READY:
        if re.search(pattern, text):
            return ToolMissing(f"ncu {version} cannot profile here: {advice}")
    returned = _CHILD_CODE.search(text)
    child_code = int(returned[1]) if returned else code
    if child_code and (words := _last_words(errors)):
        failed = _BY_EXIT_CODE.get(child_code, FasimError)(words)
        if failed.exit_code != child_code:
            failed.exit_code = child_code
        return failed
    if code or returned:
        return FasimError(f"ncu {version} failed with exit code {code}: {_last_lines(text)}")
    if "No kernels were profiled" in text or not has_report:
        return FasimError(f"ncu {version} saw no kernel between cuProfilerStart and cuProfilerStop. It said: {_last_lines(text)}")
    return None


def _last_words(errors: str) -> str:
    """The message after the last `error: ` that begins a line of the program's, without what ncu printed behind it."""
    lines = [line for line in errors.splitlines() if not line.startswith("==")]
    starts = [index for index, line in enumerate(lines) if line.startswith("error: ")]
    return "\n".join(lines[starts[-1] :]).removeprefix("error: ").strip() if starts else ""


def _last_lines(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("==ERROR==")]
    return " / ".join((own or lines)[-6:]) or "it printed nothing"


def _execute(command: Sequence[str], env: Mapping[str, str] | None, timeout_seconds: float) -> tuple[int, str, str]:
    """Exit code, stdout and stderr. All processes that it started are killed if it takes too long or this one is interrupted."""
    own = None if env is None else dict(env)
    try:
        process = subprocess.Popen(
            command,
            env=own,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise FasimError(f"{command[0]} cannot be started: {error.strerror}") from error
    with process:
        try:
            output, errors = process.communicate(timeout=timeout_seconds)
        except subprocess.TimeoutExpired as error:
            _kill(process)
            raise FasimError(f"ncu did not end within {timeout_seconds:g} s and was stopped. Profile a smaller launch") from error
        except BaseException:
            _kill(process)
            raise
    return process.returncode, output, errors


def _kill(process: subprocess.Popen[str]) -> None:
    if os.name == "nt":
        process.kill()
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
