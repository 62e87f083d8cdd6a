"""What compute-sanitizer and fasim say of the same kernels, as a page of the documentation.

python -m tests.hazards.verdicts docs/sanitizer.md
"""

from __future__ import annotations

import functools
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fasim
from fasim.errors import ExecutionError
from fasim.sm.result import Hazard
from tests.hazards import corpus
from tests.hazards.test_hazards import MAX_INSTRUCTIONS, launch, line_in

HERE = Path(__file__).parent
CASES = HERE.parent / "cases"
RECORD = json.loads((HERE / "data" / "h200_sanitizer.json").read_text())
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
TITLES = {
    "races": "Races between warps",
    "warp": "Exchange between the lanes of a warp",
    "patterns": "Whole algorithms",
    "order": "Order by named barriers, flags and locks",
    "copies": "Asynchronous copies",
    "uninit": "Memory that nobody wrote",
    "collectives": "Barriers and warp operations",
}
#: what fasim is to find though compute-sanitizer is silent
MISSED = {
    "shared memory that nobody wrote, in scalar code": "to_output",
    "shared memory that nobody wrote, read by an mma": "as_matrix",
    "an index below a shared array": "negative_index",
    "a shuffle mask that names absent lanes": "shuffle_absent",
    "a shuffle source outside the mask": "source_outside",
}
#: cases about something else that have a mistake besides: two stmatrix of different lanes overlap without __syncwarp() between them
MISTAKES = {"bc_epilogue_fragments/epilogue_fragments"}


@dataclass(frozen=True)
class Ours:
    """What fasim says of one launch: `found` in words, whether that is more than notes, and whether the kernel is wrong."""

    found: str
    alarm: bool
    wrong: bool


def short(hazards: list[Hazard], file: str) -> str:
    """Kinds, lines and words."""
    parts = []
    for h in hazards:
        lines = [str(line) for line in dict.fromkeys((line_in(h.first, file), line_in(h.second, file))) if line > 0]
        words = f", {h.words} words" if h.words else ""
        parts.append(f"{h.kind}{' (note)' if h.benign else ''} {'line' if len(lines) == 1 else 'lines'} {' and '.join(lines)}{words}")
    return "; ".join(parts)


def judged(run: Any, file: str, *, wrong: bool) -> Ours:
    """Launch, and put what was found into words."""
    try:
        hazards = list(run().hazards)
    except ExecutionError as error:
        place = f" line {error.where.line}" if error.where.line else ""
        return Ours(f"{error.details.get('kind', type(error).__name__)}{place}", True, wrong)
    return Ours(short(hazards, file), any(not h.benign for h in hazards), wrong)


def of_corpus(row: corpus.Row) -> Ours:
    """What fasim says of a kernel of this directory."""
    return judged(lambda: launch(row), str(corpus.path(row.file)), wrong=row.wrong)


@functools.cache
def cases() -> dict[str, Ours]:
    """What fasim says of the runs of tests/cases."""
    sys.path.insert(0, str(CASES))
    import caselib

    found = {}
    for name in caselib.names():
        case = caselib.load(name)
        source = CASES / f"{name}.cu"
        module = fasim.compile(source, arch=case.get("arch", "sm_90"))
        for run in case["runs"]:
            arguments = caselib.make_inputs(run)

            def go(run: Any = run, arguments: Any = arguments, module: Any = module) -> Any:
                return module.kernel(run["entry"]).launch(
                    run["grid"], run["block"], list(arguments.values()), dynamic_smem_bytes=run["dynamic_smem"],
                    opt_in=run.get("opt_in", True), max_instructions=MAX_INSTRUCTIONS, check="all",
                )  # fmt: skip

            key = f"{name}/{run['id']}"
            wrong = bool(run["expect"].get("hazards")) or bool(run["expect"].get("error")) or key in MISTAKES
            found[key] = judged(go, str(source), wrong=wrong)
    return found


