"""`fasim gpu record` and `fasim gpu pack`: launches as files, with what a GPU did or waiting for one."""

from __future__ import annotations

import datetime
import importlib.metadata
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

import fasim
from fasim.cli.gpu_time import timings
from fasim.cli.job import Job
from fasim.cli.launching import Call
from fasim.cli.on_gpu import GpuOptions, OnGpu, for_device, pack_job
from fasim.cli.recorded import job_of, recording_of
from fasim.cli.target import Variant, variants
from fasim.errors import FasimError, UsageError
from fasim.gpu.code import MachineCode
from fasim.gpu.device import Device
from fasim.gpu.driver import pycuda_driver
from fasim.gpu.packed import PackedLaunch
from fasim.gpu.profiling import profile_launches
from fasim.gpu.recording import Recording, recorded_output, variable_name
from fasim.gpu.recording_file import find_recordings, load, save
from fasim.report.bits import sha256_of
from fasim.report.gpu_reports import GpuRecorded, GpuRecordReport
from fasim.report.records import to_json
from fasim.sm.values import Value
from fasim.toolchain.tools import find_tool

#: launches that ncu profiles in one session
_SESSION, _SESSION_BYTES = 40, 1 << 31
#: repetitions of a time take about as long as this in all
_REPETITIONS_SECONDS = 0.25


@dataclass(frozen=True)
class RecordOptions:
    """The options of `fasim gpu record`; out: a file, or a folder for several recordings."""

    out: Path | None = None
    name: str | None = None
    profile: bool = True
    time: bool = True
    share_cubins: bool = False


@dataclass(frozen=True)
class _Waiting:
    """A launch that is to be recorded: its name, the file for it, and what makes it ready."""

    name: str
    place: Path
    prepare: Callable[[], tuple[Job, Recording]]


@dataclass(frozen=True)
class _Measured:
    """A recording without profile, and what ncu is to run for it."""

    place: Path
    recording: Recording
    code: MachineCode
    launch: PackedLaunch


def pack(call: Call, record: RecordOptions) -> int:
    """Carry out `fasim gpu pack`: write launches that wait for a GPU.

    Returns: 0. Raises: FasimError.
    """
    written = []
    for each in _waiting(call.with_options(portable=True), record)[1]:
        job, recording = each.prepare()
        # a launch that no GPU would take should not travel
        pack_job(job)
        save(each.place, recording, share_cubin=record.share_cubins)
        written.append(GpuRecorded(each.name, str(each.place)))
    return _finish(GpuRecordReport(None, written, 0, fasim.__version__), call)


def record(call: Call, gpu: GpuOptions, record: RecordOptions) -> int:
    """Carry out `fasim gpu record`.

    Returns: 0, or 1 if a launch could not be recorded. Raises: ToolMissing before anything is done; FasimError if the only one fails.
    """
    return _finish(write_recordings(call, gpu, record), call)


def write_recordings(call: Call, gpu: GpuOptions, record: RecordOptions) -> GpuRecordReport:
    """Record all launches that the call asks for.

    Raises: as `record`.
    """
    pycuda_driver()
    if record.profile:
        find_tool("ncu")
    # by place: recordings in different folders may have one name
    done: dict[Path, GpuRecorded] = {}
    device = Device(gpu.device)
    total, waiting = _waiting(for_device(call, device).with_options(portable=True), record)
    numbered, more = enumerate(waiting, 1), True
    while more:
        to_profile: list[_Measured] = []
        with device:
            more = False
            for number, each in numbered:
                try:
                    measured = _measure(device, each, gpu, record)
                    if total > 1 or not record.profile:
                        # one alone is written when it has its counters, or not at all
                        save(measured.place, measured.recording, share_cubin=record.share_cubins)
                    done[each.place] = GpuRecorded(each.name, str(each.place))
                    to_profile.append(measured)
                except FasimError as error:
                    if total == 1 or device.broken:
                        raise
                    done[each.place] = GpuRecorded(each.name, None, _first_line(error))
                _progress(number, total, each.name)
                if _is_enough(to_profile):
                    more = True
                    break
        # without a context of ours: ncu's process may need the GPU for itself
        if record.profile and to_profile:
            done |= _profile(to_profile, gpu, record, alone=total == 1)
    results = list(done.values())
    return GpuRecordReport(device.card, results, int(any(each.problem for each in results)), fasim.__version__)


def _is_enough(launches: Sequence[_Measured]) -> bool:
    """Whether ncu should run before there is more: a session must not grow too large."""
    return len(launches) >= _SESSION or sum(b.nbytes for each in launches for b in each.launch.buffers) >= _SESSION_BYTES


def _profile(launches: Sequence[_Measured], gpu: GpuOptions, record: RecordOptions, *, alone: bool) -> dict[Path, GpuRecorded]:
    """Add ncu's counters to recordings; what fails leaves the recording without, and is returned with the reason."""
    try:
        profiles = profile_launches([(each.code, each.launch) for each in launches], gpu.device, timeout_seconds=gpu.timeout_seconds)
    except FasimError as error:
        if alone:
            raise
        if len(launches) > 1:
            # which one is it?
            return {place: each for launch in launches for place, each in _profile([launch], gpu, record, alone=False).items()}
        place = launches[0].place
        return {place: GpuRecorded(launches[0].recording.name, str(place), f"without counters: {_first_line(error)}")}
    for each, profile in zip(launches, profiles):
        recording = replace(each.recording, profile=profile, tools={**each.recording.tools, "ncu": profile.tool})
        save(each.place, recording, share_cubin=record.share_cubins)
    return {}


