"""The whole instruction table: importing this module fills `fasim.isa.table.ROWS`."""

import importlib
import pkgutil
from pathlib import Path

from fasim.isa.table import ROWS, Row, nearest, op

for _module in pkgutil.iter_modules([str(Path(__file__).parent / "instructions")]):
    importlib.import_module(f"fasim.isa.instructions.{_module.name}")

__all__ = ["ROWS", "Row", "nearest", "op"]
