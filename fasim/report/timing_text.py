"""Predicted times for a terminal: one launch in full, or several side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fasim.report.console import wide_console
from fasim.report.match import Place
from fasim.report.option_text import options_text, value_text
from fasim.report.text import aligned, size
from fasim.report.timing import Accuracy, StalledLine, TimedLaunch, TimeReport

if TYPE_CHECKING:
    from rich.table import Table

#: reasons and resources that are named in one cell, and least percent for which one is
_NAMED, _LEAST_PERCENT = 3, 1.0
#: launches that get a column each
MOST_COLUMNS = 8
_LEAST_CODE, _LEAST_COLUMNS = 20, 80


@dataclass(frozen=True)
class View:
    """How to show it: columns of the terminal, colour, and how many source lines."""

    columns: int
    color: bool
    lines: int


def print_time(report: TimeReport, view: View) -> None:
    """Print what `fasim time` prints."""
    if len(report.launches) == 1:
        _print_one(report.launches[0], view)
    elif report.launches:
        _print_many(report.launches, view)
    if report.saved:
        print(f"\nsaved          {report.saved}")


# --- one launch ------------------------------------------------------------------------------------------------------------------


def _print_one(launch: TimedLaunch, view: View) -> None:
    print("\n".join(aligned(facts(launch))))
    console = wide_console(view.color)
    print()
    console.print(_stall_table(launch))
    if launch.steps:
        print()
        console.print(_place_table(launch.steps, view, "step"))
    print()
    console.print(_place_table(launch.lines[: view.lines], view, "line"))
    if len(launch.lines) > view.lines:
        rest = sum(line.percent for line in launch.lines[view.lines :])
        print(f"and {len(launch.lines) - view.lines} lines with {rest:.1f} % together (--lines N)")


def facts(launch: TimedLaunch) -> list[tuple[str, str]]:
    """Label and text of what is said of a launch as a whole."""
    smem = f"shared memory {launch.dynamic_smem_bytes:,} bytes a CTA (dynamic), " if launch.dynamic_smem_bytes else ""
    rows = [
        ("kernel", launch.kernel + options_text(launch.options) + _defines(launch)),
        ("source", f"{launch.source} ({launch.arch}, machine code)"),
        ("GPU", f"{launch.card}, caches {'as the launch before left them' if launch.warm else 'without the buffers'}"),
        ("grid x block", f"{size(launch.grid)} x {size(launch.block)}, {smem}{launch.registers} registers a thread"),
        ("time", f"{microseconds(launch.time_us)} us predicted{_tflops(launch)}; error of predictions: {error_text(launch.error)}"),
    ]
    if (found := launch.measured) is not None:
        clock = f", SMs at {found.sm_clock_mhz:,.0f} MHz" if found.sm_clock_mhz else ""
        spread = f"{microseconds(found.low_us)} to {microseconds(found.high_us)}"
        rows.append(
            ("measured", f"{microseconds(found.median_us)} us ({spread}{clock}); the prediction is {found.error_percent:+.1f} % from it")
        )
    rows += [
        ("cycles", f"{launch.cycles:,.0f} at {launch.clock_mhz:,.0f} MHz, and {launch.launch_us:.2f} us for the launch"),
        ("occupancy", _occupancy(launch)),
        ("bound by", launch.bound),
        ("busy", ", ".join(f"{each.name} {each.percent:.0f} %" for each in launch.resources if each.percent >= _LEAST_PERCENT)),
        ("roofline", _roofline(launch)),
        ("simulated", _sampled(launch)),
        ("data", data_text(launch)),
    ]
    return rows


def _defines(launch: TimedLaunch) -> str:
    if launch.options:
        return ""
    return "".join(f" -D {name}" + ("" if value is None else f"={value}") for name, value in launch.defines.items())


def microseconds(value: float) -> str:
    """A time with three or more digits."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def _tflops(launch: TimedLaunch) -> str:
    if not launch.flops:
        return ""
    return f", {launch.tflops:.4g} TFLOPS" + (" (operations of the machine code)" if launch.from_code else "")


def error_text(error: Accuracy | None) -> str:
    """How far predictions are from measurements."""
    if error is None:
        return "not measured"
    worst = "" if error.worst_percent is None else f", worst {error.worst_percent:.1f} %"
    launches = f" over {error.launches} measured launches" if error.launches else ""
    return f"\N{PLUS-MINUS SIGN} {error.mean_percent:.1f} % mean{worst}{launches}"


def data_text(launch: TimedLaunch) -> str:
    """Where the card's figures come from."""
    return launch.data_source + (f"; {launch.taken_over} figures of another card, as nobody published its own" if launch.taken_over else "")


def _occupancy(launch: TimedLaunch) -> str:
    held = launch.held
    others = ", ".join(f"{name} {limit}" for name, limit in held.limits.items() if name not in held.binding)
    ctas = f"{held.ctas} CTA{'s' * (held.ctas != 1)} an SM, {held.warps} of {held.most_warps} warps"
    few = f"; the grid gives an SM {held.ctas_present} at once" if held.ctas_present < held.ctas else ""
    return f"{ctas}, limited by {' and '.join(held.binding)}{f' ({others})' if others else ''}{few}"