def _first_line(error: FasimError) -> str:
    return str(error).strip().splitlines()[0]


def _measure(device: Device, each: _Waiting, gpu: GpuOptions, record: RecordOptions) -> _Measured:
    """Times first, which leave the arrays alone, then the outputs."""
    job, recording = each.prepare()
    on_gpu = OnGpu(device, job)
    packing = on_gpu.packing
    measured = timings(on_gpu, gpu, seconds=_REPETITIONS_SECONDS) if record.time else {}
    # what ncu will run starts from the same contents
    launch = replace(packing.launch, buffers=tuple(buffer.copy() for buffer in packing.launch.buffers))
    done = on_gpu.run(gpu.timeout_seconds)
    outputs = [
        recorded_output(value.name, value.dtype, value.value) for value in job.args if value.is_array and _is_output(value, job, recording)
    ]
    for variable in job.kernel.program.variables:
        before = recording.variables.get(variable.name, variable.initial)
        if (after := done.variables.get(variable.name, before)) != before:
            outputs.append(recorded_output(variable_name(variable.name), "u8", np.frombuffer(after, np.uint8)))
    recording = replace(
        recording,
        module=replace(recording.module, cubin=on_gpu.code.cubin),
        card=device.card,
        date=datetime.date.today().isoformat(),
        tools=_tools(on_gpu.code),
        outputs=tuple(outputs),
        printed=done.output,
        timings=measured,
    )
    return _Measured(each.place, recording, on_gpu.code, launch)


def _is_output(value: Value, job: Job, recording: Recording) -> bool:
    """Whether the kernel changed an array, or was to."""
    before = {argument.name: argument.sha256 for argument in recording.arguments}
    return value.name in (job.judged or ()) or sha256_of(value.value) != before[value.name]


def _tools(code: MachineCode) -> dict[str, str]:
    found = {"fasim": fasim.__version__, "python": sys.version.split()[0], "numpy": np.__version__, "code": code.made_by}
    for package in ("pycuda", "ncu-report"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _waiting(call: Call, record: RecordOptions) -> tuple[int, Iterator[_Waiting]]:
    """What is to be recorded, and how much it is: recordings and folders of them anew, everything else made ready as for a run.

    Raises: UsageError.
    """
    if record.name is not None and record.name != _slug(record.name):
        raise UsageError(
            f"--name {record.name!r}: letters, digits, points, dashes and underscores alone, for example {_slug(record.name)!r}"
        )
    paths = [Path(word) for word in call.words]
    if paths and all(path.suffix == ".zip" or path.is_dir() for path in paths):
        files = find_recordings(paths)
        return len(files), _recordings(files, [path for path in paths if path.is_dir()], call, record)
    chosen = list(variants(call.words, call.options, call.general))
    return len(chosen), _variants(chosen, call, record)


def _recordings(files: Sequence[Path], roots: Sequence[Path], call: Call, record: RecordOptions) -> Iterator[_Waiting]:
    """Recordings keep their places below the folder that was named."""
    for path in files:
        inside = next((path.relative_to(root.parent if len(roots) > 1 else root) for root in roots if path.is_relative_to(root)), None)
        yield _Waiting(path.stem, _place(record, inside or Path(path.name), len(files) > 1), partial(_again, path, call))


def _variants(chosen: Sequence[Variant], call: Call, record: RecordOptions) -> Iterator[_Waiting]:
    for variant in chosen:
        job = variant.prepare()
        name = record.name or _name(job)
        if record.name and len(chosen) > 1:
            name = f"{record.name}-{_slug(variant.label)}"
        yield _Waiting(name, _place(record, Path(f"{name}.zip"), len(chosen) > 1), partial(_first, job, name, call))


def _again(path: Path, call: Call) -> tuple[Job, Recording]:
    old = load(path)
    job = job_of(old, call.options, str(path))
    return job, recording_of(job, old.name, old)


def _first(job: Job, name: str, call: Call) -> tuple[Job, Recording]:
    return job, recording_of(job, name)


def _place(record: RecordOptions, inside: Path, several: bool) -> Path:
    out = record.out or Path()
    if out.suffix == ".zip":
        if several:
            raise UsageError(f"--out {out}: there are several recordings to write; name a folder")
        return out
    return out / inside


def _name(job: Job) -> str:
    """A name that tells this launch from others of the kernel."""
    facts = [f"{name}{_slug(str(value).lower())}" for name, value in (job.options or job.defines).items()]
    grid = "" if job.options else "grid" + "x".join(map(str, job.grid))
    return "-".join(filter(None, [_slug(job.kernel.name), *facts, grid]))


def _slug(text: str) -> str:
    return "".join(character if character.isalnum() or character in "_." else "-" for character in text.replace("=", "")).strip("-")


def _progress(done: int, total: int, name: str) -> None:
    if total == 1:
        return
    if sys.stderr.isatty():
        print(f"\r{done} of {total}: {name}\x1b[K", end="" if done < total else "\n", file=sys.stderr, flush=True)
    else:
        print(f"{done} of {total}: {name}", file=sys.stderr, flush=True)


def _finish(report: GpuRecordReport, call: Call) -> int:
    if call.options.json:
        print(to_json(report))
        return report.exit_code
    for each in report.recordings:
        print(" ".join(filter(None, [each.path or f"not recorded: {each.name}:", each.problem])))
    return report.exit_code
