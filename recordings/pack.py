"""Writes the launches that this folder has recordings of, compiled and waiting for a GPU.

python recordings/pack.py FOLDER [sm_NN]
fasim gpu record FOLDER -o recordings/CARD --share-cubins     (on the machine with the GPU)
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import fasim
from fasim.cli.job import Job
from fasim.cli.main import main as run_fasim
from fasim.cli.recorded import recording_of
from fasim.gpu.recording import STORED
from fasim.gpu.recording_file import save
from fasim.numerics.dtypes import short_name
from fasim.sm.values import Value

CASES = Path(__file__).parent.parent / "tests" / "cases"

#: collection kernels: kernel options as the command line takes them; several values are several launches
LAUNCHES = {
    # v2.1: every layout and tile height, one head: at most one CTA an SM, so that the hardware's counters are exact
    "fa_v21": [
        "--heads 1 --n 1,128,200,1024 --bc 32,64,128 --head-dim 64,128 --layout linear,padded,swizzled --causal=0,1",
        # times of the published sizes
        "--batch 4 --heads 8 --n 1024,2048,4096,8192 --bc 32,64,128 --head-dim 64,128 --layout linear,padded,swizzled --causal=0,1",
        # a small grid
        "--heads 8 --n 128 --bc 32,64 --head-dim 64 --layout linear,padded,swizzled --causal=0,1",
    ],
    "fa_v20": ["--heads 1 --n 33,200 --head-dim 64,128 --causal=0,1", "--batch 4 --heads 8 --n 1024 --head-dim 64 --causal=0,1"],
    "attention_naive": ["--heads 1 --n 33,200 --head-dim 64,128 --causal=0,1"],
    "gemm_mma": [
        "--m 128 --n 128 --k 256 --stages 2,3,4",
        "--m 100 --n 72 --k 104 --stages 3",
        "--m 1024,4096 --n 4096 --k 4096 --stages 2,3,4",
    ],
    "gemm_tiled": ["--m 70 --n 50 --k 90", "--m 256 --n 256 --k 256", "--m 2048 --n 2048 --k 2048"],
    "transpose": [
        "--rows 100 --columns 70 --layout linear,padded",
        "--rows 256 --columns 256 --layout linear,padded",
        "--rows 8192 --columns 8192 --layout linear,padded",
    ],
    "softmax_rows": ["--rows 37 --columns 300", "--rows 4 --columns 2000", "--rows 8192 --columns 4096"],
    "histogram": ["--n 10000 --spread 4,256", "--n 67108864 --spread 4,256"],
    "reduce": ["--n 5000", "--n 67108864"],
    "axpy": ["--n 1000", "--n 67108864"],
}


def pack_collection(folder: Path, arch: list[str]) -> None:
    """All launches of kernels of the collection."""
    for name, lines in LAUNCHES.items():
        for line in lines:
            if code := run_fasim(["gpu", "pack", name, *line.split(), *arch, "-o", str(folder / name)]):
                sys.exit(code)


def pack_cases(folder: Path, arch: list[str]) -> None:
    """The cases that a GPU may run: those that neither fault nor hang, and whose values are defined."""
    sys.path.insert(0, str(CASES))
    import caselib

    for name in caselib.names():
        for run in caselib.load(name)["runs"]:
            if run["gpu"] == "safe":
                job = case_job(name, run, caselib.make_inputs(run), *arch)
                save(folder / "cases" / f"{run['id']}.zip", recording_of(job, run["id"]))


def case_job(name: str, run: dict[str, Any], inputs: dict[str, Any], arch: str = "sm_90") -> Job:
    """One run of a case, with its inputs as they are."""
    path = CASES / f"{name}.cu"
    kernel = fasim.compile(path, arch=arch, name=f"/tests/cases/{path.name}").kernel(run["entry"])
    return Job(
        kernel=kernel,
        source=path.name,
        args=[Value(key, value, short_name(np.asarray(value).dtype)) for key, value in inputs.items()],
        grid=tuple(run["grid"]),
        block=tuple(run["block"]),
        dynamic_smem_bytes=run["dynamic_smem"],
        rtol=0.0,
        atol=0.0,
        compile_seconds=0.0,
        references=dict,
        made=(STORED,) * len(inputs),
    )


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit("usage: python recordings/pack.py FOLDER [sm_NN]")
    destination, arch = Path(sys.argv[1]), sys.argv[2:]
    pack_collection(destination, [option for name in arch for option in ("--arch", name)])
    pack_cases(destination, arch)
