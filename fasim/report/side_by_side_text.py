"""Simulation and GPU side by side, for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fasim.report.bits import CONTRACTED, BitDifference, BitsComparison
from fasim.report.console import wide_console
from fasim.report.machine_counts import ComparedOpcode
from fasim.report.match import BY_PTXAS, EQUAL, FILLS, MISMATCH, TURNS
from fasim.report.match_totals import NOISE, ComparedTotal
from fasim.report.option_text import options_text
from fasim.report.side_by_side import ComparedLaunch, ComparedRow, CompareReport, path_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

#: width of what is not a terminal
PLAIN_COLUMNS = 160
#: reasons are shown in this many columns or on a line of their own
_LEAST_WHY = 30
#: the counters in the table of several launches, by a part of their names; and those where there is less room
_SUMMED = {"ld wavefronts": "wavefronts_mem_shared_op_ld", "st wavefronts": "wavefronts_mem_shared_op_st", "conflicts": "conflicts"}
_SUMMED_SHORT = {"wavefronts": "wavefronts_mem_shared_op_", "conflicts": "conflicts"}
_SUMMED_SASS = {"instructions": "inst_executed", **_SUMMED_SHORT}
_SUMMED_SASS_SHORT = {"instructions": "inst_executed", "wavefronts": "wavefronts_mem_shared_op_"}
_CONTRACTIONS_SHOWN = 8
_STYLES = {EQUAL: "green", MISMATCH: "bold red", "DIFFERENT": "bold red"}


@dataclass(frozen=True)
class View:
    """How to print: columns, the width; color, whether to use it; everything, also what is equal."""

    columns: int = PLAIN_COLUMNS
    color: bool = False
    everything: bool = False


@dataclass(frozen=True)
class _Column:
    head: str
    cell: Callable[[ComparedRow], str]
    number: bool = False


def print_report(report: CompareReport, view: View) -> None:
    """Print one launch in full, several as a table with one line each, followed by what is not right (everything: by each in full)."""
    if len(report.launches) == 1:
        print_launch(report.launches[0], view)
    else:
        console = wide_console(view.color)
        wide, narrow = (_SUMMED_SASS, _SUMMED_SASS_SHORT) if _is_machine_code(report.launches) else (_SUMMED, _SUMMED_SHORT)
        table = summary_table(report.launches, wide)
        console.print(table if console.measure(table).maximum <= view.columns else summary_table(report.launches, narrow))
        for launch in report.launches:
            if view.everything or launch.exit_code:
                print()
                print_launch(launch, view)
        print(f"\n{_counted(report)}")
    for problem in report.problems:
        print(f"not compared   {problem}")
    if report.saved:
        print(f"\nsaved          {report.saved}")


def _is_machine_code(launches: Iterable[ComparedLaunch]) -> bool:
    return any(launch.isa == "sass" for launch in launches)


def _new_table() -> Table:
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _styled(verdict: str) -> str:
    style = _STYLES.get(verdict)
    return f"[{style}]{verdict}[/]" if style else verdict


def print_launch(launch: ComparedLaunch, view: View) -> None:
    """One launch: outputs, rows that are not equal, totals, and how many rows are equal."""
    console = wide_console(view.color)
    print(_headline(launch))
    for output in launch.outputs:
        for number, line in enumerate(output_lines(output)):
            print(f"{f'output {output.name}' if number == 0 else '':<14} {line}")
    for line in contraction_lines(launch):
        print(line)
    machine = launch.isa == "sass"
    sections = (
        ("accesses to shared memory", launch.accesses, _machine(_ACCESS_COLUMNS) if machine else _ACCESS_COLUMNS),
        ("other instructions", launch.instructions, _machine(_OTHER_COLUMNS) if machine else _OTHER_COLUMNS),
    )
    for title, rows, columns in sections:
        if rows:
            print(f"\n{title}: {equal_lines(rows)}")
            shown = [row for row in rows if view.everything or row.verdict != EQUAL]
            if shown:
                _print_rows(console, shown, columns, view)
    if launch.opcodes:
        _print_opcodes(console, launch.opcodes, view)
    if launch.totals:
        print(f"\n{_totals_title(launch)}")
        console.print(totals_table(launch.totals))
    console.print(f"\nverdict        {_styled(launch.verdict)}{_in_words(launch)}")


def _print_opcodes(console: Console, opcodes: Sequence[ComparedOpcode], view: View) -> None:
    """Executions by opcode, those that differ."""
    print(f"\nopcodes: executions of {sum(each.verdict == EQUAL for each in opcodes)} of {len(opcodes)} equal")
    shown = [each for each in opcodes if view.everything or each.verdict != EQUAL]
    if not shown:
        return
    table = _new_table()
    for head, number in (("opcode", False), ("simulated", True), ("GPU", True), ("verdict", False)):
        table.add_column(head, no_wrap=True, justify="right" if number else "left")
    for each in shown:
        table.add_row(each.opcode, f"{each.simulated:,}", f"{each.measured:,}", _styled(each.verdict))
    console.print(table)


def _headline(launch: ComparedLaunch) -> str:
    options = options_text(launch.options)
    driver, tool = launch.driver and f"driver {launch.driver}", launch.tool and f"ncu {launch.tool}"
    isa = "machine code" if launch.isa == "sass" else ""
    simulated = ", ".join(part for part in (launch.arch, launch.compiler, isa) if part)
    measured = ", ".join(part for part in (launch.card, driver, tool, launch.date) if part)
    lines = [("kernel", launch.kernel + options), ("simulated", simulated), ("GPU", measured)]
    return "\n".join(f"{label:<14} {text}" for label, text in lines if text)


def output_lines(output: BitsComparison) -> list[str]:
    """The verdict on an output, then its first differing elements."""
    what = f"{output.dtype}[{','.join(map(str, output.shape))}]"
    if output.by_hash:
        return [f"{what}: {'equal, every bit' if output.equal else 'DIFFERENT'} (by SHA-256; the GPU's elements were not kept)"]
    if output.equal:
        return [f"{what}: equal, every bit of {output.elements:,} elements"]
    unit = "ulp" if output.dtype.startswith(("f", "bf")) else "apart"
    facts = [f"{output.differing:,} of {output.elements:,} elements"]
    if output.largest_distance is not None:
        facts.append(f"at most {output.largest_distance:,} {unit}")
    if output.zero_signs:
        facts.append(f"{output.zero_signs:,} in the sign of zero")
    if output.nan_payloads:
        facts.append(f"{output.nan_payloads:,} NaNs with another pattern")
    if output.contracted:
        return [f"{what}: equal, every bit, with the contractions of the machine code; as PTX stands {', '.join(facts)} differ"]
    return [f"{what}: DIFFERENT in {', '.join(facts)}", *(_element(each) for each in output.first)]


def contraction_lines(launch: ComparedLaunch) -> list[str]:
    """What ptxas contracted, and how to settle it."""
    if not launch.contractions:
        return []
    places = [path_text(each.place) or f"PTX {each.ptx_line}" for each in launch.contractions]
    shown = [f"  {place:<8} {' '.join(each.code.split())}   {each.machine}" for place, each in zip(places, launch.contractions)]
    more = len(shown) - _CONTRACTIONS_SHOWN
    rest = [f"  and {more:,} more"] if more > 0 else []
    head = f"contracted by ptxas: {len(shown):,} additions with a multiplication, which PTX leaves open for instructions without .rn"
    advice = "__fmul_rn and __fadd_rn (.rn in PTX), or --fmad=false, say which of the two is meant"
    return ["", head, *shown[:_CONTRACTIONS_SHOWN], *rest, advice]


def _element(found: BitDifference) -> str:
    index = ", ".join(map(str, found.index))
    simulated, measured = (v if isinstance(v, int) else f"{v:.9g}" for v in (found.simulated, found.measured))
    return f"[{index}]: simulated {simulated} ({found.simulated_bits}), GPU {measured} ({found.measured_bits})"


def equal_lines(rows: Sequence[ComparedRow]) -> str:
    """`23 of 25 lines equal, 2 changed by ptxas`; of machine code `497 of 497 instructions equal`."""
    machine = any(row.text for row in rows)
    equal = sum(row.verdict == EQUAL for row in rows)
    wrong = sum(row.verdict == MISMATCH for row in rows)
    changed = sum(row.verdict in BY_PTXAS for row in rows)
    parts = [f"{equal:,} of {len(rows):,} {'instructions' if machine else 'lines'} equal"]
    parts += [f"{changed} {'not counted' if machine else 'changed by ptxas'}"] if changed else []
    turns = sum(row.verdict == TURNS for row in rows)
    parts += [f"{turns} in other turns"] if turns else []
    fills = sum(row.verdict == FILLS for row in rows)
    parts += [f"{fills} counted otherwise by ncu"] if fills else []
    parts += [f"{wrong} MISMATCH"] if wrong else []
    return ", ".join(parts)


def place_text(row: ComparedRow) -> str:
    """The line in the kernel and those inside calls, or what is known instead."""
    if not row.path:
        known = [line for line in row.ptx_lines if line]
        return f"PTX {known[0]}" if known else "-"
    return path_text(row.path)


def operation_text(row: ComparedRow) -> str:
    """The operation, or what it was and what it became."""
    if not row.measured_op or row.simulated_op == row.measured_op:
        return row.simulated_op
    return f"{row.simulated_op} -> {row.measured_op}" if row.simulated_op else row.measured_op


def _pair(head: str, simulated: Callable[[ComparedRow], int], measured: Callable[[ComparedRow], int]) -> list[_Column]:
    return [_Column(head, lambda row: f"{simulated(row):,}", True), _Column("\nGPU", lambda row: f"{measured(row):,}", True)]


_EXECUTIONS = _pair("executions\nsimulated", lambda row: row.simulated.executions, lambda row: row.measured.executions)
_PLACE = [_Column("\nline", place_text), _Column("\noperation", operation_text)]
_VERDICT = [_Column("\nverdict", lambda row: _styled(row.verdict))]
_ACCESS_COLUMNS = [
    *_PLACE,
    *_EXECUTIONS,
    *_pair("wavefronts\nsimulated", lambda row: row.simulated.wavefronts, lambda row: row.measured.wavefronts),
    *_pair("ideal\nsimulated", lambda row: row.simulated.ideal, lambda row: row.measured.ideal),
    *_VERDICT,
]
_OTHER_COLUMNS = [*_PLACE, *_EXECUTIONS, *_VERDICT]


def _machine(columns: Sequence[_Column]) -> list[_Column]:
    """The columns for rows that are machine instructions."""
    return [_Column("\npc", lambda row: f"{row.offsets[0]:#x}"), _Column("\ninstruction", lambda row: row.text), columns[0], *columns[2:]]


def _print_rows(console: Console, rows: Sequence[ComparedRow], columns: Sequence[_Column], view: View) -> None:
    table = rows_table(rows, columns)
    room = view.columns - console.measure(table).maximum - 2
    if room >= _LEAST_WHY:
        console.print(rows_table(rows, columns, room))
        return
    console.print(table)
    for place, why in dict.fromkeys((_named(row), row.why) for row in rows if row.why):
        print(f"  {place}: {why}")


def _named(row: ComparedRow) -> str:
    return f"{row.offsets[0]:#x}" if row.text else f"line {place_text(row)}"


def rows_table(rows: Iterable[ComparedRow], columns: Sequence[_Column] = tuple(_ACCESS_COLUMNS), why_columns: int = 0) -> Table:
    """Rows with both sides' figures; why_columns: room for the reasons, which are cut there."""
    rows = list(rows)
    table = _new_table()
    steps = any(row.step for row in rows)
    if steps:
        table.add_column("\nstep", no_wrap=True)
    for column in columns:
        table.add_column(column.head, no_wrap=True, justify="right" if column.number else "left")
    if why_columns:
        table.add_column("", no_wrap=True)
    for row in rows:
        cells = [column.cell(row) for column in columns]
        cells[:3] = [_escape(cell) for cell in cells[:3]]
        why = [_escape(row.why if len(row.why) <= why_columns else row.why[: why_columns - 3] + "...")] if why_columns else []
        table.add_row(*([_escape(row.step)] if steps else []), *cells, *why)
    return table


