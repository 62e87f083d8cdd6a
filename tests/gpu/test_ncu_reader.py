"""A report made on an H200 by ncu 2025.3.1 against ncu's own source page of it.

data/ncu_fa_v21.ncu-rep.xz: four launches of fa_v21 (linear layout, then padded; 1 head of 128 rows, then 32 heads of 1024), with
their cubins.
data/ncu_fa_v21_source.csv.xz: what `ncu --import ... --page source --csv --print-source sass` printed of it.
"""

from __future__ import annotations

import csv
import dataclasses
import lzma
import struct
import sys
import warnings
from pathlib import Path

import pytest

from fasim.errors import FasimError, ToolMissing, UsageError
from fasim.gpu.ncu_reader import read_report, same_instruction
from fasim.sass.listing import listing

DATA = Path(__file__).parent / "data"
TOOL = "2025.3.1.0"

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import ncu_report
except ImportError:
    ncu_report = None
needs_package = pytest.mark.skipif(ncu_report is None, reason="the package ncu-report cannot be imported")

#: columns of the source page by the fields of MachineInstruction
COLUMNS = {
    "Instructions Executed": "executions",
    "Thread Instructions Executed": "threads",
    "Predicated-On Thread Instructions Executed": "threads_on",
    "L1 Wavefronts Shared": "wavefronts_shared",
    "L1 Wavefronts Shared Ideal": "wavefronts_shared_ideal",
    "Warp Stall Sampling (All Samples)": "samples",
    "# Samples": "samples",
}
#: columns of the source page by the stall reasons of the metrics
STALLS = {
    "stall_barrier": "barrier",
    "stall_branch_resolving": "branch_resolving",
    "stall_dispatch": "dispatch_stall",
    "stall_drain": "drain",
    "stall_imc": "imc_miss",
    "stall_lg": "lg_throttle",
    "stall_long_sb": "long_scoreboard",
    "stall_math": "math_pipe_throttle",
    "stall_membar": "membar",
    "stall_mio": "mio_throttle",
    "stall_misc": "misc",
    "stall_no_inst": "no_instructions",
    "stall_not_selected": "not_selected",
    "stall_selected": "selected",
    "stall_short_sb": "short_scoreboard",
    "stall_sleep": "sleeping",
    "stall_tex": "tex_throttle",
    "stall_wait": "wait",
}


def elf_files(data: bytes) -> list[bytes]:
    """The ELF files that stand in other data one behind the other; their header tables are the last thing in them."""
    found, start = [], data.find(b"\x7fELF")
    while start >= 0:
        program, sections = struct.unpack_from("<QQ", data, start + 32)
        sizes = struct.unpack_from("<HHHH", data, start + 54)
        end = start + max(program + sizes[0] * sizes[1], sections + sizes[2] * sizes[3])
        found.append(data[start:end])
        start = data.find(b"\x7fELF", end)
    return found


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "fa_v21.ncu-rep"
    path.write_bytes(lzma.decompress((DATA / "ncu_fa_v21.ncu-rep.xz").read_bytes()))
    return path


@pytest.fixture(scope="module")
def launches(path):
    return read_report(path)


@pytest.fixture(scope="module")
def listings(path):
    cubins = elf_files(path.read_bytes())
    assert len(cubins) == 4
    return [listing(cubin, "fa_v21") for cubin in cubins]


@pytest.fixture(scope="module")
def profiles(launches, listings):
    return [launch.profile(lines, TOOL) for launch, lines in zip(launches, listings, strict=True)]


@pytest.fixture(scope="module")
def pages() -> list[list[dict[str, str]]]:
    """The rows of each launch by the names of the columns."""
    text = lzma.decompress((DATA / "ncu_fa_v21_source.csv.xz").read_bytes()).decode()
    pages: list[list[dict[str, str]]] = []
    header: list[str] = []
    for row in csv.reader(text.splitlines()):
        if row[0] == "Kernel Name":
            pages.append([])
        elif row[0] == "Address":
            header = row
        else:
            pages[-1].append(dict(zip(header, row, strict=True)))
    return pages


