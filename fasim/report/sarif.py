"""Findings as SARIF 2.1.0, which code review tools read.

Source: "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", OASIS Standard.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fasim.report.check import CheckReport, Finding, Place

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
#: what paths are relative to: the directory from which the check was run
ROOT = "SRCROOT"

#: what a rule is about, for those that read of it for the first time
EXPLAINED = {
    "RAW": "A thread reads memory that another one writes, and nothing orders the two: the value may be the old or the new one.",
    "WAR": "A thread writes memory that another one still reads, and nothing orders the two: the reader may get the new value.",
    "WAW": "Two threads write the same memory, and nothing orders the two: either value may remain.",
    "copy_not_waited": "A thread starts cp.async copies and ends without waiting for them.",
    "uninit_shared": "Shared memory that nobody has written is read, and the value decides an address, a branch, an mma or an output.",
    "uninit_global": "Device memory that nobody has written is read, and the value decides an address, a branch, an mma or an output.",
    "uninit_local": "A variable of a thread is used before it has a value.",
    "uninit_lane": "A shuffle reads a lane that does not execute it: the value is undefined.",
    "divergent_barrier": "A barrier is in code that not all lanes of a warp, or not all warps, execute.",
    "absent_lanes": "A warp operation names lanes in its mask that do not execute it.",
    "unnamed_lanes": "Lanes execute a warp operation with a mask that does not name them.",
    "deadlock": "All threads wait for something that cannot come.",
}


def sarif(report: CheckReport) -> dict[str, Any]:
    """The log of one run as an object for json.dumps."""
    rules = list(dict.fromkeys(finding.kind for finding in report.findings))
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "fasim",
                        "version": report.version,
                        "semanticVersion": report.version,
                        "rules": [_rule(kind, report.findings) for kind in rules],
                    }
                },
                "invocations": [{"executionSuccessful": not report.error, "exitCode": report.exit_code}],
                "originalUriBaseIds": {ROOT: {"uri": _directory(Path.cwd())}},
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding, rules.index(finding.kind), report) for finding in report.findings],
            }
        ],
    }


def write_sarif(report: CheckReport, path: Path) -> None:
    """Write the log of one run to a file.

    Raises: OSError.
    """
    path.write_text(json.dumps(sarif(report), indent=2) + "\n")


def _rule(kind: str, findings: Sequence[Finding]) -> dict[str, Any]:
    first = next(finding for finding in findings if finding.kind == kind)
    return {
        "id": kind,
        "shortDescription": {"text": first.title[:1].upper() + first.title[1:]},
        "fullDescription": {"text": EXPLAINED.get(kind, first.title[:1].upper() + first.title[1:] + ".")},
        "defaultConfiguration": {"level": "error"},
    }


def _result(finding: Finding, rule_index: int, report: CheckReport) -> dict[str, Any]:
    places = finding.places
    # the line to change is the later one of a race, and where an undefined value was read
    at = 1 if len(places) > 1 and finding.kind in ("RAW", "WAR", "WAW") else 0
    result: dict[str, Any] = {
        "ruleId": finding.kind,
        "ruleIndex": rule_index,
        "level": finding.severity,
        "message": {"text": finding.message},
        "locations": [_location(places[at], report)] if places else [],
        "partialFingerprints": {"findingLines/v1": _fingerprint(finding, report)},
        "properties": {
            "kernel": report.kernel,
            "space": finding.space,
            "scope": finding.scope,
            "words": finding.words,
            "laneExecutions": finding.lanes,
            "ctaid": list(finding.ctaid),
        },
    }
    if not places:
        del result["locations"]
    related = [_location(place, report, number) for number, place in enumerate(places, 1)]
    calls = [(place, call) for place in places for call in place.chain[1:]]
    related += [_call(number, place, *call) for number, (place, call) in enumerate(calls, len(places) + 1)]
    if len(related) > 1:
        result["relatedLocations"] = related
    return result


def _location(place: Place, report: CheckReport, number: int | None = None) -> dict[str, Any]:
    """A place; number: its id among the related ones."""
    file, line = place.chain[0]
    location: dict[str, Any] = {} if number is None else {"id": number}
    location["physicalLocation"] = _physical(file or report.source, line or place.ptx_line)
    if number is None:
        location["logicalLocations"] = [{"name": report.kernel, "kind": "function"}]
    note = " ".join(part for part in (place.role, f"({place.who})" if place.who else "", f"`{place.ptx}`" if place.ptx else "") if part)
    if note:
        location["message"] = {"text": note}
    return location


def _call(number: int, place: Place, file: str, line: int) -> dict[str, Any]:
    return {"id": number, "physicalLocation": _physical(file, line), "message": {"text": f"calls what {place.role}"}}


def _physical(file: str, line: int) -> dict[str, Any]:
    import linecache

    physical: dict[str, Any] = {"artifactLocation": _artifact(file)}
    if line > 0:
        physical["region"] = {"startLine": line}
        if text := linecache.getline(file, line).rstrip("\n"):
            physical["region"]["snippet"] = {"text": text}
    return physical


def _artifact(file: str) -> dict[str, str]:
    path = Path(os.path.abspath(file))
    try:
        return {"uri": _quote(path.relative_to(Path.cwd()).as_posix()), "uriBaseId": ROOT}
    except ValueError:
        return {"uri": path.as_uri()}


def _quote(path: str) -> str:
    from urllib.parse import quote

    return quote(path)


def _directory(path: Path) -> str:
    uri = path.as_uri()
    return uri if uri.endswith("/") else uri + "/"


def _fingerprint(finding: Finding, report: CheckReport) -> str:
    """Stays the same when lines move: the kind of finding, the kernel and the text of the lines."""
    parts = [finding.kind, report.kernel, *(place.text or place.ptx for place in finding.places)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
