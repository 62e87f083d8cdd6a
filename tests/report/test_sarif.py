"""SARIF output keeps to the parts of the 2.1.0 schema that it uses, and names the right lines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fasim.errors import MemoryAccessError, Where
from fasim.report.check import CheckReport, findings
from fasim.report.sarif import sarif, write_sarif
from tests.report.test_check import HEADER, file, hazard, instruction  # noqa: F401  a fixture among them

# What the schema says of the objects used: for each property its type, an object by name, [type] for arrays; `!` marks those required.
# Objects allow no other properties. Source: sarif-schema-2.1.0.json, OASIS.
TEXT, NUMBER, BOOL, ANY = "text", "number", "bool", "any"
OBJECTS: dict[str, dict[str, Any]] = {
    "log": {"$schema": TEXT, "version!": {"2.1.0"}, "runs!": ["run"]},
    "run": {
        "tool!": "tool", "invocations": ["invocation"], "originalUriBaseIds": ("each", "artifactLocation"),
        "columnKind": {"utf16CodeUnits", "unicodeCodePoints"}, "results": ["result"],
    },
    "tool": {"driver!": "toolComponent"},
    "toolComponent": {"name!": TEXT, "version": TEXT, "semanticVersion": TEXT, "rules": ["rule"]},
    "rule": {"id!": TEXT, "shortDescription": "multiformat", "fullDescription": "multiformat", "defaultConfiguration": "configuration"},
    "configuration": {"level": {"none", "note", "warning", "error"}},
    "multiformat": {"text!": TEXT},
    "invocation": {"executionSuccessful!": BOOL, "exitCode": NUMBER},
    "result": {
        "ruleId": TEXT, "ruleIndex": NUMBER, "level": {"none", "note", "warning", "error"}, "message!": "message",
        "locations": ["location"], "relatedLocations": ["location"], "partialFingerprints": ("each", TEXT), "properties": ANY,
    },
    "message": {"text": TEXT},
    "location": {"id": NUMBER, "physicalLocation": "physical", "logicalLocations": ["logical"], "message": "message"},
    "logical": {"name": TEXT, "kind": TEXT},
    "physical": {"artifactLocation!": "artifactLocation", "region": "region"},
    "artifactLocation": {"uri": TEXT, "uriBaseId": TEXT},
    "region": {"startLine": NUMBER, "snippet": "content"},
    "content": {"text": TEXT},
}  # fmt: skip
PLAIN: dict[str, type | tuple[type, ...]] = {TEXT: str, NUMBER: int, BOOL: bool, ANY: object}


def complain(value: Any, wanted: Any, at: str) -> list[str]:
    """Where a value breaks the rules."""
    if isinstance(wanted, set):
        return [] if value in wanted else [f"{at}: {value!r}"]
    if isinstance(wanted, list):
        found = [] if isinstance(value, list) else [f"{at}: no array"]
        return found + [c for i, item in enumerate(value) for c in complain(item, wanted[0], f"{at}[{i}]")]
    if isinstance(wanted, tuple):
        return [c for key, item in value.items() for c in complain(item, wanted[1], f"{at}.{key}")]
    if wanted in PLAIN:
        right = isinstance(value, PLAIN[wanted]) and not (wanted == NUMBER and isinstance(value, bool))
        return [] if right else [f"{at}: {value!r} is no {wanted}"]
    rules = {name.rstrip("!"): rule for name, rule in OBJECTS[wanted].items()}
    found = [f"{at}: no {name[:-1]}" for name in OBJECTS[wanted] if name.endswith("!") and name[:-1] not in value]
    found += [f"{at}: unknown {name}" for name in value if name not in rules]
    return found + [c for name, item in value.items() if name in rules for c in complain(item, rules[name], f"{at}.{name}")]


def log_of(*hazards: Any, error: Any = None, source: str = "k.cu") -> Any:
    name = type(error).__name__ if error else ""
    found = findings(hazards, error)
    return json.loads(json.dumps(sarif(CheckReport("k", source, "sm_90", (1,), (64,), "all", found, name, "", 0.5, "1.0"))))


def test_a_race(file):  # noqa: F811
    log = log_of(hazard(file))
    assert complain(log, "log", "log") == []
    (run,) = log["runs"]
    (result,) = run["results"]
    assert (result["ruleId"], result["level"], result["message"]["text"]) == ("RAW", "error", hazard(file).text)
    (location,) = result["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "k.cu", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 13, "snippet": {"text": "    out[t] = s[t ^ 32];"}},
    }
    related = result["relatedLocations"]
    assert [r["physicalLocation"]["region"]["startLine"] for r in related] == [4, 13]
    assert [r["id"] for r in related] == [1, 2]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "RAW"
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"].startswith("file:///") and run["originalUriBaseIds"]["SRCROOT"]["uri"].endswith("/")
    assert run["invocations"] == [{"executionSuccessful": True, "exitCode": 1}]


CASES = [
    {"kind": "uninit_shared", "scope": "output"},
    {"kind": "copy_not_waited", "second": None},
    {"kind": "WAW", "severity": "note"},
    {"first": instruction("", 0), "second": None},
    {"first": instruction(HEADER, 188, calls=((HEADER, 219),))},
]


@pytest.mark.parametrize("changes", CASES, ids=[str(i) for i in range(len(CASES))])
def test_all_kinds_are_valid(file, changes):  # noqa: F811
    log = log_of(hazard(file, **changes))
    assert complain(log, "log", "log") == []
    (result,) = log["runs"][0]["results"]
    assert result["locations"] and result["level"] == changes.get("severity", "error")


def test_the_location_is_where_to_look(file):  # noqa: F811
    """A race: the later access; an undefined value: where it was read."""

    def line(**changes: Any) -> int:
        (result,) = log_of(hazard(file, **changes))["runs"][0]["results"]
        return int(result["locations"][0]["physicalLocation"]["region"]["startLine"])

    assert (line(), line(kind="uninit_shared"), line(kind="divergent_barrier")) == (13, 4, 4)


def test_errors_that_end_the_run_are_results(file):  # noqa: F811
    where = Where("k", file, 13, 9, "ld.shared.u32 %r1, [%r2];", (1, 0, 0), 1, (3,))
    log = log_of(hazard(file), error=MemoryAccessError("out of bounds", where, kind="oob_shared"))
    assert complain(log, "log", "log") == []
    (run,) = log["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["RAW", "oob_shared"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["RAW", "oob_shared"]
    assert run["invocations"][0]["executionSuccessful"] is False


def test_calls_are_related(file):  # noqa: F811
    log = log_of(hazard(file, first=instruction(file, 3, calls=((file, 4),)), second=None))
    (result,) = log["runs"][0]["results"]
    assert [r["physicalLocation"]["region"]["startLine"] for r in result["relatedLocations"]] == [3, 4]


def test_files_elsewhere_have_absolute_addresses(file, tmp_path, monkeypatch):  # noqa: F811
    (tmp_path / "deep er").mkdir()
    monkeypatch.chdir(tmp_path / "deep er")
    log = log_of(hazard(file))
    (result,) = log["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": (tmp_path / "k.cu").as_uri()}
    assert log["runs"][0]["originalUriBaseIds"]["SRCROOT"]["uri"].endswith("/deep%20er/")


def test_fingerprints_survive_moved_lines(file, tmp_path):  # noqa: F811
    moved = tmp_path / "moved.cu"
    moved.write_text("// a line more\n" + (tmp_path / "k.cu").read_text())

    def mark(log: Any) -> Any:
        return log["runs"][0]["results"][0]["partialFingerprints"]

    here = mark(log_of(hazard(file)))
    assert here == mark(log_of(hazard(str(moved), 5, 14)))
    assert here != mark(log_of(hazard(file, 5, 13))) and here != mark(log_of(hazard(file, kind="WAR")))


def test_a_clean_run(file, tmp_path):  # noqa: F811
    log = log_of()
    assert complain(log, "log", "log") == [] and log["runs"][0]["results"] == []
    write_sarif(CheckReport("k", "k.cu", "sm_90", (1,), (64,), "all", [], "", "", 0.5, "1.0"), tmp_path / "out.sarif")
    assert json.loads((tmp_path / "out.sarif").read_text()) == log
