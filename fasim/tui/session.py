"""A person's session with a stepper: which warp is watched, how values are shown, breakpoints, and the moves."""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fasim.errors import ExecutionError, FasimError, UsageError
from fasim.kernels.spec import Region, WatchedLine
from fasim.trace.breaks import Breakpoint, ConflictBreak, HazardBreak, LineBreak, MemoryBreak, NanBreak, RegisterBreak, StepBreak
from fasim.trace.event import Event
from fasim.trace.stepper import Stepper
from fasim.tui.numbers import FORMATS

#: how long a walk may take
PATIENCE_SECONDS = 5.0
VIEWS = ("registers", "fragment", "banks", "pipeline", "rows", "event")
BREAKPOINT_HELP = (
    "line N [FILE] | step NAME | conflict [N] | hazard [KIND] | nan [any] | reg NAME [= VALUE] [lane N] | "
    "mem shared|BUFFER OFFSET [= VALUE]"
)
_REGISTER = re.compile(r"(?P<name>%[^\s=]+)(?:\s*=\s*(?P<value>\S+))?(?:\s+lane\s+(?P<lane>\d+))?")
_MEMORY = re.compile(r"(?P<where>\S+)\s+(?P<offset>0x[0-9a-fA-F]+|\d+)(?:\s*=\s*(?P<value>\S+))?")


class Patience:
    """Ends a long walk, so that the screen does not stand still; asked again, it goes on from there."""

    def __init__(self, seconds: float = PATIENCE_SECONDS) -> None:
        self._until, self.message = time.monotonic() + seconds, ""

    def __call__(self, position: int) -> bool:
        """Whether to go on."""
        if time.monotonic() < self._until:
            return True
        self.message = f"stopped at {position:,} after a while; the same key goes on"
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
            else:
                move: Callable[[int | None], bool] = getattr(stepper, f"{'previous' if back else 'next'}_{what}")
                if not move(warp) and not self.message:
                    self.message = f"no {'earlier' if back else 'further'} {what}: {'the beginning' if back else 'the end'}"
        except FasimError as error:
            self.message = str(error).strip()
        if stepper.position == before and not self.message:
            self.message = "this is the beginning" if back else "this is the end"

    def _instruction(self, direction: int) -> None:
        stepper = self.stepper
        stepper.step(direction)
        if self.follow:
            return
        # of the watched warp: the next one that it executes
        while stepper.state.next is not None and stepper.position > 0 and (event := stepper.event()) is not None:
            if event.warp == self.warp:
                return
            stepper.step(direction)

    def _run(self, direction: int) -> None:
        if not self.breakpoints:
            self.message = f"no breakpoint is set: x sets one, for example: {BREAKPOINT_HELP}"
            return
        watch = Patience()
        hit = self.stepper.run_to(list(self.breakpoints.values()), direction, warp=None if self.follow else self.warp, watch=watch)
        if hit is None:
            where = "the end" if direction == 1 else "the beginning"
            self.message = watch.message or f"no breakpoint was met before {where}"
            return
        text = next(text for text, each in self.breakpoints.items() if each == hit.breakpoint)
        self.message = f"breakpoint: {text}"

    def go_to(self, text: str) -> None:
        """Go to a position: a number, `end`, or +N and -N from here."""
        self.message = ""
        try:
            watch = Patience()
            if text == "end":
                self.stepper.go_to_end(watch)
                self.message = watch.message
            elif re.fullmatch(r"[+-]\d+", text):
                self.stepper.step(int(text))
            elif text.isdigit():
                self.stepper.go_to(int(text), watch)
                self.message = watch.message
            else:
                self.message = f"{text!r} is no position: give a number, +N, -N or end"
        except FasimError as error:
            self.message = str(error).strip()

    def break_at(self, text: str) -> None:
        """Set a breakpoint, or take it away if it is set."""
        text = " ".join(text.split())
        try:
            if text in self.breakpoints:
                del self.breakpoints[text]
                self.message = f"breakpoint gone: {text}"
                return
            made = parse_breakpoint(text)
            made.pcs(self.stepper.places, self.stepper.names)  # can it be met at all?
            self.breakpoints[text] = made
            self.message = f"breakpoint: {text}; c runs to it, C back"
        except FasimError as error:
            self.message = str(error).strip()

    def choose_warp(self, text: str) -> None:
        """Watch one warp, or `all`."""
        if text in ("all", ""):
            self.follow = True
            self.message = "watching whichever warp runs"
        elif text.isdigit() and int(text) < self.stepper.state.warps:
            self.warp, self.follow = int(text), False
            self.message = f"watching warp {text}: moves are its own"
        else:
            self.message = f"{text!r} is no warp: there are 0 to {self.stepper.state.warps - 1}, and all"

    def choose_cta(self, text: str) -> None:
        """Go to the beginning of another CTA; the launch starts anew."""
        numbers = re.split(r"[,x ]+", text.strip())
        if not 1 <= len(numbers) <= 3 or not all(number.isdigit() for number in numbers):
            self.message = f"{text!r} is no CTA: give its blockIdx as X,Y,Z"
            return
        wanted = [*map(int, numbers), 0, 0][:3]
        try:
            self.stepper.go_to(0)
            assert self.make is not None
            self.stepper = self.make((wanted[0], wanted[1], wanted[2]))
            self.message = f"CTA {','.join(map(str, wanted))}, from its beginning"
        except FasimError as error:
            self.message = str(error).strip()

    def pin(self, text: str) -> None:
        """Show a register always, or no longer."""
        name = text.strip()
        if name in self.pinned:
            self.pinned.remove(name)
        elif any(register.name == name for register in self.stepper.names.registers):
            self.pinned.append(name)
        else:
            self.message = f"{name} is no register of this kernel; the PTX names them, for example {self._example()}"

    def _example(self) -> str:
        return next((register.name for register in self.stepper.names.registers if register.name.startswith("%f")), "%r1")

    def find(self, text: str) -> None:
        """Go on to the next instruction whose PTX contains a text, or where none does, whose source line contains it."""
        wanted = text or self.found
        self.found, self.message = wanted, ""
        stepper = self.stepper
        every = range(len(stepper.places.program))
        pcs = {pc for pc in every if wanted in stepper.places.source(pc).text} or {pc for pc in every if wanted in self.source_text(pc)}
        if not wanted or not pcs:
            self.message = f"{wanted!r} is neither in the PTX nor in the source lines of instructions"
            return
        start = stepper.position
        try:
            stepper.step()
            while (following := stepper.state.next) is not None:
                if following.pc in pcs and (self.follow or following.warp == self.warp):
                    return
                stepper.step()
        except FasimError as error:
            self.message = str(error).strip()
            return
        stepper.go_to(start)
        self.message = f"{wanted!r} is not executed after here"

    def source_text(self, pc: int) -> str:
        """The line of the kernel that an instruction belongs to."""
        place = self.stepper.places.line(pc)
        return self.stepper.places.sources.text(*place) if place else ""