def _roofline(launch: TimedLaunch) -> str:
    roof = launch.roofline
    if not roof.flops or roof.percent is None:
        return "no floating-point operations"
    parts = [f"{roof.flops_a_dram_byte:.4g} FLOPs a byte of the buffers"] if roof.flops_a_dram_byte is not None else []
    if roof.flops_a_l2_byte is not None:
        parts.append(f"{roof.flops_a_l2_byte:.4g} a byte between SMs and L2")
    pipe = roof.roofs[0]
    return f"{', '.join(parts) or 'no memory'}; {roof.percent:.0f} % of what {pipe.name} ({pipe.value:,.0f} TFLOPS) and memory allow"


def _sampled(launch: TimedLaunch) -> str:
    part = launch.sampled
    ctas = f"the SM that ends last, {part.ctas:,} of its {part.sm_ctas:,} CTAs ({part.grid_ctas:,} in the grid)"
    rest = "" if part.complete else f"; {_extrapolated(launch):.0f} % of the cycles extrapolated"
    return f"{ctas}, {part.warp_instructions:,} warp instructions{rest}{_spreads(part.work_error_percent, part.stagger_spread_percent)}"


def _extrapolated(launch: TimedLaunch) -> float:
    """Percent of the cycles that are beyond those simulated."""
    part = launch.sampled
    return 0.0 if part.complete or not launch.cycles else max(100 * (1 - part.simulated_cycles / launch.cycles), 0.0)


def _spreads(work: float, stagger: float) -> str:
    """What the result depends on, in percent."""
    shown = f"; work of CTAs inferred within {work:.1f} %" if work >= 0.05 else ""
    return shown + (f"; {stagger:.1f} % between orders in which its CTAs begin" if stagger >= 0.05 else "")


def _new_table() -> Table:
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _stall_table(launch: TimedLaunch) -> Table:
    table = _new_table()
    table.add_column("warp cycles", justify="right", no_wrap=True)
    table.add_column("reason", no_wrap=True)
    for reason, percent in launch.stalls.items():
        table.add_row(f"{percent:.1f} %", reason)
    return table


def _place_table(rows: Sequence[StalledLine], view: View, kind: str) -> Table:
    """Steps or lines with their reasons, and as much of the code as fits."""
    table = _bare_place_table(rows, kind)
    if kind == "step":
        return table
    room = max(view.columns, _LEAST_COLUMNS) - wide_console(False).measure(table).maximum - 2
    return table if room < _LEAST_CODE else _bare_place_table(rows, kind, room)


def _bare_place_table(rows: Sequence[StalledLine], kind: str, code_columns: int = 0) -> Table:
    table = _new_table()
    steps = any(row.step for row in rows)
    table.add_column("warp cycles", justify="right", no_wrap=True)
    if steps:
        table.add_column("step", no_wrap=True)
    if kind == "line":
        table.add_column("line", no_wrap=True)
    table.add_column("instructions", justify="right", no_wrap=True)
    table.add_column("reasons", no_wrap=True)
    if code_columns:
        table.add_column("code", no_wrap=True)
    for row in rows:
        cells = [f"{row.percent:.1f} %"] + ([_escape(row.step or "(outside of steps)")] if steps else [])
        cells += [place_text(row.path)] if kind == "line" else []
        cells += [f"{row.executions:,}", reasons(row.stalls, row.percent)]
        cells += [_escape(row.code[:code_columns])] if code_columns else []
        table.add_row(*cells)
    return table


def reasons(stalls: Mapping[str, float], whole: float = 100.0, named: int = _NAMED) -> str:
    """The reasons that matter, in percent of `whole`."""
    shown = [(reason, 100 * percent / whole) for reason, percent in stalls.items() if whole and percent]
    return ", ".join(f"{reason} {percent:.0f} %" for reason, percent in shown[:named] if percent >= _LEAST_PERCENT)


def place_text(path: Place) -> str:
    """The line in the kernel and those inside calls; files are named where they change."""
    import os

    if not path:
        return "(no line)"
    shown, file = [], path[0][0]
    for each, line in path:
        shown.append(f"{line}" if each == file else f"{os.path.basename(each)}:{line}")
        file = each
    return " > ".join(shown)


# --- several launches ------------------------------------------------------------------------------------------------------------


def _print_many(launches: Sequence[TimedLaunch], view: View) -> None:
    console = wide_console(view.color)
    first = launches[0]
    kernels = dict.fromkeys(each.kernel for each in launches)
    rows = [("kernel", ", ".join(kernels) + (common_options(launches) if len(kernels) == 1 else ""))]
    rows += [("source", text) for text in dict.fromkeys(each.source for each in launches)] if len(kernels) == 1 else []
    for gpu, card in {each.gpu: each for each in launches}.items():
        rows.append(("GPU", f"{gpu}: {card.card} ({card.arch}); error of predictions: {error_text(card.error)}"))
        rows.append(("GPU", f"    data: {data_text(card)}"))
    rows.append(("caches", "as the launch before left them" if first.warm else "without the buffers"))
    print("\n".join(aligned(rows)))
    print()
    console.print(side_by_side(launches))
    print(f"\n{sampling_summary(launches)}")
    if errors := [each.measured.error_percent for each in launches if each.measured is not None]:
        print(f"{len(errors)} measured: {error_summary(errors)}")
    if len(launches) <= MOST_COLUMNS and (table := _places_side_by_side(launches, view.lines)) is not None:
        print()
        console.print(table)


