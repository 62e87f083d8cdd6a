"""The PTX that nvcc makes of the test cases and kernels: it parses, quickly, and the fast path agrees with the tokens."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from fasim.ptx import body as body_parser
from fasim.ptx.parser import parse
from fasim.ptx.tree import Instruction

from .samples import DATA

ROOT = Path(__file__).parents[2]
SOURCES = [DATA / "features.cu", *sorted((ROOT / "tests" / "cases").glob("*.cu")), *sorted((ROOT / "kernels").glob("*.cu"))]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_compiled(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "out.ptx"
    command = ["nvcc", "-ptx", "-arch=sm_90", "-std=c++17", "-lineinfo", "-o", str(output), str(source)]
    compiled = subprocess.run(command, capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stderr
    text = output.read_text()
    found = parse(text, str(output))
    assert found.entries
    bodies = [function for function in found.functions.values() if function.body is not None]
    # Every line that ends in a semicolon inside a body is a statement of the tree.
    instructions = [item for function in bodies for item in function.instructions]
    lines = {item.line for item in instructions}
    assert all(isinstance(item, Instruction) and item.loc is not None for item in instructions)
    branches = [number for number, line in enumerate(text.split("\n"), 1) if " bra " in line.replace("\t", " ")]
    assert set(branches) <= lines
    monkeypatch.setattr(body_parser, "simple_operand", lambda text, scope: None)
    assert parse(text, str(output)) == found


def test_speed() -> None:
    """6,000 lines in under 0.3 s, with room for a slow machine."""
    body = "".join(
        f"\t.loc\t1 {i} 5\n\tld.global.f32 \t%f{i}, [%rd{i % 50}+{4 * i}];\n\t@%p1 fma.rn.f32 \t%f{i + 1}, %f{i}, %f{i}, 0f3F{i:06X};\n"
        for i in range(2000)
    )
    head = ".version 8.0\n.target sm_90\n.visible .entry k() {\n.reg .f32 %f<2001>; .reg .b64 %rd<50>; .reg .pred %p<2>;\n"
    text = f"{head}{body}ret;\n}}\n"
    times = []
    for _ in range(3):
        start = time.process_time()
        found = parse(text)
        times.append(time.process_time() - start)
    assert len(found.functions["k"].instructions) == 4001
    assert min(times) < 0.3
