"""Runs the kernels on a real GPU, judges them, and records the bits of their outputs; needs nvcc, cupy and numpy.

    python -m tests.kernels.record_gpu FOLDER

writes FOLDER/GPU_fa_v21.json, GPU_kernels.json, GPU_fa_v21_bits.npz and GPU_fa_v21_times.json. What is recorded is described in the files
themselves. Nothing is written if an output is wrong, if two layouts differ in a bit, or if a second launch gives other bits.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import itertools
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from fasim import kernels
from fasim.kernels import Argument, KernelSpec, attention
from tests.kernels.recordings import digest, source_digest

FLAGS = [f"-arch=sm_{cupy.cuda.Device(0).compute_capability}", "-lineinfo", "-std=c++17"]
LENGTHS = (1, 64, 127, 128, 129, 200, 1000)
BOTH = (False, True)
OTHERS: list[tuple[str, dict[str, object]]] = [
    *(("axpy", {"n": n}) for n in (1, 255, 1000)),
    *(
        ("transpose", {"rows": rows, "columns": columns, "layout": layout})
        for rows, columns in ((1, 1), (32, 32), (100, 70))
        for layout in ("linear", "padded")
    ),
    *(("reduce", {"n": n}) for n in (1, 1023, 1024, 5000)),
    *(("softmax_rows", {"rows": rows, "columns": columns}) for rows, columns in ((1, 1), (5, 31), (37, 300), (4, 2000))),
    *(("gemm_tiled", {"m": m, "n": n, "k": k}) for m, n, k in ((1, 1, 1), (32, 32, 32), (70, 50, 90), (65, 130, 200))),
    *(
        ("gemm_mma", {"m": m, "n": n, "k": k, "stages": stages})
        for m, n, k in ((1, 8, 8), (64, 64, 32), (100, 72, 104), (128, 128, 256))
        for stages in (2, 3, 4)
    ),
    *(("histogram", {"n": n, "spread": spread}) for n, spread in ((1, 1), (10000, 256), (10000, 4))),
    *(
        (name, {"n": n, "head_dim": d, "causal": causal})
        for name, n, d, causal in itertools.product(("attention_naive", "fa_v20"), (1, 33, 128, 200), (64, 128), BOTH)
    ),
]


class Gpu:
    """Compiles variants of kernels in parallel and launches them twice."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.functions: dict[str, Any] = {}

    def key(self, spec: KernelSpec, options: dict[str, object]) -> str:
        return spec.name + "".join(f" -D{name}={value}" for name, value in spec.defines(options).items())

    def compile(self, variants: list[tuple[KernelSpec, dict[str, object]]]) -> None:
        def compile_one(item: tuple[str, KernelSpec]) -> Path:
            key, spec = item
            cubin = self.folder / f"{hashlib.sha256(key.encode()).hexdigest()}.cubin"
            subprocess.run(["nvcc", *FLAGS, *key.split()[1:], "-cubin", "-o", str(cubin), str(spec.path)], check=True)
            return cubin

        wanted = {self.key(spec, options): spec for spec, options in variants}
        with ThreadPoolExecutor() as pool:
            for (key, spec), cubin in zip(wanted.items(), pool.map(compile_one, wanted.items())):
                self.functions[key] = cupy.RawModule(path=str(cubin)).get_function(spec.entry)

    def prepare(self, spec: KernelSpec, options: dict[str, object], inputs: list[Argument]) -> tuple[list[Any], Any]:
        """Returns the arguments on the device and a function that launches the kernel on them."""
        function, launch = self.functions[self.key(spec, options)], spec.launch(options)
        if launch.dynamic_smem_bytes > 48 * 1024:
            function.max_dynamic_shared_size_bytes = launch.dynamic_smem_bytes
        arguments = [cupy.asarray(a.value) if isinstance(a.value, np.ndarray) else a.value for a in inputs]
        return arguments, lambda: function(launch.grid, launch.block, tuple(arguments), shared_mem=launch.dynamic_smem_bytes)

    def run(self, spec: KernelSpec, options: dict[str, object], inputs: list[Argument]) -> dict[str, Any]:
        """Returns all output arrays; raises SystemExit if a second launch gives other bits."""
        runs = []
        for _ in range(2):
            arguments, launch = self.prepare(spec, options, inputs)
            launch()
            cupy.cuda.runtime.deviceSynchronize()
            runs.append({a.name: cupy.asnumpy(x) for a, x in zip(inputs, arguments) if a.direction != "in"})
        if any(runs[0][name].tobytes() != runs[1][name].tobytes() for name in runs[0]):
            raise SystemExit(f"{spec.name} {options}: two launches differ")
        return runs[0]


