"""Predict kernels that were written to break the timing model, and compare with what a GPU took.

    python recordings/unseen.py [NAME ...]

`unseen/kernels.json` says how each was launched; inputs are drawn anew. Prints a line each, worst first, and what a
card's data file says of all; machine code for sm_90 from the source.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import fasim
from fasim.arch.cards import card
from fasim.sm.timing.predict import predict

FOLDER = Path(__file__).parent / "unseen"
TYPES = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u32": np.uint32,
    "u64": np.uint64,
}


def arguments(given: list[list[Any]]) -> list[Any]:
    """Scalars are [type, value], arrays [type, how they are filled, shape]: zeros, normal, arange, perm, or whole numbers from a range."""
    found: list[Any] = []
    for number, (name, *rest) in enumerate(given):
        kind, random = TYPES[name], np.random.default_rng(number)
        if len(rest) == 1:
            found.append(kind(rest[0]))
            continue
        fill, shape = rest
        if fill == "zeros":
            found.append(np.zeros(shape, kind))
        elif fill == "normal":
            found.append(random.standard_normal(shape, np.float32).astype(kind))
        elif fill in ("arange", "perm"):
            values = np.arange(int(np.prod(shape)))
            found.append((random.permutation(values) if fill == "perm" else values).astype(kind).reshape(shape))
        else:
            found.append(random.integers(*fill, size=shape).astype(kind))
    return found


def main(names: list[str]) -> None:
    """Predict and print."""
    rows = []
    for row in json.loads((FOLDER / "kernels.json").read_text())["kernels"]:
        if names and row["name"] not in names:
            continue
        kernel = fasim.compile(FOLDER / f"{row['name']}.cu", arch="sm_90").kernel(row["name"])
        args = arguments(row["args"])
        found = predict(kernel, row["grid"], row["block"], args, card("h200"), dynamic_smem_bytes=row["dynamic_smem_bytes"])
        rows.append((100 * (1e6 * found.seconds / row["median_us"] - 1), row["median_us"], 1e6 * found.seconds, row["name"]))
    print("   error   measured  predicted  us, warm")
    for error, measured, predicted, name in sorted(rows, key=lambda each: -abs(each[0])):
        print(f"{error:+7.1f} % {measured:9.2f} {predicted:10.2f}  {name}")
    errors = np.abs([row[0] for row in rows])
    within = int((errors <= 10).sum())
    print(f"\nunseen_mean_percent = {errors.mean():.1f}\nunseen_worst_percent = {errors.max():.1f}\nunseen_launches = {len(rows)}\n")
    print(f"{len(rows)} kernels: mean {errors.mean():.1f} %, median {np.median(errors):.1f} %, {within} within 10 %")


if __name__ == "__main__":
    main(sys.argv[1:])
