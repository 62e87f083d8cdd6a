"""Screens of the stepper in the pages: the app itself is driven by keys, and what it shows is put in.

    ```{stepper} fasim run fa_v21 --n 128 --heads 1 --trace
    :keys: s*4 x "step S_QK" c
    :part: view
    texts that the screen must hold, one a line: what the page speaks of
    ```

A block with a command starts the stepper; one without goes on where the block before stopped. Keys are names of textual; `s*4` is a key
four times, text in quotes is typed and followed by Enter. part: `all`, `code` (header, source, PTX) or `view` (the rest). The page shows
the command and the keys from here, so they cannot differ from what was pressed. Files that a command names come from the page: its blocks
with a caption, and its console blocks above that write files by `> FILE` or `--save`, which are run.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import re
import shlex
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any
from unittest import mock

from rich.style import Style
from rich.terminal_theme import MONOKAI
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input

from fasim_docs import examples

SIZE = (100, 38)
PARTS = ("all", "code", "view")
_BLOCK = re.compile(r"^```\{stepper\}[ ]?([^\n]*)\n((?::\w+:[^\n]*\n)*)(.*?)^```$", re.MULTILINE | re.DOTALL)
_OPTION = re.compile(r"^:(\w+): *(.*)$", re.MULTILINE)
_KEY = re.compile(r'"([^"]*)"|(\S+?)(?:\*(\d+))?(?=\s|$)')
#: what the style sheet says of the whole screen
_PLAIN = ("color: #e0e0e0", "background-color: #121212")
_WRITES = re.compile(r"^[$>] .*(> [\w.]+$|--save )", re.MULTILINE)
_NAMED = {"question_mark": "?", "slash": "/", "tab": "Tab", "enter": "Enter", "home": "Home", "end": "End", "escape": "Esc"}


@dataclass(frozen=True)
class Press:
    """A key and how often it is pressed, or a text that is typed and entered."""

    key: str = ""
    count: int = 1
    text: str = ""

    @property
    def shown(self) -> str:
        """The key as it is written on keyboards."""
        return _NAMED.get(self.key, self.key)


@dataclass(frozen=True)
class Stop:
    """A block of a page. command: "" to go on from the block before; claims: texts that the screen must hold; line: of the page."""

    command: str
    presses: tuple[Press, ...]
    part: str
    claims: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class Cell:
    """Characters of a line that look the same. told: whether the page speaks of them."""

    text: str
    style: Style
    told: bool = False


@dataclass
class Screen:
    """What was shown at a stop: lines of cells, without blanks at their ends."""

    stop: Stop
    lines: list[list[Cell]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The same without colours."""
        return "\n".join("".join(cell.text for cell in line).rstrip() for line in self.lines)

    @property
    def missing(self) -> list[str]:
        """What the page says is here, and is not."""
        return [claim for claim in self.stop.claims if not any(_claimed(claim).search(line) for line in self.text.splitlines())]

    def html(self) -> str:
        """A block of preformatted text in the colours of the terminal."""
        return "\n".join("".join(_group(told, cells) for told, cells in groupby(line, lambda cell: cell.told)) for line in self.lines)


def _group(told: bool, cells: Iterable[Cell]) -> str:
    text = "".join(map(_html, cells))
    return f'<span class="told">{text}</span>' if told else text


def _html(cell: Cell) -> str:
    # a background of its own would cover what hangs down from the line above
    styles = [
        part for part in cell.style.get_html_style(MONOKAI).split("; ") if not part.startswith("text-decoration") and part not in _PLAIN
    ]
    text = html.escape(cell.text)
    return f'<span style="{"; ".join(styles)}">{text}</span>' if styles else text


def parse_keys(text: str) -> tuple[Press, ...]:
    """The keys of a block."""
    return tuple(Press(text=typed) if typed or not key else Press(key, int(count or 1)) for typed, key, count in _KEY.findall(text))


