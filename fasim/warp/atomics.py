"""atom and red: read, combine, write back, lane after lane in ascending order where addresses coincide."""

from __future__ import annotations

from fasim.isa.machine import C_SCRATCH
from fasim.isa.operands import A_DEST, A_ELEMENTS, A_HANDLER, A_NEW, A_OLD, A_STRIDE, P_BYTES, P_VECTOR
from fasim.numerics.native import (
    call_handler,
    first_bit,
    lanes_add,
    lanes_equal,
    lanes_load_i64,
    lanes_load_u32,
    lanes_step,
    machine_code,
    peek_i32,
    peek_i64,
)
from fasim.warp.memory import resolve
from fasim.warp.transfer import load_row, store_row


@machine_code
def atom(ctx: int, registers: int, operands: int, mask: int, handler: int) -> int:
    """Returns 0, or 1 with the error recorded; the handler computes new from (old, b[, c])."""
    if resolve(ctx, registers, operands, mask, 3):
        return 1
    hosts, size = peek_i64(ctx + C_SCRATCH), peek_i32(operands + P_BYTES)
    stride = size * peek_i32(operands + P_VECTOR)
    for element in range(peek_i32(operands + P_VECTOR)):
        own = operands + A_ELEMENTS + A_STRIDE * element
        old, new = registers + peek_i32(own + A_OLD), registers + peek_i32(own + A_NEW)
        left, distinct = mask, lanes_step(hosts, mask, stride)
        while left:
            # the lanes of one round have addresses of their own
            now, rest = (left, 0) if distinct else (0, left)
            while rest:
                lane = first_bit(rest)
                now |= 1 << lane
                rest &= ~lanes_equal(hosts, peek_i64(hosts + 8 * lane))
            left &= ~now
            load_row(old, hosts, now, size, False)
            call_handler(handler, registers, own + A_HANDLER, now)
            store_row(new, hosts, now, size, False)
        lanes_add(hosts, hosts, size)
    # last, since a destination may be the source of another element
    for element in range(peek_i32(operands + P_VECTOR)):
        own = operands + A_ELEMENTS + A_STRIDE * element
        old, dest = registers + peek_i32(own + A_OLD), peek_i32(own + A_DEST)
        if dest >= 0:
            if size == 8:
                lanes_load_i64(registers + dest, old, mask)
            else:
                lanes_load_u32(registers + dest, old, mask)
    return 0
