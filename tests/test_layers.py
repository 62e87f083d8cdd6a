"""Each part of fasim imports only from the parts above it, and what a warm start needs stays cheap to import."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fasim

ROOT = Path(fasim.__file__).parent
ORDER = (
    "errors", "numerics", "isa", "arch", "smem", "gmem", "toolchain", "ptx", "sass", "warp", "sm", "trace", "kernels", "report", "gpu",
    "tui", "cli",
)  # fmt: skip
MODULES = sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT or path.stem in ORDER)


def imported_parts(path: Path) -> set[str]:
    """Second components of all `fasim.X` that a module imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "fasim":
            names = [node.module] if node.module != "fasim" else [f"fasim.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("fasim.")]
        else:
            continue
        found |= {name.split(".")[1] for name in names}
    return found


@pytest.mark.parametrize("path", MODULES, ids=[p.relative_to(ROOT).as_posix() for p in MODULES])
def test_imports_only_from_above(path):
    part = path.relative_to(ROOT).parts[0].removesuffix(".py")
    assert part in ORDER, f"{part} has no place in the order of layers"
    below = {name for name in imported_parts(path) if name in ORDER and ORDER.index(name) > ORDER.index(part)}
    assert not below, f"fasim.{part} imports from below: {', '.join(sorted(below))}"


def test_every_part_has_a_place():
    parts = {p.stem if p.is_file() else p.name for p in ROOT.iterdir() if p.suffix in ("", ".py") and not p.name.startswith(("_", "."))}
    assert parts - {"py.typed"} <= set(ORDER)


def test_a_warm_launch_imports_neither_numba_nor_the_instruction_table():
    code = """
import sys, numpy as np, fasim
kernel = fasim.compile('extern "C" __global__ void k(int *o) { o[threadIdx.x] = threadIdx.x; }\\n').kernel("k")
out = np.zeros(32, np.int32)
kernel.launch(1, 32, [out])
assert out.tolist() == list(range(32))
print([m for m in ("numba", "matplotlib", "fasim.isa.rows", "fasim.ptx.parser") if m in sys.modules])
"""
    command = [sys.executable, "-c", code]
    subprocess.run(command, check=True)
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[]"