def totals_table(totals: Iterable[ComparedTotal]) -> Table:
    """Counters under ncu's names."""
    table = _new_table()
    for head in ("simulated", "GPU", "accounted", "rest"):
        table.add_column(head, justify="right", no_wrap=True)
    for head in ("verdict", "ncu counter"):
        table.add_column(head, no_wrap=True)
    for total in totals:
        figures = (f"{total.simulated:,}", f"{total.measured:,}", f"{total.explained:+,}" if total.explained else "0", f"{total.rest:,}")
        table.add_row(*figures, _styled(total.verdict), _escape(total.name))
        if total.why:
            table.add_row("", "", "", "", "", _escape(f"  {total.why}"))
    return table


def _totals_title(launch: ComparedLaunch) -> str:
    share = "several CTAs can share an SM" if launch.ctas_share_sm else "at most one CTA an SM"
    equal = sum(total.verdict == EQUAL for total in launch.totals)
    return f"counters: {equal} of {len(launch.totals)} equal ({share})"


def _in_words(launch: ComparedLaunch) -> str:
    if launch.verdict == MISMATCH:
        return f": {sum(verdict == MISMATCH for verdict in launch.comparisons)} of {len(launch.comparisons)} comparisons fail"
    if launch.verdict == EQUAL:
        return ", without a tolerance"
    causes = [f"{len(launch.contractions)} additions that ptxas contracted"] * (CONTRACTED in launch.comparisons)
    changed = "atomics whose wavefronts fasim does not count" if launch.isa == "sass" else "what ptxas changed"
    causes += [changed] * any(verdict in BY_PTXAS for verdict in launch.comparisons)
    causes += ["that ncu does not see which lanes fill with zeros"] * (FILLS in launch.comparisons)
    causes += ["noise of the hardware counters"] * (NOISE in launch.comparisons)
    causes += ["the order in which warps took turns"] * (TURNS in launch.comparisons)
    return f": what differs is {' and '.join(causes)}"


