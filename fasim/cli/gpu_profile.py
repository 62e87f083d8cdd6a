"""`fasim gpu profile`: what Nsight Compute counts, by source line and in total."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import fasim
from fasim.cli.launching import Call
from fasim.cli.on_gpu import GpuOptions, each_variant
from fasim.errors import UsageError
from fasim.gpu.driver import pycuda_driver
from fasim.gpu.profiling import profile_launches
from fasim.report.gpu_reports import GpuProfiled, GpuProfileReport
from fasim.report.records import to_json
from fasim.toolchain.tools import find_tool


def profile(call: Call, gpu: GpuOptions, keep: Path | None) -> int:
    """Carry out `fasim gpu profile`; keep: where to leave ncu's report.

    Returns: 0. Raises: FasimError.
    """
    pycuda_driver()
    find_tool("ncu")
    if keep is not None and (keep.suffix != ".ncu-rep" or not keep.parent.is_dir()):
        raise UsageError(f"--keep {keep}: name a file that ends in .ncu-rep, in a directory that there is")
    with each_variant(call, gpu) as (device, variants):
        chosen = list(variants)
        # a launch that fails should do so here, where the message is ours
        for each in chosen:
            each.changed_by_run(gpu.timeout_seconds)
        facts = [each.facts() for each in chosen]
        modules = [each.job.kernel.module.compiled for each in chosen]
        texts = {module.source_path: module.source_text for module in modules if module is not None}
    # the context is given back: ncu's process may need the GPU for itself
    launches = [(each.code, each.packing.launch) for each in chosen]
    profiles = profile_launches(launches, gpu.device, keep=keep, timeout_seconds=gpu.timeout_seconds)
    found = [GpuProfiled(each, profile) for each, profile in zip(facts, profiles)]
    report = GpuProfileReport(device.card, found, fasim.__version__, str(keep) if keep else None)
    if call.options.json:
        print(to_json(report))
    else:
        from fasim.report.gpu_text import print_profiles

        print_profiles(report, texts, columns=shutil.get_terminal_size().columns if sys.stdout.isatty() else 160)
    return 0
