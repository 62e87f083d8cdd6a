"""Profile launches with ncu, many in one session."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import fasim
from fasim.errors import FasimError
from fasim.gpu import replay
from fasim.gpu.code import MachineCode
from fasim.gpu.ncu import run_ncu
from fasim.gpu.ncu_reader import Launch, read_report
from fasim.gpu.packed import PackedLaunch
from fasim.report.measured import Profile
from fasim.sass.listing import listing

#: how often ncu repeats a launch, at most
_PASSES = 40


def profile_launches(
    launches: Sequence[tuple[MachineCode, PackedLaunch]], device: int, *, keep: Path | None = None, timeout_seconds: float = 60.0
) -> list[Profile]:
    """Profile each launch once, in a process of its own; device: number of the GPU. keep: where to leave ncu's own report.
    timeout_seconds: for one launch without ncu, which repeats it some tens of times.

    Returns: a profile for each launch; its instructions are empty where the driver made the machine code, which nobody can list then.
    Raises: ToolMissing without ncu or the permission for counters; what a launch failed with; FasimError with what ncu said.
    """
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "launches.pickle"
        with work.open("wb") as file:
            replay.write(file, ((each.code, launch) for each, launch in launches))
        report = keep or Path(folder) / "profile.ncu-rep"
        path = os.pathsep.join(filter(None, (str(Path(fasim.__file__).parent.parent), os.environ.get("PYTHONPATH", ""))))
        command = [sys.executable, "-m", "fasim.gpu.replay", str(device), str(work), str(_PASSES * timeout_seconds)]
        longest = max(600.0, 30.0 * len(launches), 2 * _PASSES * timeout_seconds)
        tool = run_ncu(command, report, env={**os.environ, "PYTHONPATH": path}, timeout_seconds=longest)
        # ncu-report reads on while it is asked: the file has to stay until then
        found = read_report(report)
        if [each.kernel for each in found] != [launch.entry for _, launch in launches]:
            names = ", ".join(sorted({each.kernel for each in found}))
            raise FasimError(f"ncu's report holds {len(found)} launches ({names}), not the {len(launches)} that were to be profiled")
        return [_profile(each, code, tool) for each, (code, _) in zip(found, launches)]


def _profile(found: Launch, code: MachineCode, tool: str) -> Profile:
    if not code.cubin:
        return Profile(tool, dict(found.counters), dict(found.launch))
    return found.profile(listing(code.cubin, found.kernel), tool)