def sampling_summary(launches: Sequence[TimedLaunch]) -> str:
    """How much was inferred instead of simulated, of the launch where that is most."""
    beyond = max(map(_extrapolated, launches))
    extrapolated = f"up to {beyond:.0f} % of the cycles extrapolated" if beyond >= 0.5 else "no cycles extrapolated"
    parts = [each.sampled for each in launches]
    return f"One SM simulated, {extrapolated}" + _spreads(
        max(part.work_error_percent for part in parts), max(part.stagger_spread_percent for part in parts)
    )


def error_summary(errors: Sequence[float]) -> str:
    """Mean of the magnitudes and the worst of some errors in percent."""
    return f"mean absolute error {sum(map(abs, errors)) / len(errors):.1f} %, worst {max(errors, key=abs):+.1f} %"


def common_options(launches: Sequence[TimedLaunch]) -> str:
    """The options that are the same everywhere, to stand after the kernel's name."""
    options = launches[0].options
    same = {name: value for name, value in options.items() if len({str(each.options.get(name)) for each in launches}) == 1}
    return options_text(same)


def _name(launch: TimedLaunch, several_gpus: bool) -> str:
    """What distinguishes a launch, without its GPU if that has a column."""
    label = launch.label
    if several_gpus:
        label = " ".join(word for word in label.split(" ") if word != launch.gpu)
    return label or launch.kernel


def side_by_side(launches: Sequence[TimedLaunch]) -> Table:
    """A row a launch."""
    table = _new_table()
    gpus, measured = len({each.gpu for each in launches}) > 1, any(each.measured for each in launches)
    table.add_column("launch", no_wrap=True)
    heads = [*(["GPU"] if gpus else []), "us", "TFLOPS", *(["measured", "error"] if measured else []), "cycles", "MHz", "CTAs", "warps"]
    for head in heads:
        table.add_column(head, justify="left" if head == "GPU" else "right", no_wrap=True)
    table.add_column("bound by", no_wrap=True)
    table.add_column("stalls", no_wrap=True)
    for each in launches:
        cells = [_escape(_name(each, gpus)), *([each.gpu] if gpus else []), microseconds(each.time_us)]
        cells.append(f"{each.tflops:.4g}" if each.flops else "-")
        if measured:
            found = each.measured
            cells += ["-", "-"] if found is None else [microseconds(found.median_us), f"{found.error_percent:+.1f} %"]
        cells += [f"{each.cycles:,.0f}", f"{each.clock_mhz:,.0f}", str(each.held.ctas), str(each.held.warps)]
        waits = {reason: percent for reason, percent in each.stalls.items() if reason not in ("selected", "not_selected")}
        table.add_row(*cells, _bound(each), reasons(waits))
    return table


def _bound(launch: TimedLaunch) -> str:
    busiest = launch.resources[0] if launch.resources else None
    return launch.bound + (f" {busiest.percent:.0f} %" if busiest and busiest.name == launch.bound else "")


def _places_side_by_side(launches: Sequence[TimedLaunch], most: int) -> Table | None:
    """Time by step, or by line without steps: a launch's time divided as its warp cycles are."""
    steps = all(each.steps for each in launches)
    found = [{_key(row, steps): row for row in (each.steps if steps else each.lines)} for each in launches]
    names: dict[tuple[str, Place], float] = {}
    for each, rows in zip(launches, found, strict=True):
        for key, place in rows.items():
            names[key] = max(names.get(key, 0.0), place.percent / 100 * each.time_us)
    if len({each.kernel for each in launches}) > 1 or not names:
        return None
    table = _new_table()
    table.add_column("us by step" if steps else "us by line", no_wrap=True)
    gpus = len({each.gpu for each in launches}) > 1
    for each in launches:
        head = "\n".join([*_name(each, gpus).split(" "), *([each.gpu] if gpus else [])])
        table.add_column(_escape(head), justify="right", no_wrap=True)
    for key in sorted(names, key=lambda key: -names[key])[: most or None]:
        cells = [f"{row.percent / 100 * each.time_us:.1f}" if (row := rows.get(key)) else "-" for each, rows in zip(launches, found)]
        table.add_row(_escape(key[0] or "(outside of steps)") if steps else place_text(key[1]), *cells)
    return table


def _key(row: StalledLine, steps: bool) -> tuple[str, Place]:
    return (row.step, ()) if steps else (row.step, row.path)


def labels_of(launches: Iterable[TimedLaunch]) -> list[str]:
    """Names for figures: what distinguishes launches, or what each is."""
    return [each.label or f"{each.kernel} {' '.join(f'{n}={value_text(v)}' for n, v in each.options.items())}".strip() for each in launches]
