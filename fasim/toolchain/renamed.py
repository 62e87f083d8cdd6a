"""Compiling under a given name: nothing in the result tells where the files lay.

NVRTC writes the absolute paths of all files whose code it inlines into the PTX and the cubin. The user's own headers are therefore handed
over as texts under names beside the given one, and NVIDIA's are reached over a path that every machine has.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath

from fasim.errors import UsageError
from fasim.toolchain.includes import INCLUDE, UserHeaders, search

_DESCRIPTORS = Path("/proc/self/fd")
# above what a process of our own opens, below the usual limit
_DESCRIPTOR = 200


def rename(text: str, headers: UserHeaders, directory: Path, include_dirs: Sequence[Path], name: str) -> tuple[str, UserHeaders]:
    """The source and its headers with every include of one of them by its new name, which is a path beside `name`.

    Raises: UsageError for a name that is not absolute: NVRTC would put the working directory before it.
    """
    if not (name.startswith("/") or PurePath(name).is_absolute()):
        raise UsageError(f"The name {name!r} of the source must be an absolute path, for example {'/kernels/' + os.path.basename(name)!r}.")
    shown = _shown_paths(list(headers.texts), directory, include_dirs, posixpath.dirname(name), name)

    def edit(body: str, base: Path) -> str:
        def include(match: re.Match[str]) -> str:
            written = match["quoted"] or match["angled"]
            if "include_next" in match[0]:
                return match[0]
            path = search(written, base, directory, include_dirs, angled=bool(match["angled"])) if written else None
            if path not in shown:
                return match[0]
            start = min(match.start(group) for group in ("quoted", "angled") if match[group]) - match.start() - 1
            return f'{match[0][:start]}"{shown[path]}"'

        return INCLUDE.sub(include, body)

    texts = {Path(shown[path]): edit(body, path.parent) for path, body in headers.texts.items()}
    # an include whose name comes from a macro is not edited; the header of that name leads on
    by_name = {str(path): path for path in texts}
    aliases = {written: shown[path] for written, path in headers.by_name.items() if written not in by_name}
    return edit(text, directory), UserHeaders(texts, by_name, headers.absent, aliases)


def _shown_paths(paths: Sequence[Path], directory: Path, include_dirs: Sequence[Path], folder: str, taken: str) -> dict[Path | None, str]:
    """Each header's new path: as it lies to the source file or in an include directory; those that would coincide get folders."""
    shown: dict[Path | None, str] = {}
    real: dict[str, str] = {}
    used = {taken}
    for path in paths:
        # one file under two paths keeps one name: `#pragma once` depends on it
        place = os.path.realpath(path)
        if place in real:
            shown[path] = real[place]
            continue
        relative = next((_below(path, root) for root in (directory, *include_dirs) if _below(path, root)), path.name)
        wanted, number = posixpath.join(folder, relative), 1
        while wanted in used:
            wanted, number = posixpath.join(folder, str(number), relative), number + 1
        used.add(wanted)
        shown[path] = real[place] = wanted
    return shown


def _below(path: Path, root: Path) -> str:
    real, base = Path(os.path.normpath(path.absolute())), Path(os.path.normpath(root.absolute()))
    return real.relative_to(base).as_posix() if real.is_relative_to(base) else ""


@contextmanager
def neutral_directories(directories: Mapping[str, Path]) -> Iterator[tuple[Path, ...]]:
    """Paths of directories, by a label each, that are the same on every machine; valid within the block.

    Where there is no /proc (or its entry is taken) they are the directories' own paths.
    """
    if not _DESCRIPTORS.is_dir() or (_DESCRIPTORS / str(_DESCRIPTOR)).exists():
        yield tuple(directories.values())
        return
    import tempfile  # takes longer to import than the rest

    with tempfile.TemporaryDirectory(prefix="fasim-") as folder:
        for label, directory in directories.items():
            (Path(folder) / label).symlink_to(directory.absolute(), target_is_directory=True)
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.dup2(opened, _DESCRIPTOR, inheritable=False)
        finally:
            os.close(opened)
        try:
            yield tuple(_DESCRIPTORS / str(_DESCRIPTOR) / label for label in directories)
        finally:
            os.close(_DESCRIPTOR)
