"""Pages of small launches."""

from __future__ import annotations

from pathlib import Path

from fasim.report.trace_select import TraceFilters
from tests.report.traces import traced
from tests.trace.launches import Launch

FACTS = {"kernel": "fa_v21", "grid": [1, 1, 1], "block": [128, 1, 1], "source": "", "arch": "sm_90", "compiler": "", "version": ""}


def page_of(launch: Launch, directory: Path, filters: TraceFilters | None = None) -> Path:
    """A page on disk."""
    path = directory / "page.html"
    path.write_bytes(traced(launch, ".html", filters)[1])
    return path
