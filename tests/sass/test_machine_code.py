"""Machine code gives what PTX gives and what an H200 gave, and each instruction is executed as often as ncu counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fasim
from fasim import kernels
from fasim.cli.compare import compare_recording, is_large
from fasim.cli.launching import Call
from fasim.cli.run_options import RunOptions
from fasim.errors import FasimError, MemoryAccessError, UsageError
from fasim.gpu.recording_file import find_recordings, load
from fasim.report.match import EQUAL, FILLS, MISMATCH, TURNS
from fasim.report.matrices import fragments_at
from fasim.sass.listing import section
from fasim.trace.stepper import Stepper
from tests.trace.launches import of_cases

NAMES = kernels.names()
OPTIONS: dict[str, dict[str, Any]] = {"fa_v21": {"n": 200, "heads": 2, "batch": 1}, "fa_v20": {"n": 96, "heads": 1, "batch": 1}}


def results(name: str, isa: str, backend: str = "jit", arch: str = "sm_90") -> tuple[list[bytes], int]:
    """The bytes of all buffers after a launch of a kernel of the collection, and the warp instructions executed."""
    spec = kernels.load(name)
    chosen = {key: value for key, value in OPTIONS.get(name, {}).items() if any(option.name == key for option in spec.options)}
    options = spec.resolve(chosen)
    kernel = fasim.compile(spec.path, arch=arch, defines=spec.defines(options)).kernel(spec.entry, isa=isa)
    args = [value.value.copy() for value in spec.inputs(options, 3)]
    launch = spec.launch(options)
    result = kernel.launch(launch.grid, launch.block, args, dynamic_smem_bytes=launch.dynamic_smem_bytes, backend=backend)
    return [np.asarray(arg).tobytes() for arg in args], result.warp_instructions


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90", "sm_120"])
@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_those_of_ptx(name: str, arch: str) -> None:
    (ptx, _), (sass, count) = results(name, "ptx", arch=arch), results(name, "sass", arch=arch)
    assert sass == ptx and count > 0


@pytest.mark.parametrize("name", ["axpy", "reduce"])
def test_the_reference_machine_agrees(name: str) -> None:
    assert results(name, "sass", "reference") == results(name, "sass")


@pytest.mark.parametrize("case", ["out_atomics_shared", "bc_ldmatrix_layouts", "hz_cp_async_pipeline"])
def test_cases(case: str) -> None:
    launch = of_cases(case)
    of_ptx = launch.make()
    launch.launch(of_ptx)
    kernel = launch.kernel().module.kernel(launch.kernel().program.name, isa="sass")
    of_sass = launch.make()
    kernel.launch(launch.grid, launch.block, of_sass, dynamic_smem_bytes=launch.dynamic_smem_bytes)
    for ptx, sass in zip(of_ptx, of_sass, strict=True):
        assert np.asarray(ptx).tobytes() == np.asarray(sass).tobytes()


# --- recordings ------------------------------------------------------------------------------------------------------------------

#: the opcodes whose counts differ from ncu's, by launch, and why
DIFFERENT = {
    # groups of lanes that leave a loop come to its end one by one here; on the GPU a few of them did together
    "mandelbrot_32": {"BSYNC"},
}
#: launches whose lanes take turns at an atomic, and in which order is the GPU's
TAKE_TURNS = {"lane_spin_lock", "shared_atomics", "atomics_shared_all", "atomic_float_max_cas"}
CALL = Call([], RunOptions(isa="sass"), [], 0.0)
RECORDINGS = find_recordings([Path(__file__).parents[2] / "recordings"])[4::9]


@pytest.mark.parametrize("path", RECORDINGS, ids=[path.stem for path in RECORDINGS])
def test_an_h200_did_the_same(path: Path) -> None:
    recording = load(path)
    if is_large(recording):
        pytest.skip("takes long")
    compared = compare_recording(recording, CALL, path)
    assert compared.outputs and [output.name for output in compared.outputs if not output.equal] == []
    rows = [*compared.accesses, *compared.instructions]
    assert compared.isa == "sass" and recording.profile is not None and rows
    different = {row.text.split()[0].split(".")[0] for row in rows if row.verdict == MISMATCH}
    assert different == DIFFERENT.get(path.stem, set())
    assert compared.exit_code == (path.stem in DIFFERENT)
    # ncu misreads the conditions of copies (fasim.report.ncu_conditions); nothing else but turns is accounted for
    known = {row.verdict for row in rows} - {EQUAL, MISMATCH}
    assert known <= {FILLS, TURNS} and (TURNS in known) <= (path.stem in TAKE_TURNS)
    assert all("LDGSTS.E.BYPASS" in row.text for row in rows if row.verdict == FILLS)


# --- in the stepper --------------------------------------------------------------------------------------------------------------


def test_the_stepper_shows_registers_fragments_and_lines() -> None:
    spec = kernels.load("fa_v21")
    options = spec.resolve({"n": 64, "heads": 1, "batch": 1})
    kernel = fasim.compile(spec.path, defines=spec.defines(options)).kernel(spec.entry, isa="sass")
    launch = spec.launch(options)
    args = [value.value.copy() for value in spec.inputs(options, 0)]
    stepper = Stepper(kernel, launch.grid, launch.block, args, dynamic_smem_bytes=launch.dynamic_smem_bytes)
    found = {}
    while stepper.state.next is not None and len(found) < 3:
        stepper.step()
        event = stepper.event()
        if event is None or event.source.mnemonic in found or not event.source.mnemonic.startswith(("HMMA.16816.F32", "LDSM")):
            continue
        fragments = {held.operand: held for held in fragments_at(stepper.places, stepper.names, event.pc)}
        found[event.source.mnemonic] = fragments
        assert event.source.line and event.step in ("Q_FRAGMENTS", "K_FRAGMENTS", "V_FRAGMENTS", "S_QK", "O_PV")
        if event.source.mnemonic.startswith("HMMA"):
            after = {change.operand.name: change.new for change in event.registers}
            before = {operand.name: values for operand, values in event.float_sources}
            matrices = {}
            for operand in "AB":
                held, matrix = fragments[operand], np.zeros((16, 16))
                for cell in held.fragment.cells:
                    half = np.uint16(int(before[held.registers[cell.register]][cell.lane]) >> cell.low_bit & 0xFFFF)
                    matrix[cell.row, cell.column] = half.view(np.float16)
                matrices[operand] = matrix
            product, held = matrices["A"] @ matrices["B"], fragments["D"]
            assert fragments["C"].registers == ("RZ",) * 4
            for cell in held.fragment.cells:
                value = after[held.registers[cell.register]][cell.lane].view(np.float32)
                assert abs(value - product[cell.row, cell.column]) < 1e-3
    assert {"LDSM.16.M88.4", "HMMA.16816.F32"} <= set(found)
    assert [len(held.registers) for held in found["LDSM.16.M88.4"].values()] == [4]


# --- what is not there -----------------------------------------------------------------------------------------------------------

SOURCE = """
extern "C" __global__ void over(int *out) { out[threadIdx.x * 1000] = 1; }
extern "C" __global__ void cluster(int *out) { asm volatile("griddepcontrol.wait;"); out[threadIdx.x] = 1; }
"""


def test_a_fault_names_the_machine_code_and_its_line() -> None:
    kernel = fasim.compile(SOURCE).kernel("over", isa="sass")
    with pytest.raises(MemoryAccessError, match=r"STG\.E") as caught:
        kernel.launch(1, 32, [np.zeros(32, np.int32)])
    assert caught.value.where.line == 2


def test_an_unknown_instruction_is_named() -> None:
    module = fasim.compile(SOURCE)
    with pytest.raises(FasimError, match=r"machine code at 0x[0-9a-f]+: .*: fasim does not model \w+"):
        module.kernel("cluster", isa="sass")


SWITCH = """
__device__ unsigned calls;
__global__ void cases(int *out) {
  int i = threadIdx.x, x = i;
  for (int j = 0; j < 40; j++)
    switch ((x ^ j) % 9) {
      case 0: x += 3; break;
      case 1: x *= 5; break;
      case 2: x ^= 0x55; break;
      case 3: x = __popc(x); break;
      case 4: x = __clz(x) + i; break;
      case 5: x -= out[i]; break;
      case 6: x = x * x + 1; break;
      case 7: out[i] = x; atomicAdd(&calls, 1u); break;
      default: x = ~x;
    }
  out[i] = x + (atomicAdd(&calls, 0u) > 1000);
}
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_a_table_of_jumps_and_a_variable(arch: str) -> None:
    found = []
    for isa in ("ptx", "sass"):
        module, out = fasim.compile(SWITCH, arch=arch), np.arange(64, dtype=np.int32)
        module.kernel("cases", isa=isa).launch(1, 64, [out])
        found.append((out.tobytes(), module.symbol("calls").read(np.uint32, (1,))[0]))
    assert found[0] == found[1] and found[0][1] > 0
    code = section(fasim.compile(SWITCH, arch=arch).cubin(), "_Z5casesPi")
    assert any("BRX" in line.text for line in code.lines)


def test_a_call_of_the_driver_says_so() -> None:
    source = '#include <cstdio>\n__global__ void say(int *out) { if (out[0]) printf("%d", out[0]); out[threadIdx.x] = 1; }'
    kernel = fasim.compile(source).kernel("say", isa="sass")
    out = np.zeros(32, np.int32)
    kernel.launch(1, 1, [out])
    assert out[0] == 1
    with pytest.raises(FasimError, match="calls printf or malloc"):
        kernel.launch(1, 1, [out])


def test_an_unknown_isa() -> None:
    with pytest.raises(UsageError, match="there are ptx and sass"):
        fasim.compile(SOURCE).kernel("over", isa="sas")
