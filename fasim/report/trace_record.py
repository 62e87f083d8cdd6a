"""One warp instruction of a trace as JSON has it: the schema fasim.trace/1.

A trace is one object. Before its events: `schema`, `version`, `kernel`, `source`, `arch`, `compiler`, `isa` (ptx or sass: what is run),
`options`, `defines`, `seed`, `grid`, `block`, `dynamic_smem_bytes`, `checked` (whether hazards were looked for), `cta` (blockIdx), `warps`,
`buffers` (device memory: name, address, size_bytes, constant, dtype, "" where nobody knows it, and shape), `regions` (named parts of shared
memory: name, start, end) and `rows` (label; pcs of the results that hold values of a tile's rows, row lane / 4 of eight each; total,
whether the four lanes of a quad hold parts of a sum) as a kernel of the collection describes them, `filters` (warp, tile and steps, null or
[] where all are there; steps by name), `warp_instructions` (of the CTA), `event_count`. After them: `fault`, null or why the kernel did not
come to its end: position, warp, pc, lanes, text and step of the instruction that failed (null where none did: a deadlock), type, message,
where and details of the error as in `fasim.error/1`. And `hazards`: all that the checks found in the CTA.

`events` has one object a line, in the order of execution. Masks and registers are hexadecimal, lane 0 is bit 0 and the first word.

    position   warp instructions that the CTA had executed before
    warp, tile, step           tile null before the first one, step "" outside of marked steps
    pc, kind, text             index of the instruction, kind of work, PTX
    file, line, path           innermost place, and all from the kernel's line inwards: [file, line]; line 0 where there is none
    lanes, active              at the instruction, and those that its guard lets execute it
    executed                   false if they only began to wait there for others

The others are absent where there is nothing to say:

    inserted   true for a jump that is not in the PTX; text and place are those of the instruction before it
    registers  of destinations that changed, or that hold their first value: name, type, changed (the lanes where), values (32 words
               separated by blanks, of predicates a mask); other lanes say what the place of the register holds
    access     of memory: space, op (machine operation of shared accesses), bytes_per_lane, lanes, reads, writes, addresses (of 32 lanes,
               null for those without; offsets in shared and local memory), buffers (names, in global memory), sources (cp.async: where it
               reads), stored (what global memory holds after a write: address and bytes in hexadecimal, widened to multiples of 8) and, in
               shared memory, wavefronts, conflicts, wavefronts_ideal, collisions (bank, and words: byte_offset, lanes)
    copy       of cp.async: groups it belongs to, counted from 0 by lane; of a commit: the group; of a wait: pending, how many groups may
               stay on their way (-1: wait_all), and arrived, byte ranges of shared memory that it makes valid, ends excluded
    barrier    operation, number, count (of threads, 0 for all), opened (whether these were the last), results (of bar.red, if opened:
               as registers, of the other warps that waited there, with warp)
    nan_lanes, new_nan_lanes   lanes with a not-a-number as result; those that had none as operand
    hazards    found by this instruction: kind, space, scope, severity, text, and the instructions and lanes of both sides, as far as
               they were known here (what turns out to be something else is left out)
    printed    by printf
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from fasim.report.records import plain_json
from fasim.report.trace_copies import copy_groups_of
from fasim.sm.findings import lanes_of
from fasim.sm.result import Hazard
from fasim.smem.wavefronts import Collision
from fasim.trace.event import Access, Arrival, Event, RegisterChange
from fasim.trace.stepper import Stepper
from fasim.trace.view import StateView, joined_ranges, mask_of

TRACE_SCHEMA = "fasim.trace/1"
#: what is written of memory after a store is widened to multiples of these, so that it holds whole values
STORED_BYTES = 8


def mask_text(mask: int) -> str:
    """A mask of lanes."""
    return f"{mask:#010x}"


class EventRecords:
    """Makes the records of a stepper's events."""

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper

    def record(self, event: Event, tile: int) -> dict[str, Any]:
        """What the instruction before the stepper's position did. tile: -1 before the first."""
        state, source = self._stepper.state, event.source
        record: dict[str, Any] = {
            "position": event.position,
            "warp": event.warp,
            "tile": tile if tile >= 0 else None,
            "step": event.step,
            "pc": event.pc,
            "kind": event.kind,
            "text": source.text,
            "file": source.file,
            "line": source.line,
            "path": [list(place) for place in event.path],
            "lanes": mask_text(event.lanes),
            "active": mask_text(event.active),
            "executed": event.executed,
        }
        further = {
            "inserted": self._stepper.places.inserted(event.pc),
            "registers": self._registers(event),
            "access": None if event.access is None else _access(event.access, state),
            "copy": _copy(event, state),
            "barrier": None if event.arrival is None else _barrier(event.arrival),
            "nan_lanes": mask_text(event.nan_lanes) if event.nan_lanes else None,
            "new_nan_lanes": mask_text(event.new_nan_lanes) if event.new_nan_lanes else None,
            "hazards": [hazard_record(hazard) for hazard in self._stepper.lasting(event.hazards)],
            "printed": event.printed,
        }
        return record | {name: value for name, value in further.items() if value}

    def _registers(self, event: Event) -> list[dict[str, Any]]:
        """The destinations that hold something else now, or for the first time."""
        changes = event.registers if event.executed else ()
        return [_register(change, change.changed) for change in changes if change.changed.any()]


