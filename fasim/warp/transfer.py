"""Between memory and register rows: all lanes at once where widths allow."""

from __future__ import annotations

from fasim.numerics.native import (
    first_bit,
    lanes_gather_i64,
    lanes_gather_u8,
    lanes_gather_u16,
    lanes_gather_u32,
    lanes_load_i64,
    lanes_load_u8,
    lanes_load_u16,
    lanes_load_u32,
    lanes_or,
    lanes_scatter_i64,
    lanes_scatter_u32,
    lanes_store_i64,
    lanes_store_u8,
    lanes_store_u16,
    lanes_store_u32,
    machine_code,
    peek_i64,
    peek_u8,
    peek_u16,
    peek_u32,
    poke_i64,
    poke_u8,
    poke_u16,
    poke_u32,
    popcount,
)

#: gathering costs as much as this many lanes one by one
FEW_LANES = 8


@machine_code
def load_row(row: int, hosts: int, mask: int, size: int, step: bool) -> None:
    """Memory to a register row of the same width, or zero-extended to 32 bits; `step`: neighbouring lanes have neighbouring words."""
    if step:
        first = first_bit(mask)
        at = peek_i64(hosts + 8 * first) - size * first
        if size == 4:
            lanes_load_u32(row, at, mask)
        elif size == 8:
            lanes_load_i64(row, at, mask)
        elif size == 2:
            lanes_load_u16(row, at, mask)
        else:
            lanes_load_u8(row, at, mask)
    elif popcount(mask) < FEW_LANES:
        load_by_lane(row, hosts, mask, size, 0, 8 if size == 8 else 4)
    elif size == 4:
        lanes_gather_u32(row, hosts, mask)
    elif size == 8:
        lanes_gather_i64(row, hosts, mask)
    elif size == 1:
        lanes_gather_u8(row, hosts, mask)
    elif lanes_or(hosts, mask) & 1:  # a buffer that begins at an odd address of the host
        load_by_lane(row, hosts, mask, size, 0, 4)
    else:
        lanes_gather_u16(row, hosts, mask)


@machine_code
def load_by_lane(row: int, hosts: int, mask: int, size: int, sign: int, wide: int) -> None:
    """Memory to a register row lane by lane, with or without sign."""
    left = mask
    while left:
        lane = first_bit(left)
        left &= left - 1
        at = peek_i64(hosts + 8 * lane)
        if size == 4:
            value = peek_u32(at)
        elif size == 8:
            value = peek_i64(at)
        elif size == 2:
            value = peek_u16(at)
        else:
            value = peek_u8(at)
        if sign and size < 8:
            top = 1 << (8 * size - 1)
            value = (value ^ top) - top
        if wide == 8:
            poke_i64(row + 8 * lane, value)
        elif wide == 4:
            poke_u32(row + 4 * lane, value & 0xFFFFFFFF)
        else:
            poke_u32(row + 4 * lane, value & 0xFFFF)


@machine_code
def store_row(row: int, hosts: int, mask: int, size: int, step: bool) -> None:
    """A register row to memory; `step`: neighbouring lanes have neighbouring words."""
    if step:
        first = first_bit(mask)
        at = peek_i64(hosts + 8 * first) - size * first
        if size == 4:
            lanes_store_u32(row, at, mask)
        elif size == 8:
            lanes_store_i64(row, at, mask)
        elif size == 2:
            lanes_store_u16(row, at, mask)
        else:
            lanes_store_u8(row, at, mask)
    elif popcount(mask) < FEW_LANES:
        store_by_lane(row, hosts, mask, size, 8 if size == 8 else 4)
    elif size == 4:
        lanes_scatter_u32(row, hosts, mask)
    elif size == 8:
        lanes_scatter_i64(row, hosts, mask)
    else:
        store_by_lane(row, hosts, mask, size, 4)


@machine_code
def store_by_lane(row: int, hosts: int, mask: int, size: int, wide: int) -> None:
    """The low bytes of a register row to memory lane by lane."""
    left = mask
    while left:
        lane = first_bit(left)
        left &= left - 1
        at = peek_i64(hosts + 8 * lane)
        value = peek_i64(row + 8 * lane) if wide == 8 else peek_u32(row + 4 * lane)
        if size == 4:
            poke_u32(at, value & 0xFFFFFFFF)
        elif size == 8:
            poke_i64(at, value)
        elif size == 2:
            poke_u16(at, value & 0xFFFF)
        else:
            poke_u8(at, value & 0xFF)