def parse_breakpoint(text: str) -> Breakpoint:
    """A breakpoint as a person writes it.

    Raises: UsageError with all forms.
    """
    what, _, rest = text.strip().partition(" ")
    words = rest.split()
    makers: Mapping[str, Callable[[], Breakpoint]] = {
        "line": lambda: LineBreak(int(words[0]), words[1] if len(words) > 1 else ""),
        "step": lambda: StepBreak(words[0]),
        "conflict": lambda: ConflictBreak(int(words[0]) if words else 1),
        "hazard": lambda: HazardBreak(words[0] if words else ""),
        "nan": lambda: NanBreak(new=words != ["any"]),
        "reg": lambda: _register(rest),
        "mem": lambda: _memory(rest),
    }
    try:
        return makers[what]()
    except (KeyError, IndexError, ValueError, AttributeError):
        raise UsageError(f"{text!r} is no breakpoint; they are: {BREAKPOINT_HELP}") from None


def _register(text: str) -> RegisterBreak:
    match = _REGISTER.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    value: int | float | None = None
    if (given := match["value"]) is not None:
        value = int(given, 0) if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", given) else float(given)
    return RegisterBreak(match["name"], value, int(match["lane"]) if match["lane"] else None)


def _memory(text: str) -> MemoryBreak:
    match = _MEMORY.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    given = match["value"]
    if given is None:
        return MemoryBreak(match["where"], int(match["offset"], 0))
    data = bytes.fromhex(given[2:])[::-1] if given.startswith("0x") else struct.pack("<f", float(given))
    return MemoryBreak(match["where"], int(match["offset"], 0), len(data), data)
