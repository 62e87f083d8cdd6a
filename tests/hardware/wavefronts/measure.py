"""Measures wavefronts with Nsight Compute on a GPU; needs nvcc, ncu, cupy and numpy.

    OPS=regex PATTERNS=regex python -m tests.hardware.wavefronts.measure FOLDER

(both variables narrow what is measured, by default everything)
writes FOLDER/hardware.csv.gz (one launch an access: hardware counters, source page, machine instructions), FOLDER/source_page.csv.gz
(many accesses a launch: source page alone), FOLDER/bypass_pairs.json and FOLDER/about.json. The card's settings are left alone.
"""

from __future__ import annotations

import csv
import datetime
import glob
import gzip
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from tests.hardware.wavefronts import kernels
from tests.hardware.wavefronts.patterns import Access, accesses, bypass_accesses, bypass_pairs, copies, wide_loads, zero_filled

#: hardware counters by the column they go into; misc is what the measuring kernel itself costs
HARDWARE = {
    "wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "misc": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_misc.sum",
    "ld": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "st": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "atom": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",
    "conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
}
SOURCE_METRICS = ["memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal", "inst_executed"]
PER_KERNEL = 256
SHARED = re.compile(r"\b(LDS|STS|LDSM|STSM|LDGSTS|ATOMS|LD|ST|ATOM|RED)\b")


def plan() -> tuple[list[Access], list[Access]]:
    """What is measured one launch each, and what many a launch."""
    single, bulk = [], []
    for number, (op, (width, _)) in enumerate(kernels.STEPS.items()):
        if op.endswith(".zfill"):
            single += zero_filled(op[:-6], width, 10, number)
            bulk += zero_filled(op[:-6], width, 140, 1000 + number)
        elif op == "LDGSTS.cg16":
            single += bypass_accesses(36, 7)
            bulk += bypass_accesses(2268, 8) + bypass_pairs()
        elif "LDGSTS" in op:
            single += copies(op, width, 42, number)
            bulk += copies(op, width, 420, 2000 + number)
        else:
            full = "LDSM" in op or "STSM" in op
            important = op in ("LDS.32", "LDS.64", "LDS.128", "STS.32", "STS.64", "STS.128", "ATOMS.add")
            single += accesses(op, width, 63 if important else 18 if op[:3] in ("ATO", "RED") else 24, number, full)
            if op != "SHFL":  # the source page has nothing for it
                bulk += accesses(op, width, 256 if op in ("LDS.64", "LDS.128") else 96, 2000 + number, full)
    bulk += wide_loads(768, 9)
    for op, width in (("LDS.32", 4), ("LDS.128", 16), ("STS.32", 4)):
        single.append(Access(op, "nobody", [width * lane for lane in range(32)], 0))
    for op, width in (("LDS.32", 4), ("LDS.64", 8), ("LDS.128", 16), ("STS.64", 8)):
        for threads in (1, 5, 8, 16, 17, 24, 31):
            for access in [a for a in accesses(op, width, 21, threads) if a.name in ("contig", "bcast", "pair", "xor2_few")]:
                access.threads, access.mask = threads, (1 << threads) - 1
                single.append(access)
    chosen = re.compile(os.environ.get("OPS", ""))
    patterns = re.compile(os.environ.get("PATTERNS", ""))
    return tuple([a for a in some if chosen.search(a.op) and patterns.search(a.name)] for some in (single, bulk))  # type: ignore[return-value]


def table(access: Access) -> np.ndarray:
    """The words that a step reads."""
    taking_part = [access.mask >> lane & 1 for lane in range(32)]
    return np.array([access.offsets, access.sources, taking_part, access.sizes or [0] * 32], np.int32)


