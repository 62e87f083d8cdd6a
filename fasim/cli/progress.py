"""A progress bar on standard error for what takes longer than a moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: what takes less time shows nothing
DELAY_SECONDS = 1.0


@contextmanager
def progress_bar(label: str, unit: str = "CTAs") -> Iterator[Callable[[int, int | None], None] | None]:
    """Yields the callback (done, total; None if nobody knows) for `Kernel.launch` and `Stepper`, None if standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(label, unit)
    try:
        yield bar.update
    finally:
        bar.close()


class _Bar:
    def __init__(self, label: str, unit: str = "CTAs") -> None:
        self.label, self.unit, self.start = label, unit, time.monotonic()
        self._progress: object = None
        self._task = 0

    def update(self, done: int, total: int | None) -> None:
        """Show how much is done; rich is imported by the first call that shows anything."""
        if self._progress is None and time.monotonic() - self.start < DELAY_SECONDS:
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        if self._progress is None:
            columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(self.unit), TimeElapsedColumn()
            bar = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
            self._task = bar.add_task(self.label, total=total)
            self._progress = bar  # before it starts: Ctrl-C may come then, and it has to be taken away
            bar.start()
        assert isinstance(self._progress, Progress)
        self._progress.update(TaskID(self._task), completed=done, total=total)

    def close(self) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()  # type: ignore[attr-defined]
