"""From the machine's error record to an exception that says what, where, who, and what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fasim.errors import DeadlockError, ExecutionError, KernelTrap, MemoryAccessError, Where
from fasim.gmem import AddressSpace
from fasim.isa import machine as m
from fasim.isa.program import Program
from fasim.sm.state import CtaState, LaunchShape, Split

_KINDS = {
    m.E_OUT_OF_BOUNDS: ("oob", "out of bounds"),
    m.E_MISALIGNED: ("misaligned", "misaligned"),
    m.E_CONST_WRITE: ("read_only", "write to read-only memory"),
}


#: headers that come with the compiler
_TOOLKIT = re.compile(r"[/\\](?:nvidia|cuda[^/\\]*)[/\\](?:.*[/\\])?include[/\\]")


def own_places(every: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """A place and those from which it was inlined without the toolkit's headers, unless there is nothing else."""
    return tuple(place for place in every if not _TOOLKIT.search(place[0])) or tuple(every[:1])


def lanes_of(mask: int) -> tuple[int, ...]:
    """Lane numbers of a mask."""
    return tuple(i for i in range(32) if mask >> i & 1)


def describe_lanes(lanes: tuple[int, ...]) -> str:
    """Lanes as ranges: `0-3, 7`."""
    parts: list[str] = []
    i = 0
    while i < len(lanes):
        j = i
        while j + 1 < len(lanes) and lanes[j + 1] == lanes[j] + 1:
            j += 1
        parts.append(str(lanes[i]) if i == j else f"{lanes[i]}-{lanes[j]}")
        i = j + 1
    return ", ".join(parts)


def where_of(program: Program, shape: LaunchShape, cta: int, warp: int, lanes: tuple[int, ...], pc: int) -> Where:
    """The place of an instruction and the threads concerned."""
    source = program.source_at(pc)
    threads = tuple(shape.tid(32 * warp + lane) for lane in lanes)
    return Where(
        program.title, source.file, source.line, source.ptx_line, source.text, shape.ctaid(cta), warp, lanes, threads, source.inlined_at
    )


def place(where: Where) -> str:
    """One sentence fragment: kernel, source line, PTX text, CTA, warp, lanes."""
    line = f"{where.file}:{where.line}" if where.line else f"PTX line {where.ptx_line}"
    line += "".join(f", called at {file}:{number}" for file, number in where.inlined_at)
    lanes = f"lane{'s' if len(where.lanes) != 1 else ''} {describe_lanes(where.lanes)}" if where.lanes else ""
    thread = f", first threadIdx {where.threads[0]}" if where.threads else ""
    return f"kernel {where.kernel}, {line}: `{where.text}` in CTA {where.ctaid}, warp {where.warp}, {lanes}{thread}"