def worst_error(actual: Any, reference: Any, tolerance: tuple[float, float]) -> float:
    """Returns the largest error as a fraction of what is tolerated; infinite for a NaN."""
    rtol, atol = tolerance
    error, allowed = np.abs(actual.astype(np.float64) - reference), atol + rtol * np.abs(reference)
    fraction = np.divide(error, allowed, out=np.where(error == 0, 0.0, np.inf), where=allowed > 0)
    return float(np.nan_to_num(fraction, nan=np.inf).max())


def record(
    spec: KernelSpec, options: dict[str, object], seed: int, inputs: list[Argument], outputs: dict[str, Any], max_heads: int = 0
) -> dict[str, Any]:
    """Returns the record of one run; raises SystemExit if an output is wrong. With `max_heads` only that many heads are judged."""
    judged_options, judged = options, inputs
    if max_heads:
        judged_options = {**options, "batch": 1, "heads": max_heads}
        judged = [a._replace(value=a.value[:max_heads]) if isinstance(a.value, np.ndarray) else a for a in inputs]
    reference = spec.reference(judged_options, judged)
    worst = max(worst_error(outputs[name][: len(want)], want, spec.tolerance(options)) for name, want in reference.items())
    print(f"{spec.name:16} {worst:9.2e} of the tolerance  {options} seed {seed}")
    if worst > 1:
        raise SystemExit(f"{spec.name} {options} seed {seed}: wrong output")
    return {
        "kernel": spec.name,
        "options": dict(spec.resolve(options)),
        "seed": seed,
        "inputs_sha256": {a.name: digest(a.value) for a in inputs if a.direction != "out" and isinstance(a.value, np.ndarray)},
        "outputs_sha256": {name: digest(array) for name, array in outputs.items()},
        "error_over_tolerance": float(f"{worst:.3g}"),
    }


def flash_runs() -> Iterator[tuple[dict[str, object], int, int]]:
    """Yields (options without layout, seed, heads to judge or 0 for all)."""
    for bc, d, causal, n in itertools.product((32, 64, 128), (64, 128), BOTH, LENGTHS):
        yield {"n": n, "batch": 1, "heads": 2, "head_dim": d, "bc": bc, "causal": causal}, 0, 0
    for seed in (1, 2):
        yield {"n": 200, "batch": 1, "heads": 2, "head_dim": 64, "bc": 32, "causal": bool(seed % 2)}, seed, 0
    for bc, causal in itertools.product((32, 64), BOTH):
        yield {"n": 1024, "batch": 4, "heads": 8, "head_dim": 64, "bc": bc, "causal": causal}, 0, 2
        yield {"n": 8192, "batch": 4, "heads": 8, "head_dim": 64, "bc": bc, "causal": causal}, 0, 1


