"""The way back: what changed from one keyframe to the next, so that memory can be put back in place.

Beside each buffer stands a mirror, its contents at the last keyframe. A keyframe keeps the old contents of the lines that differ from the
mirror, or for device memory of those that the machine's map of writes names. Buffers never move: pointers into them stay valid.

Ctrl-C may end any of this in the middle. Whatever is done twice here does no more than once, and what has been begun is ended first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
#: bytes that are kept together: of buffers that are compared, and of those with a map of one bit a byte
LINE_BYTES, MAPPED_LINE_BYTES = 256, 64


def flat_bytes(array: Array) -> Array:
    """The bytes of a contiguous array, in place."""
    return np.asarray(array.reshape(-1).view(np.uint8))


@dataclass(frozen=True, slots=True)
class Change:
    """Old contents of lines of one buffer, and of what is left after the last whole line (None: it did not change)."""

    lines: Array
    old: Array
    tail: Array | None

    @property
    def size_bytes(self) -> int:
        """What it takes to keep."""
        return int(self.lines.nbytes + self.old.nbytes + (0 if self.tail is None else self.tail.nbytes))


class Buffer:
    """A buffer and its mirror. written: a word for each line, not 0 if the machine wrote there; used: whether there is anything in it."""

    def __init__(self, data: Array, written: Array | None = None, used: Callable[[], bool] | None = None) -> None:
        self.line_bytes = LINE_BYTES if written is None else MAPPED_LINE_BYTES
        self.now, self.written, self.used = flat_bytes(data), written, used
        self.mirror = self.now.copy()
        whole = len(self.now) // self.line_bytes * self.line_bytes
        self.lines = self.now[:whole].reshape(-1, self.line_bytes)
        self.mirror_lines = self.mirror[:whole].reshape(-1, self.line_bytes)
        self.tail, self.mirror_tail = self.now[whole:], self.mirror[whole:]
        self.dirty = False  # a buffer that is in use stays so until it is put back

    def changed(self) -> Change | None:
        """What changed since the mirror was made, as it was then; `follow` makes the mirror follow."""
        if self.written is not None:
            lines = np.flatnonzero(self.written)
            if not len(lines):
                return None
            whole = lines[lines < len(self.lines)]
        else:
            if self.used is not None and not self.dirty and not self.used():
                return None
            self.dirty = True
            words = self.lines.reshape(-1).view(np.uint64) != self.mirror_lines.reshape(-1).view(np.uint64)
            whole = np.flatnonzero(words.reshape(-1, self.line_bytes // 8).any(axis=1)) if words.any() else np.zeros(0, np.int64)
        tail = self.mirror_tail.copy() if len(self.tail) and (self.tail != self.mirror_tail).any() else None
        return Change(whole, self.mirror_lines[whole], tail) if len(whole) or tail is not None else None

    def follow(self, change: Change | None) -> None:
        """Give the mirror the present contents, which differ from it by a change."""
        if change is not None:
            self.mirror_lines[change.lines] = self.lines[change.lines]
            self.mirror_tail[:] = self.tail
        if self.written is not None:
            self.written[:] = 0

    def put_back(self) -> None:
        """Give the buffer the contents of the mirror."""
        if self.written is not None:
            lines = np.flatnonzero(self.written)
            whole = lines[lines < len(self.lines)]
            self.lines[whole] = self.mirror_lines[whole]
            self.tail[:] = self.mirror_tail
            self.written[lines] = 0
        elif self.used is None or self.dirty or self.used():
            self.now[:] = self.mirror

    def undo(self, change: Change) -> None:
        """Go back over a change that was the last one; buffer and mirror are equal before and after."""
        for lines, tail in ((self.lines, self.tail), (self.mirror_lines, self.mirror_tail)):
            lines[change.lines] = change.old
            if change.tail is not None:
                tail[:] = change.tail


@dataclass(slots=True)
class Keyframe:
    """A position to which one can go back. changes: of each buffer, from here to the next keyframe. extra: what the caller keeps."""

    position: int
    extra: Any
    changes: list[Change | None]

    @property
    def size_bytes(self) -> int:
        """What it takes to keep."""
        return sum(change.size_bytes for change in self.changes if change is not None)


class History:
    """Keyframes, the oldest first; the first is the beginning. Beyond `limit_bytes` every second one is given up."""

    def __init__(self, buffers: Sequence[Buffer], interval: int, limit_bytes: int, position: int, extra: Any) -> None:
        self.buffers, self.interval, self.limit_bytes = list(buffers), interval, limit_bytes
        self.frames = [Keyframe(position, extra, [])]
        self.size_bytes = 0
        self._begun: tuple[list[Change | None], Keyframe, int] | None = None  # a keyframe that is being made
        self._way_back: int | None = None  # where a way back that has begun leads to

    @property
    def last(self) -> int:
        """Position of the latest keyframe."""
        return self.frames[-1].position

    def rewind_position(self, position: int) -> int:
        """The latest keyframe that is not after a position."""
        return max(frame.position for frame in self.frames if frame.position <= position)

    def push(self, position: int, extra: Any) -> None:
        """The buffers' present contents become a keyframe."""
        self._finish()
        self._begun = [buffer.changed() for buffer in self.buffers], Keyframe(position, extra, []), self.size_bytes
        self._finish()
        if self.size_bytes > self.limit_bytes and len(self.frames) > 4:
            self._thin_out()

    def _finish(self) -> None:
        """Make the keyframe that was begun; buffers are as they were then."""
        if self._begun is None:
            return
        changes, made, size_bytes = self._begun
        for buffer, change in zip(self.buffers, changes):
            buffer.follow(change)
        if self.frames[-1] is not made:
            self.frames[-1].changes = changes
            self.frames.append(made)
        self.size_bytes = size_bytes + self.frames[-2].size_bytes
        self._begun = None

    def rewind(self, position: int) -> Keyframe:
        """Put the buffers back to the latest keyframe that is not after `position`; later ones are given up."""
        self._finish()
        if self._way_back is not None:
            position = min(position, self._way_back)
        self._way_back = position
        for buffer in self.buffers:
            buffer.put_back()
        while self.frames[-1].position > position:
            frame = self.frames[-2]
            for buffer, change in zip(self.buffers, frame.changes):
                if change is not None:
                    buffer.undo(change)
            self.frames.pop()
            self.size_bytes -= frame.size_bytes
            frame.changes = []
        self._way_back = None
        return self.frames[-1]

    def _thin_out(self) -> None:
        """Give up every second keyframe; from now on they come half as often."""
        kept: list[Keyframe] = []
        for i in range(0, len(self.frames) - 1, 2):
            frame = self.frames[i]
            if i + 1 < len(self.frames) - 1:
                pairs = zip(frame.changes, self.frames[i + 1].changes)
                frame = Keyframe(frame.position, frame.extra, [_joined(first, second) for first, second in pairs])
            kept.append(frame)
        self.frames = [*kept, self.frames[-1]]
        self.interval *= 2
        self.size_bytes = sum(frame.size_bytes for frame in self.frames)


def _joined(first: Change | None, second: Change | None) -> Change | None:
    """One change for two that follow each other: what the first one found."""
    if first is None or second is None:
        return first or second
    new = ~np.isin(second.lines, first.lines)
    lines, old = np.concatenate([first.lines, second.lines[new]]), np.concatenate([first.old, second.old[new]])
    return Change(lines, old, first.tail if first.tail is not None else second.tail)
