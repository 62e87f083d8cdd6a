"""Files that a command writes: found out before a long run whether they can be, and never left half written."""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO

from fasim.errors import UsageError

#: suffixes of files that serve the same purpose as those that we write
_SAME_KIND = {
    ".png": (".gif", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff"),
    ".svg": (".pdf", ".eps", ".ps"),
    ".html": (".htm", ".xhtml"),
    ".pftrace": (".perfetto", ".perfetto-trace", ".pb", ".trace"),
}


def check_output_path(option: str, path: Path, example: str, suffixes: Collection[str] = (), known: str = "") -> None:
    """Find out before a run whether a file can be written.

    option, known: for errors: what named the file, and what is written by which suffix. example: a file name. suffixes: one of which it
    must have, in small or capital letters; none if any will do.
    Raises: UsageError.
    """
    if path.is_dir():
        raise UsageError(f"{option} {path}: this is a directory; name a file in it, for example {path / example}")
    if suffixes and path.suffix.lower() not in suffixes:
        raise UsageError(f"{option} {path}: {known}; name the file {path.with_suffix(_nearest(path.suffix, suffixes, example))}")
    if not path.parent.is_dir():
        raise UsageError(f"{option} {path}: there is no directory {str(path.parent)!r}")
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise UsageError(f"{option} {path}: no permission to write there")


def _nearest(suffix: str, suffixes: Collection[str], example: str) -> str:
    """The suffix that is meant: one for the same kind of file, else one that is spelt nearly so, else that of the example."""
    same = [near for near, others in _SAME_KIND.items() if suffix.lower() in others and near in suffixes]
    return [*same, *difflib.get_close_matches(suffix.lower(), suffixes, 1), Path(example).suffix][0]


@contextlib.contextmanager
def replaced_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes its place when it is complete: until then an older one stays whole.

    Raises: OSError.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
