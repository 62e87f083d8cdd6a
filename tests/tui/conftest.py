"""Sessions on kernels of the collection, and an app that is driven by keys without a terminal."""

from __future__ import annotations

import asyncio

import pytest

from fasim.cli.launching import Call
from fasim.cli.run_options import RunOptions
from fasim.cli.target import prepare
from fasim.cli.trace import make_session
from fasim.tui.app import StepperApp

NAMED = {
    "[": "left_square_bracket",
    "]": "right_square_bracket",
    ",": "comma",
    " ": "space",
    ".": "full_stop",
    "%": "percent_sign",
    "=": "equals_sign",
    "_": "underscore",
    "/": "slash",
}


def new_session(*words, cta=None, warp=None, **options):
    call = Call(list(words), RunOptions(**options), [], 0.0)
    return make_session(prepare(call.words, call.options, call.general), call, cta, warp)


@pytest.fixture
def session():
    """Returns a function that makes a session for the words of a command line."""
    return new_session


@pytest.fixture
def fa_v21():
    """v2.1, N=128, Bc=32, one head."""
    return new_session("fa_v21", "--n", "128", "--heads", "1", "--bc", "32")


def typed(text):
    """The keys that type a text."""
    return [NAMED.get(character, character) for character in text]


def screen_text(app):
    return "\n".join("".join(segment.text for segment in line) for line in app.screen._compositor.render_strips())


@pytest.fixture
def drive():
    """Returns a function that shows a session, presses keys, and returns the screen as lines and the app."""

    def press(session, *keys, size=(80, 24)):
        app = StepperApp(session)

        async def run():
            async with app.run_test(size=size) as pilot:
                await pilot.pause()
                for key in keys:
                    await pilot.press(*(typed(key[1:]) if key.startswith("'") else [key]))
                await pilot.pause()
                return screen_text(app).splitlines(), app.export_screenshot()

        return asyncio.run(run())

    return press
