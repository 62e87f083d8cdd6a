"""A job of the command line on a GPU: from words to a kernel that is loaded and packed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fasim.arch import Architecture
from fasim.cli.job import Job
from fasim.cli.launching import Call
from fasim.cli.target import Variant, variants
from fasim.gpu.code import MachineCode, machine_code
from fasim.gpu.device import Device
from fasim.gpu.launch import GpuModule, GpuRun
from fasim.gpu.packed import Packing
from fasim.report.gpu_reports import GpuLaunchFacts


@dataclass(frozen=True)
class GpuOptions:
    """The options that all commands on a GPU have."""

    device: int = 0
    timeout_seconds: float = 60.0


def for_device(call: Call, device: Device) -> Call:
    """The call compiled for this GPU, unless --arch says otherwise."""
    return call if call.options.arch else call.with_options(arch=device.card.arch)


def jobs_of(call: Call) -> Iterator[tuple[Variant, Job]]:
    """All variants that the command line asks for, made ready one after the other."""
    for variant in variants(call.words, call.options, call.general):
        yield variant, variant.prepare()


class OnGpu:
    """A job packed for a device and its kernel loaded there; the job's arrays change in place when it runs."""

    def __init__(self, device: Device, job: Job, label: str = "") -> None:
        self.device, self.job, self.label = device, job, label
        self.code: MachineCode = machine_code(job.kernel.module, device.card)
        self.packing = pack_job(job, device.architecture)
        self.kernel = GpuModule(device, self.code.code, self.code.arch).kernel(self.packing.launch.entry)

    def run(self, timeout_seconds: float) -> GpuRun:
        """Launch once.

        Raises: GpuError, GpuFault.
        """
        done = self.kernel.run(self.packing.launch, timeout_seconds=timeout_seconds)
        self.packing.write_back(done.variables)
        return done

    def changed_by_run(self, timeout_seconds: float) -> list[int]:
        """Launch once, and tell which buffers it changed; the buffers are put back."""
        buffers = self.packing.launch.buffers
        before = [buffer.copy() for buffer in buffers]
        self.kernel.run(self.packing.launch, timeout_seconds=timeout_seconds)
        changed = [i for i, (old, new) in enumerate(zip(before, buffers)) if old.tobytes() != new.tobytes()]
        for i in changed:
            buffers[i][...] = before[i]
        return changed

    def facts(self) -> GpuLaunchFacts:
        """What ran where, for reports."""
        job, launch = self.job, self.packing.launch
        return GpuLaunchFacts(
            label=self.label,
            kernel=job.kernel.name,
            source=job.source,
            options=job.options,
            defines=job.defines,
            seed=job.seed,
            arch=self.code.arch,
            made_by=self.code.made_by,
            code_sha256=self.code.sha256,
            grid=launch.grid,
            block=launch.block,
            static_smem_bytes=self.kernel.static_smem_bytes,
            dynamic_smem_bytes=launch.dynamic_smem_bytes,
            registers=self.kernel.registers,
        )


def pack_job(job: Job, arch: Architecture | None = None) -> Packing:
    """A job's launch packed for a GPU; arch: its limits, those of the target if it is not known.

    Raises: LaunchError, NotModelled.
    """
    return Packing(
        job.kernel,
        job.grid,
        job.block,
        [value.value for value in job.args],
        dynamic_smem_bytes=job.dynamic_smem_bytes,
        names=[value.name for value in job.args],
        arch=arch,
    )


@contextmanager
def each_variant(call: Call, gpu: GpuOptions) -> Iterator[tuple[Device, Iterator[OnGpu]]]:
    """The device, and the call's variants on it one after the other.

    Raises: ToolMissing without a GPU, before anything is compiled.
    """
    with Device(gpu.device) as device:
        chosen = for_device(call, device)
        yield device, (OnGpu(device, job, variant.label) for variant, job in jobs_of(chosen))
