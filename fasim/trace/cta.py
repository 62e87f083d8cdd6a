"""Which CTA, as a person writes it."""

from __future__ import annotations

import re

from fasim.errors import UsageError


def parse_cta(text: str, what: str = "CTA") -> tuple[int, int, int]:
    """The CTA that a text names by its blockIdx: "3", "0,1" or "0x0x2". what: how an error calls it.

    Raises: UsageError.
    """
    if not re.fullmatch(r"\s*[0-9]{1,10}\s*([,x]\s*[0-9]{1,10}\s*){0,2}", text):
        raise UsageError(f"{what} {text!r}: one to three numbers from 0 on are expected, for example 0,0,0 (x,y,z)")
    x, y, z = (*map(int, re.split("[,x]", text)), 0, 0)[:3]
    return x, y, z
