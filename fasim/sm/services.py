"""What device code asks of the driver: printf, assert, malloc, free."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from fasim.errors import KernelAssertion, MemoryAccessError, NotModelled, Where
from fasim.gmem import AddressSpace
from fasim.isa import machine as m
from fasim.isa.operands import V_ARGUMENTS, V_FRAME, V_RETURNS, V_SLOTS
from fasim.isa.program import Program
from fasim.sm import findings
from fasim.sm.state import CtaState

HEAP_NAME = "device malloc heap"
HEAP_BYTES = 8 << 20  # cudaLimitMallocHeapSize's default
MAX_FIELD = 4096
_SPEC = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+)?)?(hh|h|ll|l|z|j|t|L)?([diouxXcsfFeEgGaAp%n])")


class Services:
    """Carries out calls of lanes that stopped at a service; `output` gets what printf writes."""

    def __init__(self, program: Program, space: AddressSpace, output: Callable[[str], None]) -> None:
        self.program, self.space, self.output = program, space, output
        self.heap_used = 16
        self.blocks: dict[int, int] = {}  # what malloc gave out and free did not take back: address, size
        self.free: dict[int, list[int]] = {}  # blocks to use again, by size

    def perform(self, state: CtaState) -> None:
        """Do what the stopped lanes of a warp ask for, lane after lane, and let them go on."""
        pc, warp, mask = (int(state.error[w // 8]) for w in (m.ERR_PC, m.ERR_WARP, m.ERR_LANES))
        state.error[:] = 0
        self.pc = pc
        operands = self.program.pool[self.program.code[pc, m.AT_POOL // 4] :]
        returns, arguments = int(operands[V_RETURNS // 4]), int(operands[V_ARGUMENTS // 4])
        frames = self._row(state, warp, int(operands[V_FRAME // 4]))
        slots = [int(s) for s in operands[V_SLOTS // 4 :][: returns + arguments]]
        service = self.program.services[pc]
        for lane in findings.lanes_of(mask):
            local = (warp * 32 + lane) * self.program.local_bytes
            base = local + int(frames[lane])
            values = [int(state.local[base + s : base + s + 8].view(np.uint64)[0]) for s in slots[returns:]]
            where = findings.where_of(self.program, state.shape, state.get(m.C_CTA), warp, (lane,), pc)
            result = 0
            if service == "printf":
                text, result = self._printf(state, local, where, values)
                self.output(text)
            elif service == "assert":
                message, file, function = (self._string(state, local, where, values[i]) for i in (0, 1, 3))
                raise KernelAssertion(
                    f"{file}:{values[2] & 0xFFFFFFFF}: {function}: CTA {where.ctaid}, thread {where.threads[0]}: assert `{message}` failed",
                    where,
                    kind="assert",
                    expression=message,
                    line=values[2] & 0xFFFFFFFF,
                )
            elif service == "malloc":
                result = self._malloc(values[0])
            elif service == "free":
                self._free(values[0], where)
            if returns:
                state.local[base + slots[0] : base + slots[0] + 8].view(np.uint64)[0] = result
                if state.checks is not None:
                    state.checks.define_local(base + slots[0], 8)
        state.served(warp, pc)

    def _row(self, state: CtaState, warp: int, row: int) -> np.ndarray[Any, Any]:
        start = warp * len(self.program.template) + row
        return state.registers[start : start + m.ROW32_BYTES].view(np.uint32)

    def _malloc(self, size: int) -> int:
        heap = next(a for a in self.space.allocations if a.name == HEAP_NAME)
        room = m.align_up(max(size, 1), 16)
        if self.free.get(room):
            address = self.free[room].pop()
        elif self.heap_used + room > heap.size_bytes:
            return 0
        else:
            address = heap.address + self.heap_used
            self.heap_used += room
        self.blocks[address] = room
        return address

    def _free(self, address: int, where: Where) -> None:
        if address == 0:
            return
        if address not in self.blocks:
            raise MemoryAccessError(
                f"free: {findings.place(where)}: {address:#x} is not what malloc returned, or was freed before",
                where,
                kind="free",
                addresses=[address],
            )
        self.free.setdefault(self.blocks.pop(address), []).append(address)

    def _bytes(self, state: CtaState, local: int, where: Where, address: int, size: int) -> bytes:
        if m.LOCAL_WINDOW <= address < m.LOCAL_WINDOW + m.WINDOW_BYTES:
            at = local + address - m.LOCAL_WINDOW
            if at + size <= local + self.program.local_bytes:
                return state.local[at : at + size].tobytes()
        elif m.SHARED_WINDOW <= address < m.SHARED_WINDOW + m.WINDOW_BYTES:
            at = address - m.SHARED_WINDOW
            if at + size <= len(state.smem):
                return state.smem[at : at + size].tobytes()
        else:
            for a in self.space.allocations:
                if a.address <= address and address + size <= a.address + a.size_bytes:
                    offset = address - a.address
                    return a.data.reshape(-1).view(np.uint8)[offset : offset + size].tobytes()
        raise MemoryAccessError(
            f"printf or assert reads {size} bytes at {address:#x}, which is not allocated: {findings.place(where)}", where, kind="oob"
        )

    def _string(self, state: CtaState, local: int, where: Where, address: int) -> str:
        result = b""
        while True:
            byte = self._bytes(state, local, where, address + len(result), 1)
            if byte == b"\0":
                return result.decode("utf-8", "replace")
            result += byte

    def _printf(self, state: CtaState, local: int, where: Where, values: list[int]) -> tuple[str, int]:
        """The text, and the number of arguments as the device's printf returns it."""
        fmt, at, count = self._string(state, local, where, values[0]), values[1], 0

        def argument(size: int) -> bytes:
            nonlocal at, count
            at = m.align_up(at, size)
            data = self._bytes(state, local, where, at, size)
            if state.checks is not None and m.LOCAL_WINDOW <= at < m.LOCAL_WINDOW + m.WINDOW_BYTES:
                state.checks.print_local(
                    int(state.context.ctypes.data), local + at - m.LOCAL_WINDOW, size, where.warp, where.lanes[0], self.pc
                )
            at += size
            count += 1
            return data

        def convert(match: re.Match[str]) -> str:
            flags, width, precision, length, kind = match.groups()
            if kind == "%":
                return "%"
            if kind == "n":
                raise NotModelled(f"printf: %n is not supported on the device: {findings.place(where)}")
            if width == "*":
                value = struct.unpack("<i", argument(4))[0]
                flags, width = (flags + "-", str(-value)) if value < 0 else (flags, str(value))
            if precision == "*":
                precision = str(max(struct.unpack("<i", argument(4))[0], 0))
            if max(int(width or 0), int(precision or 0)) > MAX_FIELD:
                raise NotModelled(f"printf: a field of more than {MAX_FIELD} characters: {findings.place(where)}")
            has_precision = "." in match.group(0)
            spec = "%" + flags + (width or "") + (f".{precision or 0}" if has_precision else "")
            long = length in ("l", "ll", "z", "j", "t")
            if kind in "di":
                number = struct.unpack("<q" if long else "<i", argument(8 if long else 4))[0]
                return (spec + "d") % _narrow(number, length, signed=True)
            if kind in "ouxX":
                number = struct.unpack("<Q" if long else "<I", argument(8 if long else 4))[0]
                number = _narrow(number, length, signed=False)
                if kind == "o" and "#" in flags:
                    return (spec.replace("#", "") + "s") % (f"0{number:o}" if number else "0")
                if kind in "xX" and "#" in flags and number == 0:
                    spec = spec.replace("#", "")
                return (spec + ("d" if kind == "u" else kind)) % number
            if kind == "c":
                return (spec + "s") % chr(struct.unpack("<i", argument(4))[0] & 0xFF)
            if kind == "s":
                return (spec + "s") % self._string(state, local, where, struct.unpack("<Q", argument(8))[0])
            if kind == "p":
                return (spec + "s") % f"{struct.unpack('<Q', argument(8))[0]:#x}"
            number = struct.unpack("<d", argument(8))[0]
            if kind in "aA":
                text = float(number).hex()
                return (spec + "s") % (text.upper() if kind == "A" else text)
            return str((spec + kind) % number)

        return _SPEC.sub(convert, fmt), count


def _narrow(number: int, length: str | None, *, signed: bool) -> int:
    bits = {"hh": 8, "h": 16}.get(length or "")
    if bits is None:
        return number
    number &= (1 << bits) - 1
    return number - (1 << bits) if signed and number >> (bits - 1) else number
