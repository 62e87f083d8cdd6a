"""Execute machine code as nvdisasm prints it: the few straight-line instructions of sm_90 that ptxas makes of an emulated mma.

One warp of 32 lanes, a flat memory, no divergence. Anything else is a KeyError or an AssertionError that names it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

Words = np.ndarray[Any, Any]
PARAMETERS = 0x210  # of the first kernel parameter in constant bank 0
LANES = np.arange(32, dtype=np.uint32)


def f32(bits: Words) -> Words:
    """Patterns of f32 as f64 values."""
    with np.errstate(invalid="ignore"):
        return bits.astype(np.uint32).view(np.float32).astype(np.float64)


def rounded(exact: Words, error: Words, type_: type = np.float32) -> Words:
    """Patterns of f64 + error rounded once to a narrower type: what does not fit f64 becomes its last bit, odd."""
    bits = exact.view(np.int64)
    away = (error > 0) == (exact > 0)
    odd = np.where((error != 0) & (bits % 2 == 0), np.where(away, bits + 1, bits - 1), bits)
    with np.errstate(over="ignore", invalid="ignore"):
        result = odd.view(np.float64).astype(type_)
    canonical, unsigned = (0x7FFFFFFF, np.uint32) if type_ is np.float32 else (0x7FFF, np.uint16)
    return np.where(np.isnan(result), canonical, result.view(unsigned)).astype(np.uint32)


def fused(a: Words, b: Words, c: Words) -> Words:
    """a * b + c of f32 patterns; the product must fit f64, as it does."""
    with np.errstate(invalid="ignore"):
        product, term = f32(a) * f32(b), f32(c)
        sum_ = product + term
        back = sum_ - product
        error = (product - (sum_ - back)) + (term - back)
    return rounded(sum_, np.where(np.isfinite(sum_), error, 0.0))


def half(bits: Words) -> Words:
    """f16 patterns as f32 patterns."""
    with np.errstate(invalid="ignore"):
        return (bits & 0xFFFF).astype(np.uint16).view(np.float16).astype(np.float32).view(np.uint32)


def byte_permute(a: Words, selector: int, b: Words) -> Words:
    """PRMT without sign replication."""
    both = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
    picks = [(both >> np.uint64(8 * (selector >> 4 * i & 7)) & np.uint64(255)) << np.uint64(8 * i) for i in range(4)]
    return np.bitwise_or.reduce(picks).astype(np.uint32)


def logic(a: Words, b: Words, c: Words, table: int) -> Words:
    """LOP3 with its truth table."""
    result = np.zeros(32, np.uint32)
    for i in range(8):
        if table >> i & 1:
            result |= (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
    return result


class MachineCode:
    """The code of one kernel from the listing of `nvdisasm -c`."""

    def __init__(self, listing: str, kernel: str) -> None:
        self.code: dict[int, str] = {}
        self.labels: dict[str, int] = {}
        section, waiting, inside = f".text.{kernel}:", [], False
        for line in listing.splitlines():
            if line.startswith("//-----"):
                inside = False
            if line.strip() == section:
                inside = True
            elif inside and (found := re.match(r"\s+/\*([0-9a-f]+)\*/\s+(.*?)\s*;", line)):
                at = int(found[1], 16)
                self.code[at] = found[2].replace(".reuse", "")
                self.labels.update(dict.fromkeys(waiting, at))
                waiting = []
            elif inside and (found := re.match(r"(\S+):$", line)):
                waiting.append(found[1])
        assert self.code, f"{kernel} is not in the listing"

    def run(self, parameters: list[int], memory: Words) -> None:
        """Execute a warp; memory: bytes from address 0, changed in place."""
        self.registers = {i: np.zeros(32, np.uint32) for i in range(256)}
        self.predicates: dict[str, Words] = {}
        self.memory, self.at = memory, 0
        self.bank = bytes(PARAMETERS) + struct.pack(f"<{len(parameters)}Q", *parameters)
        while True:
            text = self.code[self.at]
            self.at += 16
            opcode, _, rest = text.partition(" ")
            if opcode == "EXIT":
                return
            if opcode == "CALL.REL.NOINC":
                self.at = self.labels[re.search(r"\((\S+)\)", rest)[1]]  # type: ignore[index]
            elif opcode == "RET.REL.NODEC":
                self.at = int(self.value(rest.split()[0])[0])
            elif opcode not in ("NOP", "ULDC.64"):
                self.execute(opcode, [o.strip() for o in rest.split(",")])

    def value(self, operand: str) -> Words:
        """A 32-bit source operand."""
        if found := re.fullmatch(r"R(\d+|Z)(?:\.(H0_H0|H1_H1))?", operand):
            word = np.zeros(32, np.uint32) if found[1] == "Z" else self.registers[int(found[1])]
            return word if found[2] is None else half(word >> (16 if found[2] == "H1_H1" else 0))
        if found := re.fullmatch(r"c\[0x0\]\[(0x[0-9a-f]+)\]", operand):
            at = int(found[1], 16)
            return np.full(32, int.from_bytes(self.bank[at : at + 4], "little"), np.uint32)
        return np.full(32, int(operand, 0) & 0xFFFFFFFF, np.uint32)

    def addresses(self, operand: str) -> Words:
        """Of `desc[UR4][R2.64+0x80]`."""
        found = re.fullmatch(r"desc\[UR\d+\]\[R(\d+)\.64(?:\+(0x[0-9a-f]+))?\]", operand)
        assert found, operand
        register = int(found[1])
        assert not self.registers[register + 1].any()
        return self.registers[register] + np.uint32(int(found[2] or "0", 16))

    def execute(self, opcode: str, o: list[str]) -> None:
        """One instruction that changes registers or memory."""
        if opcode == "STG.E":
            self.memory.view(np.uint32)[self.addresses(o[0]) // 4] = self.value(o[1])
            return
        if opcode == "ISETP.NE.U32.AND":
            assert o[1] == "PT" and o[4] == "PT"
            self.predicates[o[0]] = self.value(o[2]) != self.value(o[3])
            return
        if opcode == "SHFL.IDX":
            assert o[0] == "PT" and o[4] == "0x1f"
            self.registers[int(o[1][1:])] = self.value(o[2])[self.value(o[3]) & 31]
            return
        target = int(o[0][1:])
        if opcode in ("LDC.64", "LDG.E.64", "IMAD.WIDE.U32"):
            self.registers[target], self.registers[target + 1] = self.wide(opcode, o)
        elif opcode != "LDC" or target != 1:  # R1 is the stack pointer
            self.registers[target] = OPERATIONS[opcode](self, o[1:])

    def wide(self, opcode: str, o: list[str]) -> tuple[Words, Words]:
        """The low and the high word of a 64-bit result."""
        if opcode == "LDC.64":
            at = int(re.fullmatch(r"c\[0x0\]\[(0x[0-9a-f]+)\]", o[1])[1], 16)  # type: ignore[index]
            return self.value(f"c[0x0][{at:#x}]"), self.value(f"c[0x0][{at + 4:#x}]")
        if opcode == "LDG.E.64":
            at_ = self.addresses(o[1]) // 4
            return self.memory.view(np.uint32)[at_], self.memory.view(np.uint32)[at_ + 1]
        base = int(o[3][1:])
        sum_ = self.value(o[1]).astype(np.uint64) * self.value(o[2]) + self.registers[base]
        return sum_.astype(np.uint32), self.registers[base + 1] + (sum_ >> np.uint64(32)).astype(np.uint32)

    def select(self, o: list[str]) -> Words:
        """SEL."""
        condition = self.predicates[o[2].lstrip("!")] ^ (o[2][0] == "!")
        return np.where(condition, self.value(o[0]), self.value(o[1]))

    def pack(self, o: list[str]) -> Words:
        """F2FP: the first source goes to the high half."""
        high, low = (rounded(f32(self.value(x)), np.zeros(32), np.float16) for x in o)
        return low | high << np.uint32(16)

    def widen(self, o: list[str]) -> Words:
        """HADD2.F32 of -0 and an f16."""
        assert o[0] == "-RZ" and o[1].endswith(("H0_H0", "H1_H1")), o
        return self.value(o[1])

    def zero(self, o: list[str]) -> Words:
        """HFMA2.MMA as ptxas uses it to make a constant."""
        assert o[:2] == ["-RZ", "RZ"], o
        high, low = (np.float16(float(x)).view(np.uint16) for x in o[2:])
        return np.full(32, int(high) << 16 | int(low), np.uint32)


ONE, ZERO, MINUS_ZERO = (np.full(32, x, np.uint32) for x in (0x3F800000, 0, 0x80000000))
OPERATIONS: dict[str, Callable[[MachineCode, list[str]], Words]] = {
    "S2R": lambda m, o: {"SR_LANEID": LANES, "SR_TID.X": LANES}[o[0]],
    "MOV": lambda m, o: m.value(o[0]),
    "LDG.E": lambda m, o: m.memory.view(np.uint32)[m.addresses(o[0]) // 4],
    "LOP3.LUT": lambda m, o: logic(m.value(o[0]), m.value(o[1]), m.value(o[2]), int(o[3], 16)),
    "IADD3": lambda m, o: m.value(o[0]) + m.value(o[1]) + m.value(o[2]),
    "SHF.R.U32.HI": lambda m, o: m.value(o[2]) >> m.value(o[1]),
    "PRMT": lambda m, o: byte_permute(m.value(o[0]), int(o[1], 16), m.value(o[2])),
    "SEL": MachineCode.select,
    "HADD2.F32": MachineCode.widen,
    "HFMA2.MMA": MachineCode.zero,
    "F2FP.F16.F32.PACK_AB": MachineCode.pack,
    "FFMA": lambda m, o: fused(m.value(o[0]), m.value(o[1]), m.value(o[2])),
    "FMUL": lambda m, o: fused(m.value(o[0]), m.value(o[1]), MINUS_ZERO),
    "FADD": lambda m, o: fused(m.value(o[0]), ONE, m.value(o[1])),
}