def times(gpu: Gpu, spec: KernelSpec) -> Iterator[dict[str, Any]]:
    """Yields event times of the published sizes: the median, least and largest of 20 launches after 3 that warm up."""
    inputs: dict[int, list[Argument]] = {}
    for n, bc, layout, causal in itertools.product((1024, 2048, 4096, 8192), (32, 64, 128), attention.LAYOUTS, BOTH):
        options: dict[str, object] = {"n": n, "batch": 4, "heads": 8, "head_dim": 64, "bc": bc, "layout": layout, "causal": causal}
        if n not in inputs:
            inputs = {n: spec.inputs(options, 0)}
        _, launch = gpu.prepare(spec, options, inputs[n])
        events = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(23)]
        for begin, end in events:
            begin.record()
            launch()
            end.record()
        cupy.cuda.runtime.deviceSynchronize()
        samples = [1000 * cupy.cuda.get_elapsed_time(begin, end) for begin, end in events[3:]]
        figures = {"median_us": statistics.median(samples), "min_us": min(samples), "max_us": max(samples)}
        yield {"options": dict(spec.resolve(options)), **{name: round(value, 2) for name, value in figures.items()}}


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Writes the head as indented JSON and every record as one line."""
    head = json.dumps({name: value for name, value in content.items() if name != "records"}, indent=1)
    lines = ",\n".join("  " + json.dumps(entry, allow_nan=False) for entry in content["records"])
    path.write_text(f'{head.removesuffix("}").rstrip()},\n "records": [\n{lines}\n ]\n}}\n')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader", "--id=0"]
    device, driver = subprocess.run(query, check=True, capture_output=True, text=True).stdout.strip().split(", ")
    nvcc = subprocess.run(["nvcc", "--version"], check=True, capture_output=True, text=True).stdout
    about = {
        "device": device,
        "compute_capability": cupy.cuda.Device().compute_capability,
        "driver": driver,
        "compiler": "nvcc " + re.findall(r"V([\d.]+)", nvcc)[0],
        "compiler_flags": " ".join(FLAGS),
        "date": datetime.date.today().isoformat(),
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "inputs": "fasim.kernels.load(kernel).inputs(options, seed)",
        "hashes": "SHA-256 of an array's bytes, C order, little-endian; source_sha256 of the source without comments and spacing",
        "error_over_tolerance": "largest error against the float64 reference, as a fraction of the kernel's tolerance",
    }
    prefix = device.split()[-1].lower()
    gpu, flash = Gpu(), kernels.load("fa_v21")

    runs = list(flash_runs())
    gpu.compile([(flash, {**options, "layout": layout}) for options, _, _ in runs for layout in attention.LAYOUTS])
    gpu.compile([(flash, {"bc": 128, "layout": layout, "causal": causal}) for layout in attention.LAYOUTS for causal in BOTH])
    gpu.compile([(kernels.load(name), options) for name, options in OTHERS])
    records, bits, too_large = [], {}, []
    for options, seed, max_heads in runs:
        fitting = [layout for layout in attention.LAYOUTS if flash.launch({**options, "layout": layout}).dynamic_smem_bytes <= 227 * 1024]
        too_large += [{**options, "layout": layout} for layout in attention.LAYOUTS if layout not in fitting]
        inputs = flash.inputs(options, seed)
        outputs = {layout: gpu.run(flash, {**options, "layout": layout}, inputs) for layout in fitting}
        first = outputs[fitting[0]]
        if any(other["o"].tobytes() != first["o"].tobytes() for other in outputs.values()):
            raise SystemExit(f"{options} seed {seed}: the layouts differ")
        entry = record(flash, {**options, "layout": fitting[0]}, seed, inputs, first, max_heads)
        del entry["options"]["layout"]
        records.append({**entry, "layouts": fitting})
        if options["n"] == 129 and options["head_dim"] == 64 and options["bc"] == 32:
            bits["causal" if options["causal"] else "dense"] = first["o"].view(np.uint16)
    text = {**about, "layouts": "all layouts listed gave these same bits", "does_not_fit_shared_memory": too_large}
    flash_file = {**text, "source_sha256": {"fa_v21": source_digest(flash.path)}, "records": records}

    others = []
    for name, options in OTHERS:
        spec = kernels.load(name)
        inputs = spec.inputs(options, 0)
        others.append(record(spec, options, 0, inputs, gpu.run(spec, options, inputs)))
    sources = {name: source_digest(kernels.load(name).path) for name in kernels.names() if name != "fa_v21"}
    other_file = {**about, "source_sha256": sources, "records": others}
    what = {"what": "event times of one launch in microseconds: median, least and largest of 20 after 3 that warm up", "seed": 0}
    times_file = {**about, **what, "records": list(times(gpu, flash))}

    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("fa_v21", flash_file), ("kernels", other_file), ("fa_v21_times", times_file)):
        write_json(folder / f"{prefix}_{name}.json", content)
    np.savez_compressed(folder / f"{prefix}_fa_v21_bits.npz", **bits)
    print(f"{len(records)} and {len(others)} runs, all right; does not fit: {len(too_large)}")


if __name__ == "__main__":
    main()
