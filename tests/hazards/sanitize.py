"""What compute-sanitizer says of the kernels of this directory and of tests/cases, on a GPU.

    python tests/hazards/sanitize.py --out tests/hazards/data/NAME.json

Needs nvcc, compute-sanitizer, numpy and a driver. Each kernel runs in processes of its own, once without and once under each tool, so
that one which faults or hangs spoils no other (`sanitize.py launch FOLDER KEY ...`). Cases that are known to be safe go through a tool
together first, and apart only if it finds something. What the record holds already is not run again.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
CASES = HERE.parent / "cases"
sys.path[:0] = [str(HERE), str(CASES)]

import caselib  # noqa: E402
import corpus  # noqa: E402

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
#: seconds until a process counts as hanging; those known to hang get the shorter time
PATIENCE, SHORT_PATIENCE = 60, 10
CU_MAX_DYNAMIC_SMEM = 8


@dataclass(frozen=True)
class Launch:
    """A kernel to run: arguments are arrays, numpy scalars, or None for device memory that nobody wrote."""

    source: Path
    entry: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    dynamic_smem_bytes: int
    args: list[Any]
    hangs: bool
    safe: bool = False


@dataclass(frozen=True)
class Verdict:
    """What one process said. outcome: ok, error (of the launch), hang; findings: the tool's own count, None without a tool."""

    outcome: str
    findings: int | None
    message: str
    seconds: float


def launches() -> dict[str, Launch]:
    """All launches by key: KERNEL for this directory, CASE/RUN for tests/cases."""
    found: dict[str, Launch] = {}
    for row in corpus.ROWS:
        block = row.block if isinstance(row.block, tuple) else (row.block,)
        args = [value for _, value in corpus.arguments(row)]
        found[row.entry] = Launch(corpus.path(row.file), row.entry, (1,), block, 0, args, row.hangs)
    for name in caselib.names():
        for run in caselib.load(name)["runs"]:
            args = list(caselib.make_inputs(run).values())
            hangs = run["gpu"] == "may_hang"
            source = CASES / f"{name}.cu"
            safe = run["gpu"] == "safe"
            launch = Launch(source, run["entry"], tuple(run["grid"]), tuple(run["block"]), run["dynamic_smem"], args, hangs, safe)
            found[f"{name}/{run['id']}"] = launch
    return found


def driver_call(function: Any, *args: Any) -> None:
    """Call the driver.

    Raises: RuntimeError with the error's name.
    """
    if code := function(*args):
        name = ctypes.c_char_p()
        DRIVER.cuGetErrorName(code, ctypes.byref(name))
        raise RuntimeError((name.value or b"error").decode() + f" from {function.__name__}")


DRIVER: Any = None


def carry_out(chosen: Iterable[tuple[Launch, Path]]) -> None:
    """Launch on device 0, one after the other, and wait."""
    global DRIVER
    DRIVER = d = ctypes.CDLL("libcuda.so.1")
    driver_call(d.cuInit, 0)
    context = ctypes.c_void_p()
    driver_call(d.cuDevicePrimaryCtxRetain, ctypes.byref(context), 0)
    driver_call(d.cuCtxSetCurrent, context)
    for launch, cubin in chosen:
        launch_one(launch, cubin)
    driver_call(d.cuDevicePrimaryCtxRelease_v2, 0)


def launch_one(launch: Launch, cubin: Path) -> None:
    """Load, copy, launch, wait."""
    d, module, function = DRIVER, ctypes.c_void_p(), ctypes.c_void_p()
    driver_call(d.cuModuleLoad, ctypes.byref(module), str(cubin).encode())
    driver_call(d.cuModuleGetFunction, ctypes.byref(function), module, launch.entry.encode())
    if launch.dynamic_smem_bytes:
        driver_call(d.cuFuncSetAttribute, function, CU_MAX_DYNAMIC_SMEM, launch.dynamic_smem_bytes)
    kept: list[Any] = []
    for value in launch.args:
        if isinstance(value, np.generic):
            kept.append(ctypes.create_string_buffer(value.tobytes(), value.nbytes))
            continue
        pointer = ctypes.c_uint64()
        driver_call(d.cuMemAlloc_v2, ctypes.byref(pointer), ctypes.c_size_t(256 if value is None else value.nbytes))
        if value is not None:
            driver_call(d.cuMemcpyHtoD_v2, pointer, ctypes.c_void_p(value.ctypes.data), ctypes.c_size_t(value.nbytes))
        kept.append(pointer)
    pointers = (ctypes.c_void_p * max(len(kept), 1))(*(ctypes.addressof(value) for value in kept))
    sizes = [*(*launch.grid, 1, 1)[:3], *(*launch.block, 1, 1)[:3]]
    driver_call(d.cuLaunchKernel, function, *sizes, launch.dynamic_smem_bytes, None, pointers, None)
    driver_call(d.cuCtxSynchronize)


def cubin_of(source: Path, folder: Path) -> Path:
    """Where a compiled file is."""
    return folder / f"{source.stem}.cubin"


