"""A headless Chromium without a network, and pages opened in it from disk."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fasim.report.trace_select import TraceFilters
from fasim.report.trace_write import stream_trace
from tests.browser.pages import FACTS
from tests.tui.conftest import new_session

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def _missing() -> str:
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "the package playwright is missing: pip install -e '.[browser]'"
    if not any(map(shutil.which, _NAMES)):
        return f"no browser: none of {', '.join(_NAMES)} is in PATH; for example apt-get install chromium"
    return ""


# not for the session: while it lives, asyncio.run of other tests fails
@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser; a test is skipped where there is none, and fails where CI has none."""
    if missing := _missing():
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    from playwright.sync_api import sync_playwright

    path = next(found for name in _NAMES if (found := shutil.which(name)))
    with sync_playwright() as playwright:
        # as root there is no sandbox; the pages are our own
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass
class Opened:
    """A page, and what a page must not do: requests beside its own file, messages on the console, exceptions."""

    page: Any
    requests: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def at(self) -> int:
        """The event that is shown."""
        return int(self.page.evaluate("fasim.page.at"))

    def go(self, event: int) -> None:
        """Show an event."""
        self.page.evaluate(f"fasim.page.go({event})")

    def text(self, selector: str) -> str:
        """What a person reads there."""
        return str(self.page.inner_text(selector))

    def stop_at(self, text: str, key: str = "Enter") -> None:
        """Fill in where to stop, and go there."""
        self.page.fill("#stop", text)
        self.page.press("#stop", key)


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Callable[..., Opened]]:
    """Returns a function that opens a file, with the network off."""
    contexts = []

    def open_(path: Path, anchor: str = "", width: int = 1400, height: int = 1000, ready: str = "window.fasim !== undefined") -> Opened:
        context = chromium.new_context(viewport={"width": width, "height": height})
        contexts.append(context)
        context.set_offline(True)
        opened = Opened(context.new_page())
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.on("console", lambda message: opened.messages.append(f"{message.type}: {message.text}"))
        opened.page.on("pageerror", lambda error: opened.messages.append(f"error: {error}"))
        opened.page.goto(path.as_uri() + anchor)
        until = time.monotonic() + 60
        while not opened.page.evaluate(ready):  # the page's policy forbids what wait_for_function does
            assert time.monotonic() < until and not opened.messages, (path, opened.messages)
            opened.page.wait_for_timeout(20)
        return opened

    yield open_
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def flash(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The page of v2.1, N=128, Bc=32, linear layout, and a session on the same launch."""
    words = ("fa_v21", "--n", "128", "--heads", "1", "--bc", "32", "--layout", "linear")
    session = new_session(*words)
    path = tmp_path_factory.mktemp("pages") / "v21.html"
    with open(path, "wb") as file:
        stream_trace(session.stepper, file, ".html", TraceFilters(), FACTS, watched=session.watched, regions=session.regions)
    return path, session
