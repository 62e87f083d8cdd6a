"""`fasim compare`: simulate what a GPU did, and put both side by side."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import fasim
from fasim.cli.failures import warn
from fasim.cli.job import Job
from fasim.cli.launching import Call
from fasim.cli.on_gpu import GpuOptions
from fasim.cli.recorded import job_of, refuse_options
from fasim.cli.run import launch
from fasim.cli.target import RECORDING_SUFFIX, variants
from fasim.errors import FasimError, ToolMissing, UsageError
from fasim.gpu.driver import pycuda_driver
from fasim.gpu.recording import Recording, recorded_output, variable_name
from fasim.gpu.recording_file import find_recordings, load, read_facts
from fasim.ptx.contract import Contraction, MachineLine, contract
from fasim.report.bits import BitsComparison, compare_output
from fasim.report.measured import Output
from fasim.report.records import to_json
from fasim.report.side_by_side import ComparedLaunch, Origin, compare_launch, compare_report
from fasim.sass.listing import listing
from fasim.sm.limits import triple
from fasim.sm.result import LaunchResult
from fasim.trace.steps import SourceLines

#: where the recordings of the repository are, from its top
RECORDINGS = Path("recordings")
#: what is larger takes more than some seconds to simulate
QUICK_FLOPS, QUICK_ELEMENTS = 10**10, 1 << 23


@dataclass(frozen=True)
class CompareOptions:
    """The options of `fasim compare`.

    everything: show also what is equal. counters: with ncu, where a GPU is asked. out: the file for the figure. quick: leave out what
    takes more than some seconds to simulate.
    """

    everything: bool = False
    counters: bool = True
    out: Path | None = None
    quick: bool = False


def compare(call: Call, gpu: GpuOptions, chosen: CompareOptions) -> int:
    """Carry out `fasim compare`.

    Returns: the exit code, 1 for a real mismatch. Raises: FasimError.
    """
    if chosen.out is not None:
        from fasim.report.figure_style import check_figure_path

        check_figure_path(chosen.out)
    with tempfile.TemporaryDirectory() as folder:
        found, problems = _compare_all(_paths(call, gpu, chosen, Path(folder)), call, chosen)
    if chosen.out is not None:
        from fasim.report.side_by_side_figure import save_comparison

        save_comparison(chosen.out, found)
    report = compare_report(found, fasim.__version__, str(chosen.out) if chosen.out else None, problems)
    if call.options.json:
        print(to_json(report))
    else:
        from fasim.report.side_by_side_text import View, print_report

        terminal = sys.stdout.isatty()
        columns = shutil.get_terminal_size().columns if terminal or "COLUMNS" in os.environ else 160
        print_report(report, View(columns, terminal and "NO_COLOR" not in os.environ, chosen.everything))
    return report.exit_code


def _compare_all(paths: Sequence[Path], call: Call, chosen: CompareOptions) -> tuple[list[ComparedLaunch], list[str]]:
    """All recordings that can be compared, and why others cannot.

    Raises: UsageError if nothing is left; FasimError if the only one cannot be compared.
    """
    found, problems, large = [], [], 0
    for number, path in enumerate(paths, 1):
        _progress(number, len(paths), path)
        try:
            recording = load(path)
            if recording.card is None:
                raise UsageError(f"{path} waits for a GPU: record it with fasim gpu record {path}")
            if chosen.quick and is_large(recording):
                large += 1
                continue
            found.append(compare_recording(recording, call, path))
        except FasimError as error:
            if len(paths) == 1:
                raise
            problems.append(str(error).strip().splitlines()[0])
            warn(f"not compared: {problems[-1]}")
    if large:
        print(f"{large} of {len(paths)} recordings take long to simulate and are left out (--quick)", file=sys.stderr)
    if not found:
        raise UsageError(
            f"nothing was compared: {problems[0] if problems else 'every recording takes long to simulate; leave --quick out'}"
        )
    return found, problems


def _progress(number: int, total: int, path: Path) -> None:
    """One line for people who wait."""
    if total > 1 and sys.stderr.isatty():
        print(f"\r{number} of {total}: {path.stem}\x1b[K", end="" if number < total else "\r\x1b[K", file=sys.stderr, flush=True)
    elif total > 1 and number == 1:
        print(f"simulating {total} recordings", file=sys.stderr, flush=True)


def is_large(recording: Recording) -> bool:
    """Whether a recording takes more than some seconds to simulate."""
    elements = sum(int(np.prod(argument.shape)) for argument in recording.arguments if argument.shape)
    return recording.flops > QUICK_FLOPS or elements > QUICK_ELEMENTS


def compare_recording(recording: Recording, call: Call, path: Path | None = None) -> ComparedLaunch:
    """Simulate a recording's launch, from the recorded PTX or, with isa="sass", machine code, and compare.

    Raises: FasimError if it cannot be simulated.
    """
    try:
        job = job_of(recording, call.with_options(arch="").options)
        printed: list[str] = []
        result, _ = launch(job, call.with_options(json=True).options, printed)
        outputs = [*_outputs(recording, job), *_printed(recording, "".join(printed))]
        outputs, contractions = _contracted(recording, call, outputs) if job.kernel.isa == "ptx" else (outputs, [])
        compared = _compared(recording, result, outputs, contractions, job.kernel.isa)
    except FasimError as error:
        error.args = (f"{path or recording.name}: {error}", *error.args[1:])
        raise
    return compared


def _compared(
    recording: Recording, result: LaunchResult, outputs: list[BitsComparison], contractions: list[Contraction], isa: str
) -> ComparedLaunch:
    card, module = recording.card, recording.module
    assert card is not None
    facts = module.arch, module.compiler, card.name, card.driver, recording.date
    origin = Origin(recording.name, recording.kernel, recording.options, *facts)
    lines = SourceLines({module.source_path: module.source_text} if module.source_text else {})
    return compare_launch(origin, result, outputs, recording.profile, sms=card.sms, lines=lines, contractions=contractions, isa=isa)


def _contracted(recording: Recording, call: Call, outputs: list[BitsComparison]) -> tuple[list[BitsComparison], list[Contraction]]:
    """Where outputs differ: what they are with the multiplications and additions contracted that the machine code contracts."""
    if all(output.equal for output in outputs):
        return outputs, []
    ptx, contractions = contract(recording.module.ptx, _machine_lines(recording))
    if not contractions:
        return outputs, []
    again = job_of(replace(recording, module=replace(recording.module, ptx=ptx)), call.with_options(arch="").options)
    launch(again, call.with_options(json=True).options, [])
    equal = {output.name for output in _outputs(recording, again) if output.equal}
    settled = [output if output.equal else replace(output, contracted=output.name in equal) for output in outputs]
    return settled, contractions if any(output.contracted for output in settled) else []


def _machine_lines(recording: Recording) -> list[MachineLine]:
    """The machine code by PTX line: from ncu, else from nvdisasm."""
    profile, cubin = recording.profile, recording.module.cubin
    known = (profile.instructions if profile is not None else ()) or (listing(cubin, recording.entry) if cubin else ())
    return [MachineLine(each.text, each.ptx_line, each.place) for each in known]


def _outputs(recording: Recording, job: Job) -> Iterator[BitsComparison]:
    """What the GPU changed, arrays and variables, and then what only the simulation changed."""
    found = {value.name: (value.value, value.dtype) for value in job.args if value.is_array}
    before = {a.name: Output(a.name, a.dtype, a.shape, a.sha256) for a in recording.arguments if a.shape is not None and a.name in found}
    for variable in job.kernel.program.variables:
        name, content = variable_name(variable.name), job.kernel.module.data(variable)
        old = np.frombuffer(recording.variables.get(variable.name, variable.initial), np.uint8)
        found[name] = content, "u8"
        if "$" not in variable.name:
            before[name] = recorded_output(name, "u8", old)
    if unknown := [output.name for output in recording.outputs if output.name not in found]:
        raise UsageError(f"it has outputs that the kernel does not have: {', '.join(unknown)}")
    for output in recording.outputs:
        yield compare_output(*found[output.name], output)
    changed = {output.name for output in recording.outputs}
    for name in (name for name in before if name not in changed):
        compared = compare_output(*found[name], before[name])
        if not compared.equal:
            yield compared


def _printed(recording: Recording, text: str) -> list[BitsComparison]:
    """What printf wrote; in which order warps print is not defined, so lines count whatever their order."""
    if not recording.printed and not text:
        return []
    ours, theirs = Counter(text.splitlines()), Counter(recording.printed.splitlines())
    lines = max(ours.total(), theirs.total())
    differing = max((ours - theirs).total(), (theirs - ours).total())
    return [BitsComparison("printf", "lines", (lines,), lines, not differing, False, differing)]


def _paths(call: Call, gpu: GpuOptions, chosen: CompareOptions, folder: Path) -> list[Path]:
    """The recordings to compare with: those named, else made on the GPU, else those in the repository of the same launch.

    Raises: ToolMissing without a GPU and without a recording, or with a GPU but without ncu.
    """
    words = [Path(word) for word in call.words]
    if not words and _has_recordings():
        words = [RECORDINGS]
    if words and all(word.suffix == RECORDING_SUFFIX or word.is_dir() for word in words):
        refuse_options(words[0], call.options)
        return find_recordings(words)
    from fasim.cli.gpu_record import RecordOptions, write_recordings

    try:
        pycuda_driver()
    except ToolMissing as missing:
        return _same_launches(call, missing)
    try:
        report = write_recordings(call.with_options(isa="ptx"), gpu, RecordOptions(folder, profile=chosen.counters, time=False))
    except ToolMissing as missing:
        # there is a GPU: recordings of another one are not what was asked for
        advice = ". --no-counters compares the output bits alone" if chosen.counters else ""
        raise ToolMissing(f"{missing}{advice}") from missing
    if problems := [each.problem for each in report.recordings if each.problem]:
        raise UsageError(problems[0])
    return [Path(each.path) for each in report.recordings if each.path]


def _has_recordings() -> bool:
    return any(RECORDINGS.rglob("*.zip"))


def _same_launches(call: Call, missing: ToolMissing) -> list[Path]:
    """Recordings of the same launches on other machines."""
    jobs = [variant.prepare() for variant in variants(call.words, call.options, call.general)]
    known = [(path, read_facts(path)) for path in (find_recordings([RECORDINGS]) if _has_recordings() else [])]
    found = []
    for job in jobs:
        alike = [(path, facts) for path, facts in known if facts["kernel"] == job.kernel.name and facts["card"]]
        same = [path for path, facts in alike if facts["options"] == job.options and _is_same(load(path, counters=False), job)]
        if not same:
            raise ToolMissing(f"{missing}. {_nearest(job, alike, bool(known))}")
        found += same
    named = ", ".join(map(str, found)) if len(found) < 4 else f"{len(found)} recordings in {RECORDINGS}"
    print(f"no GPU is asked ({str(missing).split('. ')[0].split(':')[0]}): comparing with {named}", file=sys.stderr)
    return found


def _nearest(job: Job, alike: Sequence[tuple[Path, dict[str, Any]]], any_recordings: bool) -> str:
    """What there is instead of a recording of this launch."""
    if not any_recordings:
        return "There is no folder 'recordings' here either: fasim compare RECORDING.zip, or a folder of them, names some"
    if not alike:
        return f"There is no recording of {job.kernel.name} in {RECORDINGS} either"

    def distance(facts: dict[str, Any]) -> int:
        return sum(facts["options"].get(name) != value for name, value in job.options.items())

    nearest = min(alike, key=lambda each: distance(each[1]))[0]
    return f"There is no recording of this launch in {RECORDINGS} either; the nearest one is {nearest}"


def _is_same(recording: Recording, job: Job) -> bool:
    """Whether a recording is of the launch that is asked for."""
    if recording.card is None or recording.kernel != job.kernel.name or recording.seed != job.seed:
        return False
    if job.collection:
        return recording.collection == job.collection and recording.options == job.options
    ours = tuple(job.grid), tuple(job.block), job.dynamic_smem_bytes, dict(job.defines), job.made
    made = tuple(argument.made for argument in recording.arguments)
    theirs = recording.grid, recording.block, recording.dynamic_smem_bytes, recording.defines, made
    return (triple(ours[0], "grid"), triple(ours[1], "block"), *ours[2:]) == theirs
