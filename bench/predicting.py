"""The timing model: its speed, its error against the recordings, and against published figures of a GPU that was not recorded."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import fasim
from bench.figures import Figure, repeat
from bench.processes import ROOT, fasim_time
from fasim import kernels
from fasim.arch.cards import card
from fasim.sm.timing.constants import constants
from fasim.sm.timing.kernel import timed_kernel
from fasim.sm.timing.paths import Walk, site_numbers
from fasim.sm.timing.predict import Prediction, predict
from fasim.sm.timing.sample import Sampler
from fasim.sm.timing.sm import run

#: TFLOPS of a v2.1 forward pass on an RTX 5080, B=4, H=8, D=64, by causal and N: Bc = 32 and Bc = 64.
#: Source: the published table of the kernel that v2.1 follows.
RTX_5080 = {
    (False, 1024): (71.32, 60.21),
    (False, 2048): (88.67, 76.47),
    (False, 4096): (100.75, 86.90),
    (False, 8192): (99.50, 77.55),
    (True, 1024): (50.17, 49.45),
    (True, 2048): (75.34, 67.67),
    (True, 4096): (93.14, 80.38),
    (True, 8192): (92.06, 67.31),
}
#: the largest of the recorded launches that take longest to predict
SLOWEST = ("--n", "8192", "--batch", "4", "--heads", "8", "--head-dim", "128", "--bc", "128", "--layout", "linear")


class Timed:
    """A v2.1 launch, ready to be predicted for a GPU."""

    def __init__(self, gpu: str, **options: Any) -> None:
        self.card, self.spec = card(gpu), kernels.load("fa_v21")
        self.options = self.spec.resolve({"batch": 4, "heads": 8, "head_dim": 64, **options})
        defines = self.spec.defines(self.options)
        self.kernel = fasim.compile(self.spec.path, arch=self.card.arch.name, defines=defines).kernel(self.spec.entry)
        self.arguments = [argument.value for argument in self.spec.inputs(self.options)]
        self.launch = self.spec.launch(self.options)

    def predict(self) -> Prediction:
        """Its time."""
        launch = self.launch
        return predict(self.kernel, launch.grid, launch.block, self.arguments, self.card, dynamic_smem_bytes=launch.dynamic_smem_bytes)

    def tflops(self) -> float:
        """What a table of attention kernels gives: operations of both products, half of them if causal."""
        o = self.options
        operations = 4 * o["n"] ** 2 * o["head_dim"] * o["batch"] * o["heads"] / (2 if o["causal"] else 1)
        return operations / self.predict().seconds / 1e12

    def rates(self, repetitions: int) -> Iterator[float]:
        """Warp instructions a second that the model of the SM runs, eight CTAs two at a time, on one core."""
        timed, launch = timed_kernel(self.kernel, self.card), self.launch
        prepared = timed.prepare(launch.grid, launch.block, self.arguments, launch.dynamic_smem_bytes)
        sampler = Sampler(Walk(prepared, site_numbers(prepared, timed.instructions)), timed.records)
        places = [sampler.place(cta) for cta in range(8)]
        k = constants(self.card, smem_config_bytes=135168, busy_sms=self.card.sms)
        run(timed.records, sampler.paths, places, 2, k)
        for _ in range(repetitions):
            start = time.perf_counter()
            found = run(timed.records, sampler.paths, places, 2, k)
            yield found.instructions / (time.perf_counter() - start)


def speed() -> Iterator[Figure]:
    """How long predictions take."""
    fasim_time(*SLOWEST)
    yield repeat("slowest prediction, whole process", "s", lambda: fasim_time(*SLOWEST).seconds, 3, "warm; `fasim time`")
    rates = Timed("h200", n=4096, bc=64, layout="swizzled").rates(9)
    yield Figure("timing model, a core", "M warp instr/s", tuple(rate / 1e6 for rate in rates), "v2.1, 2 CTAs an SM")


def published() -> Iterator[Figure]:
    """The RTX 5080 table: mean error, and how many pairs of its rows are in the wrong order."""
    errors: list[float] = []
    wrong: list[str] = []
    for (causal, n), row in RTX_5080.items():
        found = [Timed("rtx5080", n=n, bc=bc, layout="padded", causal=causal).tflops() for bc in (32, 64)]
        errors += [(ours / theirs - 1) * 100 for ours, theirs in zip(found, row, strict=True)]
        wrong += [f"N={n} causal={causal}" for (a, b), (c, d) in zip(pairwise(found), pairwise(row), strict=True) if (a > b) != (c > d)]
    worst = max(errors, key=abs)
    yield Figure("RTX 5080, mean error", "%", (sum(map(abs, errors)) / len(errors),), f"TFLOPS, published; worst {worst:+.1f} %")
    yield Figure("RTX 5080, Bc in the wrong order", "rows", (float(len(wrong)),), ", ".join(wrong) or f"of {len(RTX_5080)}")


def accuracy() -> Iterator[Figure]:
    """Errors against the recordings, by group: all of them, so this takes some minutes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.json"
        subprocess.run([sys.executable, "recordings/predict.py", "--json", str(path)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        groups = json.loads(path.read_text())["groups"]
    for group in groups:
        worst = f"{group['launches']} launches; worst {group['worst']}"
        yield Figure(f"H200, {group['name']}, mean error", "%", (group["mean_percent"],), f"{group['launches']} launches")
        yield Figure(f"H200, {group['name']}, worst error", "%", (abs(group["worst_percent"]),), worst)