def compile_all(bulk: list[tuple[str, int, list[Access]]], folder: Path) -> None:
    """Cubins of all kernels, named by their symbol."""
    single, _ = launches()
    texts = {kernels.symbol("single", op): kernels.kernel("single", op, 1) for op in dict.fromkeys(a.op for a in single)}
    texts |= {kernels.symbol("bulk", op, part): kernels.kernel("bulk", op, len(rows), part) for op, part, rows in bulk}

    def build(item: tuple[str, str]) -> str:
        path = folder / f"{item[0]}.cu"
        path.write_text(item[1])
        done = subprocess.run(
            ["nvcc", "-arch=sm_90", "-cubin", "-o", str(path.with_suffix(".cubin")), str(path)], capture_output=True, text=True
        )
        return f"{item[0]}: {done.stderr}" if done.returncode else ""

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for problem in filter(None, pool.map(build, texts.items())):
            print(problem, flush=True)


def launches() -> tuple[list[Access], list[tuple[str, int, list[Access]]]]:
    """Launches of one access, then of several."""
    single, bulk = plan()
    by_kind: dict[tuple[str, int, bool], list[Access]] = {}
    for access in bulk:
        # copies: lanes that do not take part leave the kernel
        by_kind.setdefault((access.op, access.mask if "LDGSTS" in access.op else 0, access.name == "two_lanes"), []).append(access)
    pieces = [(kind[0], rows[i : i + PER_KERNEL]) for kind, rows in by_kind.items() for i in range(0, len(rows), PER_KERNEL)]
    return single, [(op, number, rows) for number, (op, rows) in enumerate(pieces)]


def run(folder: Path) -> None:
    """Launch everything once, in order (under ncu)."""
    import cupy

    single, parts = launches()
    source, out = cupy.asarray(np.zeros(1 << 16, np.uint8)), cupy.asarray(np.zeros(4096, np.uint32))
    for symbol, rows in [(kernels.symbol("single", a.op), [a]) for a in single] + [
        (kernels.symbol("bulk", op, part), rows) for op, part, rows in parts
    ]:
        cubin = folder / f"{symbol}.cubin"
        if cubin.exists():
            words = cupy.asarray(np.stack([table(access) for access in rows]))
            cupy.RawModule(path=str(cubin)).get_function(symbol)((1,), (rows[0].threads,), (words, source, out))
            cupy.cuda.runtime.deviceSynchronize()


