"""The Sphinx extension of these pages: a line `% fasim: PART` is replaced by what `tables.PARTS` makes of the program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError

from fasim_docs import tables
from fasim_docs.docstrings import fields_to_rst, names_of, to_rst

_MARK = re.compile(r"^% fasim: (\S+)$", re.MULTILINE)
#: what the program makes and its caller reads: shown by fields
RECORDS = ("fasim.sm.result", "fasim.smem.wavefronts", "fasim.isa.program")
#: what its caller gets from a function, never from the class
MADE_ELSEWHERE = ("fasim.sm.module", "fasim.sm.symbol", "fasim.sm.arguments")


def insert(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace the marks of a page."""

    def made(match: re.Match[str]) -> str:
        if match[1] not in tables.PARTS:
            raise ExtensionError(f"{docname}: no part {match[1]!r}; there are: {', '.join(tables.PARTS)}")
        return tables.PARTS[match[1]]()

    source[0] = _MARK.sub(made, source[0])


def outdated(app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Pages that the program is part of are always made anew."""
    return [name for name in env.found_docs if _MARK.search(Path(env.doc2path(name)).read_text())]


def docstring(app: Sphinx, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Turn a docstring of ours into reStructuredText; the pages introduce modules themselves."""
    if what == "module":
        lines[:] = []
    elif what == "class" and item.__module__ in RECORDS:
        lines[:] = fields_to_rst(item)
    else:
        lines[:] = to_rst("\n".join(lines), names_of(item) if callable(item) else ())


def signature(
    app: Sphinx, what: str, name: str, item: Any, options: Any, arguments: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Leave out how to make what nobody makes."""
    if what == "class" and item.__module__ in (*RECORDS, *MADE_ELSEWHERE):
        return "", None
    return arguments, returned


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.connect("source-read", insert)
    app.connect("env-get-outdated", outdated)
    app.connect("autodoc-process-docstring", docstring)
    app.connect("autodoc-process-signature", signature)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
