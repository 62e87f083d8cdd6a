"""The report of `fasim check`: from hazards and errors to findings, and from findings to lines on a terminal."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from fasim.errors import DeadlockError, MemoryAccessError, Where
from fasim.isa.program import SourceInstruction
from fasim.report.check import CheckReport, Finding, finding_of_error, findings, print_report
from fasim.report.records import to_json
from fasim.sm.result import Hazard

SOURCE = """__global__ void k(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    // one
    // two
    // three
    // four
    // five
    // six
    // seven
    // eight
    out[t] = s[t ^ 32];
}
"""
HEADER = "/opt/site-packages/nvidia/cu13/include/cuda_pipeline_helpers.h"


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.cu").write_text(SOURCE)
    return str(tmp_path / "k.cu")


def instruction(file: str, line: int, text: str = "st.shared.u32 \t[%r1], %r2;", calls: tuple[tuple[str, int], ...] = ()) -> Any:
    return SourceInstruction(text, text.split()[0], 7, file, line, calls)


def hazard(file: str, first: Any = 4, second: int | None = 13, **changes: Any) -> Hazard:
    """A race; first: a line or an instruction."""
    one = instruction(file, first) if isinstance(first, int) else first
    other = None if second is None else instruction(file, second, "ld.shared.u32 %r3, [%r4];")
    made = Hazard(
        "RAW", "shared", "inter-warp", "error", one, other, 2, 64, "RAW at k.cu; put __syncthreads() between the two",
        (1, 0, 0), 8, 0, (0, 1, 2, 5), 1, (31,), (8, 12),
    )  # fmt: skip
    return replace(made, **changes)


def report(found: list[Finding], error: str = "") -> CheckReport:
    return CheckReport("k", "k.cu", "sm_90", (2, 1, 1), (64, 1, 1), "all", found, error, "", 0.5, "1.0")


def printed(given: CheckReport) -> list[str]:
    out = io.StringIO()
    print_report(given, Console(file=out, width=300, highlight=False))
    return out.getvalue().splitlines()


def test_a_race_is_told_with_both_lines(file):
    lines = printed(report(findings([hazard(file)])))
    assert lines == [
        "error: race: read after write",
        "  RAW at k.cu; put __syncthreads() between the two",
        "  --> k.cu",
        "       3 |     int t = threadIdx.x;",
        "  >    4 |     s[t] = in[t];",
        "         |     ^ writes (warp 0, lanes 0-2, 5)",
        "       5 |     // one",
        "       ...",
        "      12 |     // eight",
        "  >   13 |     out[t] = s[t ^ 32];",
        "         |     ^ reads (warp 1, lane 31)",
        "      14 | }",
        "  2 words of shared memory at byte 8-15, first in CTA (1, 0, 0)",
        "",
        "k: 1 error",
    ]


def test_lines_close_together_are_one_excerpt(file):
    text = "\n".join(printed(report(findings([hazard(file, 4, 10)]))))
    assert "..." not in text and all(f"  {n} | " in text or f"{n} | " in text for n in range(3, 12))


ROLES = [
    ("RAW", "st.shared", "writes", "reads"),
    ("WAR", "ld.shared", "reads", "writes"),
    ("WAW", "st.shared", "writes", "writes"),
    ("RAW", "cp.async.ca.shared.global", "copies", "reads"),
    ("uninit_shared", "ld.shared", "reads", "decides: output"),
    ("divergent_barrier", "bar.sync", "waits", "waits"),
    ("copy_not_waited", "cp.async.ca.shared.global", "copies", ""),
]


@pytest.mark.parametrize(("kind", "text", "first", "second"), ROLES)
def test_roles(file, kind, text, first, second):
    (found,) = findings([hazard(file, kind=kind, scope="output", first=instruction(file, 4, f"{text} x;"))])
    assert [place.role for place in found.places] == [first, second]


def test_alike_findings_are_one(file):
    second = hazard(file, word_offsets=(12, 16), lanes=3)
    (found,) = findings([hazard(file), second])
    assert (found.words, found.word_offsets, found.lanes, found.times) == (3, (8, 12, 16), 67, 2)
    assert "2 pairs of instructions" in printed(report([found]))[-3]
    for change in ({"kind": "WAW"}, {"scope": "intra-warp"}, {"severity": "note"}, {"first": instruction(file, 5)}):
        assert len(findings([hazard(file), hazard(file, **change)])) == 2


def test_calls_are_told_and_headers_of_the_toolkit_are_not(file):
    inlined = instruction(HEADER, 188, "cp.async.ca.shared.global [%r1], [%rd1], 4, 4;", ((HEADER, 219), (file, 4)))
    (found,) = findings([hazard(file, first=inlined)])
    assert found.places[0].chain == ((file, 4),) and found.places[0].text == "s[t] = in[t];"
    text = "\n".join(printed(report([found])))
    assert "^ copies (warp 0" in text and "nvidia" not in text
    helper = instruction(file, 3, calls=((file, 13),))
    (called,) = findings([hazard(file, first=helper, second=None)])
    assert [line for line in printed(report([called])) if line.startswith("  >")] == [
        "  >    3 |     int t = threadIdx.x;",
        "  >   13 |     out[t] = s[t ^ 32];",
    ]


def test_without_source_the_ptx_is_shown(file):
    (found,) = findings([hazard("", 0, None)])
    assert "    PTX line 7  `st.shared.u32 [%r1], %r2;`  writes (warp 0, lanes 0-2, 5)" in printed(report([found]))


def test_errors_are_findings(file):
    where = Where("k", file, 13, 9, "ld.shared.u32 %r1, [%r2];", (1, 0, 0), 1, (3,))
    error = MemoryAccessError("out of bounds: somewhere", where, kind="oob_shared", space="shared", lanes=1)
    given = report(findings([hazard(file, severity="note")], error), "MemoryAccessError")
    assert [(f.kind, f.severity, f.title) for f in given.findings] == [
        ("RAW", "note", "race: read after write"),
        ("oob_shared", "error", "shared access out of bounds"),
    ]
    lines = printed(given)
    assert "         |     ^ stops (warp 1, lane 3)" in lines
    assert lines[-1] == "k: 1 error, 1 note, the run did not come to its end"


def test_a_deadlock_tells_who_waits_where(file):
    waiting = [
        {"warp": w, "lanes": (0, 1), "live": 3, "line": line, "file": file, "text": "bar.sync 1, 64;", "for": f"barrier {w}"}
        for w, line in enumerate((4, 13))
    ]
    found = finding_of_error(DeadlockError("deadlock\n  warp 0", Where("k", file, 4), kind="deadlock", waiting=waiting))
    assert [(place.line, place.role, place.who) for place in found.places] == [
        (4, "waits for barrier 0", "warp 0, lanes 0-1"),
        (13, "waits for barrier 1", "warp 1, lanes 0-1"),
    ]


@pytest.mark.parametrize(
    ("severities", "verdict", "code", "line"),
    [
        ([], "clean", 0, "k: no hazards"),
        (["note"], "notes", 0, "k: 1 note"),
        (["warning"], "findings", 1, "k: 1 warning"),
        (["note", "error", "error"], "findings", 1, "k: 2 errors, 1 note"),
    ],
)
def test_verdicts(file, severities, verdict, code, line):
    given = report(findings(hazard(file, first=instruction(file, n + 1), severity=s) for n, s in enumerate(severities)))
    assert (given.verdict, given.exit_code, printed(given)[-1]) == (verdict, code, line)
    assert [f.severity for f in given.findings] == sorted(severities, key=["error", "warning", "note"].index)
    record = json.loads(to_json(given))
    assert (record["schema"], record["verdict"], len(record["findings"])) == ("fasim.check/1", verdict, len(severities))
