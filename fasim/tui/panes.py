"""What a session shows, as text: each pane is a function of the session and its size."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.text import Text

from fasim.report.bank_access import Access
from fasim.report.bank_picture import bank_groups, lane_ranges, picture_text
from fasim.trace.event import Event
from fasim.tui.numbers import lane_texts
from fasim.tui.session import Session

Array = np.ndarray[Any, Any]
HERE, CHANGED, QUIET, BAD, GOOD = "reverse", "bold yellow", "dim", "bold red", "green"
#: lanes in one line of the register grid, by how wide the values are
_PER_LINE = ((8, 8), (17, 4), (80, 2))


def plain(text: str) -> str:
    """Text that a terminal shows as it stands: tabs as blanks, other control characters but the end of a line escaped."""
    shown = text.expandtabs(4).replace("\r\n", "\n").rstrip("\r")
    return "".join(each if each == "\n" or each.isprintable() else each.encode("unicode_escape").decode() for each in shown)


def header(session: Session) -> Text:
    """One line: kernel, CTA, warp, position, tile, step."""
    stepper, warp = session.stepper, session.shown_warp
    known = "" if stepper.end is None else f" of {stepper.end:,}"
    parts = [session.title or stepper.kernel.name, f"CTA {','.join(map(str, stepper.ctaid))}"]
    parts.append(f"warp {warp}{' (any)' if session.follow else ''}")
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


def registers(session: Session, width: int) -> Text:
    """32 lanes of what the last instruction wrote, of pinned registers, and of what the next one takes."""
    text, event = Text(no_wrap=True), session.event
    shown: set[str] = set()
    if event is not None and event.warp == session.shown_warp:
        for change in event.registers:
            shown.add(change.operand.name)
            _register(text, session, change.operand.name, change.operand.seen_as, change.new, "written", width, change.changed)
    live = {register.name: register for register in session.stepper.state.registers(session.shown_warp)}
    for name in session.pinned:
        if name in live and name not in shown:
            shown.add(name)
            register = live[name]
            values = session.stepper.state.row(session.shown_warp, register.bank, register.row)
            _register(text, session, name, register.type_, values, "pinned", width)
        elif name not in shown:
            text.append(f"{name}: holds no value here\n", QUIET)
    pc = session.pc
    for operand in session.stepper.names.operands[pc] if pc is not None else ():
        if operand.reads and operand.name not in shown:
            shown.add(operand.name)
            values = session.stepper.state.row(session.shown_warp, operand.bank, operand.row)
            _register(text, session, operand.name, operand.seen_as, values, "is read next", width)
    nothing = "no instruction comes next" if pc is None else "the next instruction reads no register"
    return text if text.plain else Text(f"{nothing}; r shows one always", style=QUIET)


def _register(
    text: Text, session: Session, name: str, type_: str, values: Array, what: str, width: int, changed: Array | None = None
) -> None:
    """A heading, and the lanes in lines of 2, 4, 8 or 32."""
    texts = lane_texts(values, type_, session.form)
    text.append(f"{name} {type_}", "bold cyan")
    text.append(f" {what}\n", QUIET)
    longest = max(map(len, texts))
    per_line = 32 if values.dtype == np.bool_ else next(count for room, count in _PER_LINE if longest <= room)
    while per_line > 2 and 5 + per_line * (longest + 1) > width:
        per_line //= 2
    for first in range(0, 32, per_line):
        text.append(f"{first:>3}: ", QUIET)
        for lane in range(first, first + per_line):
            style = CHANGED if changed is not None and changed[lane] else BAD if "nan" in texts[lane] else ""
            text.append(texts[lane].rjust(longest), style)
            text.append("" if per_line == 32 else " ")
        text.append("\n")


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
    text.append(f"{access.op}: {cost.actual} wavefronts, {cost.conflicts} conflicts; ", BAD if cost.conflicts or excess else GOOD)
    text.append(f"ncu's source page {cost.source_actual}, ideal {cost.source_ideal}\n")
    picture = Access(access.op, access.addresses, access.lanes, access.arch, access.sources)
    return text.append(picture_text(bank_groups(picture), columns=width))


def pipeline(session: Session) -> Text:
    """Groups of cp.async on their way, barriers, and where each warp is."""
    state, text = session.stepper.state, Text(no_wrap=True, overflow="ellipsis")
    event = session.event
    if event is not None and event.copies is not None:
        text.append(f"last: warp {event.warp} {_copies(event, session)}\n", CHANGED)
    for warp in range(state.warps):
        groups, committed = state.copy_groups(warp), max(state.committed_groups(warp))
        text.append(f"warp {warp}: ", "bold" if warp == session.shown_warp else "")
        text.append(f"{_place(session, warp)}; {committed} groups committed\n")
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
    waited = "waited for all" if step.pending < 0 else f"waited until {step.pending} groups are pending"
    return f"{waited}: {_ranges(session, step.arrived) if step.arrived else 'nothing'} arrived"


def _place(session: Session, warp: int) -> str:
    """Where a warp is, in words."""
    found = []
    for split in session.stepper.state.splits(warp):
        place = session.stepper.places.line(split.pc)
        lanes = "" if split.lanes == 0xFFFFFFFF else f" lanes {lane_ranges([i for i in range(32) if split.lanes >> i & 1])}"
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


def details(session: Session, width: int) -> Text:
    """What the last instruction did, in words; lines are no longer than a width."""
    event, text, stepper = session.event, Text(), session.stepper

    def say(what: str, style: str = "") -> None:
        for line in plain(what).split("\n"):
            indent = " " * (len(line) - len(line.lstrip()) + 2)
            text.append("\n".join(textwrap.wrap(line, max(width, 20), subsequent_indent=indent) or [""]) + "\n", style)

    if stepper.failure is not None and stepper.position == stepper.end:
        say(str(stepper.failure), BAD)
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
    executed = [lane for lane in range(32) if event.active >> lane & 1]
    yield f"lanes {lane_ranges(executed)} executed it" if executed else "no lane executed it: its guard is false"
    if not event.executed:
        yield "it waits there for others"
    if session.stepper.places.inserted(event.pc):
        yield "jump inserted: it is not in the PTX, for the code is laid out in another order"
        return
    for file, line in event.path:
        yield f"{file.rsplit('/', 1)[-1]}:{line}  {session.stepper.places.sources.text(file, line)}"
    if (access := event.access) is not None:
        ranges = ", ".join(f"[{start:#x}, {end:#x})" for start, end in access.ranges()[:6])
        verb = " and ".join(["reads"] * access.reads + ["writes"] * access.writes)
        yield f"{verb} {access.bytes_per_lane} B a lane, {access.space}: {ranges}"
    if event.arrival is not None:
        yield f"barrier {event.arrival.number}: {event.arrival.operation}{', which opened it' if event.arrival.opened else ''}"
    if event.copies is not None:
        yield _copies(event, session)
    if event.nan_lanes:
        born = " (new here)" if event.new_nan_lanes else ""
        yield f"NaN in lanes {lane_ranges([lane for lane in range(32) if event.nan_lanes >> lane & 1])}{born}"
    if event.printed:
        yield f"printed: {event.printed.rstrip()}"
