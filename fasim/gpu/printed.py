"""What the driver writes to standard output for device printf, caught."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass
class Printed:
    """The text, once the block has ended."""

    text: str = ""


@contextlib.contextmanager
def captured_stdout() -> Iterator[Printed]:
    """Catch what is written to file descriptor 1, which Python's own sys.stdout does not see."""
    printed = Printed()
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        with tempfile.TemporaryFile() as file:
            os.dup2(file.fileno(), 1)
            try:
                yield printed
            finally:
                os.dup2(kept, 1)
                file.seek(0)
                printed.text = file.read().decode("utf-8", "replace")
    finally:
        os.close(kept)