def from_record(program: Program, state: CtaState, space: AddressSpace) -> ExecutionError:
    """The exception for what stopped a CTA."""
    error, shape = state.error, state.shape
    kind, pc, warp = (int(error[w // 8]) for w in (m.ERR_KIND, m.ERR_PC, m.ERR_WARP))
    cta = state.get(m.C_CTA)
    if kind == m.E_DEADLOCK:
        return deadlock(program, state)
    lanes = lanes_of(int(error[m.ERR_LANES // 8]))
    where = where_of(program, shape, cta, warp, lanes, pc)
    addresses = [int(error[m.ERR_ADDRESS // 8 + lane]) for lane in lanes]
    if kind == m.E_TRAP:
        return KernelTrap(f"trap: {place(where)}", where, kind="trap")
    if kind == m.E_CALL_DEPTH:
        return ExecutionError(
            f"stack overflow: {place(where)}: more than {program.local_bytes} bytes of local memory or {addresses[0]} levels of calls",
            where,
            kind="stack_overflow",
        )
    if kind == m.E_BAD_TARGET:
        where_to = f"{addresses[0] & 0xFFFFFFFFFFFFFFFF:#x} is no function or branch target"
        if program.barriers_only:
            where_to += " that fasim knows; machine code that calls printf or malloc ends there: leave these calls out, or run the PTX"
        return ExecutionError(
            f"jump to nowhere: {place(where)}: {where_to}",
            where,
            kind="bad_target",
        )
    if kind == m.E_SRC_SIZE:
        size = int(error[m.ERR_BYTES // 8])
        return MemoryAccessError(f"cp.async: {place(where)}: src-size {addresses[0]} is larger than cp-size {size}", where, kind="src_size")
    if kind == m.E_BARRIER_COUNT:
        number, count = int(error[m.ERR_SPACE // 8]), int(error[m.ERR_BYTES // 8])
        here, there = (f"{n} threads" if n else "all threads" for n in (count, addresses[0]))
        return ExecutionError(
            f"barrier: {place(where)}: barrier {number} for {here}, but others wait at it for {there}", where, kind="barrier"
        )
    if kind == m.E_BARRIER_OPERANDS:
        number, count = int(error[m.ERR_SPACE // 8]), int(error[m.ERR_BYTES // 8])
        return ExecutionError(
            f"barrier: {place(where)}: barrier {number} with {count} threads; 0-15 and multiples of 32 up to the block are allowed",
            where,
            kind="barrier",
        )
    return _memory_error(program, state, space, kind, where, addresses)


def _memory_error(
    program: Program, state: CtaState, space: AddressSpace, kind: int, where: Where, addresses: list[int]
) -> MemoryAccessError:
    error = state.error
    which, size, write = (int(error[w // 8]) for w in (m.ERR_SPACE, m.ERR_BYTES, m.ERR_WRITE))
    short, words = _KINDS[kind]
    first = addresses[0] & 0xFFFFFFFFFFFFFFFF
    name, details = m.SPACE_NAMES[which], {}
    limits = {m.SHARED: state.shape.smem_bytes, m.LOCAL: program.local_bytes, m.PARAM: program.parameter_base + program.param_bytes}
    bases = {m.SHARED: m.SHARED_WINDOW, m.LOCAL: m.LOCAL_WINDOW, m.PARAM: m.PARAM_WINDOW}
    if which in limits:
        base = bases[which]
        offsets = [a - base if base <= a < base + m.WINDOW_BYTES else a for a in addresses]
        signed = offsets[0] - (1 << 32) if offsets[0] >= 1 << 31 else offsets[0]
        if kind == m.E_MISALIGNED:
            hint = f"byte offset {signed} is no multiple of {size}"
        else:
            hint = f"byte offset {signed}, {limits[which]} bytes of {name} memory are allocated"
            if which == m.SHARED and program.static_smem_bytes + state.shape.dynamic_smem_bytes < max(offsets[-1], 0) + size < 1 << 20:
                hint += "; launch with more dynamic shared memory, or correct the index"
        details = {"byte_offset": signed, "allocated": limits[which], "byte_offsets": offsets}
    elif kind == m.E_MISALIGNED:
        hint = f"address {first:#x} is no multiple of {size}"
    else:
        near = space.nearest(addresses[0])
        hint = f"address {first:#x}"
        if near is None:
            hint += "; nothing is allocated"
        else:
            allocation, distance = near
            details = {
                "nearest": allocation.name,
                "distance": distance,
                "allocated": allocation.size_bytes,
                "byte_offset": addresses[0] - allocation.address,
            }
            side = "before the start" if distance < 0 else "past the end"
            if distance == 0:
                inside = addresses[0] - allocation.address
                if kind == m.E_CONST_WRITE:
                    hint += f", byte {inside} of {allocation.name}, which kernels may only read"
                else:
                    hint += f", byte {inside} of {allocation.name}, whose {allocation.size_bytes} bytes the access of {size} bytes overruns"
            else:
                hint += (
                    f", {abs(distance)} byte{'s' if abs(distance) != 1 else ''} {side} of {allocation.name} ({allocation.size_bytes} bytes)"
                )
        if addresses[0] == 0 or 0 <= addresses[0] < 4096:
            hint += "; this looks like a null pointer"
    action = "write" if write else "read"
    message = f"{words}: {size}-byte {name} {action} at {place(where)}: {hint}"
    label = short if kind == m.E_MISALIGNED else f"{short}_{name}"
    access = "write" if write else "read"
    return MemoryAccessError(
        message, where, kind=label, space=name, access=access, addresses=addresses, lanes=len(where.lanes), size_bytes=size, **details
    )


def pc_of(split: Split) -> int:
    """The instruction at which a split is: those that wait in bar.warp.sync have their pc behind it."""
    return split.pc - 1 if split.state == m.AT_COLLECTIVE and split.detail & m.SYNC_FLAG else split.pc


def deadlock(program: Program, state: CtaState) -> DeadlockError:
    """Who waits where, when nobody in a CTA can go on."""
    waiting: list[dict[str, Any]] = []
    for warp in range(state.shape.warps):
        live = state.warp_word(warp, m.W_LIVE)
        for split in state.splits_of(warp):
            source = program.source_at(pc_of(split))
            if split.state == m.AT_BARRIER:
                what = f"barrier {split.detail}"
            else:
                absent = lanes_of(split.detail & m.ALL_LANES & live & ~split.mask)
                what = f"lane{'s' if len(absent) != 1 else ''} {describe_lanes(absent)}"
            waiting.append(
                {
                    "warp": warp,
                    "lanes": lanes_of(split.mask),
                    "live": live,
                    "line": source.line,
                    "file": source.file,
                    "text": source.text,
                    "for": what,
                }
            )
    lines = [
        f"  warp {w['warp']} lanes {describe_lanes(w['lanes'])} wait for {w['for']} at {w['file']}:{w['line']}: `{w['text']}`"
        for w in waiting[:12]
    ]
    if len(waiting) > 12:
        lines.append(f"  ... and {len(waiting) - 12} more")
    ended = tuple(warp for warp in range(state.shape.warps) if not state.warp_word(warp, m.W_LIVE))
    if ended:
        lines.append(f"  warp{'s' if len(ended) != 1 else ''} {describe_lanes(ended)} {'have' if len(ended) != 1 else 'has'} ended")
    cta = state.shape.ctaid(state.get(m.C_CTA))
    where = Where(program.title, ctaid=cta)
    if waiting:
        first = waiting[0]
        where = Where(program.title, first["file"], first["line"], 0, first["text"], cta, first["warp"], first["lanes"])
    message = f"deadlock in kernel {program.title}, CTA {cta}: every thread waits and none can go on\n" + "\n".join(lines)
    return DeadlockError(message, where, kind="deadlock", waiting=waiting)
