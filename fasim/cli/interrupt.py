"""Ctrl-C: Python's own KeyboardInterrupt where it comes through soon, an end to the process where compiled code does not let go."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: how long an orderly end may take
PATIENCE_SECONDS = 0.5
_SHOW_CURSOR = b"\x1b[?25h"


@contextmanager
def prompt_interrupt(exit_code: int) -> Iterator[None]:
    """Within the block, SIGINT raises KeyboardInterrupt in the main thread, and ends the process if the block does not end soon after."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ended = threading.Event()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def watch() -> None:
        # the interpreter's C handler writes here at once, however long the main thread stays in compiled code
        number = os.read(reader, 1)
        if number and number[0] == signal.SIGINT and not ended.wait(PATIENCE_SECONDS):
            os.write(2, (_SHOW_CURSOR if sys.stderr.isatty() else b"") + b"interrupted\n")
            os._exit(exit_code)

    old_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    old_descriptor = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    thread = threading.Thread(target=watch, name="interrupt", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(old_descriptor)
        signal.signal(signal.SIGINT, old_handler)
        os.close(writer)
        thread.join()
        os.close(reader)
