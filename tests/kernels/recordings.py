"""Recordings of the kernels on real GPUs: where they are, and the hashes that they use."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).parent / "data"
RECORDINGS = ("h200_fa_v21", "h200_kernels")


def load_recording(name: str) -> dict[str, Any]:
    """Returns data/NAME.json."""
    content: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text())
    return content


def digest(array: np.ndarray) -> str:
    """Returns the SHA-256 of the array's elements in C order, little-endian."""
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return hashlib.sha256(little.tobytes()).hexdigest()


def source_digest(path: Path) -> str:
    """Returns the SHA-256 of a source file without its comments and spacing."""
    return hashlib.sha256("".join(re.sub(r"//.*", "", path.read_text()).split()).encode()).hexdigest()


def case_id(record: dict[str, Any]) -> str:
    """Returns a short name for one record, for test ids and messages."""
    return "-".join([record["kernel"], *(f"{name}={value}" for name, value in record["options"].items()), f"seed={record['seed']}"])
