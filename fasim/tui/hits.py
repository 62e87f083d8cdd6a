"""What a session says when a breakpoint stops: who did it, to which bytes, and what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fasim.kernels.spec import Region
from fasim.report.bank_picture import lane_ranges
from fasim.sm.findings import lanes_of
from fasim.trace.breaks import Hit, MemoryBreak, ReadBreak, RegisterBreak
from fasim.trace.event import Event
from fasim.trace.stepper import Stepper
from fasim.tui.numbers import lane_texts, texts_of

Array = np.ndarray[Any, Any]
#: bytes of a value in shared memory, by the type that the instruction takes it for
_SIZES = {"u8": 1, "s8": 1, "b8": 1, "u16": 2, "s16": 2, "b16": 2, "f16": 2, "bf16": 2, "u64": 8, "s64": 8, "b64": 8, "f64": 8}


def hit_text(stepper: Stepper, hit: Hit, regions: Sequence[Region], watched: int | None) -> str:
    """What an event did that a breakpoint stopped at, "" if there is nothing to say. regions: named parts of shared memory.

    watched: the warp that is watched, None for whichever runs. The stepper stays where it is.
    """
    event, parts = hit.event, []
    if event is None:
        return ""
    if isinstance(hit.breakpoint, (MemoryBreak, ReadBreak)):
        parts.append(_access_text(stepper, hit.breakpoint, event, regions))
    if isinstance(hit.breakpoint, RegisterBreak):
        parts.append(_register_text(stepper, hit.breakpoint, event))
    if watched is not None and event.warp != watched:
        did = {MemoryBreak: "wrote it", ReadBreak: "read it"}.get(type(hit.breakpoint), "did it")
        parts.append(f"warp {event.warp} {did}; w all, or w {event.warp}, follows it")
    return "; ".join(parts)


def _register_text(stepper: Stepper, meant: RegisterBreak, event: Event) -> str:
    """`%r5: lane 25 of warp 0 wrote -35, before -31`; of several lanes the first, and how many more."""
    found = next(meant.writes(event), None)
    if found is None:
        return ""
    warp, change, lanes = found
    lane, more = int(np.argmax(lanes)), int(lanes.sum()) - 1
    now, then = (texts_of(values, change.operand.seen_as, "value", stepper.elements)[lane] for values in (change.new, change.old))
    before = "its first value" if change.fresh >> lane & 1 else f"before {then}"
    others = f"; {more} more lane{'s' * (more != 1)} wrote it, too" if more else ""
    return f"{change.operand.name}: lane {lane} of warp {warp} wrote {now}, {before}{others}"


def _access_text(stepper: Stepper, meant: MemoryBreak | ReadBreak, event: Event, regions: Sequence[Region]) -> str:
    """`C[115, 6] (byte 58904): lane 1 of warp 6 wrote -62, before 0`."""
    here = stepper.position
    after = _data(stepper, meant.where)
    stepper.go_to(event.position)
    try:
        before = _data(stepper, meant.where)
        places = _places(stepper, meant, event)
    finally:
        stepper.go_to(here)
    if not places:
        return ""
    size = event.access.bytes_per_lane if event.access is not None else max(size for _, size in places.values())
    first = max(meant.byte_offset, min(at for at, _ in places.values()))
    lanes = [lane for lane, (at, size) in places.items() if at <= first < at + size]
    who = f"lane{'s' * (len(lanes) != 1)} {lane_ranges(lanes)} of warp {event.warp}"
    start = next(at for at, _ in places.values() if at <= first)
    now, then = (_value(stepper, meant.where, first, start, event, data) for data in (after, before))
    if isinstance(meant, ReadBreak):
        what = f"read {then}" + (" (a copy to shared memory)" if event.kind == "cp_async" else "")
    elif event.kind == "cp_wait":
        what = f"wrote {now} by cp.async, before {then}"
    elif event.kind == "stmatrix":
        who, what = f"stmatrix of warp {event.warp}", f"wrote {now}, before {then}; the address is that of lane {lane_ranges(lanes)}"
    else:
        what = f"wrote {now}, before {then}"
    more = sum(not at <= first < at + each for at, each in places.values())
    others = f"; {more} more lane{'s' * (more != 1)} in the range" if more and meant.size_bytes > size else ""
    return f"{_name(stepper, meant.where, first, regions)}: {who} {what}{others}"


def _data(stepper: Stepper, where: str) -> Array:
    """A copy of the bytes of shared memory or of a buffer."""
    data = stepper.state.shared_memory if where == "shared" else stepper.state.buffers[where].reshape(-1).view(np.uint8)
    return np.array(data)


def _places(stepper: Stepper, meant: MemoryBreak | ReadBreak, event: Event) -> dict[int, tuple[int, int]]:
    """The lanes that access some of the bytes that are meant: offset and size. The stepper stands before the event."""
    found: dict[int, tuple[int, int]] = {}
    spans: list[tuple[int, int, int]] = []
    if event.kind == "cp_wait" and event.copies is not None:
        for copy in stepper.state.copies(event.warp):
            spans += [(lane, copy.byte_offsets[lane], copy.bytes_per_lane) for lane in lanes_of(copy.lanes)]
    elif (access := event.access) is not None and access.sources:
        spans = [(lane, access.sources[lane], access.bytes_per_lane) for lane in lanes_of(access.lanes)]
    elif access is not None:
        spans = [(lane, at, access.bytes_per_lane) for space in meant.spaces for lane, at in access.places(space).items()]
        if event.kind in ("ldmatrix", "stmatrix"):
            spans = [(lane, at, 16) for lane, at, _ in spans]
    for lane, at, size in spans:
        if meant.meets(at, at + size, stepper.state):
            place = stepper.state.buffer_at(at) if meant.where != "shared" else ("shared", at)
            assert place is not None
            found[lane] = (place[1], size)
    return found


def _value(stepper: Stepper, where: str, offset: int, start: int, event: Event, data: Array) -> str:
    """The value that a byte belongs to; start: where the access of its lane begins."""
    if where != "shared" and stepper.elements.dtype(where):
        return stepper.elements.value(where, offset, data)
    type_ = _type(stepper, event)
    size = _SIZES.get(type_, 4)
    first = start + (offset - start) // size * size
    bits = int.from_bytes(data[first : first + size].tobytes(), "little")
    return lane_texts(np.array([bits], np.uint64 if size == 8 else np.uint32), type_)[0]


def _type(stepper: Stepper, event: Event) -> str:
    """What an instruction takes the values for that it moves."""
    if event.kind in ("ldmatrix", "stmatrix"):
        return "b16"
    words = event.source.mnemonic.split(".")
    return next((word for word in reversed(words) if word[:1] in "ubsf" and word[-1:].isdigit() and word.strip("ubsf").isdigit()), "b32")


def _name(stepper: Stepper, where: str, offset: int, regions: Sequence[Region]) -> str:
    if where == "shared":
        region = next((each.name for each in regions if each.start <= offset < each.end), "")
        return f"shared byte {offset:#x}{f' ({region})' if region else ''}"
    place = stepper.elements.place(where, offset)
    return f"{place.element} (byte {offset})" if place.index else place.offset