def _register(change: RegisterChange, lanes: np.ndarray[Any, Any]) -> dict[str, Any]:
    operand = change.operand
    if operand.bank == 1:
        values = mask_text(mask_of(change.new))
    else:
        size = 2 if operand.type_.endswith("16") else operand.bank // 8
        values = change.new.astype(f">u{size}").tobytes().hex(" ", size)
    return {"name": operand.name, "type": operand.seen_as, "changed": mask_text(mask_of(lanes)), "values": values}


def _barrier(arrival: Arrival) -> dict[str, Any]:
    record: dict[str, Any] = {name: getattr(arrival, name) for name in ("operation", "number", "count", "opened")}
    results = [{"warp": warp} | _register(change, change.changed) for warp, change in arrival.results if change.changed.any()]
    return record | ({"results": results} if results else {})


def _by_lane(values: tuple[int, ...], lanes: int) -> list[int | None]:
    return [value if lanes >> lane & 1 else None for lane, value in enumerate(values)]


def _access(access: Access, state: StateView) -> dict[str, Any]:
    record: dict[str, Any] = {
        "space": access.space,
        "op": access.op,
        "bytes_per_lane": access.bytes_per_lane,
        "lanes": mask_text(access.lanes),
        "reads": access.reads,
        "writes": access.writes,
        "addresses": _by_lane(access.addresses, access.lanes),
    }
    device = access.sources or (access.addresses if access.space == "global" else ())
    if device:
        places = [state.buffer_at(device[lane]) for lane in lanes_of(access.lanes)]
        record["buffers"] = list(dict.fromkeys(place[0] for place in places if place is not None))
    if access.sources:
        record["sources"] = _by_lane(access.sources, access.lanes)
    if access.writes and not access.sources and (stored := _stored(access, state)):
        record["stored"] = stored
    cost = access.wavefronts
    if cost is not None:
        record |= {
            "wavefronts": cost.actual,
            "conflicts": cost.conflicts,
            "wavefronts_ideal": cost.source_ideal,
            "collisions": [_collision(each) for each in cost.collisions],
        }
    return record


def _stored(access: Access, state: StateView) -> list[list[int | str]]:
    """What global memory holds where an access wrote to it: runs of [address, bytes], widened to multiples of STORED_BYTES."""
    runs: list[list[int | str]] = []
    ranges = [(start // STORED_BYTES * STORED_BYTES, -(-end // STORED_BYTES) * STORED_BYTES) for start, end in access.ranges("global")]
    for start, end in joined_ranges(ranges):
        place = state.buffer_at(start)
        if place is not None:
            name, first = place
            data = state.buffers[name].reshape(-1).view(np.uint8)[first : first + end - start]
            runs.append([start, data.tobytes().hex()])
    return runs


def _collision(collision: Collision) -> dict[str, Any]:
    return {"bank": collision.bank, "words": [{"byte_offset": word.byte_offset, "lanes": list(word.lanes)} for word in collision.words]}


def _copy(event: Event, state: StateView) -> dict[str, Any] | None:
    if event.kind == "cp_async" and event.access is not None:
        return {"groups": sorted(copy_groups_of(event, state))}
    if event.copies is None:
        return None
    if event.kind == "cp_commit":
        return {"group": event.copies.group}
    return {"pending": event.copies.pending, "arrived": [list(span) for span in event.copies.arrived]}


def hazard_record(hazard: Hazard) -> dict[str, Any]:
    """A finding of the checks."""
    return dataclasses.asdict(hazard)


def fault_record(stepper: Stepper) -> dict[str, Any] | None:
    """Why the kernel does not come to its end, None if it does; the stepper stands where it ends."""
    failure = stepper.failure
    if failure is None:
        return None
    following = stepper.state.next
    found: dict[str, Any] = {"position": stepper.position, "warp": None, "pc": None, "lanes": None, "text": None, "step": ""}
    if following is not None:
        found |= {
            "warp": following.warp,
            "pc": following.pc,
            "lanes": mask_text(following.lanes),
            "text": stepper.places.source(following.pc).text,
            "step": stepper.places.step(following.pc),
        }
    found |= {
        "type": type(failure).__name__,
        "message": str(failure),
        "where": dataclasses.asdict(failure.where),
        "details": failure.details,
    }
    return dict(plain_json(found))
