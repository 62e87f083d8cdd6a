"""A run as a short table of plain text."""

from __future__ import annotations

import linecache
import math
from collections.abc import Mapping

from fasim.numerics.dtypes import DTYPES
from fasim.report.check import relative
from fasim.report.compare import Comparison, Statistics
from fasim.report.option_text import options_text
from fasim.report.records import LineCount, OutputReport, RunReport

_GREEN, _RED, _PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[0m"

#: lines of the source in the list of executions, and characters of each
_LINES_SHOWN, _LINE_WIDTH = 20, 90


def run_table(report: RunReport, *, counts: bool = False, color: bool = False, writers: Mapping[str, str] | None = None) -> str:
    """The table that `fasim run` prints; counts: with the instruction mix; writers: the CTA that writes an output's worst element."""
    options = options_text(report.options)
    made = report.arch, report.compiler, "machine code" if report.isa == "sass" else ""
    rows = [
        ("kernel", report.kernel + options),
        ("source", f"{report.source} ({', '.join(part for part in made if part)})"),
        ("grid x block", f"{size(report.grid)} x {size(report.block)}, shared memory {report.smem_bytes:,} bytes a CTA"),
    ]
    for output in report.outputs:
        rows += [(f"output {output.name}", text) for text in output_lines(output, color, math.prod(report.grid), writers)]
    if not report.outputs:
        rows.append(("output", "the kernel changed none of its arrays"))
    order = ", CTAs in order (they communicate)" if report.ordered and report.grid != (1, 1, 1) else ""
    workers = "1 worker" if report.workers == 1 or report.ordered else f"{report.workers} workers"
    seconds = report.seconds
    rows += [
        ("instructions", f"{report.warp_instructions:,} warp instructions"),
        ("shared memory", _shared(report)),
        (
            "time",
            f"machine {_seconds(seconds.machine)} ({workers}{order}), compile {_seconds(seconds.compile)}, load {_seconds(seconds.load)}, "
            f"check {_seconds(seconds.check)}, total {_seconds(seconds.total)}",
        ),
    ]
    if report.backend != "jit":
        rows.append(("machine", report.backend))
    if report.saved:
        rows.append(("saved", report.saved))
    lines = aligned(rows)
    if report.prints:
        lines += ["", *report.prints]
    if counts:
        lines += ["", *_mix(report)]
    return "\n".join(lines)


def _shared(report: RunReport) -> str:
    wavefronts, conflicts = report.shared_wavefronts, report.shared_conflicts
    unknown = f", {report.shared_uncounted:,} atomics in loops not counted" if report.shared_uncounted else ""
    return f"{report.shared_instructions:,} accesses, {wavefronts:,} wavefronts, {conflicts:,} bank conflicts{unknown} (see fasim banks)"


def aligned(rows: list[tuple[str, str]]) -> list[str]:
    """Labels in a column, each once, and what belongs to them."""
    width = max(len(label) for label, _ in rows)
    lines, previous = [], ""
    for label, text in rows:
        lines.append(f"{'' if label == previous else label:<{width}}  {text}")
        previous = label
    return lines


def size(sizes: tuple[int, int, int]) -> str:
    """Sizes without the ones at their end."""
    shown = list(sizes)
    while len(shown) > 1 and shown[-1] == 1:
        shown.pop()
    return f"({', '.join(map(str, shown))})"


def _seconds(value: float) -> str:
    return f"{value:.4f} s" if value < 0.1 else f"{value:.2f} s"


def output_lines(output: OutputReport, color: bool, ctas: int = 0, writers: Mapping[str, str] | None = None) -> list[str]:
    """What an array holds, and whether it is right. ctas: of the grid, 0 if unknown; writers: as for `run_table`."""
    shape = f"{output.dtype}[{','.join(map(str, output.shape))}]"
    facts = [shape + ("" if output.changed else ", unchanged by the kernel")]
    if output.comparison is None or not output.comparison.ok:
        facts[0] += ": " + _describe(output.statistics)
    if output.comparison is not None:
        facts += _verdict(output.comparison, output.statistics, color)
        if not output.comparison.ok:
            facts += _way_there(output, output.comparison, ctas, (writers or {}).get(output.name, ""))
    return facts


def _way_there(output: OutputReport, found: Comparison, ctas: int, writer: str) -> list[str]:
    """How the stepper goes to where the worst element is written."""
    if found.worst is None or output.dtype not in DTYPES:
        return []
    element = f"[{','.join(map(str, found.worst.index))}]" if output.shape else " 0"
    cta = f" --cta {writer}" if writer else ""
    unknown = " (in the CTA that --cta chooses)" if not writer and ctas != 1 else ""
    keys = f"there press x, type mem {output.name}{element}, Enter, c"
    return [f"to where it is written: the same command with --trace{cta}; {keys}{unknown}"]


def worst_elements(report: RunReport) -> dict[str, tuple[int, int]]:
    """The byte offset and size of the worst element of each output that is wrong."""
    found = {}
    for output in report.outputs:
        comparison = output.comparison
        if comparison is None or comparison.ok or comparison.worst is None or output.dtype not in DTYPES:
            continue
        element = 0
        for extent, index in zip(output.shape, comparison.worst.index):
            element = element * extent + index
        item = DTYPES[output.dtype].itemsize
        found[output.name] = (element * item, item)
    return found


def _describe(found: Statistics) -> str:
    parts = []
    if found.minimum is not None and found.mean is not None:
        parts.append(f"min {found.minimum:.6g}, max {found.maximum:.6g}, mean {found.mean:.6g}")
    parts.append(f"{found.nan:,} NaN")
    if found.infinite:
        parts.append(f"{found.infinite:,} infinite")
    return ", ".join(parts)


def _verdict(found: Comparison, stats: Statistics, color: bool) -> list[str]:
    word = "right" if found.ok else "WRONG"
    if color:
        word = f"{_GREEN if found.ok else _RED}{word}{_PLAIN}"
    tolerance = "exact" if found.rtol == found.atol == 0 else f"tolerance {found.atol:g} + {found.rtol:g} |expected|"
    error = "nan" if math.isinf(found.max_abs_error) and stats.nan else f"{found.max_abs_error:.3g}"
    lines = [f"{word}: max abs error {error} against {found.reference} ({tolerance})"]
    if found.worst is not None and found.max_abs_error > 0:
        worst = found.worst
        share = "" if found.ok else f"{found.wrong_elements:,} of {found.elements:,} elements are outside; "
        index = ", ".join(map(str, worst.index))
        lines.append(f"{share}worst element [{index}]: got {_value(worst.got)}, expected {_value(worst.expected)}")
    if not found.ok and found.rtol == found.atol == 0 and isinstance(found.worst and found.worst.got, float):
        lines.append("compared exactly; --rtol and --atol set a tolerance")
    return lines


def _value(value: float | int) -> str:
    return str(value) if isinstance(value, int) else f"{value:.9g}"


def _mix(report: RunReport) -> list[str]:
    total = max(report.warp_instructions, 1)
    lines = [f"{'executions':>14}  {'share':>6}  instruction"]
    lines += [f"{count:>14,}  {100 * count / total:>5.1f}%  {name}" for name, count in report.instruction_mix.items() if count]
    if report.counts is not None:
        lines += ["", *_by_line(report.counts, total)]
    return lines


def _by_line(counts: list[LineCount], total: int) -> list[str]:
    """Executions by source line, most first."""
    places: dict[tuple[str, int], int] = {}
    for row in counts:
        place = (row.file, row.line) if row.line else ("", 0)
        places[place] = places.get(place, 0) + row.executions
    ranked = sorted(places.items(), key=lambda item: (-item[1], item[0]))
    lines = [f"{'executions':>14}  {'share':>6}  source line"]
    for (file, line), executions in ranked[:_LINES_SHOWN]:
        text = linecache.getline(file, line).strip()[:_LINE_WIDTH]
        shown = f"{relative(file)}:{line}{': ' + text if text else ''}" if line else "(no source line)"
        lines.append(f"{executions:>14,}  {100 * executions / total:>5.1f}%  {shown}")
    if len(ranked) > _LINES_SHOWN:
        lines.append(f"{'':>14}  {'':>6}  and {len(ranked) - _LINES_SHOWN} more lines (all instructions: --json --counts)")
    return lines
