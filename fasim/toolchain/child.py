"""NVRTC in a process of its own: a program that crashes the compiler must not take the caller with it."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import fasim
from fasim.errors import CompileError, FasimError
from fasim.toolchain.compile import CompiledModule, Request


def compile_in_child(request: Request) -> CompiledModule:
    """Compile in a child process.

    Raises: what the compilation raises; CompileError if the compiler crashed.
    """
    folder = str(Path(fasim.__file__).parent.parent)
    path = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH", ""))))
    command = [sys.executable, "-m", "fasim.toolchain.child"]
    done = subprocess.run(command, input=pickle.dumps(request), capture_output=True, env={**os.environ, "PYTHONPATH": path}, check=False)
    if done.returncode == 0:
        result = pickle.loads(done.stdout)
        if isinstance(result, FasimError):
            raise result
        assert isinstance(result, CompiledModule)
        return result
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise CompileError(
            f"{request.name}: NVIDIA's compiler crashed ({name}). The fault is the compiler's: another --arch, or a part of the file less, "
            "may get round it."
        )
    raise RuntimeError(f"the compiler's process ended with {done.returncode}:\n{done.stderr.decode(errors='replace')}")


def main() -> None:
    """The child: a pickled request on standard input, the module or the error on standard output."""
    from fasim.toolchain.driver import run_compilation

    request = pickle.load(sys.stdin.buffer)
    output = os.dup(1)
    os.dup2(2, 1)  # whatever the compiler prints must not get between
    try:
        result: CompiledModule | FasimError = run_compilation(request)
    except FasimError as error:
        result = error
    with os.fdopen(output, "wb") as stream:
        stream.write(pickle.dumps(result))


if __name__ == "__main__":
    main()
