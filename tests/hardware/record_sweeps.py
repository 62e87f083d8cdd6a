"""Runs the kernels of sweeps on a GPU and writes the sums; needs ptxas, cupy and numpy.

    python -m tests.hardware.record_sweeps FOLDER [EXPECTED]

writes FOLDER/h200_sums.npz: `names`, `random` [row, the first KEPT blocks of 2**16 samples and the sum of all], `every_names`, `every`
[row, binade]. EXPECTED is a folder with the simulator's random.npz (`names`, `sums` of blocks of 2**16) and every.npz (by name, sums of
blocks of 2**20); all results of some blocks that differ go into FOLDER/blocks.npz.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cupy
import numpy as np

import fasim.isa.rows  # noqa: F401  the import fills the table
from fasim.isa.table import ROWS
from tests.hardware.exceptions import TARGET
from tests.hardware.make_ptx import PTX_VERSION
from tests.hardware.record import assemble
from tests.hardware.sweeps import SAMPLE_BLOCKS, exhaustive_rows, kernel, sampled_rows

HEADER = f".version {PTX_VERSION}\n.target sm_{TARGET}\n.address_size 64\n"
BLOCKS, EACH = 2, 200  # raw blocks kept of one row, rows
KEPT = 4


def functions(wanted: list[tuple[str, bool]], folder: Path, store: bool) -> dict[tuple[str, bool], Any]:
    """Kernels by row name and whether they run on every f32."""
    groups = [wanted[i : i + 60] for i in range(0, len(wanted), 60)]
    texts = [HEADER + "".join(kernel(ROWS[n], f"k{i}", e, store) for i, (n, e) in enumerate(g)) for g in groups]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        cubins = list(pool.map(assemble, [(folder / f"s{int(store)}{i}.ptx", t) for i, t in enumerate(texts)]))
    found = {}
    for cubin, group in zip(cubins, groups):
        module = cupy.RawModule(path=str(cubin))
        found |= {key: module.get_function(f"k{i}") for i, key in enumerate(group)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("expected", type=Path, nargs="?")
    arguments = parser.parse_args()
    start, scratch = time.time(), Path(tempfile.mkdtemp())
    names, every = [r.name for r in sampled_rows()], [r.name for r in exhaustive_rows()]
    wanted = [(n, False) for n in names] + [(n, True) for n in every]
    kernels = functions(wanted, scratch, False)
    print(f"{len(kernels)} kernels assembled after {time.time() - start:.1f} s", flush=True)
    sums = {}
    for key, function in kernels.items():
        result = cupy.zeros(65536 if key[1] else SAMPLE_BLOCKS, np.uint64)
        function((len(result),), (256,), (result, np.uint32(0)))
        sums[key] = cupy.asnumpy(result)
    print(f"sums after {time.time() - start:.1f} s", flush=True)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    random = np.array([[*sums[n, False][:KEPT], sums[n, False].sum(dtype=np.uint64)] for n in names])
    complete = np.array([sums[n, True].reshape(512, -1).sum(1, dtype=np.uint64) for n in every])
    np.savez_compressed(
        arguments.folder / "h200_sums.npz", names=np.array(names), random=random, every_names=np.array(every), every=complete
    )
    if not arguments.expected:
        return
    differ: dict[tuple[str, bool], list[int]] = {}
    simulated = np.load(arguments.expected / "random.npz")
    for name, expected in zip(simulated["names"], simulated["sums"]):
        blocks = np.flatnonzero(sums[str(name), False] != expected)
        if len(blocks):
            differ[str(name), False] = [int(b) for b in blocks]
    with np.load(arguments.expected / "every.npz") as file:
        for name in file.files:
            coarse = sums[name, True].reshape(-1, 16).sum(1, dtype=np.uint64)
            blocks = np.flatnonzero(coarse != file[name])
            if len(blocks):
                differ[name, True] = [int(b) * 16 + i for b in blocks for i in range(16)]
    for key, blocks in differ.items():
        print(*key, len(blocks))
    chosen = list(differ)[:EACH]
    raw = {}
    for key, function in functions(chosen, scratch, True).items():
        for block in differ[key][:: max(1, len(differ[key]) // BLOCKS)][:BLOCKS]:
            result = cupy.zeros(65536, np.uint64)
            function((1,), (256,), (result, np.uint32(block)))
            raw[f"{key[0]}|{int(key[1])}|{block}"] = cupy.asnumpy(result)
    np.savez_compressed(arguments.folder / "blocks.npz", **raw)
    print(f"done after {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
