"""Errors as a person or a program reads them."""

from __future__ import annotations

import re
import sys

import fasim
from fasim.errors import FasimError

#: what the Python interface calls a thing, and what the command line calls it
_TRANSLATIONS = (
    (r"name one of them with `entry`", "name one of them with --entry"),
    (r"instantiate it with the entry '", "instantiate it with --entry '"),
    (r"the entry ('[^'\n]*') cannot be instantiated", r"--entry \1 cannot be instantiated"),
    (r"name its directory in include_dirs", "name its directory with -I"),
    (r"pass a numpy record or (\d+) bytes as np\.uint8", r"give a buffer of that size, for example u8[\1]:zeros"),
    (r"give a buffer or null \(None\)", "give a buffer or null"),
)


def in_options(message: str) -> str:
    """A message of the Python interface in the words of the command line."""
    for pattern, text in _TRANSLATIONS:
        message = re.sub(pattern, text, message)
    return message


def paint(text: str, code: str, stream: object) -> str:
    """Text in a colour (an SGR code) if the stream is a terminal that wants colours."""
    import os

    wants = "NO_COLOR" not in os.environ and getattr(stream, "isatty", lambda: False)()
    return f"\x1b[{code}m{text}\x1b[0m" if wants else text


def report_error(error: FasimError, *, json: bool, output: str = "") -> int:
    """Print an error on stderr, with `json` as an object on stdout too; output: what device printf wrote before it.

    Returns: the exit code.
    """
    error.args = (in_options(str(error)), *error.args[1:])
    print(f"{paint('error:', '31;1', sys.stderr)} {error}", file=sys.stderr)
    if json:
        from fasim.report.records import error_report, to_json

        print(to_json(error_report(error, fasim.__version__, output)))
    return error.exit_code


def warn(text: str) -> None:
    """Print a warning on stderr."""
    print(f"{paint('warning:', '33;1', sys.stderr)} {text}", file=sys.stderr)
