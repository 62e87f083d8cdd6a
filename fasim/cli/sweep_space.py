"""The space of a sweep: every combination of the values that a command line lists, as jobs."""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fasim.cli.collection import parse_variants
from fasim.cli.launching import Call
from fasim.cli.ownfile import parse_define
from fasim.cli.target import split_target, split_values
from fasim.cli.timing_job import TimingJob, timing_jobs
from fasim.errors import UsageError
from fasim.report.option_text import value_text

#: larger spaces have to be asked for
DEFAULT_LIMIT = 1000
GPU, GRID, BLOCK = "gpu", "grid", "block"
_CTA_SIZES = ("blockDim.x", "blockDim.y", "blockDim.z")


@dataclass(frozen=True)
class Space:
    """Everything to try. axes: the names of what is swept, each with its values, in the order given; points: of their product."""

    axes: dict[str, list[str]]
    points: list[Point]


@dataclass(frozen=True)
class Point:
    """One combination: what to predict, and its value on each axis."""

    job: TimingJob
    values: dict[str, str]


def space(call: Call, gpus: Sequence[str], *, warm: bool = True, limit: int | None = None) -> Space:
    """All combinations, the GPU changes fastest, what is given last before the rest.

    Raises: UsageError, also for more than `limit` combinations, or DEFAULT_LIMIT.
    """
    gpus = list(dict.fromkeys(gpus))
    target = split_target(call.words)
    if target.of_collection:
        _check_size(_lists_in(target.words), len(gpus), limit)
        return _of_collection(call, target.name, target.words, gpus, warm)
    if target.is_recording:
        jobs = timing_jobs(call, gpus, warm=warm)
        return _space([Point(job, _with_gpu({}, job)) for job in jobs])
    return _of_file(call, gpus, warm, limit)


def _space(points: Sequence[Point]) -> Space:
    """With the values that differ alone, and labels that say them."""
    names = list(points[0].values)
    axes = {name: list(dict.fromkeys(point.values[name] for point in points)) for name in names}
    axes = {name: values for name, values in axes.items() if len(values) > 1}
    kept = []
    for point in points:
        values = {name: point.values[name] for name in axes}
        kept.append(Point(replace(point.job, label=label_of(values)), values))
    return Space(axes, kept)


def label_of(values: Mapping[str, str]) -> str:
    """A combination in one line."""
    return " ".join(value if name == GPU else f"{name}={value}" for name, value in values.items())


def _with_gpu(values: Mapping[str, str], job: TimingJob) -> dict[str, str]:
    return {**values, GPU: Path(job.gpu).stem}


def _check_size(axes: Mapping[str, int], gpus: int, limit: int | None) -> None:
    sizes = {**axes, "GPUs": max(gpus, 1)}
    total = math.prod(sizes.values())
    if total > (limit or DEFAULT_LIMIT):
        factors = " x ".join(f"{count} {name}" for name, count in sizes.items() if count > 1)
        most = f"--limit {limit} allows" if limit else f"{DEFAULT_LIMIT:,} that are tried unless asked for"
        raise UsageError(
            f"the space has {total:,} combinations ({factors}), more than {most}; give fewer values, or try them all with --limit {total}"
        )


# --- kernels of the collection -----------------------------------------------------------------------------------------------------


def _lists_in(words: Sequence[str]) -> dict[str, int]:
    """How many values each option has, without making the product, which may be huge."""
    found: dict[str, int] = {}
    flag = ""
    for word in words:
        name, equals, text = word.partition("=")
        if word.startswith("--"):
            flag = name
        else:
            text = word
        if text or equals:
            found[flag] = len(dict.fromkeys(text.split(",")))
    return found


def _of_collection(call: Call, name: str, words: Sequence[str], gpus: Sequence[str], warm: bool) -> Space:
    from fasim import kernels

    chosen = parse_variants(kernels.load(name), words, call.general)
    jobs = timing_jobs(call, gpus, warm=warm)
    return _space([Point(job, _with_gpu({key: value_text(v) for key, v in chosen[job.variant].items()}, job)) for job in jobs])


