"""The process that ncu watches: launches what a file says, each launch between start and stop of the profiler.

    python -m fasim.gpu.replay DEVICE FILE TIMEOUT_SECONDS

FILE holds pickled pairs of machine code and PackedLaunch, one behind the other.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from fasim.errors import FasimError
from fasim.gpu.device import Device
from fasim.gpu.launch import Buffers, GpuModule
from fasim.gpu.packed import PackedLaunch


def write(file: IO[bytes], launches: Iterable[tuple[bytes | str, PackedLaunch]]) -> None:
    """Write launches for the process."""
    for code, launch in launches:
        pickle.dump((code, launch), file, protocol=5)


def replay(path: Path, device: Device, timeout_seconds: float) -> None:
    """Launch all that the file holds.

    All code stays loaded, the same code once: ncu finds instructions by their addresses, also long after they ran.
    """
    loaded: dict[bytes | str, GpuModule] = {}
    with path.open("rb") as file:
        while file.peek(1):
            code, launch = pickle.load(file)
            if code not in loaded:
                loaded[code] = GpuModule(device, code)
            kernel = loaded[code].kernel(launch.entry)
            buffers = Buffers(device, launch.buffers, launch.names)
            buffers.upload()
            kernel.prepare(launch)
            device.synchronise()
            device.driver.start_profiler()
            kernel.launch_and_wait(launch, buffers.addresses, timeout_seconds)
            device.driver.stop_profiler()
            buffers.free()


def main() -> int:
    """The process.

    Returns: its exit code.
    """
    try:
        with Device(int(sys.argv[1])) as device:
            replay(Path(sys.argv[2]), device, float(sys.argv[3]))
    except FasimError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    code = main()
    if code:
        # an orderly end would take apart what a fault has left
        os._exit(code)
