"""The arrays of a launch after it: what changed, and whether it is right."""

from __future__ import annotations

from collections.abc import Mapping

from fasim.cli.job import Job, Reference
from fasim.report.bits import sha256_of
from fasim.report.compare import compare, statistics
from fasim.report.records import OutputReport
from fasim.sm.values import Value


def digests(job: Job) -> dict[str, str]:
    """SHA-256 of the arrays that are to be looked at, before the launch."""
    return {value.name: sha256_of(value.value) for value in _arrays(job)}


def _arrays(job: Job) -> list[Value]:
    return [value for value in job.args if value.is_array and (job.judged is None or value.name in job.judged)]


def output_reports(job: Job, references: Mapping[str, Reference], before: Mapping[str, str]) -> list[OutputReport]:
    """The arrays that the launch changed or that have a reference; before: what `digests` said.

    Raises: UsageError if a reference has another shape.
    """
    found = []
    for value in job.args:
        if not value.is_array or (value.name not in before and value.name not in references):
            continue
        now = sha256_of(value.value)
        changed = now != before.get(value.name, now)
        reference = references.get(value.name)
        if reference is None and not changed and job.judged is None:
            continue
        verdict = None
        if reference is not None:
            verdict = compare(value.value, value.dtype, reference.values, reference.origin, job.rtol, job.atol, reference.dtype)
        stats = statistics(value.value, value.dtype)
        found.append(OutputReport(value.name, value.dtype, value.value.shape, changed, now, stats, verdict))
    return found
