"""`fasim cache`: what is kept on disk between runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from fasim.errors import UsageError
from fasim.toolchain.cache import cache_dir

_ENTRY = re.compile(r"[0-9a-f]{62}\.\w+(\w*\.tmp)?")


def entries() -> Iterator[Path]:
    """The files that fasim keeps, and nothing else that may be in the directory."""
    for folder in cache_dir().glob("[0-9a-f][0-9a-f]"):
        yield from (path for path in folder.glob("*") if _ENTRY.match(path.name))


def size() -> tuple[int, int]:
    """Files and bytes in the cache."""
    sizes = [path.stat().st_size for path in entries()]
    return len(sizes), sum(sizes)


def show(*, clear: bool) -> int:
    """Print where the cache is and how large; or delete its files.

    Returns: the exit code. Raises: UsageError if a file cannot be deleted.
    """
    count, total = size()
    print(f"{cache_dir()}: {count:,} files, {total / 1e6:,.1f} MB")
    if clear:
        try:
            for path in list(entries()):
                path.unlink(missing_ok=True)
        except OSError as error:
            raise UsageError(f"cannot delete {error.filename}: {error.strerror}") from error
        print("deleted")
    return 0
