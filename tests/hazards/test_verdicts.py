"""The page on compute-sanitizer says what its record and the checks say, and fasim finds what the tools miss."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hazards import corpus, verdicts

PAGE = Path(__file__).parents[2] / "docs" / "sanitizer.md"


def test_the_record_has_every_kernel():
    assert {row.entry for row in corpus.ROWS} | set(verdicts.cases()) == set(verdicts.RECORD["kernels"])
    assert all(set(kernel) == {"none", *verdicts.TOOLS} for kernel in verdicts.RECORD["kernels"].values())


@pytest.mark.parametrize("entry", verdicts.MISSED.values())
def test_compute_sanitizer_is_silent_where_there_is_a_mistake(entry):
    assert verdicts.silent(entry)
    (row,) = [row for row in corpus.ROWS if row.entry == entry]
    assert row.wrong and verdicts.of_corpus(row).alarm


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not part of this installation")
def test_the_page_is_up_to_date():
    assert PAGE.read_text() == verdicts.page(), "run: python -m tests.hazards.verdicts docs/sanitizer.md"
