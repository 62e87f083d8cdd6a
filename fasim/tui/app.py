"""The stepper as a terminal app; everything works with keys alone, in 80 x 24."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from fasim.tui import matrices, panes, registers
from fasim.tui.breakpoints import BREAKPOINT_HELP
from fasim.tui.numbers import FORMATS
from fasim.tui.session import VIEWS, Session, failure_text


@dataclass(frozen=True)
class Prompt:
    """A question on the last line, and what is done with the answer."""

    text: str
    carry_out: Callable[[Session, str], None]


#: key: what it moves by, and the words of the help; the same key in upper case, or p for n, goes back
MOVES = {"n": "instruction", "l": "line", "s": "step", "t": "tile", "b": "barrier", "c": "run"}
BACK = {"p": "instruction", "L": "line", "S": "step", "T": "tile", "B": "barrier", "C": "run"}
#: rows of a screen that has room for the next instruction in full
MANY_ROWS = 20
PROMPTS = {
    "x": Prompt(f"breakpoint: {BREAKPOINT_HELP}", Session.break_at),
    "g": Prompt("go to position (number, +N, -N, end)", Session.go_to),
    "w": Prompt("watch warp (number, all)", Session.choose_warp),
    "k": Prompt("CTA (X,Y,Z)", Session.choose_cta),
    "r": Prompt("show register always, or no longer (%name)", Session.pin),
    "slash": Prompt("find in PTX and source", Session.find),
}
HELP = """\
forward / back          what
n  right  /  p  left    one warp instruction
l         /  L          source line
s         /  S          step of the algorithm (//@ in the source; else line)
t         /  T          tile: a round of the main loop as it is in the PTX
                        (unrolled: several rounds of the source are one)
b         /  B          barrier of the CTA
c         /  C          to a breakpoint
g N, +N, -N, end        to a position        home end   beginning, end

1 registers  2 fragment  3 banks  4 pipeline  5 rows (m, l)  6 event   tab next
o other operand of the fragment   f values as value, hex, signed, f16x2, bf16x2,
r %name  show a register always     f32       w N, w all  watch a warp, or any
k X,Y,Z  another CTA                / text  find in PTX and source
x  breakpoint; the same again removes it:
   line 290 | step S_QK | conflict 2 | hazard | nan | reg %f12 = 1.0 lane 3
   mem C[3,5] | mem shared 0x100 = 0x3c00 | read C[3,5] | read shared 64
mem, read, hazard stop for any warp; reg for the warp shown (reg %f12 any: all),
where it changes; with lane 3 wherever that lane writes it
· a lane that does not execute it   up down  scroll the view   q, Ctrl-C  quit

any key goes back to the kernel"""


class HelpScreen(ModalScreen[None]):
    """All keys, on the whole screen; any key closes it."""

    def compose(self) -> ComposeResult:
        """One text."""
        yield Static(Text(HELP), id="help")

    def on_key(self, event: events.Key) -> None:
        """Close."""
        event.stop()
        self.dismiss()


class StepperApp(App[None]):
    """Shows a session; `session` is what tests look at."""

    CSS = """
    Screen { layout: vertical; }
    Static { text-wrap: nowrap; text-overflow: ellipsis; }
    #status, #help { text-wrap: wrap; }
    #header { height: 1; background: $primary; color: $text; }
    #code { height: 40%; }
    #source { width: 55%; }
    #ptx { width: 45%; }
    #tabs { height: 1; background: $panel; }
    #view { height: 1fr; }
    #next { height: auto; max-height: 3; text-wrap: wrap; }
    #status { height: auto; max-height: 6; }
    #prompt { height: 1; border: none; padding: 0; display: none; }
    #prompt.asked { display: block; }
    HelpScreen { background: $background; }
    #help { width: 100%; height: 100%; }
    """
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"move('{what}', False)", show=False) for key, what in {**MOVES, "right": "instruction"}.items()),
        *(Binding(key, f"move('{what}', True)", show=False) for key, what in {**BACK, "left": "instruction"}.items()),
        *(Binding(key, f"ask('{key}')", show=False) for key in PROMPTS),
        *(Binding(str(number), f"view('{name}')", show=False) for number, name in enumerate(VIEWS, 1)),
        Binding("tab", "next_view", show=False, priority=True),
        Binding("f", "form", show=False),
        Binding("o", "operand", show=False),
        Binding("home", "go('0')", show=False),
        Binding("end", "go('end')", show=False),
        Binding("up", "scroll(-1)", show=False),
        Binding("down", "scroll(1)", show=False),
        Binding("question_mark", "help", show=False),
        Binding("escape", "leave_prompt", show=False),
        Binding("q", "quit", show=False),
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    def __init__(self, session: Session) -> None:
        """session: what is shown."""
        super().__init__()
        self.session = session
        self._asked = ""

    def compose(self) -> ComposeResult:
        """Header, source and PTX, the chosen view, the status line."""
        yield Static(id="header")
        with Horizontal(id="code"):
            yield Static(id="source")
            yield Static(id="ptx")
        yield Static(id="next")
        yield Static(id="tabs")
        with VerticalScroll(id="view", can_focus=False):
            yield Static(id="pane")
        yield Static(id="status")
        yield Input(id="prompt", disabled=True)

    def on_mount(self) -> None:
        """The first picture; no widget takes keys for itself."""
        self.set_focus(None)
        self.call_after_refresh(self.show)

    def on_resize(self) -> None:
        """Draw for the new size."""
        self.call_after_refresh(self.show)

    def show(self) -> None:
        """Draw everything."""
        session = self.session
        self.query_one("#header", Static).update(panes.header(session))
        height = max(self.query_one("#code").size.height, 1)
        self.query_one("#source", Static).update(panes.source(session, height))
        self.query_one("#ptx", Static).update(panes.ptx(session, height))
        following = self.query_one("#next", Static)
        following.display = self.size.height >= MANY_ROWS
        following.update(panes.following(session))
        self.query_one("#tabs", Static).update(self._tabs())
        self.query_one("#pane", Static).update(self._pane(max(self.size.width - 2, 20)))
        message = panes.plain(session.message)
        if session.view == "event" and self._failed() == session.message:
            message = "the kernel fails here"  # the view says how
        self.query_one("#status", Static).update(Text(message or "? keys   q quit", style="bold" if message else "dim"))

    def _failed(self) -> str | None:
        """What ends the kernel here."""
        stepper = self.session.stepper
        return failure_text(stepper.failure) if stepper.failure is not None and stepper.position == stepper.end else None

    def _tabs(self) -> Text:
        text = Text(no_wrap=True, overflow="ellipsis")
        for number, name in enumerate(VIEWS, 1):
            text.append(f" {number} {name} ", "reverse" if name == self.session.view else "")
        if count := len(self.session.breakpoints):
            text.append(f"  {count} breakpoint{'s' if count > 1 else ''}", "red")
        return text

    def _pane(self, width: int) -> Text:
        session = self.session
        drawn: dict[str, Callable[[], Text]] = {
            "registers": lambda: registers.registers(session, width),
            "fragment": lambda: matrices.fragment(session, width),
            "banks": lambda: panes.banks(session, width),
            "pipeline": lambda: panes.pipeline(session),
            "rows": lambda: matrices.rows(session),
            "event": lambda: panes.details(session, width),
        }
        return drawn[session.view]()

    # --- keys ----------------------------------------------------------------------------------------------------------------

    def action_move(self, what: str, back: bool) -> None:
        """Go on or back."""
        self.session.move(what, back)
        self.show()

    def action_view(self, name: str) -> None:
        """Choose what is shown below the code."""
        self.session.view = name
        self.query_one("#view", VerticalScroll).scroll_home(animate=False)
        self.show()

    def action_next_view(self) -> None:
        """The view after this one."""
        self.action_view(VIEWS[(VIEWS.index(self.session.view) + 1) % len(VIEWS)])

    def action_form(self) -> None:
        """The next format of numbers."""
        self.session.form = FORMATS[(FORMATS.index(self.session.form) + 1) % len(FORMATS)]
        self.session.message = f"registers as {self.session.form}"
        self.show()

    def action_operand(self) -> None:
        """The next operand in the view of fragments."""
        self.session.operand += 1
        self.show()

    def action_go(self, place: str) -> None:
        """To the beginning or the end."""
        self.session.go_to(place)
        self.show()

    def action_scroll(self, lines: int) -> None:
        """Move the view up or down."""
        self.query_one("#view", VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_help(self) -> None:
        """All keys."""
        self.push_screen(HelpScreen())

    def action_ask(self, key: str) -> None:
        """Ask for a text."""
        self._asked = key
        prompt = self.query_one("#prompt", Input)
        prompt.value, prompt.disabled = "", False
        prompt.add_class("asked")
        self.query_one("#status", Static).update(Text(PROMPTS[key].text, style="bold"))
        self.set_focus(prompt)

    def action_leave_prompt(self) -> None:
        """Ask no longer."""
        prompt = self.query_one("#prompt", Input)
        prompt.remove_class("asked")
        self.set_focus(None)
        prompt.disabled = True
        self.show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Carry the answer out."""
        self.session.message = ""
        PROMPTS[self._asked].carry_out(self.session, event.value)
        self.action_leave_prompt()