def summary_table(launches: Iterable[ComparedLaunch], summed: Mapping[str, str] = _SUMMED) -> Table:
    """One line a launch; summed: which counters are shown, by the part of the name that they have in common."""
    table, launches = _new_table(), list(launches)
    changed = [] if _is_machine_code(launches) else [("by ptxas\nlines", True)]
    heads = (("\nrecording", False), ("\nbits", False))
    pairs = [(f"{what}\nsimulated", "\nGPU") for what in summed]
    for head, number in (*heads, *((head, True) for pair in pairs for head in pair), *changed, ("\nnoise", True)):
        table.add_column(head, no_wrap=True, justify="right" if number else "left")
    table.add_column("\nverdict", no_wrap=True)
    for launch in launches:
        bits = "-" if not launch.outputs else EQUAL if all(output.equal for output in launch.outputs) else "DIFFERENT"
        figures = [text for part in summed.values() for text in _sums(launch, part)]
        changes = [f"{launch.changed_lines}", f"{launch.noise:,}"] if launch.totals else ["-", "-"]
        table.add_row(_escape(launch.name), _styled(bits), *figures, *changes[not changed :], _styled(launch.verdict))
    return table


def _sums(launch: ComparedLaunch, part: str) -> tuple[str, str]:
    found = [total for total in launch.totals if part in total.name]
    if not found:
        return "-", "-"
    return f"{sum(total.simulated for total in found):,}", f"{sum(total.measured for total in found):,}"


def _counted(report: CompareReport) -> str:
    wrong = sum(each.exit_code for each in report.launches)
    bits = [output for each in report.launches for output in each.outputs]
    equal = sum(output.equal for output in bits)
    rows = [row for each in report.launches for row in (*each.accesses, *each.instructions)]
    verdict = f"{wrong} of {len(report.launches)} launches with a mismatch" if wrong else f"no mismatch in {len(report.launches)} launches"
    return f"{verdict}: {equal} of {len(bits)} outputs equal bit for bit, {equal_lines(rows)}"
