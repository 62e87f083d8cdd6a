"""`fasim gpu calibrate`: measure what the timing model needs to know of a card, and write its data file."""

from __future__ import annotations

import datetime
import sys
from dataclasses import dataclass
from pathlib import Path

import fasim
from fasim.gpu.calibrate.code import Code, compile_all, load
from fasim.gpu.calibrate.datafile import DataFile, nearest, written
from fasim.gpu.calibrate.measure import measure
from fasim.gpu.calibrate.result import Calibration
from fasim.gpu.calibrate.values import Measured, rounded
from fasim.gpu.device import Device
from fasim.report.measured import Card


@dataclass(frozen=True)
class CalibrateOptions:
    """What to write: the data file, all results as JSON, where CTAs went as .npz. code: a folder that `pack` wrote."""

    out: Path | None = None
    json: Path | None = None
    placement: Path | None = None
    code: Path | None = None


def pack(folder: Path, arch: str) -> int:
    """Compile the measurements for a machine that has no compiler.

    Returns: 0. Raises: FasimError.
    """
    code = compile_all(arch)
    code.save(folder)
    left_out = [f"{name}: {each.reason}" for name, each in code.looked.items() if each.reason]
    print(f"{folder}: {len(code.cubins)} cubins for {arch}, made by {code.compiler}")
    print("\n".join(left_out), end="\n" if left_out else "")
    return 0


def calibrate(options: CalibrateOptions, device_index: int) -> int:
    """Measure, print a table, and write what was asked for.

    Returns: 0. Raises: FasimError.
    """
    with Device(device_index) as device:
        near = nearest(device.card)
        code = load(options.code) if options.code else _compiled(device.card)
        raw, placed = measure(device, code, lambda what: print(f"measuring: {what}", file=sys.stderr))
        card = device.card
    made = f"{code.compiler}, {datetime.date.today().isoformat()}"
    result = Calibration(card, made, fasim.__version__, raw, placed)
    if options.json:
        options.json.write_text(result.json(), encoding="utf-8")
    if options.placement:
        result.save_placement(options.placement)
    print(table(result.values, result.skipped, near))
    print("\n".join(["", *placement_lines(result)]))
    if options.out:
        options.out.write_text(written(near, result.keys), encoding="utf-8")
        print(f"written: {options.out}")
    return 0


def _compiled(card: Card) -> Code:
    print(f"compiling for {card.arch}", file=sys.stderr)
    return compile_all(card.arch)


def table(values: list[Measured], skipped: dict[str, str], near: DataFile) -> str:
    """Key, value, spread, what the nearest known card's data file says, and the difference from it."""
    rows = [("key", "measured", "unit", "spread", near.name, "difference")]
    for each in values:
        known = near.value(each.key)
        value = rounded(each)
        difference = "" if known is None else f"{100 * (each.value - known) / known:+.1f} %" if known else f"{each.value:+g}"
        rows.append((each.key, _number(value), each.unit, _number(each.spread), "" if known is None else _number(known), difference))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    aligned = [
        "  ".join(f"{cell:<{width}}" if i in (0, 2) else f"{cell:>{width}}" for i, (cell, width) in enumerate(zip(row, widths)))
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in [*aligned, *(f"{key}: not measured: {reason}" for key, reason in skipped.items())])


def placement_lines(result: Calibration) -> list[str]:
    """How far simple rules describe where the CTAs of each grid went."""
    lines = [f"placement of CTAs on {result.card.sms} SMs (CTAs an SM x waves/how long they stay/which time)"]
    for name, rule in result.rules().items():
        if name.endswith("/0"):
            apart = ", ".join(f"{distance} ({sms} SMs)" for distance, sms in rule.apart.items())
            lines.append(f"{name}: the first wave goes to GPCs in bursts of {' '.join(str(burst) for burst in rule.bursts)} CTAs")
            lines += [f"    the second CTA of an SM is behind its first by {apart}"] if apart else []
            lines.append(
                f"    in order of ctaid begin {_share(rule.in_order)}; later CTAs at the place free first {_share(rule.freed_first)}"
            )
    return lines


def _share(share: float) -> str:
    return f"{100 * share:.1f} %"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
