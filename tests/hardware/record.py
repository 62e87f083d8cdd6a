"""Runs the kernels of make_ptx on a GPU and writes what it answered; needs ptxas, cupy and numpy.

    python -m tests.hardware.record FOLDER [EXPECTED]

writes FOLDER/h200_rows.json.gz: about the machine, and a digest for every kernel (tests.hardware.simulate.digest). With EXPECTED, a file of
the same form, the raw outputs of the kernels whose digests differ go into FOLDER/different.npz, as far as LIMIT_BYTES reach.
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import json
import os
import re
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from tests.hardware import inputs
from tests.hardware.exceptions import TARGET
from tests.hardware.make_ptx import Variant, modules, outputs
from tests.hardware.simulate import DTYPE, active_lanes, digest

LIMIT_BYTES = 14 << 20
GUARD = 0xDEADBEEFDEADBEEF


def assemble(item: tuple[Path, str]) -> Path:
    """PTX text to a cubin."""
    path, text = item
    path.write_text(text)
    subprocess.run(["ptxas", f"-arch=sm_{TARGET}", str(path), "-o", str(path.with_suffix(".cubin"))], check=True)
    return path.with_suffix(".cubin")


class Gpu:
    """Launches kernels; keeps the last inputs on the device, since rows of one signature share them."""

    def __init__(self) -> None:
        import cupy

        self.cupy, self.last, self.key = cupy, None, None

    def run(self, function: Any, variant: Variant) -> list[Any]:
        """The outputs of one kernel, [round, lane] a destination."""
        sources, masks = inputs.sources(variant.row), active_lanes(variant)
        key = (tuple(id(s) for s in sources), None if masks is None else masks.tobytes())
        if self.key != key or not sources:
            columns = [*sources]
            if masks is not None:
                columns.append(np.broadcast_to(masks[:, None], (len(masks), inputs.LANES)))
            self.last, self.key, self.alive = self.cupy.asarray(np.stack(columns)), key, sources
        count, args = self.last.shape[1], outputs(variant)
        result = self.cupy.full((len(args), count, inputs.LANES), GUARD, np.uint64)
        function((count,), (inputs.LANES,), (self.last, result))
        return list(self.cupy.asnumpy(result))


def about() -> dict[str, Any]:
    """What produced a recording."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader", "--id=0"]
    device, driver = subprocess.run(query, check=True, capture_output=True, text=True).stdout.strip().split(", ")
    compiler = subprocess.run(["ptxas", "--version"], check=True, capture_output=True, text=True).stdout
    return {
        "device": device,
        "driver": driver,
        "compiler": "ptxas " + re.findall(r"V([\d.]+)", compiler)[0],
        "target": f"sm_{TARGET}",
        "date": datetime.date.today().isoformat(),
        "inputs": f"tests.hardware.inputs version {inputs.VERSION}, seed {inputs.SEED}",
        "digests": "first 8 bytes of BLAKE2b of all destinations, see tests.hardware.simulate.digest",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("expected", type=Path, nargs="?")
    arguments = parser.parse_args()
    start = time.time()
    expected = json.loads(gzip.decompress(arguments.expected.read_bytes()))["digests"] if arguments.expected else {}
    scratch, every = Path(tempfile.mkdtemp()), list(modules())
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        cubins = list(pool.map(assemble, [(scratch / f"m{i}.ptx", text) for i, (text, _) in enumerate(every)]))
    print(f"{len(every)} modules assembled after {time.time() - start:.1f} s", flush=True)
    gpu, digests, different, failed, total = Gpu(), {}, {}, [], 0
    for cubin, (_, kernels) in zip(cubins, every):
        module = gpu.cupy.RawModule(path=str(cubin))
        for name, variant in kernels:
            results = gpu.run(module.get_function(name), variant)
            if any((r == np.uint64(GUARD)).any() for r in results):
                failed.append(variant.key)
            digests[variant.key] = digest(variant, results)
            if expected and expected.get(variant.key) != digests[variant.key]:
                for i, (arg, r) in enumerate(zip(outputs(variant), results)):
                    raw = r.astype(DTYPE[inputs.WIDTH[arg.type_]])
                    total += raw.nbytes
                    if total < LIMIT_BYTES * 6:
                        different[f"{variant.key}|{i}"] = raw
    print(
        f"{len(digests)} kernels after {time.time() - start:.1f} s; not all stored: {failed}; {len(different)} outputs differ", flush=True
    )
    arguments.folder.mkdir(parents=True, exist_ok=True)
    content = {"about": about(), "digests": digests}
    (arguments.folder / "h200_rows.json.gz").write_bytes(gzip.compress(json.dumps(content, indent=0).encode(), mtime=0))
    np.savez_compressed(arguments.folder / "different.npz", **different)


if __name__ == "__main__":
    main()