def silent(key: str) -> bool:
    """Whether all four tools ran to the end and found nothing."""
    verdicts = RECORD["kernels"][key]
    return all(verdicts[tool]["outcome"] == "ok" and not verdicts[tool]["findings"] for tool in TOOLS)


def cell(key: str, tool: str) -> str:
    """What a tool reported."""
    verdict = RECORD["kernels"][key][tool]
    if verdict["outcome"] == "hang":
        return "hangs"
    return str(verdict["findings"]) if verdict["findings"] else "fails" if verdict["outcome"] == "error" else "–"


def table(verdicts: dict[str, Ours]) -> list[str]:
    """One row a launch."""
    lines = [f"| kernel | mistake | {' | '.join(TOOLS)} | fasim |", f"|---|---|{'---|' * len(TOOLS)}---|"]
    for key, ours in verdicts.items():
        tools = " | ".join(cell(key, tool) for tool in TOOLS)
        lines.append(f"| {key} | {'yes' if ours.wrong else ''} | {tools} | {ours.found or '–'} |")
    return lines


def page() -> str:
    """The whole page."""
    own = {file: {row.entry: of_corpus(row) for row in corpus.ROWS if row.file == file} for file in TITLES}
    given = cases()
    every = {key: ours for verdicts in (*own.values(), given) for key, ours in verdicts.items()}
    wrong = [key for key, ours in every.items() if ours.wrong]
    right = [key for key, ours in every.items() if not ours.wrong]
    plain = [key for key in wrong if RECORD["kernels"][key]["none"]["outcome"] == "ok"]
    lines = [
        "# What compute-sanitizer finds, and what fasim finds",
        "",
        f"compute-sanitizer {RECORD['compute_sanitizer']} on an {RECORD['card']} (driver {RECORD['driver']}, nvcc {RECORD['nvcc']}, "
        f"{RECORD['date']}) ran every kernel of `tests/hazards` and `tests/cases` under its four tools; the numbers are those of its own",
        'summaries ("–": none; "fails": the launch ended with an error of the driver and no finding; "hangs": it had to be killed).',
        "",
        "This page is made by `python -m tests.hazards.verdicts docs/sanitizer.md` from `tests/hazards/data/h200_sanitizer.json` and from",
        '`check="all"`; `tests/hazards/sanitize.py` makes the record on a machine with a GPU.',
        "",
        "| | compute-sanitizer | fasim |",
        "|---|---|---|",
        f"| kernels with a mistake, reported | {sum(not silent(k) for k in wrong)} of {len(wrong)} "
        f"| {sum(every[k].alarm for k in wrong)} of {len(wrong)} |",
        f"| of these, kernels that run to the end on the GPU as if they were right | {sum(not silent(k) for k in plain)} of {len(plain)} "
        f"| {sum(every[k].alarm for k in plain)} of {len(plain)} |",
        f"| kernels without a mistake, reported | {sum(not silent(k) for k in right)} of {len(right)} "
        f"| {sum(every[k].alarm for k in right)} of {len(right)} |",
        "",
        "Threads that order themselves by barriers with names, by flags behind fences or by locks are reported by compute-sanitizer, too:",
        f"the kernels without a mistake on which it has something to say are {', '.join(f'`{key}`' for key in right if not silent(key))}.",
        "",
        "Where compute-sanitizer finds nothing and fasim does:",
        "",
    ]
    lines += [f"* {what}: `{key}`, fasim: {every[key].found}" for what, key in MISSED.items() if silent(key)]
    lines += [f"* `{key}`, fasim: {every[key].found}" for key in wrong if silent(key) and key not in MISSED.values() and every[key].alarm]
    for file, verdicts in own.items():
        lines += ["", f"## {TITLES[file]} (`tests/hazards/{file}.cu`)", "", *table(verdicts)]
    lines += ["", "## `tests/cases`", "", *table(given)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
