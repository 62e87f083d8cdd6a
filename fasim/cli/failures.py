"""Errors as a person or a program reads them."""

from __future__ import annotations

import sys

import fasim
from fasim.errors import FasimError


def paint(text: str, code: str, stream: object) -> str:
    """Text in a colour (an SGR code) if the stream is a terminal that wants colours."""
    import os

    wants = "NO_COLOR" not in os.environ and getattr(stream, "isatty", lambda: False)()
    return f"\x1b[{code}m{text}\x1b[0m" if wants else text


def report_error(error: FasimError, *, json: bool, output: str = "") -> int:
    """Print an error on stderr, with `json` as an object on stdout too; output: what device printf wrote before it.

    Returns: the exit code.
    """
    print(f"{paint('error:', '31;1', sys.stderr)} {error}", file=sys.stderr)
    if json:
        from fasim.report.records import error_report, to_json

        print(to_json(error_report(error, fasim.__version__, output)))
    return error.exit_code


def warn(text: str) -> None:
    """Print a warning on stderr."""
    print(f"{paint('warning:', '33;1', sys.stderr)} {text}", file=sys.stderr)
