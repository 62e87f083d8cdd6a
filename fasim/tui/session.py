"""A person's session with a stepper: which warp is watched, how values are shown, breakpoints, and the moves."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fasim.errors import ExecutionError, FasimError, UsageError
from fasim.kernels.spec import Region, WatchedLine
from fasim.sm.findings import place
from fasim.trace.breaks import Breakpoint, MemoryBreak, ReadBreak, RegisterBreak
from fasim.trace.cta import parse_cta
from fasim.trace.event import Event
from fasim.trace.places import INHERITED
from fasim.trace.stepper import Stepper
from fasim.trace.view import is_made
from fasim.tui.breakpoints import BREAKPOINT_HELP, parse_breakpoint
from fasim.tui.hits import hit_text
from fasim.tui.numbers import FORMATS

#: how long a walk may take
PATIENCE_SECONDS = 5.0
VIEWS = ("registers", "fragment", "banks", "pipeline", "rows", "event")


def failure_text(error: FasimError) -> str:
    """What an error says, what is wrong before where it is."""
    text = str(error).strip()
    if isinstance(error, ExecutionError) and error.where.kernel and (where := place(error.where)) in text:
        what, _, why = text.partition(where)
        what, why = what.rstrip().removesuffix(" at").rstrip(": "), why.lstrip(": ")
        text = f"{what}{f': {why}' if why else ''}\n{where}"
    return re.sub(r"\t+ *", " ", text)


class Patience:
    """Ends a long walk, so that the screen does not stand still; asked again, it goes on from there. again: what asks again."""

    def __init__(self, again: str = "the same key goes on") -> None:
        self._until, self._again, self.message = time.monotonic() + PATIENCE_SECONDS, again, ""

    def __call__(self, position: int) -> bool:
        """Whether to go on."""
        if time.monotonic() < self._until:
            return True
        self.message = f"stopped at {position:,} after a while; {self._again}"
        return False


@dataclass
class Session:
    """What is shown of a stepper.

    follow: watch the warp that runs next, whichever that is; else `warp`. pinned: registers that are always shown. message: for the
    status line. make: another stepper on the same launch, for another CTA.
    """

    stepper: Stepper
    title: str = ""
    watched: Sequence[WatchedLine] = ()
    regions: Sequence[Region] = ()
    make: Callable[[tuple[int, int, int]], Stepper] | None = None
    warp: int = 0
    follow: bool = True
    view: str = "registers"
    form: str = FORMATS[0]
    operand: int = 0
    pinned: list[str] = field(default_factory=list)
    breakpoints: dict[str, Breakpoint] = field(default_factory=dict)
    message: str = ""
    found: str = ""
    _search: tuple[str, int, int] = ("", -1, -1)  # what was looked for when patience ended, from where, and where that was

    @property
    def event(self) -> Event | None:
        """What the instruction before here did."""
        try:
            return self.stepper.event()
        except ExecutionError:
            return None

    @property
    def shown_warp(self) -> int:
        """The warp whose place is shown."""
        following = self.stepper.state.next
        if self.follow and following is not None:
            return following.warp
        if self.follow and (event := self.event) is not None:
            return event.warp
        return self.warp

    @property
    def pc(self) -> int | None:
        """Where that warp is."""
        return self.stepper.state.pc(self.shown_warp)

    def move(self, what: str, back: bool = False) -> None:
        """Go by `instruction`, `line`, `step`, `tile` or `barrier`, or `run` to a breakpoint; a failing kernel stops where it fails."""
        stepper, warp = self.stepper, None if self.follow else self.warp
        before = stepper.position
        self.message = ""
        try:
            if what == "instruction":
                self._instruction(-1 if back else 1)
            elif what == "run":
                self._run(-1 if back else 1)
            elif what in ("line", "step") and (stepper.places.line_keys == INHERITED).all():
                self.message = "the PTX names no source lines: n moves by instruction, t by tile, b by barrier"
            else:
                watch = Patience()
                found = getattr(stepper, f"previous_{what}")(warp) if back else getattr(stepper, f"next_{what}")(warp, watch)
                if not found:
                    nothing = f"no earlier {what}: the beginning" if back else f"no further {what}: the end"
                    self.message = watch.message or nothing
        except FasimError as error:
            self.message = failure_text(error)
        if stepper.position == before and not self.message:
            self.message = "this is the beginning" if back else "this is the end"

    def _instruction(self, direction: int) -> None:
        stepper, warp = self.stepper, self.warp
        following = stepper.state.next
        if self.follow or (following is None and direction == 1):
            stepper.step(direction)
        elif direction == -1:  # after the one before that the watched warp executed
            own = np.flatnonzero(stepper.trail[1][: max(stepper.position - 1, 0)] == warp)
            stepper.go_to(int(own[-1]) + 1 if len(own) else 0)
        else:
            watch = Patience()
            every = np.ones(len(stepper.places.program), bool)
            if (following is not None and following.warp == warp) or stepper.next_of(every, warp, watch):
                stepper.step()
            else:
                self.message = watch.message or f"no further instruction of warp {warp}: the end"

    def _run(self, direction: int) -> None:
        if not self.breakpoints:
            self.message = f"no breakpoint is set: x sets one, for example: {BREAKPOINT_HELP}"
            return
        stepper, watched = self.stepper, None if self.follow else self.warp
        start, watch = self._from(f"run {direction}"), Patience()
        hit = stepper.run_to(list(self.breakpoints.values()), direction, warp=watched, watch=watch)
        if hit is None and watch.message:
            self._search = (f"run {direction}", start, stepper.position)
            self.message = watch.message
        elif hit is None:
            stepper.go_to(start)
            where = "the end" if direction == 1 else "the beginning"
            self.message = f"no breakpoint is met from here to {where}, so this is still {start:,}{self._elsewhere()}"
        else:
            text = next(text for text, each in self.breakpoints.items() if each == hit.breakpoint)
            self.message = f"breakpoint: {'; '.join(filter(None, (text, hit_text(stepper, hit, self.regions, watched))))}"

    def _from(self, what: str) -> int:
        """Where a search began that goes on here after patience ended, else here."""
        name, start, stopped = self._search
        self._search = ("", -1, -1)
        return start if (name, stopped) == (what, self.stepper.position) else self.stepper.position

    def _elsewhere(self) -> str:
        """Why breakpoints on device memory may not be met."""
        places = [each for each in self.breakpoints.values() if isinstance(each, MemoryBreak) and each.where != "shared"]
        if not places or self.stepper.grid == (1, 1, 1):
            return ""
        return f"; perhaps another CTA than {','.join(map(str, self.stepper.ctaid))} writes it: k chooses one"

    def go_to(self, text: str) -> None:
        """Go to a position: a number, `end`, or +N and -N from here."""
        self.message = ""
        try:
            watch, text = Patience(again="g end goes on"), text.strip()
            if text == "end":
                watch = Patience(again="end goes on")
                self.stepper.go_to_end(watch)
            elif re.fullmatch(r"[+-][0-9]{1,18}", text):
                self.stepper.step(int(text), watch)
            elif re.fullmatch(r"[0-9]{1,18}", text):
                watch = Patience(again=f"g {text} goes on")
                self.stepper.go_to(int(text), watch)
            else:
                watch.message = f"{text!r} is no position: give a number, +N, -N or end"
            self.message = watch.message
        except FasimError as error:
            self.message = failure_text(error)

    def break_at(self, text: str) -> None:
        """Set a breakpoint, or take it away if it is set."""
        text = " ".join(text.split())
        try:
            if text in self.breakpoints:
                del self.breakpoints[text]
                self.message = f"breakpoint gone: {text}"
                return
            made = parse_breakpoint(text, self.stepper.elements)
            if isinstance(made, RegisterBreak):
                if made.warp is None and not made.all_warps:  # every warp has a register of that name
                    made = replace(made, warp=self.shown_warp)
                self.stepper.state.checked_warp(made.warp or 0)
            self._check(made)
            self.breakpoints[text] = made
            self.message = f"breakpoint: {text}{self._scope(made)}; c runs to it, C back"
        except FasimError as error:
            self.message = failure_text(error)

    def _scope(self, made: Breakpoint) -> str:
        """Whose doings a breakpoint looks at, where that is not obvious."""
        if isinstance(made, RegisterBreak):
            return " (of any warp)" if made.all_warps else f" (of warp {made.warp})"
        return " (by any warp)" if made.every_warp and not self.follow else ""

    def _check(self, made: Breakpoint) -> None:
        """Whether a breakpoint can be met at all.

        Raises: UsageError.
        """
        made.pcs(self.stepper.places, self.stepper.names)
        if isinstance(made, (MemoryBreak, ReadBreak)):
            allocations = self.stepper.walker.run.space.allocations
            sizes = {each.name: each.size_bytes for each in allocations if isinstance(made, ReadBreak) or not each.constant}
            sizes["shared"] = len(self.stepper.state.shared_memory)
            if made.where not in sizes:
                raise UsageError(f"no buffer {made.where!r}; there are: {', '.join(sorted(sizes))}")
            if made.byte_offset + made.size_bytes > sizes[made.where]:
                raise UsageError(f"byte {made.byte_offset} is not in {made.where}, which has {sizes[made.where]} bytes")

    def choose_warp(self, text: str) -> None:
        """Watch one warp, or `all`."""
        text = text.strip()
        if text in ("all", ""):
            self.follow = True
            self.message = "watching whichever warp runs"
        elif re.fullmatch(r"[0-9]{1,9}", text) and int(text) < self.stepper.state.warps:
            self.warp, self.follow = int(text), False
            self.message = f"watching warp {text}: moves are its own"
        else:
            self.message = f"{text!r} is no warp: there are 0 to {self.stepper.state.warps - 1}, and all"

    def choose_cta(self, text: str) -> None:
        """Go to the beginning of another CTA; the launch starts anew."""
        here, position = self.stepper.ctaid, self.stepper.position
        try:
            wanted, grid = parse_cta(text), self.stepper.grid
            if not all(at < size for at, size in zip(wanted, grid)):
                raise UsageError(f"CTA {','.join(map(str, wanted))}: the grid is {','.join(map(str, grid))}, and CTAs count from 0")
            if self.make is None:
                raise UsageError("this session stays in its CTA")
            self.stepper.leave()
        except FasimError as error:
            self.message = failure_text(error)
            return
        try:
            self.stepper, self._search = self.make(wanted), ("", -1, -1)
            self.message = f"CTA {','.join(map(str, wanted))}, from its beginning"
        except FasimError as error:  # an earlier one fails that has to run first
            self.stepper = self.make(here)
            self.stepper.go_to(position)
            self.message = failure_text(error)

    def pin(self, text: str) -> None:
        """Show a register always, or no longer."""
        name = text.strip()
        if name in self.pinned:
            self.pinned.remove(name)
        elif not is_made(name) and any(register.name == name for register in self.stepper.names.registers):
            self.pinned.append(name)
        else:
            self.message = f"{name or 'nothing'} is no register of this kernel; the PTX names them, for example {self._example()}"

    def _example(self) -> str:
        return next((register.name for register in self.stepper.names.registers if register.name.startswith("%f")), "%r1")

    def find(self, text: str) -> None:
        """Go on to the next instruction whose PTX contains a text, or where none does, whose source line contains it."""
        wanted = text or self.found
        self.found, self.message = wanted, ""
        stepper = self.stepper
        if not wanted:
            self.message = "give a part of an instruction or of a source line"
            return
        every = [pc for pc in range(len(stepper.places.program)) if not stepper.places.inserted(pc)]
        pcs = [pc for pc in every if wanted in stepper.places.text(pc)] or [pc for pc in every if wanted in self.source_text(pc)]
        if not pcs:
            self.message = f"{wanted!r} is neither in the PTX nor in the source lines of instructions"
            return
        meant = np.zeros(len(stepper.places.program), bool)
        meant[pcs] = True
        start, watch = self._from(f"find {wanted}"), Patience(again="/ and enter go on")
        try:
            if stepper.next_of(meant, None if self.follow else self.warp, watch):
                return
        except ExecutionError:
            pass  # it is not executed before the kernel fails
        if watch.message:
            self._search, self.message = (f"find {wanted}", start, stepper.position), watch.message
            return
        stepper.go_to(start)
        whose = "" if self.follow else f" by warp {self.warp}"
        self.message = f"{wanted!r} is not executed{whose} after here"

    def source_text(self, pc: int) -> str:
        """The line of the kernel that an instruction belongs to."""
        place = self.stepper.places.line(pc)
        return self.stepper.places.sources.text(*place) if place else ""