def stops(page: str) -> list[Stop]:
    """All blocks of a page.

    Raises: ValueError for one that cannot be understood.
    """
    found = []
    for match in _BLOCK.finditer(page):
        options, line = dict(_OPTION.findall(match[2])), page[: match.start()].count("\n") + 1
        part = options.pop("part", "all")
        presses = parse_keys(options.pop("keys", ""))
        if options or part not in PARTS or not (found or match[1]):
            raise ValueError(f"line {line}: a stepper block has :keys:, :part: ({', '.join(PARTS)}), and the first one a command")
        found.append(Stop(match[1].strip(), presses, part, tuple(filter(None, map(str.strip, match[3].splitlines()))), line))
    return found


def screens(page: str) -> list[Screen]:
    """What the stepper shows at all stops of a page."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve()
        examples.prepare(page, home)
        return asyncio.run(_walk(page, home))


async def _walk(page: str, home: Path) -> list[Screen]:
    from fasim.tui.app import StepperApp

    found: list[Screen] = []
    waiting = [block for block in examples.blocks(page) if block.language == "console"]
    async with contextlib.AsyncExitStack() as stack:
        app, pilot = None, None
        for stop in stops(page):
            if stop.command:
                await stack.aclose()
                while waiting and waiting[0].line < stop.line:
                    if _WRITES.search((block := waiting.pop(0)).text):
                        examples.run(block, home)
                app = StepperApp(session(stop.command, home))
                pilot = await stack.enter_async_context(app.run_test(size=SIZE))
            assert app is not None and pilot is not None
            await pilot.pause()
            for press in stop.presses:
                if not press.key:
                    app.query_one("#prompt", Input).value = press.text
                for _ in range(press.count):
                    await _press(app, pilot, press.key or "enter")
            await pilot.pause()
            found.append(Screen(stop, list(_lines(app, stop))))
    return found


async def _press(app: App[None], pilot: Pilot[None], key: str) -> None:
    """Press a key and wait until everybody has got what follows from it; `Pilot.press` waits ten times as long, until nothing stirs."""
    app.simulate_key(key)
    # the app, the widget in focus, the app that is told about it, the widgets that it changes
    for _ in range(4):
        await pilot.pause(0)


def session(command: str, home: Path) -> Any:
    """The session that a command line with --trace would show, started in a directory."""
    from fasim.cli import trace
    from fasim.cli.app import app

    made: list[Any] = []

    def keep(call: Any, cta: str | None, warp: int | None) -> int:
        made.append(trace.make_session(trace.prepare(call.words, call.options, call.general), call, cta, warp))
        return 0

    with contextlib.chdir(home), mock.patch.object(trace, "_show", keep):
        app(args=shlex.split(command)[1:], prog_name="fasim", standalone_mode=False, obj=0.0)
    return made[0]


def _lines(app: Any, stop: Stop) -> Iterator[list[Cell]]:
    """The lines of a part of the screen that are not empty at its end."""
    strips = app.screen._compositor.render_strips()
    tabs = app.query_one("#tabs").region.y if not app.screen.is_modal else 0
    status = app.query_one("#status").region if not app.screen.is_modal else None
    shown = {"all": strips, "code": strips[:tabs], "view": strips[tabs:]}[stop.part]
    lines = [[Cell(segment.text, segment.style or Style()) for segment in strip if segment.text] for strip in shown]
    # the empty lines between the view and the status line say nothing
    last = len(lines) - (len(strips) - status.y if status is not None and stop.part != "code" else 0)
    while last > 0 and not "".join(cell.text for cell in lines[last - 1]).strip():
        del lines[last - 1]
        last -= 1
    return (_tell(line, stop.claims) for line in lines)


def _claimed(text: str) -> re.Pattern[str]:
    """What a page claims, with any number of blanks where it has some."""
    return re.compile(" +".join(map(re.escape, text.split())))


def _tell(line: list[Cell], claims: tuple[str, ...]) -> list[Cell]:
    """Mark what the page speaks of, and join what looks the same."""
    text, found = "".join(cell.text for cell in line), list[Cell]()
    spans = [match.span() for claim in claims if (match := _claimed(claim).search(text))]
    place = 0
    for cell in line:
        for character in cell.text:
            told = any(start <= place < end for start, end in spans)
            if found and (found[-1].style, found[-1].told) == (cell.style, told):
                found[-1] = Cell(found[-1].text + character, cell.style, told)
            else:
                found.append(Cell(character, cell.style, told))
            place += 1
    return found
