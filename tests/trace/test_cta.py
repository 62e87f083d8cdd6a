"""CTAs as a person writes them."""

from __future__ import annotations

import pytest

from fasim.errors import UsageError
from fasim.trace.cta import parse_cta


@pytest.mark.parametrize(("text", "cta"), [("0", (0, 0, 0)), ("3,1", (3, 1, 0)), (" 1, 2,3", (1, 2, 3)), ("0x2", (0, 2, 0))])
def test_a_cta(text: str, cta: tuple[int, int, int]) -> None:
    assert parse_cta(text) == cta


@pytest.mark.parametrize("text", ["", "x", "1,2,3,4", "-1,0", "1;2", "0x", "\N{SUPERSCRIPT TWO}", "1 2"])
def test_no_cta(text: str) -> None:
    with pytest.raises(UsageError, match=r"--cta '.*': one to three numbers from 0 on"):
        parse_cta(text, "--cta")