def profile(folder: Path) -> list[Any]:
    """Actions of the report, in order of launch."""
    report = folder / "report.ncu-rep"
    command = [
        "ncu",
        "--clock-control",
        "none",
        "--kernel-name",
        "regex:^(single|bulk)_",
        "--metrics",
        ",".join([*HARDWARE.values(), *SOURCE_METRICS]),
    ]
    command += ["-f", "-o", str(report), sys.executable, "-m", "tests.hardware.wavefronts.measure", "--run", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    print(done.stdout[-1500:], done.stderr[-1500:], flush=True)
    sys.path += glob.glob("/opt/nvidia/nsight-compute/*/extras/python")
    import ncu_report

    context = ncu_report.load_report(str(report))
    return [
        context.range_by_idx(r).action_by_idx(i) for r in range(context.num_ranges()) for i in range(context.range_by_idx(r).num_actions())
    ]


def instructions(action: Any) -> list[tuple[str, int, int, int]]:
    """Machine instructions that can access shared memory, in program order: text, executions, wavefronts, ideal wavefronts."""
    found: dict[int, dict[str, int]] = {}
    for name in SOURCE_METRICS:
        metric = action.metric_by_name(name)
        ids = metric.correlation_ids()
        for i in range(metric.num_instances()):
            found.setdefault(ids.as_uint64(i), {})[name] = metric.as_uint64(i)
    result = []
    for pc, values in sorted(found.items()):
        text = action.sass_by_pc(pc)
        if SHARED.search(text) and "LDS RZ" not in text:
            result.append((text, values.get("inst_executed", 0), *(values.get(name, 0) for name in SOURCE_METRICS[:2])))
    return result


def words(values: list[int]) -> str:
    """A list as one field."""
    return " ".join(map(str, values))


def of_copy(access: Access) -> list[str]:
    """The fields that only copies have: sources and source bytes."""
    return [words(access.sources), words(access.sizes)] if "LDGSTS" in access.op else ["", ""]


def write(folder: Path, actions: list[Any]) -> None:
    """The tables."""
    single, parts = launches()
    by_name: dict[str, list[Any]] = {}
    for action in actions:
        by_name.setdefault(action.name(), []).append(action)
    with gzip.open(folder / "hardware.csv.gz", "wt", newline="") as file:
        out = csv.writer(file)
        out.writerow(["op", "pattern", "threads", "mask", *HARDWARE, "instructions", "offsets", "sources", "sizes"])
        for access in single:
            queue = by_name.get(kernels.symbol("single", access.op))
            if queue:
                action = queue.pop(0)
                counters = [int(action.metric_by_name(name).as_double()) for name in HARDWARE.values()]
                steps = "|".join(";".join(map(str, step)) for step in instructions(action))
                copies = [words(access.sources), words(access.sizes)] if "LDGSTS" in access.op else ["", ""]
                out.writerow(
                    [access.op, access.name, access.threads, f"{access.mask:#x}", *counters, steps, words(access.offsets), *copies]
                )
    pairs = []
    with gzip.open(folder / "source_page.csv.gz", "wt", newline="") as file:
        out = csv.writer(file)
        out.writerow(["op", "pattern", "mask", "wavefronts", "ideal", "offsets", "sources", "sizes"])
        for op, part, rows in parts:
            queue = by_name.get(kernels.symbol("bulk", op, part), [])
            steps = [s for s in instructions(queue[0]) if not re.search(r"\b(LD|ST)\.E", s[0]) or op[:3] in ("LD.", "ST.")] if queue else []
            if op[:3] in ("LD.", "ST."):
                steps = [s for s in steps if s[2]]
            if len(steps) != len(rows):
                print(f"{op} {part}: {len(rows)} accesses are {len(steps)} instructions: {steps[:3]}", flush=True)
                continue
            for access, (_, _, actual, ideal) in zip(rows, steps, strict=True):
                if access.name == "two_lanes":
                    pairs.append((actual, ideal))
                    continue
                out.writerow([op, access.name, f"{access.mask:#x}", actual, ideal, words(access.offsets), *of_copy(access)])
    text = {
        "order": "s0 + 8 d0 + 64 s1 + 512 d1",
        "wavefronts": "".join(str(p[0]) for p in pairs),
        "ideal": "".join(str(p[1]) for p in pairs),
    }
    (folder / "bypass_pairs.json").write_text(json.dumps(text))


def about() -> dict[str, str]:
    """What the measurement was made with."""

    def first(command: str, pattern: str) -> str:
        found = re.search(pattern, subprocess.run(command.split(), capture_output=True, text=True).stdout)
        return found.group(1) if found else ""

    return {
        "card": first("nvidia-smi --query-gpu=name --format=csv,noheader", r"(.+)"),
        "driver": first("nvidia-smi --query-gpu=driver_version --format=csv,noheader", r"(.+)"),
        "nvcc": first("nvcc --version", r"V([\d.]+)"),
        "ncu": first("ncu --version", r"Version ([\d.]+)"),
        "date": datetime.date.today().isoformat(),
    }


def main() -> None:
    """Build, profile, write."""
    if sys.argv[1] == "--run":
        run(Path(sys.argv[2]))
        return
    folder = Path(sys.argv[1])
    work = Path("/tmp/wavefronts")
    work.mkdir(exist_ok=True)
    (folder / "about.json").write_text(json.dumps(about(), indent=1))
    _, parts = launches()
    compile_all(parts, work)
    print(datetime.datetime.now(), "compiled", flush=True)
    actions = profile(work)
    print(datetime.datetime.now(), len(actions), "launches profiled", flush=True)
    write(folder, actions)


if __name__ == "__main__":
    main()