# --- files -------------------------------------------------------------------------------------------------------------------------


def _of_file(call: Call, gpus: Sequence[str], warm: bool, limit: int | None) -> Space:
    options = call.options
    given = dict(map(parse_define, options.defines))
    macros: dict[str, list[Any]] = {name: split_values(value) if value else [value] for name, value in given.items()}
    blocks = split_values(options.block) if options.block else [None]
    grids = split_values(options.grid) if options.grid else [None]
    lists = {**macros, f"--{BLOCK}": blocks, f"--{GRID}": grids}
    _check_size({name: len(values) for name, values in lists.items()}, len(gpus), limit)
    points = []
    for chosen in itertools.product(*lists.values()):
        *defines, block_text, grid_text = chosen
        values = dict(zip(macros, defines))
        block = sizes(block_text, values, f"--{BLOCK}") if block_text else None
        grid = sizes(grid_text, values | _cta_sizes(block), f"--{GRID}") if grid_text else None
        texts = tuple(name if value is None else f"{name}={value}" for name, value in values.items())
        each = call.with_options(defines=texts, block=_joined(block) or None, grid=_joined(grid) or None)
        shown = {_axis_name(name): value or "" for name, value in values.items()}
        shown |= {BLOCK: _shown(block_text, block), GRID: _shown(grid_text, grid)}
        points += [Point(job, _with_gpu(shown, job)) for job in timing_jobs(each, gpus, warm=warm)]
    return _space(points)


def _axis_name(macro: str) -> str:
    return f"-D {macro}" if macro in (GPU, GRID, BLOCK) else macro


def _shown(text: str | None, found: tuple[int, ...] | None) -> str:
    """Sizes as a value of an axis: what stands there, if that is a formula."""
    return text if text and re.search("[A-Za-wyz]", text) else _joined(found)


def _joined(found: tuple[int, ...] | None) -> str:
    return "x".join(map(str, found or ()))


def _cta_sizes(block: tuple[int, ...] | None) -> dict[str, str]:
    return dict(zip(_CTA_SIZES, map(str, (*(block or ()), 1, 1, 1)))) if block else {}


def sizes(text: str, names: Mapping[str, str | None], what: str) -> tuple[int, ...]:
    """One to three sizes: `256`, `16x16`, `(16,16)`, or formulas as in `1024/TILE x 512/blockDim.y`, divided upwards.

    names: values of macros, and of blockDim.x, .y and .z if known. what: the option, for errors.
    Raises: UsageError.
    """
    commas = re.sub(r"\s+x\s+|(?<=[\d)])x(?=[\d(])", ",", text.strip())
    try:
        tree = ast.parse(commas, mode="eval").body
        found = tuple(_number(node, names) for node in (tree.elts if isinstance(tree, ast.Tuple) else [tree]))
    except (SyntaxError, ValueError, ZeroDivisionError) as error:
        reason = "" if isinstance(error, SyntaxError) else f": {error}"
        raise UsageError(
            f"{what} {text!r}{reason}; write one to three sizes with x between, several of them with commas: 128,256 or 16x16,32x8; "
            "formulas may name macros and blockDim.x: '131072/blockDim.x' or '1024/TILE x 512/TILE'"
        ) from None
    if not 1 <= len(found) <= 3:
        raise UsageError(f"{what} {text!r}: one to three sizes expected, for example 8 or 8x2 or 8x2x1")
    return found


def _number(node: ast.expr, names: Mapping[str, str | None]) -> int:
    """The value of a formula. Raises: ValueError, ZeroDivisionError."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp):
        left, right = _number(node.left, names), _number(node.right, names)
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Div):
            return -(-left // right)
    if isinstance(node, (ast.Name, ast.Attribute)):
        name = ast.unparse(node)
        if name not in names:
            raise ValueError(f"{name} is neither a macro of -D nor {', '.join(_CTA_SIZES)}")
        try:
            return int(names[name] or "", 0)
        except ValueError:
            raise ValueError(f"{name} is {names[name]!r}, no whole number") from None
    raise ValueError(f"{ast.unparse(node)} is no size")
