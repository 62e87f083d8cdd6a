"""The console of tables that take the room that they need, whatever the terminal's width."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_UNLIMITED_COLUMNS = 10_000


def wide_console(color: bool) -> Console:
    """A console that never breaks lines by itself; color: whether to use it."""
    from rich.console import Console

    return Console(
        width=_UNLIMITED_COLUMNS, force_terminal=color, no_color=not color, color_system="standard" if color else None, highlight=False
    )
