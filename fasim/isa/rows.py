"""The whole instruction table: importing this module fills `fasim.isa.table.ROWS` and SASS_ROWS."""

import importlib
import pkgutil
from pathlib import Path

from fasim.isa.table import ROWS, SASS_ROWS, Row, nearest, op

for _package in ("instructions", "sass"):
    for _module in pkgutil.iter_modules([str(Path(__file__).parent / _package)]):
        importlib.import_module(f"fasim.isa.{_package}.{_module.name}")


def row_of(name: str) -> Row:
    """The row of a handler, of PTX or of machine code."""
    return ROWS.get(name) or SASS_ROWS[name]


__all__ = ["ROWS", "SASS_ROWS", "Row", "nearest", "op", "row_of"]