@needs_package
def test_launches(launches):
    assert [launch.kernel for launch in launches] == ["fa_v21"] * 4
    assert [launch.grid for launch in launches] == [(1, 1, 1), (8, 32, 1)] * 2
    assert [launch.block for launch in launches] == [(128, 1, 1)] * 4
    small, large = launches[:2]
    assert large.launch["launch__registers_per_thread"] == 178
    assert large.launch["launch__occupancy_limit_registers"] == 2
    assert large.launch["launch__shared_mem_per_block_dynamic"] == 32768
    assert large.launch["sm__maximum_warps_per_active_cycle_pct"] == 12.5
    assert small.launch["sm__warps_active.avg.pct_of_peak_sustained_active"] < 6.3
    assert large.counters["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"] == 14909440
    assert large.counters["gpu__time_duration.sum"] == 93280


@needs_package
@pytest.mark.parametrize("index", range(4))
def test_every_row_of_the_source_page(profiles, pages, index):
    instructions, rows = profiles[index].instructions, pages[index]
    assert len(instructions) == len(rows) > 1200
    base = int(rows[0]["Address"], 16)
    for ours, row in zip(instructions, rows):
        assert base + ours.offset == int(row["Address"], 16)
        assert same_instruction(row["Source"], ours.text)
        assert {name: getattr(ours, field) for name, field in COLUMNS.items()} == {name: int(row[name]) for name in COLUMNS}
        wanted = {reason: int(row[name]) for name, reason in STALLS.items() if int(row[name])}
        assert ours.stalls == wanted
        assert sum(ours.stalls.values()) == ours.samples


@needs_package
@pytest.mark.parametrize("index", range(4))
def test_totals_are_the_sums_of_the_instructions(profiles, index):
    profile = profiles[index]
    assert profile.tool == TOOL
    names = {
        "inst_executed": "executions",
        "thread_inst_executed": "threads",
        "thread_inst_executed_true": "threads_on",
        "memory_l1_wavefronts_shared": "wavefronts_shared",
        "memory_l1_wavefronts_shared_ideal": "wavefronts_shared_ideal",
        "smsp__pcsamp_sample_count": "samples",
    }
    for metric, field in names.items():
        assert profile.counters[metric] == sum(getattr(line, field) for line in profile.instructions), metric
    assert profile.counters["smsp__inst_executed.sum"] == profile.counters["inst_executed"]


