"""Results that are costly to make, kept on disk between runs."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

_DIGEST_BYTES = 32
#: why results could not be kept, the first time that happened
write_failures: list[OSError] = []


def cache_dir() -> Path:
    """The directory of all caches: $FASIM_CACHE_DIR, else $XDG_CACHE_HOME/fasim, else ~/.cache/fasim."""
    if own := os.environ.get("FASIM_CACHE_DIR"):
        return Path(own)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "fasim"
    return Path.home() / ".cache" / "fasim"


def cached(key: str, suffix: str, make: Callable[[], bytes]) -> bytes:
    """The bytes kept under `key` (a hash of all that goes into them), made and stored if absent or damaged.

    suffix: ends the file name and keeps the kinds of results apart, for example `.cubin`.
    A cache that cannot be written (full disk, no permission) costs time, nothing else; `write_failures` tells why.
    """
    path = _path(key, suffix)
    data = _read(path)
    if data is None:
        data = make()
        try:
            _write(path, data)
        except OSError as error:
            if not write_failures:
                write_failures.append(error)
    return data


def is_cached(key: str, suffix: str) -> bool:
    """Whether something is kept under `key`."""
    return _path(key, suffix).exists()


def _path(key: str, suffix: str) -> Path:
    return cache_dir() / key[:2] / f"{key[2:]}{suffix}"


def _read(path: Path) -> bytes | None:
    """The payload of a cache file, or None if it is absent or does not match its own digest."""
    try:
        blob = path.read_bytes()
    except OSError:
        return None
    digest, data = blob[:_DIGEST_BYTES], blob[_DIGEST_BYTES:]
    return data if hashlib.sha256(data).digest() == digest else None


def _write(path: Path, data: bytes) -> None:
    """Write beside the place and rename, so that another process sees the whole file or none."""
    import tempfile  # takes longer to import than the rest of this package

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(data).digest() + data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
