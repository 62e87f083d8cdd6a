"""Large samples of the arithmetic rows, as sums: the kernels, and the simulator's side.

A row is executed on 2**22 pseudo-random operands, in blocks of 2**16 sample numbers n (`operand`); functions of one f32 in EXHAUSTIVE on
all 2**32 values, with blocks of 2**23, a binade each. A block's result is the sum of `mixed(n, result)` modulo 2**64, which does not
depend on the order.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

import fasim.numerics.native_numba  # noqa: F401  makes call_handler known to numba
from fasim.isa.table import ROWS, Row
from fasim.numerics.native import call_handler
from fasim.warp.handlers import FULL_MASK, HandlerKey
from fasim.warp.jit import engine
from tests.hardware import inputs
from tests.hardware.exceptions import exception
from tests.hardware.make_ptx import Variant, register_type, statement

BLOCK_BITS, BINADE_BITS, SAMPLE_BLOCKS = 16, 23, 64
GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
SKIPPED_MODULES = ("move", "compare", "compare_half", "control", "warp")
EXHAUSTIVE = ("ex2.approx", "lg2.approx", "rcp.", "rsqrt.approx", "sqrt.", "sin.approx", "cos.approx", "tanh.approx")


def is_exhaustive(row: Row) -> bool:
    """Whether the row gets every f32."""
    return row.name.startswith(EXHAUSTIVE) and row.name.endswith(".f32")


def sampled_rows() -> list[Row]:
    """Rows of registers to one register; those of one 16-bit source have been recorded completely already."""
    found = []
    for row in ROWS.values():
        if row.kind != "lanes" or exception(row) is not None or row.semantics is None:
            continue
        if row.semantics.__module__.rsplit(".", 1)[-1] in SKIPPED_MODULES or len(row.dests) != 1 or not row.sources:
            continue
        args = row.dests + row.sources
        if any(a.type_ in ("pred", "imm") or a.count or a.implicit for a in args):
            continue
        if len(row.sources) > 1 or inputs.WIDTH[row.sources[0].type_] > 16:
            found.append(row)
    return found


def exhaustive_rows() -> list[Row]:
    """Rows that get every f32."""
    return [row for row in sampled_rows() if is_exhaustive(row)]


# --- the kernels ---------------------------------------------------------------------------------------------------------------


def _operand_text(type_: str, number: int, exhaustive: bool) -> list[str]:
    """PTX that makes source `number` of sample %n; the twin of `operand`."""
    register, bits = f"%s{number}", inputs.WIDTH[type_]
    lines = [
        f"mad.lo.u64 %z, %n, 4, {number + 1};",
        f"mul.lo.u64 %z, %z, {GOLDEN:#x};",
        "shr.u64 %t, %z, 30; xor.b64 %z, %z, %t;",
        f"mul.lo.u64 %z, %z, {FIRST:#x};",
        "shr.u64 %t, %z, 27; xor.b64 %z, %z, %t;",
        f"mul.lo.u64 %z, %z, {SECOND:#x};",
        "shr.u64 %t, %z, 31; xor.b64 %z, %z, %t;",
    ]
    if exhaustive:
        lines = ["mov.b64 %z, %n;"]
    elif type_ == "f64":
        lines += ["shr.u64 %t, %z, 52; and.b64 %t, %t, 127; add.u64 %t, %t, 959; shl.b64 %t, %t, 52;"]
        lines += ["and.b64 %y, %z, 0x800fffffffffffff; or.b64 %y, %y, %t; selp.b64 %z, %y, %z, %odd;"]
    elif type_ == "f32":
        lines += ["shr.u64 %t, %z, 23; and.b64 %t, %t, 31; add.u64 %t, %t, 111; shl.b64 %t, %t, 23;"]
        lines += ["and.b64 %y, %z, 0x807fffff; or.b64 %y, %y, %t; selp.b64 %z, %y, %z, %fourth;"]
    elif bits >= 32:
        lines += [f"shr.u64 %t, %z, 40; cvt.u32.u64 %w, %t; and.b32 %w, %w, {bits - 1};"]
        lines += [f"and.b64 %y, %z, {(1 << bits) - 1:#x}; shr.u64 %y, %y, %w; selp.b64 %z, %y, %z, %odd;"]
    if type_ in ("f32", "f64"):
        return [*lines, f"mov.b64 {register}, %z;" if bits == 64 else f"cvt.u32.u64 %w, %z; mov.b32 {register}, %w;"]
    return [*lines, f"mov.b64 {register}, %z;" if bits == 64 else f"cvt.u{bits}.u64 {register}, %z;"]


def kernel(row: Row, name: str, exhaustive: bool, store: bool = False) -> str:
    """A kernel for CTAs of 256 threads, one for each 2**16 samples.

    Its parameters are an array and the first block of samples; the array takes the sum of each block, with `store` every result.
    """
    (dest,) = row.dests
    bits = inputs.WIDTH[dest.type_]
    widened = {64: "mov.b64 %y, %d0;", 32: "mov.b32 %w, %d0; cvt.u64.u32 %y, %w;"}.get(bits, f"cvt.u64.u{bits} %y, %d0;")
    body = [
        ".reg .b64 %n, %z, %t, %y, %sum, %out, %slot;",
        ".reg .b32 %w, %i, %block;",
        ".reg .pred %odd, %fourth, %more;",
        *(f".reg .{register_type(a.type_)} %s{i};" for i, a in enumerate(row.sources)),
        f".reg .{register_type(dest.type_)} %d0;",
        "ld.param.u64 %out, [out]; cvta.to.global.u64 %out, %out; ld.param.u32 %i, [first];",
        "mov.u32 %block, %ctaid.x; mul.wide.u32 %slot, %block, 8; add.u64 %out, %out, %slot; add.u32 %block, %block, %i;",
        "mul.wide.u32 %n, %block, 65536; mov.u32 %w, %tid.x; cvt.u64.u32 %t, %w; add.u64 %n, %n, %t;",
        *(["mul.wide.u32 %t, %w, 8; add.u64 %out, %out, %t;"] if store else []),
        "mov.u64 %sum, 0; mov.u32 %i, 0;",
        "again:",
        "and.b64 %t, %n, 1; setp.ne.u64 %odd, %t, 0; and.b64 %t, %n, 3; setp.eq.u64 %fourth, %t, 3;",
        *(line for i, a in enumerate(row.sources) for line in _operand_text(a.type_, i, exhaustive)),
        *statement(Variant(row)),
        widened,
        *(["st.global.b64 [%out], %y; add.u64 %out, %out, 2048;"] if store else []),
        f"mad.lo.u64 %z, %n, {GOLDEN:#x}, %y; mul.lo.u64 %z, %z, {FIRST:#x};",
        f"shr.u64 %t, %z, 31; xor.b64 %z, %z, %t; mul.lo.u64 %z, %z, {SECOND:#x};",
        "add.u64 %sum, %sum, %z; add.u64 %n, %n, 256; add.u32 %i, %i, 1;",
        "setp.lt.u32 %more, %i, 256; @%more bra again;",
        *([] if store else ["red.global.add.u64 [%out], %sum;"]),
        "ret;",
    ]
    return f".visible .entry {name}(.param .u64 out, .param .u32 first)\n{{\n    " + "\n    ".join(body) + "\n}\n"


# --- the simulator -------------------------------------------------------------------------------------------------------------

#: how an operand is made
EVERY, F32, F64, INTEGER = range(4)


def kind(type_: str, exhaustive: bool) -> int:
    """The number of the way in which `operand` makes a source of this type."""
    return EVERY if exhaustive else {"f32": F32, "f64": F64}.get(type_, INTEGER)


@numba.njit
def operand(n: int, number: int, how: int, bits: int) -> int:
    """The pattern of source `number` of sample n, possibly with more bits above."""
    if how == EVERY:
        return n
    z = np.uint64(n * np.uint64(4) + np.uint64(number + 1)) * np.uint64(GOLDEN)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND)
    z = z ^ (z >> np.uint64(31))
    if how == F64:
        if n & np.uint64(1):
            z = z & np.uint64(0x800FFFFFFFFFFFFF) | (((z >> np.uint64(52)) & np.uint64(127)) + np.uint64(959)) << np.uint64(52)
    elif how == F32:
        if n & np.uint64(3) == np.uint64(3):
            z = z & np.uint64(0x807FFFFF) | (((z >> np.uint64(23)) & np.uint64(31)) + np.uint64(111)) << np.uint64(23)
    elif bits >= 32 and n & np.uint64(1):
        mask = np.uint64(0xFFFFFFFFFFFFFFFF) if bits == 64 else np.uint64(0xFFFFFFFF)
        z = (z & mask) >> ((z >> np.uint64(40)) & np.uint64(bits - 1))
    return z


@numba.njit
def mixed(n: int, result: int) -> int:
    """What a sample contributes to its block's sum."""
    z = (n * np.uint64(GOLDEN) + result) * np.uint64(FIRST)
    return (z ^ (z >> np.uint64(31))) * np.uint64(SECOND)


