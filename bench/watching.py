"""What counting and checking cost: processor time of one worker, as a ratio to the same launch without."""

from __future__ import annotations

import resource
from collections.abc import Mapping

import fasim
from fasim import kernels

#: kernels of the collection that use shared memory, in sizes that take some hundredths of a second; the last two do little else
PROBLEMS: dict[str, dict[str, int]] = {
    "fa_v21": {"n": 1024, "heads": 2, "batch": 1},
    "gemm_mma": {"m": 512, "n": 512, "k": 512},
    "gemm_tiled": {"m": 256, "n": 256, "k": 256},
    "transpose": {},
    "histogram": {"n": 1 << 20},
    "fa_v20": {"n": 512, "heads": 1, "batch": 1},
}
WAYS: dict[str, Mapping[str, object]] = {"plain": {"count": False}, "counted": {}, "checked": {"check": "all"}}


class Watched:
    """One problem, ready to launch."""

    def __init__(self, name: str) -> None:
        self.spec, self.options = kernels.load(name), PROBLEMS[name]
        self.kernel = fasim.compile(self.spec.path, defines=self.spec.defines(self.options)).kernel(self.spec.entry)
        self.arguments = [argument.value for argument in self.spec.inputs(self.options)]
        for way in WAYS:
            self.seconds(way)

    def seconds(self, way: str) -> float:
        """Processor time of a launch."""
        launch = self.spec.launch(self.options)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        self.kernel.launch(
            launch.grid,
            launch.block,
            self.arguments,
            dynamic_smem_bytes=launch.dynamic_smem_bytes,
            workers=1,
            **WAYS[way],  # type: ignore[arg-type]
        )
        return resource.getrusage(resource.RUSAGE_SELF).ru_utime - before

    def ratio(self, way: str) -> float:
        """How much longer it takes than a plain launch just before."""
        plain = self.seconds("plain")
        return self.seconds(way) / plain
