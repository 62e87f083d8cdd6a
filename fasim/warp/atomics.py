"""atom and red: read, combine, write back, lane after lane in ascending order where addresses coincide."""

from __future__ import annotations

from fasim.isa.machine import C_SCRATCH
from fasim.numerics.native import (
    call_handler,
    first_bit,
    machine_code,
    peek_i32,
    peek_i64,
    peek_u16,
    peek_u32,
    poke_i64,
    poke_u16,
    poke_u32,
)
from fasim.warp.memory import P_BYTES, P_REGISTERS, P_VECTOR, resolve

# after the common operands: destination row (-1 for red) and its bytes, row of the old value, row of the new value, then the
# handler's own operands: new, old, b, c for each element of a vector
A_DEST, A_DEST_BYTES, A_OLD, A_NEW, A_HANDLER = (P_REGISTERS + 4 * i for i in range(5))
A_STRIDE = 32


@machine_code
def read_row(registers: int, row: int, lane: int, size: int, at: int) -> None:
    """Memory to a lane of a register row."""
    if size == 8:
        poke_i64(registers + row + 8 * lane, peek_i64(at))
    elif size == 4:
        poke_u32(registers + row + 4 * lane, peek_u32(at))
    else:
        poke_u32(registers + row + 4 * lane, peek_u16(at))


@machine_code
def atom(ctx: int, registers: int, operands: int, mask: int, handler: int) -> int:
    """Returns 0, or 1 with the error recorded; the handler computes new from (old, b[, c])."""
    if resolve(ctx, registers, operands, mask, 3):
        return 1
    scratch, size = peek_i64(ctx + C_SCRATCH), peek_i32(operands + P_BYTES)
    for element in range(peek_i32(operands + P_VECTOR)):
        own = operands + A_STRIDE * element
        dest, dest_bytes = peek_i32(own + A_DEST), peek_i32(own + A_DEST_BYTES)
        old, new = peek_i32(own + A_OLD), peek_i32(own + A_NEW)
        left = mask
        while left:
            # the lanes of one round have addresses of their own
            now, rest = 0, left
            while rest:
                lane = first_bit(rest)
                rest &= rest - 1
                at = peek_i64(scratch + 8 * lane)
                earlier, taken = left & ((1 << lane) - 1), False
                while earlier:
                    other = first_bit(earlier)
                    earlier &= earlier - 1
                    if peek_i64(scratch + 8 * other) == at:
                        taken = True
                        break
                if not taken:
                    now |= 1 << lane
                    read_row(registers, old, lane, size, at + size * element)
            call_handler(handler, registers, own + A_HANDLER, now)
            left &= ~now
            while now:
                lane = first_bit(now)
                now &= now - 1
                at = peek_i64(scratch + 8 * lane) + size * element
                if size == 8:
                    poke_i64(at, peek_i64(registers + new + 8 * lane))
                elif size == 4:
                    poke_u32(at, peek_u32(registers + new + 4 * lane))
                else:
                    poke_u16(at, peek_u32(registers + new + 4 * lane) & 0xFFFF)
                if dest >= 0:
                    if dest_bytes == 8:
                        poke_i64(registers + dest + 8 * lane, peek_i64(registers + old + 8 * lane))
                    else:
                        poke_u32(registers + dest + 4 * lane, peek_u32(registers + old + 4 * lane))
    return 0
