"""The targets: what a figure must be, and where the number comes from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A limit on one figure. at_least: the figure must not be below it; else not above."""

    limit: float
    unit: str
    source: str
    at_least: bool = False

    def met(self, value: float) -> bool:
        """Whether a measured value keeps to the limit."""
        return value >= self.limit if self.at_least else value <= self.limit


_WATCHING = "part 2: counting and checking"
_SPEED = "part 1, point 4 (2 cores, warm)"
#: kernels with shared memory whose counting and checking is measured
WATCHED = ("fa_v21", "gemm_mma", "gemm_tiled", "transpose", "histogram", "fa_v20")
_ERRORS, _CAUSES = "part 5, point 2: time against the recordings", "part 5, point 3: it must know why"
#: groups of recorded launches whose predicted time is judged: mean and worst error in percent
PREDICTED = {"fa_v21, Bc 32 and 64": (4.0, 8.0), "fa_v21, up to 8 CTAs": (8.0, 8.0), "other kernels": (10.0, 20.0)}
#: by the name of the figure
TARGETS = {
    "v2.1 N=256 one head, machine": Target(0.01, "s", _SPEED),
    "v2.1 N=256 one head, whole process": Target(1.5, "s", _SPEED),
    "v2.1 N=1024 one head, machine": Target(0.1, "s", _SPEED),
    "v2.1 B=4 H=8 N=1024, machine": Target(3.0, "s", _SPEED),
    "v2.1 B=4 H=8 N=8192, machine": Target(240.0, "s", _SPEED),
    "v2.1 B=4 H=8 N=8192, peak memory": Target(2.0, "GB", "part 1, point 5"),
    "f32 and integer arithmetic, a core": Target(100.0, "M warp instr/s", _SPEED, at_least=True),
    "mma.m16n8k16 f16->f32": Target(0.7, "us", _SPEED),
    **{f"{name}, counted": Target(1.5, "x plain", _WATCHING) for name in WATCHED},
    **{f"{name}, check=all": Target(5.0, "x plain", _WATCHING) for name in WATCHED},
    "v2.1 N=128, stepper to the first frame": Target(3.0, "s", "part 4, point 1"),
    "v2.1 N=128, a step forward": Target(50.0, "ms", "part 4, point 1"),
    "v2.1 N=128, a step back": Target(50.0, "ms", "part 4, point 1"),
    "first start, empty cache": Target(60.0, "s", _SPEED),
    "slowest prediction, whole process": Target(10.0, "s", "part 5, point 4 (2 cores, warm)"),
    "timing model, a core": Target(10.0, "M warp instr/s", "part 5, point 4", at_least=True),
    "RTX 5080, mean error": Target(15.0, "%", _CAUSES),
    "RTX 5080, Bc in the wrong order": Target(0.0, "rows", _CAUSES),
    **{f"H200, {name}, mean error": Target(mean, "%", _ERRORS) for name, (mean, _) in PREDICTED.items()},
    **{f"H200, {name}, worst error": Target(worst, "%", _ERRORS) for name, (_, worst) in PREDICTED.items()},
}
