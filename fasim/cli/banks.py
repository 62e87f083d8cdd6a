"""`fasim banks`: run a kernel in one or several variants and tell its bank conflicts."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import fasim
from fasim.cli import collection, ownfile
from fasim.cli.failures import report_error
from fasim.cli.job import Job, RunOptions
from fasim.cli.run import launch, split_target
from fasim.errors import FasimError
from fasim.report.banks import BanksReport, BanksVariant, choose, look_closer, tabulate
from fasim.report.steps import SourceLines
from fasim.sm.result import SharedAccess

_OPENING, _CLOSING = "([{<", ")]}>"


@dataclass(frozen=True)
class BanksOptions:
    """The options that `fasim banks` has beyond those of `fasim run`."""

    line: int | None = None
    every_group: bool = False
    pitch_bytes: int | None = None
    out: Path | None = None


@dataclass(frozen=True)
class _Variant:
    """One way to compile and launch the kernel: what distinguishes it, and how to make it ready."""

    label: str
    prepare: Callable[[], Job]


def banks(words: Sequence[str], options: RunOptions, general: Sequence[str], view: BanksOptions) -> int:
    """Carry out `fasim banks`.

    Returns: the exit code, 0 with and without conflicts. Raises: FasimError for what goes wrong before a launch.
    """
    if view.out is not None:
        from fasim.report.bank_figure import check_figure_path

        check_figure_path(view.out)
    target, is_file, rest = split_target(words)
    variants = _of_file(target, rest, options, general) if is_file else _of_collection(target, rest, options, general)
    found: list[tuple[BanksVariant, list[list[SharedAccess]]]] = []
    job = None
    for each in variants:
        printed: list[str] = []
        job = each.prepare()
        try:
            result, _ = launch(job, options, printed)
        except FasimError as error:
            return report_error(error, json=options.json, output="".join(printed))
        found.append(tabulate(result, _lines(job), options.arch, label=each.label, options=job.options, defines=job.defines))
    assert job is not None
    report = _report(job, options, view, found)
    if options.json:
        from fasim.report.records import to_json

        print(to_json(report))
    else:
        from fasim.report.bank_tables import print_banks

        terminal = sys.stdout.isatty()
        columns = shutil.get_terminal_size().columns if terminal or "COLUMNS" in os.environ else None
        print_banks(report, columns=columns, color=terminal and "NO_COLOR" not in os.environ, every_group=view.every_group)
    if view.out is not None and not any(each.details for each in report.variants):
        print(f"{view.out} was not written: there is no access to shared memory to draw", file=sys.stderr)
    return 0


def _report(
    job: Job, options: RunOptions, view: BanksOptions, found: Sequence[tuple[BanksVariant, list[list[SharedAccess]]]]
) -> BanksReport:
    """Choose accesses to look at, look at them, and draw them if that is asked for; job: any of the variants."""
    chosen = choose([each for each, _ in found], view.line, ideal=view.out is not None)
    variants = [
        look_closer(each, records, rows, options.arch, view.pitch_bytes) for (each, records), rows in zip(found, chosen, strict=True)
    ]
    saved = view.out if view.out is not None and any(each.details for each in variants) else None
    if saved is not None:
        from fasim.report.bank_figure import save_figure
        from fasim.report.bank_tables import detail_title

        save_figure(saved, [(detail_title(each, detail), detail.groups) for each in variants for detail in each.details])
    compiled = job.kernel.module.compiled
    return BanksReport(
        kernel=job.kernel.name,
        source=job.source,
        arch=job.kernel.module.arch.name,
        compiler=compiled.compiler if compiled else "",
        seed=options.seed,
        variants=variants,
        line=view.line,
        saved=str(saved) if saved else None,
        version=fasim.__version__,
    )


def _lines(job: Job) -> SourceLines:
    compiled = job.kernel.module.compiled
    return SourceLines({compiled.source_path: compiled.source_text} if compiled else {})


def _of_collection(name: str, words: Sequence[str], options: RunOptions, general: Sequence[str]) -> Iterator[_Variant]:
    from fasim import kernels

    spec = kernels.load(name)
    variants = collection.parse_variants(spec, words, general)
    for label, chosen in zip(_labels(variants), variants):
        yield _Variant(label, partial(collection.prepare_variant, spec, chosen, options))


def _of_file(path: str, words: Sequence[str], options: RunOptions, general: Sequence[str]) -> Iterator[_Variant]:
    given = dict(map(ownfile.parse_define, options.defines))
    lists = [split_values(value) if value else [value] for value in given.values()]
    variants = [dict(zip(given, values)) for values in itertools.product(*lists)]
    for label, defines in zip(_labels(variants), variants):
        texts = tuple(name if value is None else f"{name}={value}" for name, value in defines.items())
        one = replace(options, defines=texts)
        yield _Variant(label, partial(ownfile.prepare, path, words, one, general))


def split_values(text: str) -> list[str]:
    """The values of a macro: separated by commas outside of brackets and quotes, repeated ones once."""
    parts, depth = [""], 0
    for token in re.findall(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|<<|.', text, re.DOTALL):
        depth += (token in _OPENING) - (token in _CLOSING)
        if token == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += token
    return list(dict.fromkeys(part.strip() for part in parts))


def _labels(variants: Sequence[dict[str, Any]]) -> list[str]:
    """What distinguishes the variants: names and values of the options that differ."""
    varying = [name for name in variants[0] if len({str(each[name]) for each in variants}) > 1]
    texts = [[f"{name}={str(each[name]).lower() if isinstance(each[name], bool) else each[name]}" for name in varying] for each in variants]
    return [" ".join(each) for each in texts]
