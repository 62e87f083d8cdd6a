"""One prediction as a job that a process elsewhere can carry out: a call, which of its variants, and the GPU."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from fasim.arch.cards import Card, card, card_names
from fasim.cli.launching import Call
from fasim.cli.target import split_target, variants
from fasim.errors import FasimError
from fasim.report.measured import Timing
from fasim.report.timing import About, TimedLaunch, timed_launch
from fasim.sm.module import Kernel, Module
from fasim.sm.timing.predict import Prediction, predict
from fasim.toolchain import CompiledModule

DEFAULT_GPU = "h200"
#: fewer jobs than this are done before a second process has started
FEW_JOBS = 4


@dataclass(frozen=True)
class TimingJob:
    """What to predict; it can be pickled.

    call: as the command line gave it. variant: which of those that its lists ask for, from 0. gpu: name of a card, or the path of its data.
    label: of the result among others. events: instructions whose time is to be logged, for traces.
    """

    call: Call
    variant: int
    gpu: str
    warm: bool = True
    label: str = ""
    events: int = 0


@dataclass(frozen=True)
class TimedJob:
    """The result: its record, and the prediction that it was made of if that was to be kept."""

    row: TimedLaunch
    prediction: Prediction | None


def timing_jobs(call: Call, gpus: Sequence[str] = (), *, warm: bool = True, events: int = 0) -> list[TimingJob]:
    """All variants of a call on all GPUs, GPUs change fastest; without GPUs: the one of a recording, else an H200.

    Raises: UsageError, also for GPUs that are not known.
    """
    cards = list(dict.fromkeys(gpus)) or [_own_gpu(call)]
    for each in cards:
        card(each)
    found = []
    for number, variant in enumerate(variants(call.words, call.options, call.general)):
        for gpu in cards:
            label = " ".join(part for part in (variant.label, Path(gpu).stem if len(cards) > 1 else "") if part)
            found.append(TimingJob(call, number, gpu, warm, label, events))
    return found


def _own_gpu(call: Call) -> str:
    """The card of data with the name of the one that a recording was made on."""
    target = split_target(call.words)
    if target.is_recording:
        from fasim.gpu.recording_file import read_facts

        recorded = read_facts(Path(target.name))["card"]
        if recorded:
            return next((name for name in card_names() if card(name).name == recorded["name"]), DEFAULT_GPU)
    return DEFAULT_GPU


def carry_out(job: TimingJob) -> TimedJob:
    """Compile for the GPU's architecture, and predict.

    Raises: UsageError, LaunchError, CompileError, NotModelled, ToolMissing.
    """
    gpu = card(job.gpu)
    call = job.call.with_options(arch=_arch(job.call, gpu), isa="sass")
    made = next(itertools.islice(variants(call.words, call.options, call.general), job.variant, None)).prepare()
    kernel = _with_registers(made.kernel)
    found = predict(
        kernel,
        made.grid,
        made.block,
        [value.value for value in made.args],
        gpu,
        dynamic_smem_bytes=made.dynamic_smem_bytes,
        warm=job.warm,
        events=job.events,
    )
    about = About(
        label=job.label,
        source=made.source,
        options=made.options,
        defines=made.defines,
        seed=made.seed,
        flops=made.flops,
        buffer_bytes=sum(value.value.nbytes for value in made.args if isinstance(value.value, np.ndarray) and value.is_array),
        dynamic_smem_bytes=made.dynamic_smem_bytes,
        warm=job.warm,
        measured=_measured(call, gpu, job.warm),
    )
    return TimedJob(timed_launch(found, about), found)


def _arch(call: Call, gpu: Card) -> str:
    """What to compile for: a variant such as sm_90a if that was asked for; "" for a recording whose machine code the GPU runs."""
    target = split_target(call.words)
    if target.is_recording and not call.options.arch:
        from fasim.gpu.recording_file import read_facts

        recorded = read_facts(Path(target.name))["card"]
        if recorded and recorded["compute_capability"].replace(".", "") == str(gpu.arch.number):
            return ""
    return call.options.arch or gpu.arch.name


def timing_row(job: TimingJob) -> TimedLaunch:
    """The record alone: what a worker on another machine sends back.

    Raises: as `carry_out`.
    """
    return carry_out(job).row


def carry_out_all(
    jobs: Sequence[TimingJob], workers: int, progress: Callable[[int, int | None], None] | None = None, *, keep: bool = False
) -> Iterator[TimedJob | str]:
    """Carry jobs out: results in the order of the jobs, or the message of the error that a job ends in.

    workers: processes, if there are enough jobs to start some. keep: the predictions, too, which takes one process.
    Raises: FasimError if a process ends by itself.
    """
    if keep or workers == 1 or len(jobs) < FEW_JOBS:
        for done, job in enumerate(jobs):
            if progress is not None:
                progress(done, len(jobs))
            yield _outcome(job, keep)
        return
    pool = ProcessPoolExecutor(min(workers, len(jobs)), get_context("spawn"), _die_of_interrupts)
    try:
        for done, result in enumerate(pool.map(_outcome, jobs)):
            yield result
            if progress is not None:
                progress(done + 1, len(jobs))
    except BrokenProcessPool as error:
        raise FasimError("a process that predicted a launch ended by itself; --workers 1 does without such processes") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _die_of_interrupts() -> None:
    """Ctrl-C reaches all processes: the first one tells of it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _outcome(job: TimingJob, keep: bool = False) -> TimedJob | str:
    try:
        done = carry_out(job)
    except FasimError as error:
        return str(error)
    return done if keep else replace(done, prediction=None)


def _measured(call: Call, gpu: Card, warm: bool) -> Timing | None:
    """What was measured of a recording, if that was done on such a GPU."""
    target = split_target(call.words)
    if not target.is_recording:
        return None
    from fasim.gpu.recording_file import load

    recording = load(Path(target.name), counters=False)
    if recording.card is None or recording.card.name != gpu.name:
        return None
    return recording.timings.get("warm" if warm else "cold")


def _with_registers(kernel: Kernel) -> Kernel:
    """The same kernel with the registers that ptxas assigns: those of a kernel that came as PTX are not known before.

    Raises: as `fasim.toolchain.ptxas.assemble`.
    """
    module = kernel.module
    if kernel.registers or module.compiled is not None:
        return kernel
    from fasim.toolchain.ptxas import assemble

    made = assemble(module.ptx, module.path, module.arch.name)
    compiled = CompiledModule(module.ptx, made.cubin, made.arch, module.path, "", made.log, {}, made.assembler, made.registers)
    return Kernel(Module(module.ptx, module.path, module.arch, compiled), kernel.program)
