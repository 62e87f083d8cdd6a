"""`fasim gpu time`: how long a launch takes, cold and warm."""

from __future__ import annotations

import fasim
from fasim.cli.launching import Call
from fasim.cli.on_gpu import GpuOptions, OnGpu, each_variant
from fasim.gpu.timing import time_launch
from fasim.report.gpu_reports import GpuTimed, GpuTimeReport
from fasim.report.measured import Timing
from fasim.report.records import to_json


def time(call: Call, gpu: GpuOptions, repetitions: int | None, warm_up: int, flops: int | None) -> int:
    """Carry out `fasim gpu time`.

    Returns: 0. Raises: FasimError.
    """
    with each_variant(call, gpu) as (device, variants):
        found = []
        for each in variants:
            both = timings(each, gpu, repetitions=repetitions, warm_up=warm_up, flops=flops)
            cold, warm = both["cold"], both["warm"]
            found.append(GpuTimed(each.facts(), cold, warm, round(cold.tflops, 3), round(warm.tflops, 3)))
        report = GpuTimeReport(device.card, found, fasim.__version__)
    if call.options.json:
        print(to_json(report))
    else:
        from fasim.report.gpu_text import time_table

        print(time_table(report))
    return 0


def timings(
    each: OnGpu,
    gpu: GpuOptions,
    *,
    repetitions: int | None = None,
    warm_up: int = 5,
    flops: int | None = None,
    seconds: float = 1.0,
) -> dict[str, Timing]:
    """Both times of a launch: `cold` and `warm`. The job's arrays stay as they are.

    repetitions: launches that are timed; None: as many as take `seconds`, within limits.

    Raises: GpuError, GpuFault.
    """
    changed = each.changed_by_run(gpu.timeout_seconds)
    return {
        kind: time_launch(
            each.kernel,
            each.packing.launch,
            changed,
            warm_up=warm_up,
            repetitions=repetitions,
            seconds=seconds,
            rotate=kind == "cold",
            flops=each.job.flops if flops is None else flops,
            timeout_seconds=gpu.timeout_seconds,
        )
        for kind in ("cold", "warm")
    }
