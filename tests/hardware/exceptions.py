"""Rows that have no recording, with the reason."""

from __future__ import annotations

from fasim.isa.table import Row

TARGET = 90
#: by the beginning of the row's name
REASONS = {
    "cvta.": "where the state spaces lie among generic addresses is each machine's own choice",
    "isspacep.": "where the state spaces lie among generic addresses is each machine's own choice",
    "createpolicy.": "a cache policy is opaque, and the simulated caches take no hints",
}


def exception(row: Row) -> str | None:
    """Why there is nothing to compare a row with, or None."""
    if row.min_arch > TARGET:
        return f"needs a target after sm_{TARGET}"
    if row.kind == "atom" and _only_in_vectors(row):
        return "exists for vectors only, whose recordings check it"
    return next((reason for prefix, reason in REASONS.items() if row.name.startswith(prefix)), None)


def _only_in_vectors(row: Row) -> bool:
    operation, type_ = row.name.split(".", 1)[1].split(".", 1)
    return operation in ("min", "max") and type_ in ("f16", "bf16", "f16x2", "bf16x2")
