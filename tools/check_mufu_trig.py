"""Compare the model of MUFU.SIN, COS, TANH with what tools/record_mufu_trig.py recorded: python tools/check_mufu_trig.py RECORDED [TESTS]

RECORDED is the recorder's output directory. Every recorded result is compared; the exit status is 1 if any differs. With TESTS, the
samples that tests/numerics/test_mufu_trig.py and tests/isa/test_approximate_half.py check are written to that directory.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from recover_mufu_trig import BINADE, unpack

from fasim.numerics import mufu_trig

Array = np.ndarray[Any, Any]

FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "ptx_sin": mufu_trig.sin_approx_ftz,
    "ptx_cos": mufu_trig.cos_approx_ftz,
    "ptx_tanh": mufu_trig.tanh_approx,
    "mufu_sin": mufu_trig.mufu_sin,
    "mufu_cos": mufu_trig.mufu_cos,
}
HALVES = ("tanh_f16", "tanh_bf16", "ex2_f16", "ex2_bf16")
CHUNK = 1 << 16  # stays in the cache
COUNTS = slice(3, 7)  # how many results of a binade are 0, the argument, 1, and above the next one
# of the results under a key, tests hold every n-th
EVERY = {"random": 11, "turn": 61, "binade": 1021}


def random_arguments() -> Array:
    """1024 arguments for each sign and exponent, as the recorder makes them."""
    i = np.arange(1 << 19, dtype=np.uint64)
    hashed = (i * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(41)
    return ((i >> np.uint64(10)) << np.uint64(23) | hashed).astype(np.uint32)


def recordings(directory: Path) -> Iterator[tuple[str, str, Array, Array]]:
    """Name of the function, kind of the arguments, arguments and results."""
    with np.load(directory / "lists.npz") as lists:
        arguments = {"special": lists["special_x"], "random": random_arguments()}
        if zlib.crc32(arguments["random"].tobytes()) != int(lists["random_x_crc"]):
            raise ValueError("the recorder used other random arguments")
        for name in FUNCTIONS:
            for kind, x in arguments.items():
                yield name, kind, x, lists[f"{name}_{kind}"]
        for name in ("sin", "cos"):  # the form without .ftz
            yield f"ptx_{name}", "special", arguments["special"], lists[f"ptx_{name}n_special"]
            if len(lists[f"ptx_{name}n_differs"]):
                raise ValueError(f"{name}.approx.f32 is not {name}.approx.ftz.f32")
    turn = (np.arange(1 << 24) * 2.0**-24).astype(np.float32).view(np.uint32)
    for name in ("ptx_tanh", "mufu_sin", "mufu_cos"):
        with np.load(directory / f"{name.partition('_')[2]}.npz") as store:
            for key in store:
                if key.isdigit():
                    yield name, f"binade{key}", (int(key) << 23) + np.arange(BINADE, dtype=np.uint32), unpack(store, key)
            if "turn0" in store:
                yield name, "turn", turn, np.concatenate([unpack(store, f"turn{q}") for q in range(4)])


def differences(function: Callable[[Array], Array], x: Array, y: Array) -> int:
    """How many results of the model are not those of the hardware."""
    return sum(int((function(x[i : i + CHUNK]) != y[i : i + CHUNK]).sum()) for i in range(0, len(x), CHUNK))


def planes(y: Array) -> Array:
    """The bytes of the first differences, which compress well, one row a byte."""
    steps = np.diff(y, prepend=y.dtype.type(0))
    return np.stack([(steps >> (8 * i)).astype(np.uint8) for i in range(y.dtype.itemsize)])


def main(recorded: Path, tests: Path | None = None) -> int:
    """Print the mismatches of every recording; returns the exit status."""
    wrong = 0
    samples: dict[str, dict[str, Array]] = {"special": {}, "random": {}, "turn": {}, "binades": {}}
    for name, kind, x, y in recordings(recorded):
        count = differences(FUNCTIONS[name], x, y)
        wrong += count
        print(f"{name} {kind}: {count} of {len(x)} differ")
        if kind == "special":
            samples["special"] |= {"x": x, name: y}
        elif kind.startswith("binade"):
            samples["binades"][f"{name}_{kind[6:]}"] = planes(y[:: EVERY["binade"]])
        else:
            samples[kind][name] = planes(y[:: EVERY[kind]])
    if tests:
        for kind, arrays in samples.items():
            np.savez_compressed(tests / f"mufu_trig_{kind}.npz", **arrays)
        with np.load(recorded / "lists.npz") as lists:
            if any(int(lists[f"{name}_x2_differs"]) for name in HALVES):
                raise ValueError("a x2 form is not two of the scalar form")
            np.savez_compressed(tests / "mufu_half.npz", **{name: planes(lists[name]) for name in HALVES})
        with np.load(recorded / "checks.npz") as checks:
            np.savez_compressed(tests / "mufu_trig_counts.npz", **{name: checks[name][COUNTS] for name in FUNCTIONS})
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*(Path(argument) for argument in sys.argv[1:])))