def build(sources: Iterable[Path], folder: Path) -> None:
    """Compile the files, all at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["nvcc", "-cubin", "-arch=sm_90", "-std=c++17", "-lineinfo", "-o"]
    running = {source: subprocess.Popen([*command, str(cubin_of(source, folder)), str(source)]) for source in sources}
    for source, process in running.items():
        if process.wait():
            raise SystemExit(f"nvcc cannot compile {source}")


def judge(keys: Sequence[str], tool: str, folder: Path, patience: float) -> Verdict:
    """Run one process to its end, or kill it."""
    command = [sys.executable, str(Path(__file__).resolve()), "launch", str(folder), *keys]
    if tool != "none":
        command = ["compute-sanitizer", "--tool", tool, "--print-limit", "20", "--report-api-errors", "no", *command]
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        text, _ = process.communicate(timeout=patience)
        outcome = "ok" if "LAUNCHED" in text else "error"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        text, _ = process.communicate()
        outcome = "hang"
    return Verdict(outcome, count(text) if tool != "none" else None, first_message(text), round(time.monotonic() - start, 2))


def count(text: str) -> int | None:
    """The number in the tool's summary; of what it printed, where it came to no summary."""
    if match := re.search(r"RACECHECK SUMMARY: (\d+) hazards? displayed", text):
        return int(match[1])
    if match := re.search(r"ERROR SUMMARY: (\d+) error", text):
        return int(match[1])
    return len(re.findall(r"^=+ (?:Error|Warning|Invalid|Uninitialized|Barrier error|Divergent)", text, re.MULTILINE)) or None


def first_message(text: str) -> str:
    """The first line that the tool or the launch has to say."""
    for line in text.splitlines():
        body = line.lstrip("= ").strip()
        if re.match(r"(Error|Warning|Invalid|Uninitialized|Barrier|Divergent|FAILED|.*\b(error|hazard)\b)", body) and "SUMMARY" not in body:
            return body[:200]
    return ""


def run_all(out: Path, seconds: float, processes: int, folder: Path) -> None:
    """Judge everything within a time; what did not fit is missing from the record."""
    begin = time.monotonic()
    found = launches()
    results: dict[str, dict[str, Any]] = {key: {} for key in found}
    if out.exists():
        results |= {key: value for key, value in json.loads(out.read_text())["kernels"].items() if key in found}
    missing = [(key, tool) for key in found for tool in ("none", *TOOLS) if tool not in results[key]]
    build({found[key].source for key, _ in missing}, folder)
    work: queue.Queue[tuple[tuple[str, ...], str]] = queue.Queue()
    for tool in ("none", *TOOLS):
        if together := tuple(key for key, wanted in missing if wanted == tool and found[key].safe):
            work.put((together, tool))
    # those that hang come last: they hold up the others
    for key, tool in sorted(missing, key=lambda pair: found[pair[0]].hangs):
        if not found[key].safe:
            work.put(((key,), tool))

    def worker() -> None:
        while time.monotonic() - begin < seconds:
            try:
                keys, tool = work.get_nowait()
            except queue.Empty:
                return
            verdict = judge(keys, tool, folder, SHORT_PATIENCE if found[keys[0]].hangs else PATIENCE)
            if len(keys) > 1 and (verdict.findings or verdict.outcome != "ok"):
                for key in keys:
                    work.put(((key,), tool))
                continue
            for key in keys:
                results[key][tool] = asdict(verdict)

    threads = [threading.Thread(target=worker) for _ in range(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kernels = {key: dict(sorted(value.items())) for key, value in results.items()}
    left = sum(tool not in value for value in kernels.values() for tool in ("none", *TOOLS))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({**machine(), "left": left, "kernels": kernels}, indent=1) + "\n")
    print(f"{left} left, {time.monotonic() - begin:.1f} s")


def machine() -> dict[str, str]:
    """The card, the driver, the tools and the date."""

    def first(command: list[str], pattern: str) -> str:
        text = subprocess.run(command, capture_output=True, text=True).stdout
        match = re.search(pattern, text)
        return match[1].strip() if match else text.strip()[:200]

    card = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return {
        "card": first(card, r"(.*?),"),
        "driver": first(card, r",(.*)"),
        "compute_sanitizer": first(["compute-sanitizer", "--version"], r"(?i)version\s+(\S+)"),
        "nvcc": first(["nvcc", "--version"], r"release \S+ (V\S+)"),
        "date": datetime.date.today().isoformat(),
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["launch"]:
        try:
            known = launches()
            carry_out([(known[key], cubin_of(known[key].source, Path(sys.argv[2]))) for key in sys.argv[3:]])
            print("LAUNCHED", flush=True)
        except RuntimeError as failure:
            print(f"FAILED: {failure}", flush=True)
        sys.exit(0)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=3600, help="stop to begin processes after this time")
    parser.add_argument("--processes", type=int, default=8, help="at a time")
    parser.add_argument("--build", type=Path, default=Path("/tmp/fasim_cubins"))
    chosen = parser.parse_args()
    run_all(chosen.out, chosen.seconds, chosen.processes, chosen.build)
