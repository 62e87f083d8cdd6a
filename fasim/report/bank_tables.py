"""The report on bank conflicts for a terminal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fasim.report.bank_access import Cost
from fasim.report.bank_advice import Advice, PaddingAdvice, SwizzleAdvice
from fasim.report.bank_picture import picture_text
from fasim.report.banks import AccessDetail, AccessRow, BanksReport, BanksVariant, aligned_rows
from fasim.report.console import wide_console
from fasim.report.option_text import value_text
from fasim.smem.layouts import Swizzle

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

#: width of what is not a terminal
PLAIN_COLUMNS = 160
#: code is shown in this many columns or not at all
_LEAST_CODE = 20
_NUMBERS = ("executions", "wavefronts", "conflicts", "source page", "ideal")


def print_banks(report: BanksReport, *, columns: int | None, color: bool, every_group: bool = False) -> None:
    """Print tables, pictures and advice; columns: width of the terminal, None if there is none."""
    width = columns or PLAIN_COLUMNS
    # tables take the room that they need; code alone is cut
    console = wide_console(color)
    variants = report.variants
    print(_headline(report))
    if not any(each.rows for each in variants):
        print("\nThe kernel does not access shared memory.")
        return
    print()
    console.print(one_table(variants[0], console, width) if len(variants) == 1 else side_by_side(variants, console, width))
    print()
    print(_totals(variants))
    for each in variants:
        for detail in each.details:
            if report.line is not None or each.rows[detail.row].badness == max(row.badness for v in variants for row in v.rows):
                print("\n" + "\n".join(detail_text(each, detail, columns=width, color=color, every_group=every_group)))
    if not any(each.sums[2] for each in variants):
        print("\nNo bank conflicts.")
    elif report.line is None:
        print("\nAnother access: --line N")
    if saved := [path for path in (report.saved, report.saved_lines) if path]:
        print("\n" + "\n".join(f"saved          {path}" for path in saved))


def _headline(report: BanksReport) -> str:
    tool = ", ".join(part for part in (report.arch, report.compiler) if part)
    return f"kernel         {f'{report.kernel} {common_options(report.variants)}'.rstrip()}\nsource         {report.source} ({tool})"


def common_options(variants: Sequence[BanksVariant]) -> str:
    """The kernel options that are the same in all variants."""
    first = variants[0]
    varying = {name for name in first.options if len({str(each.options.get(name)) for each in variants}) > 1}
    return " ".join(f"{name}={value_text(value)}" for name, value in first.options.items() if name not in varying)


def _new_table(has_steps: bool) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_footer=True, header_style="bold", footer_style="bold")
    if has_steps:
        table.add_column("step", no_wrap=True)
    table.add_column("line", no_wrap=True)
    table.add_column("operation", footer="total", no_wrap=True)
    return table


def one_table(variant: BanksVariant, console: Console, columns: int) -> Table:
    """The accesses of one launch, worst first, with as much of the code as fits; columns: width of the terminal."""
    table = _numbers_table(variant)
    room = columns - console.measure(table).maximum - 2
    return table if room < _LEAST_CODE else _numbers_table(variant, room)


def _numbers_table(variant: BanksVariant, code_columns: int = 0) -> Table:
    steps = any(row.step for row in variant.rows)
    table = _new_table(steps)
    for name, total in zip(_NUMBERS, variant.sums):
        table.add_column(
            name, justify="right", no_wrap=True, footer=f"{total:,}", style="bold red" if name == "conflicts" and total else ""
        )
    if code_columns:
        table.add_column("code", no_wrap=True)
    for row in variant.rows:
        numbers = (row.executions, row.wavefronts, row.conflicts, row.source_wavefronts, row.source_ideal)
        code = [_escape(_cut(row.code or row.text, code_columns))] if code_columns else []
        table.add_row(*_place(row, steps), *(f"{number:,}" for number in numbers), *code)
    return table


def _cut(text: str, columns: int) -> str:
    return text if len(text) <= columns else text[: columns - 3] + "..."


def side_by_side(variants: Sequence[BanksVariant], console: Console, columns: int) -> Table:
    """The same accesses in several variants, each a group of columns; the source page's column is left out where there is no room."""
    table = _grouped_table(variants, 3)
    return table if console.measure(table).maximum <= columns else _grouped_table(variants, 2)


def _grouped_table(variants: Sequence[BanksVariant], shown: int) -> Table:
    steps = any(row.step for each in variants for row in each.rows)
    table = _new_table(steps)
    for each in variants:
        for number, name in enumerate(("wavefronts", "conflicts", "source page")[:shown]):
            total = each.sums[1 + number]
            head = f"{_escape(each.label)}\n{name}" if number == 0 else f"\n{name}"
            table.add_column(head, justify="right", no_wrap=True, footer=f"{total:,}", style="bold red" if number == 1 and total else "")
    for rows in aligned_rows(variants):
        cells = []
        for row in rows:
            numbers = ["-"] * 3 if row is None else [f"{n:,}" for n in (row.wavefronts, row.conflicts, row.source_wavefronts)]
            cells += numbers[:shown]
        table.add_row(*_place(next(row for row in rows if row), steps), *cells)
    return table


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _place(row: AccessRow, steps: bool) -> list[str]:
    return [*([_escape(row.step)] if steps else []), line_path(row), row.op or f"{row.kind} (not counted)"]