@needs_package
def test_loads_of_shared_memory_are_counted_alike_by_hardware_and_by_instruction(profiles):
    for profile in profiles:
        loads = sum(line.wavefronts_shared for line in profile.instructions if line.opcode.startswith(("LDS", "LDSM")))
        assert profile.counters["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == loads


@needs_package
def test_the_base_is_found_without_the_list_of_functions(launches, listings, profiles):
    for launch, lines, profile in zip(launches, listings, profiles):
        assert dataclasses.replace(launch, function_pcs=()).profile(lines, TOOL) == profile
        # the kernel may start late in what ncu lists, or have company
        (base,) = launch.function_pcs
        assert dataclasses.replace(launch, function_pcs=(base + 64, base, base - 4096)).profile(lines, TOOL) == profile
        late = {name: {pc: value for pc, value in values.items() if pc > base + 256} for name, values in launch.by_pc.items()}
        moved = dataclasses.replace(launch, function_pcs=(), by_pc=late).profile(lines, TOOL)
        assert moved.instructions[17:] == profile.instructions[17:]
        assert not any(line.executions for line in moved.instructions[:17])


@needs_package
def test_another_cubin_is_refused(launches, listings):
    linear, padded = listings[0], listings[2]
    with pytest.raises(FasimError, match=r"not made with this machine code of fa_v21: at byte 0x50 the report has 'S2R R48, .*'S2R R42"):
        launches[0].profile(padded, TOOL)
    with pytest.raises(FasimError, match=r"not made with this machine code"):
        dataclasses.replace(launches[0], function_pcs=()).profile(padded, TOOL)
    shifted = [dataclasses.replace(line, offset=line.offset - 16) for line in linear[1:]]
    with pytest.raises(FasimError, match=r"not made with this machine code"):
        launches[0].profile(shifted, TOOL)
    with pytest.raises(FasimError, match=r"counted inst_executed at byte 0x10 .* no instruction"):
        launches[0].profile([linear[0], *linear[2:]], TOOL)
    with pytest.raises(FasimError, match=r"made without the section SourceCounters"):
        dataclasses.replace(launches[0], function_pcs=(), by_pc={}).profile(linear, TOOL)
    with pytest.raises(UsageError, match="empty"):
        launches[0].profile((), TOOL)


@needs_package
@pytest.mark.parametrize("data", [b"", b"no report" * 1000])
def test_no_report(tmp_path, data):
    path = tmp_path / "x.ncu-rep"
    path.write_bytes(data)
    with pytest.raises(FasimError, match="is no report of Nsight Compute"):
        read_report(path)


def test_no_file(tmp_path):
    with pytest.raises(UsageError, match="there is no report"):
        read_report(tmp_path / "x.ncu-rep")


def test_no_package(tmp_path, monkeypatch):
    (tmp_path / "x.ncu-rep").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    with pytest.raises(ToolMissing, match="pip install ncu-report") as caught:
        read_report(tmp_path / "x.ncu-rep")
    assert caught.value.exit_code == 4


SAME = [
    ("      LDC R1, c[0x0][0x28]", "LDC R1, c[0x0][0x28]"),
    ("@!P4  IMAD R5, R0, R2, RZ", "@!P4 IMAD R5, R0.reuse, R2, RZ"),
    ("@P0   BRA 0x7f48877a1190", "@P0 BRA `(.L_x_0)"),
    ("      BRA `(.L_x_0) 0x7f48877a4cf0", "BRA `(.L_x_28)"),
    ("      RET.REL.NODEC R2, 0x7f48877a0000", "RET.REL.NODEC R2 `(fa_v21)"),
    ("      MOV R4, 0x87a0000", "MOV R4, 32@lo((k + .L_x_2@srel))"),
    ("      LDGSTS.E.128 desc[UR12][R12.64], !P0, [R61]", "LDGSTS.E.128 [R61], desc[UR12][R12.64], !P0"),
    ("      BRX R6 0x7f48877a0000", "BRX R6 -0x2c0"),
    ("      IMAD.MOV R5, RZ, RZ, R1", "IMAD.MOV.U32 R5, RZ, RZ, R1"),
]
DIFFERENT = [
    ("", "NOP"),
    ("      LDC R1, c[0x0][0x28]", "LDC R1, c[0x0][0x2c]"),
    ("@P4   IMAD R5, R0, R2, RZ", "@!P4 IMAD R5, R0, R2, RZ"),
    ("      IMAD R5, R0, R2, RZ", "@!P4 IMAD R5, R0, R2, RZ"),
    ("      IMAD R5, R0, R2, RZ", "IMAD R5, R0, R0, RZ"),
    ("      STS [R5], R2", "LDS R2, [R5]"),
    ("@P0   BRA 0x7f48877a1190", "@P1 BRA `(.L_x_0)"),
    ("      BRX R7 0x7f48877a0000", "BRX R6 -0x2c0"),
    ("@P0   MOV R1, 0x5", "@P0 MOV R1, 0x6"),
    ("@!UP0 UMOV UR1, 0x5", "@!UP0 UMOV UR1, 0x6"),
]


@pytest.mark.parametrize(("ours", "theirs"), SAME)
def test_same_instruction(ours, theirs):
    assert same_instruction(ours, theirs)


@pytest.mark.parametrize(("ours", "theirs"), DIFFERENT)
def test_different_instruction(ours, theirs):
    assert not same_instruction(ours, theirs)
