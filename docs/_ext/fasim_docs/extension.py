"""The Sphinx extension of these pages: a line `% fasim: PART` is replaced by what `tables.PARTS` makes of the program; and directives."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError

from fasim_docs import tables
from fasim_docs.directives import LayoutPicture, StepperDirective
from fasim_docs.docstrings import fields_to_rst, names_of, to_rst

_MARK = re.compile(r"^% fasim: (\S+)$", re.MULTILINE)
_MADE = re.compile(r"^(% fasim: \S+$|```\{(stepper|layout-picture)\})", re.MULTILINE)
_TYPE = re.compile(r"<class 'numpy\.(\w+)'>")
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
    return [name for name in env.found_docs if _MADE.search(Path(env.doc2path(name)).read_text())]


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
    """Leave out how to make what nobody makes, and write types that are defaults as in Python."""
    if what == "class" and item.__module__ in (*RECORDS, *MADE_ELSEWHERE):
        return "", None
    return arguments and _TYPE.sub(r"np.\1", arguments), returned


def trace_page(app: Sphinx, failure: Exception | None) -> None:
    """Write the page of a trace that docs/howto/trace-files.md leads to."""
    if failure is None and app.builder.format == "html":
        words = f"run fa_v21 --n 128 --heads 1 --layout linear --warp 0 --tile 1 --trace-out {app.outdir}/v21-trace.html"
        subprocess.run([sys.executable, "-m", "fasim", *words.split()], check=True, stdout=subprocess.DEVNULL)


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.add_directive("stepper", StepperDirective)
    app.add_directive("layout-picture", LayoutPicture)
    app.connect("source-read", insert)
    app.connect("build-finished", trace_page)
    app.connect("env-get-outdated", outdated)
    app.connect("autodoc-process-docstring", docstring)
    app.connect("autodoc-process-signature", signature)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
