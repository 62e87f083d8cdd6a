"""Writes what the simulator expects, for tests.hardware.record and record_sweeps to compare with on the spot.

    python -m tests.hardware.expect FOLDER

writes FOLDER/rows.json.gz (digests by kernel), random.npz (`names`, `sums` [row, block of 2**16 samples]) and every.npz (for each function
of one f32 the sums of blocks of 2**20 arguments; takes some seconds a function).
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path

import numpy as np

from tests.hardware.make_ptx import variants
from tests.hardware.simulate import answers, digest
from tests.hardware.sweeps import BLOCK_BITS, SAMPLE_BLOCKS, Simulated, exhaustive_rows, sampled_rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    digests = {v.key: digest(v, answers(v)) for v in variants()}
    (folder / "rows.json.gz").write_bytes(gzip.compress(json.dumps({"digests": digests}).encode(), mtime=0))
    rows = sampled_rows()
    sums = np.array([Simulated(row, False).sums(BLOCK_BITS, range(SAMPLE_BLOCKS)) for row in rows])
    np.savez(folder / "random.npz", names=np.array([row.name for row in rows]), sums=sums)
    every = {row.name: Simulated(row, True).sums(20, range(4096)) for row in exhaustive_rows()}
    np.savez(folder / "every.npz", **every)


if __name__ == "__main__":
    main()
