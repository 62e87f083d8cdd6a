"""`fasim gpu list`: the GPUs of this machine."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import fasim
from fasim.gpu.device import Device
from fasim.gpu.driver import pycuda_driver
from fasim.report.measured import Card
from fasim.report.records import to_json
from fasim.report.text import aligned

GPU_LIST_SCHEMA = "fasim.gpu.list/1"


@dataclass(frozen=True)
class GpuListReport:
    """The GPUs in the driver's order; limits: fields of `fasim.arch.Architecture`, from the driver."""

    cards: list[Card]
    limits: list[dict[str, object]]
    version: str
    schema: str = field(default=GPU_LIST_SCHEMA, kw_only=True)


def show(*, json: bool) -> int:
    """Print the GPUs.

    Returns: 0. Raises: ToolMissing if there is none.
    """
    devices = [Device(i) for i in range(pycuda_driver().Device.count())]
    limits = [dataclasses.asdict(device.architecture) for device in devices]
    if json:
        print(to_json(GpuListReport([device.card for device in devices], limits, fasim.__version__)))
        return 0
    for device in devices:
        card, arch = device.card, device.architecture
        rows = [
            (f"GPU {device.index}", f"{card.name} ({card.arch}), driver {card.driver}"),
            ("SMs", f"{card.sms}, up to {card.sm_clock_khz / 1000:,.0f} MHz; {arch.warps_per_sm} warps and {arch.ctas_per_sm} CTAs each"),
            ("shared memory", f"{arch.smem_sm_bytes:,} bytes an SM, {arch.smem_opt_in_bytes:,} a CTA"),
            ("memory", f"{card.memory_bytes:,} bytes, L2 cache {card.l2_bytes:,} bytes"),
        ]
        if not device.simulated:
            rows.append(("fasim", f"does not simulate {card.arch}: kernels run here, but there is nothing to compare them with"))
        print("\n".join(aligned(rows)))
    return 0
