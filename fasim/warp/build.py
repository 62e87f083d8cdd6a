"""The machine compiled in a process of its own, where numba does not optimise, which our own passes do, and is not in the caller's way."""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fasim

SIGNATURE = "int64(int64, int64)"


def build(function: Callable[..., Any]) -> bytes:
    """The object file of a machine function of two numbers, pickled with the name of the function in it."""
    folder = str(Path(fasim.__file__).parent.parent)
    path = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH", ""))))
    command = [sys.executable, "-m", "fasim.warp.build", function.__module__, function.__qualname__]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONPATH": path, "NUMBA_OPT": "0"}, check=False)
    if done.returncode:
        raise RuntimeError(f"the machine cannot be compiled, exit code {done.returncode}:\n{done.stderr.decode(errors='replace')}")
    return done.stdout


def main(module: str, name: str) -> None:
    """The child: the pickled object file on standard output."""
    from fasim.numerics.native_numba import machine_ir
    from fasim.warp.jit import compile_ir

    output = os.dup(1)
    os.dup2(2, 1)  # whatever is printed must not get between
    text, symbol = machine_ir(getattr(importlib.import_module(module), name), SIGNATURE)
    with os.fdopen(output, "wb") as stream:
        stream.write(pickle.dumps((symbol, compile_ir(text, keep=symbol))))


if __name__ == "__main__":
    main(*sys.argv[1:])