def line_path(row: AccessRow) -> str:
    """The line in the kernel and those inside calls; files are named where they change."""
    if not row.path:
        return f"PTX {row.ptx_line}"
    shown, file = [], row.path[0][0]
    for path, line in row.path:
        shown.append(f"{line}" if path == file else f"{os.path.basename(path)}:{line}")
        file = path
    return " > ".join(shown)


def _totals(variants: Sequence[BanksVariant]) -> str:
    """Counters under the names that ncu gives them."""
    names = list(dict.fromkeys(name for each in variants for name in each.totals))
    labels = [each.label or "total" for each in variants]
    widths = [max(len(label), 12) for label in labels]
    heads = "  ".join(f"{label:>{width}}" for label, width in zip(labels, widths)) + "  " if len(variants) > 1 else ""
    lines = [f"{heads}ncu counter"] if heads else []
    for name in names:
        numbers = "  ".join(f"{each.totals.get(name, 0):>{width},}" for each, width in zip(variants, widths))
        lines.append(f"{numbers}  {name}")
    return "\n".join(lines)


def detail_text(
    variant: BanksVariant, detail: AccessDetail, *, columns: int = PLAIN_COLUMNS, color: bool = False, every_group: bool = False
) -> list[str]:
    """Picture and advice for one access."""
    title = detail_title(variant, detail)
    lines = [f"\x1b[1m{title}\x1b[0m" if color else title]
    lines += [picture_text(detail.groups, every_group=every_group, columns=columns, color=color), ""]
    return lines + advice_lines(detail.advice, variant.rows)


def detail_title(variant: BanksVariant, detail: AccessDetail) -> str:
    """Which access a picture shows."""
    row = variant.rows[detail.row]
    label = f"{variant.label}: " if variant.label else ""
    step = f"{row.step}, " if row.step else ""
    place = f"line {line_path(row)}" if row.path else line_path(row)
    ctaid = ",".join(map(str, detail.ctaid))
    return f"{label}{step}{place}: {row.op}, {cost_text(detail.cost)} (worst execution: CTA {ctaid}, warp {detail.warp})"


def cost_text(cost: Cost) -> str:
    """A cost in words."""
    if cost.wavefronts == 0:
        return f"{cost.source_wavefronts} wavefronts on the source page, ideal {cost.source_ideal}"
    return f"{cost.wavefronts} wavefront{'s' * (cost.wavefronts != 1)}, {_conflicts(cost)}"


def _conflicts(cost: Cost) -> str:
    return f"{cost.conflicts} conflict{'s' * (cost.conflicts != 1)}"


def advice_lines(advice: Advice, rows: Sequence[AccessRow] = ()) -> list[str]:
    """What helps, one paragraph a remedy, and why others do not; rows: those of the report, to name other accesses."""
    lines = []
    if found := advice.padding:
        pitch = f"pitch {found.pitch_bytes:,} -> {found.pitch_bytes + found.padding_bytes:,} bytes"
        lines += [
            f"padding        {found.padding_bytes} bytes a row ({pitch}): {cost_text(found.then)}",
            f"               costs {found.extra_bytes:,} bytes for the {found.rows} rows that this access spans{_others(found, rows)}",
        ]
    if turn := advice.swizzle:
        costs = f"costs {turn.extra_bytes:,} bytes to fill a block of {turn.block_bytes:,}" if turn.extra_bytes else "costs 0 bytes"
        lines += [
            f"swizzle        {turn.swizzle} of byte offsets, {Swizzle(turn.bits, turn.base, turn.shift).formula}: {cost_text(turn.then)}",
            f"               {costs}; the buffer starts at a multiple of {turn.align_bytes:,} bytes{_others(turn, rows)}",
        ]
    return lines + [f"note           {note}" for note in advice.notes]


def _others(remedy: PaddingAdvice | SwizzleAdvice, rows: Sequence[AccessRow]) -> str:
    """What a remedy does to the other accesses to the same bytes."""
    if not remedy.others:
        return ""
    spared = remedy.others - len(remedy.harm)
    parts = []
    if spared:
        what = f"{spared} other access{'es' * (spared != 1)} to these bytes"
        parts.append(f"{what} get{'s' * (spared == 1)} no additional conflicts")
    for effect in remedy.harm:
        parts.append(f"BUT line {line_path(rows[effect.row])} then has {_conflicts(effect.then)}, now {effect.now.conflicts}")
    return "".join(f"; {part}" for part in parts)
