"""ptxas accepts every mma and wmma mnemonic with the registers that its row declares."""

import re

import pytest

import fasim.isa.rows  # noqa: F401  the import fills the table
from fasim.errors import ToolMissing
from fasim.isa.table import ROWS
from fasim.toolchain.nvrtc import compile_program

NAMES = [n for n in ROWS if n.startswith(("mma.", "wmma."))]


def statement(row):
    """One inline assembly statement that executes the row on registers of its own."""
    declared, operands = [], []
    for arg in row.dests + row.sources:
        if arg.type_ == "address":
            operands.append("[p]")
        elif arg.count:
            type_ = "b32" if arg.type_ == "u32" else arg.type_
            declared.append(f".reg .{type_} {arg.name}<{arg.count}>;")
            operands.append("{" + ", ".join(f"{arg.name}{i}" for i in range(arg.count)) + "}")
        elif arg.type_ != "imm":
            declared.append(f".reg .b32 {arg.name};")
            operands.append(arg.name)
    return f'asm volatile("{{ .reg .u64 p; {" ".join(declared)} {row.name} {", ".join(operands)}; }}");'


@pytest.mark.parametrize("arch", [80, 90])
def test_accepted(arch):
    rows = [ROWS[n] for n in NAMES if ROWS[n].min_arch <= arch]
    if arch == 90:  # those that sm_80 took need no second look
        rows = [row for row in rows if row.min_arch > 80]
    source = 'extern "C" __global__ void k() {\n' + "\n".join(statement(row) for row in rows) + "\n}\n"
    try:
        output = compile_program(source, "mma.cu", [f"--gpu-architecture=sm_{arch}"])
    except ToolMissing as error:
        pytest.skip(str(error))
    assert output.ok, re.sub(r"\n+", "\n", output.log)[:2000]
    assert all(row.name in output.ptx for row in rows)
