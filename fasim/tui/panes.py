"""What a session shows, as text: each pane is a function of the session and its size."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.text import Text

from fasim.report.bank_picture import lane_ranges, picture_text, traced_bank_groups
from fasim.sm.findings import lanes_of
from fasim.trace.elements import spans_text
from fasim.trace.event import Event
from fasim.tui.session import Session, failure_text

Array = np.ndarray[Any, Any]
ALL_LANES = 0xFFFFFFFF
HERE, CHANGED, QUIET, BAD, GOOD = "reverse", "bold yellow", "dim", "bold red", "green"


def plain(text: str) -> str:
    """Text that a terminal shows as it stands: tabs as blanks, other control characters but the end of a line escaped."""
    shown = text.expandtabs(4).replace("\r\n", "\n").rstrip("\r")
    return "".join(each if each == "\n" or each.isprintable() else each.encode("unicode_escape").decode() for each in shown)


def header(session: Session) -> Text:
    """One line: kernel, CTA, warp, position, tile, step."""
    stepper, warp = session.stepper, session.shown_warp
    known = "" if stepper.end is None else f" of {stepper.end:,}"
    parts = [session.title or stepper.kernel.name, f"CTA {','.join(map(str, stepper.ctaid))}"]
    parts.append(f"warp {warp}{' (any warp)' if session.follow else ''}")
    parts.append(f"{stepper.position:,}{known}")
    if stepper.places.tile_loop is not None:
        tile = stepper.tile(warp)
        parts.append(f"tile {tile if tile >= 0 else '-'}")
    pc = session.pc
    if pc is not None and (step := stepper.places.step(pc)):
        parts.append(step)
    return Text("  ".join(parts), style="bold", no_wrap=True, overflow="ellipsis")


def source(session: Session, height: int) -> Text:
    """The source around the line that comes next."""
    stepper, pc = session.stepper, session.pc
    place = stepper.places.line(pc) if pc is not None else None
    if pc is None or place is None:
        return Text("the warp has ended" if pc is None else "this instruction has no source line", style=QUIET)
    file, line = place
    lines = stepper.places.sources.lines(file)
    first = max(min(line - 1 - height // 2, len(lines) - height), 0)
    text = Text(no_wrap=True, overflow="ellipsis")
    for number in range(first + 1, min(first + height, len(lines)) + 1):
        mark = ">" if number == line else " "
        text.append(f"{mark}{number:>4} {plain(lines[number - 1])}\n", HERE if number == line else "")
    if len(path := stepper.places.path(pc)) > 1 and text.plain.count("\n") >= height:
        inner = path[-1]
        kept = text.split("\n")[: height - 1]
        text = Text("\n", no_wrap=True, overflow="ellipsis").join(kept)
        text.append(f"\n  in {inner[0].rsplit('/', 1)[-1]}:{inner[1]} {plain(stepper.places.sources.text(*inner))}", "cyan")
    return text


def following(session: Session) -> Text:
    """The instruction that comes next, in full."""
    stepper, pc = session.stepper, session.pc
    if pc is None:
        return Text("no instruction comes next", style=QUIET)
    _, active = stepper.next_lanes(session.shown_warp)
    text = Text()
    text.append(f"> {stepper.places.text(pc)}", "bold")
    if active != ALL_LANES:
        text.append(f"  {_lanes(active) if active else 'no lane'}", QUIET)
    return text


def _lanes(mask: int) -> str:
    """Lanes in words: `lane 0`, `lanes 0-3, 7`."""
    return f"lane{'s' * (mask.bit_count() != 1)} {lane_ranges(lanes_of(mask))}"


def ptx(session: Session, height: int) -> Text:
    """The PTX around the instruction that comes next."""
    stepper, pc = session.stepper, session.pc
    text = Text(no_wrap=True, overflow="ellipsis")
    if pc is None:
        return text.append("no instruction comes next", QUIET)
    total, event = len(stepper.places.program), session.event
    first = max(min(pc - height // 2, total - height), 0)
    for each in range(first, min(first + height, total)):
        done = event is not None and event.pc == each and event.warp == session.shown_warp
        mark = ">" if each == pc else "<" if done else " "
        text.append(f"{mark}{each:>5} {stepper.places.text(each)}\n", HERE if each == pc else "")
    return text


def banks(session: Session, width: int) -> Text:
    """The banks of the last access to shared memory if the last instruction made one, else what it is."""
    event = session.event
    access = event.access if event is not None else None
    if event is None or access is None or access.space != "shared" or not access.op:
        return Text("the last instruction accessed no shared memory; x conflict, then c finds one", style=QUIET)
    cost = access.wavefronts
    assert cost is not None
    text = Text(no_wrap=True)
    excess = cost.source_actual - cost.source_ideal
    counted = ", ".join(f"{count} {what}{'s' * (count != 1)}" for count, what in ((cost.actual, "wavefront"), (cost.conflicts, "conflict")))
    text.append(f"{access.op}: {counted}; ", BAD if cost.conflicts or excess else GOOD)
    text.append(f"ncu's source page {cost.source_actual}, ideal {cost.source_ideal}\n")
    return text.append(picture_text(traced_bank_groups(access), columns=width))


def pipeline(session: Session) -> Text:
    """Groups of cp.async on their way, barriers, and where each warp is."""
    state, text = session.stepper.state, Text(no_wrap=True, overflow="ellipsis")
    event = session.event
    if event is not None and event.copies is not None:
        text.append(f"last: warp {event.warp} {_copies(event, session)}\n", CHANGED)
    for warp in range(state.warps):
        groups, committed = state.copy_groups(warp), max(state.committed_groups(warp))
        text.append(f"warp {warp}: ", "bold" if warp == session.shown_warp else "")
        text.append(f"{_place(session, warp)}; {committed} group{'s' * (committed != 1)} committed\n")
        for group in groups:
            where = "committed, on its way" if group.committed else "open"
            text.append(f"   group {group.number} {where}: ", GOOD if group.committed else CHANGED)
            text.append(f"{group.size_bytes:,} B to {_ranges(session, group.ranges)}\n")
    for barrier in state.barriers():
        expected = barrier.expected or f"all {sum(state.live_lanes(warp).bit_count() for warp in range(state.warps))}"
        text.append(f"barrier {barrier.number}: {barrier.arrived} of {expected} threads; warps {sorted(barrier.waiting)} wait\n", "cyan")
    return text


def _copies(event: Event, session: Session) -> str:
    step = event.copies
    assert step is not None
    if step.group >= 0:
        return f"committed group {step.group}"
    groups = "1 group is" if step.pending == 1 else f"{step.pending} groups are"
    waited = "waited for all" if step.pending < 0 else f"waited until {groups} pending"
    return f"{waited}: {_ranges(session, step.arrived) if step.arrived else 'nothing'} arrived"


def _place(session: Session, warp: int) -> str:
    """Where a warp is, in words."""
    found = []
    for split in session.stepper.state.splits(warp):
        place = session.stepper.places.line(split.pc)
        lanes = "" if split.lanes == 0xFFFFFFFF else f" lanes {lane_ranges(lanes_of(split.lanes))}"
        found.append(f"{split.state} at {f'line {place[1]}' if place else f'instruction {split.pc}'}{lanes}")
    return ", ".join(found) or "ended"


def _ranges(session: Session, ranges: tuple[tuple[int, int], ...]) -> str:
    """Parts of shared memory, by name where they have one."""
    named: dict[str, int] = {}
    for start, end in ranges:
        region = next((each.name for each in session.regions if each.start <= start < each.end), "")
        key = region or f"[{start:#x}, {end:#x})"
        named[key] = named.get(key, 0) + end - start
    shown = [f"{name} ({size:,} B)" if session.regions else name for name, size in named.items()]
    return ", ".join(shown[:4]) + (f" and {len(shown) - 4} more" if len(shown) > 4 else "")


def _spans(session: Session, ranges: Sequence[tuple[int, int]], space: str) -> list[str]:
    """Ranges of memory as text: of device memory with the elements of buffers."""
    if space in ("global", "const", "generic"):
        return [session.stepper.elements.span(start, end) for start, end in ranges]
    return [f"[{start:#x}, {end:#x})" for start, end in ranges]


def details(session: Session, width: int) -> Text:
    """What the last instruction did, in words; lines are no longer than a width."""
    event, text, stepper = session.event, Text(), session.stepper

    def say(what: str, style: str = "") -> None:
        for line in plain(what).split("\n"):
            indent = " " * (len(line) - len(line.lstrip()) + 2)
            text.append("\n".join(textwrap.wrap(line, max(width, 20), subsequent_indent=indent) or [""]) + "\n", style)

    if stepper.failure is not None and stepper.position == stepper.end:
        say(failure_text(stepper.failure), BAD)
    if event is None:
        say("nothing has been executed yet", QUIET)
        return text
    say(f"warp {event.warp}: {stepper.places.text(event.pc)}", "bold")
    for line in _details(event, session):
        say(line)
    for hazard in stepper.lasting(event.hazards):
        # until the end it may yet turn out to be a race
        so_far = ", so far" if stepper.end is None and hazard.kind.startswith("uninit") else ""
        say(f"{hazard.severity}{so_far}: {hazard.text}", BAD)
    return text


def _details(event: Event, session: Session) -> Iterator[str]:
    yield f"{_lanes(event.active)} executed it" if event.active else "no lane executed it: its guard is false"
    if not event.executed:
        yield "it waits there for others"
    if session.stepper.places.inserted(event.pc):
        yield "jump inserted: it is not in the PTX, for the code is laid out in another order"
        return
    for file, line in event.path:
        yield f"{file.rsplit('/', 1)[-1]}:{line}  {session.stepper.places.sources.text(file, line)}"
    if (access := event.access) is not None:
        verb = " and ".join(["reads"] * access.reads + ["writes"] * access.writes)
        yield f"{verb} {access.bytes_per_lane} B a lane, {access.space}: {spans_text(_spans(session, access.ranges(), access.space))}"
        if access.sources:
            yield f"from global: {spans_text(_spans(session, access.source_ranges(), 'global'))}"
    if event.arrival is not None:
        yield f"barrier {event.arrival.number}: {event.arrival.operation}{', which opened it' if event.arrival.opened else ''}"
    if event.copies is not None:
        yield _copies(event, session)
    if event.nan_lanes:
        born = " (new here)" if event.new_nan_lanes else ""
        yield f"NaN in {_lanes(event.nan_lanes)}{born}"
    if event.printed:
        yield f"printed: {event.printed.rstrip()}"