@numba.njit
def run_block(handler: int, registers: int, operands: int, rows32: Any, rows64: Any, hows: Any, widths: Any, first: int, count: int) -> int:
    """The sum of samples first ... first + count - 1; row 0 of the register file is the destination."""
    total = np.uint64(0)
    for start in range(0, count, 32):
        for number in range(len(hows)):
            bits = widths[number + 1]
            mask = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - bits)
            for lane in range(32):
                value = operand(np.uint64(first + start + lane), number, hows[number], bits)
                if bits == 64:
                    rows64[number + 1, lane] = value
                else:
                    rows32[number + 1, lane] = np.uint32(value & mask)
        call_handler(handler, registers, operands, FULL_MASK)
        for lane in range(32):
            result = rows64[0, lane] if widths[0] == 64 else np.uint64(rows32[0, lane])
            total += mixed(np.uint64(first + start + lane), result)
    return total


class Simulated:
    """The simulator's sums of one row."""

    def __init__(self, row: Row, exhaustive: bool) -> None:
        key = HandlerKey(row.name)
        engine().load([key])
        self.handler = engine().address(key)
        rows = 1 + len(row.sources)
        self.raw = np.zeros(rows * 256 + 64, np.uint8)
        at = -self.raw.ctypes.data % 64
        file = self.raw[at : at + rows * 256].reshape(rows, 256)
        self.rows32, self.rows64 = file.view(np.uint32), file.view(np.uint64)
        self.pool = (np.arange(rows) * 256).astype(np.int32)
        self.hows = np.array([kind(a.type_, exhaustive) for a in row.sources], np.int64)
        self.widths = np.array([inputs.WIDTH[a.type_] for a in row.dests + row.sources], np.int64)

    def sum(self, first: int, count: int) -> int:
        """The sum over some samples."""
        addresses = (self.handler, self.rows32.ctypes.data, self.pool.ctypes.data)
        return int(run_block(*addresses, self.rows32, self.rows64, self.hows, self.widths, first, count))

    def sums(self, bits: int, blocks: Any) -> Any:
        """The sums of blocks of 2**bits samples."""
        return np.array([self.sum(int(b) << bits, 1 << bits) for b in blocks], np.uint64)
