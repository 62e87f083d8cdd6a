"""A ranked space of launches for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fasim.report.console import wide_console
from fasim.report.option_text import options_text
from fasim.report.sweep import NotPredicted, SweepReport, SweptGpu, SweptLaunch
from fasim.report.text import aligned, size
from fasim.report.timing_text import error_text, microseconds, reasons

if TYPE_CHECKING:
    from rich.table import Table

_REASON_COLUMNS = 160


def print_sweep(report: SweepReport, *, top: int, color: bool) -> None:
    """Print what `fasim sweep` prints. top: launches to show, 0 for all."""
    console = wide_console(color)
    shown = report.launches[: top or None]
    print("\n".join(aligned(_facts(report))))
    print()
    console.print(_ranking(report, shown))
    if len(shown) < len(report.launches):
        print(f"and {len(report.launches) - len(shown):,} slower ones (--top N)")
    if report.not_predicted:
        print()
        console.print(_not_predicted_table(report.not_predicted))
    if report.saved:
        print(f"\nsaved  {report.saved}")


def title(report: SweepReport) -> str:
    """The kernel, with the options that are the same everywhere."""
    kernels = dict.fromkeys(row.kernel for row in report.launches)
    if len(kernels) > 1:
        return ", ".join(kernels)
    first = report.launches[0]
    same = {name: value for name, value in first.options.items() if name not in report.axes}
    macros = {} if first.options else {name: value for name, value in first.defines.items() if name not in report.axes}
    return first.kernel + options_text(same) + "".join(f" -D {n}" + ("" if v is None else f"={v}") for n, v in macros.items())


def _facts(report: SweepReport) -> list[tuple[str, str]]:
    rows = [("kernel", title(report))]
    rows += [("source", source) for source in dict.fromkeys(row.source for row in report.launches)]
    for gpu in report.gpus:
        rows.append(("GPU", f"{gpu.gpu}: {gpu.card} ({gpu.arch}); error of predictions: {error_text(gpu.error)}"))
        taken = f"; {gpu.taken_over} figures of another card, as nobody published its own" if gpu.taken_over else ""
        rows.append(("GPU", f"    data: {gpu.data_source}{taken}"))
    rows.append(("caches", "as the launch before left them" if report.warm else "without the buffers"))
    swept = ", ".join(f"{name} ({len(values)})" for name, values in report.axes.items()) or "nothing, one launch alone"
    rows.append(("swept", swept))
    count = f"{len(report.launches):,} predicted"
    rows.append(("tried", count + (f", {len(report.not_predicted):,} not" if report.not_predicted else "")))
    for gpu in report.gpus:
        own = [row for row in report.launches if row.gpu == gpu.gpu]
        rows += [("best", _best(own, gpu, len(report.gpus) > 1))] if own else []
    return rows


def _best(rows: Sequence[SweptLaunch], gpu: SweptGpu, several: bool) -> str:
    """The fastest, and how many are as near to it as predictions are to measurements."""
    first = rows[0]
    words = first.label.split(" ")
    label = " ".join(word for word in words if not several or word != gpu.gpu)
    text = f"{gpu.gpu}: " * several + (f"{label}, " if label else "") + f"{microseconds(first.time_us)} us"
    if gpu.error is None or len(rows) == 1:
        return text
    percent = gpu.error.mean_percent
    near = sum(row.time_us <= first.time_us * (1 + percent / 100) for row in rows[1:])
    others = f"{near:,} other{'s are' if near != 1 else ' is'}" if near else "no other is"
    return f"{text}; {others} within {percent:.1f} % of it, the mean error of predictions"


def _new_table() -> Table:
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")


def _ranking(report: SweepReport, rows: Sequence[SweptLaunch]) -> Table:
    from rich.markup import escape

    table = _new_table()
    table.add_column("#", justify="right", no_wrap=True)
    for name, values in report.axes.items():
        numbers = all(value.lstrip("-").isdecimal() for value in values)
        table.add_column(escape({"gpu": "GPU"}.get(name, name)), justify="right" if numbers else "left", no_wrap=True)
    shapes = [name for name in ("grid", "block") if _follows(report, name)]
    for name in shapes:
        table.add_column(name, no_wrap=True)
    flops = any(row.tflops for row in report.launches)
    for head in ("us", "ratio", *(["TFLOPS"] if flops else []), "CTAs", "warps"):
        table.add_column(head, justify="right", no_wrap=True)
    for head in ("limited by", "bound by", "stalls"):
        table.add_column(head, no_wrap=True)
    for row in rows:
        cells = [str(row.rank), *(escape(row.values[name]) for name in report.axes)]
        cells += [size(getattr(row, name)) for name in shapes]
        cells += [microseconds(row.time_us), f"{row.ratio:.3f}"]
        cells += [f"{row.tflops:.4g}" if row.tflops else "-"] if flops else []
        busy = "" if row.busy_percent is None else f" {row.busy_percent:.0f} %"
        cells += [str(row.ctas), f"{row.warps}/{row.most_warps}", ", ".join(row.limited_by), f"{row.bound}{busy}", reasons(row.waits)]
        table.add_row(*cells)
    return table


def _follows(report: SweepReport, name: str) -> bool:
    """Whether the grid or block differs without being said by its axis: it follows from others, or is a formula."""
    found = {getattr(row, name) for row in report.launches}
    said = report.axes.get(name)
    return len(found) > 1 and (said is None or any(not value.replace("x", "").isdecimal() for value in said))


def _not_predicted_table(rows: Sequence[NotPredicted]) -> Table:
    from rich.markup import escape

    table = _new_table()
    table.add_column("not predicted", no_wrap=True)
    table.add_column("reason", no_wrap=True)
    for row in rows:
        table.add_row(escape(row.label), escape(row.reason[:_REASON_COLUMNS]))
    return table
