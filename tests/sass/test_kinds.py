"""Kinds of instructions that the kernels of the collection do not have: machine code gives what PTX gives, on every architecture."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import numpy as np
import pytest

import fasim
from fasim.errors import FasimError, LaunchError
from fasim.sass.listing import section
from fasim.sm.module import Module

ARCHS = ("sm_80", "sm_89", "sm_90", "sm_120")
#: mnemonics that the machine code must have, for the test to be one of them: by kernel, of all architectures or of one
KINDS: dict[str, dict[str, str]] = {
    "pairs": {"sm_120": r"SEL\.64 ISETP\.\w+\.S64 ISETP\.\w+\.U64 IMNMX\.S64 IMNMX\.U64 IADD\.64\.X"},
    "uniform_pairs": {"sm_120": r"USEL\.64|SEL\.64 U?ISETP\.\w+\.U64"},
    "uniform_switch": {"sm_80": "BRX", "sm_120": "BRXU"},
    "short_circuits": {"": "BREAK"},
    "recursion": {"": r"BMOV\.32\.CLEAR", "sm_120": r"BREAK"},
    "pointers": {"": r"CALL\.\w+\.NOINC$"},
    "virtual_functions": {"": r"CALL\.\w+\.NOINC$"},
    "spin_locks": {"": "YIELD NANOSLEEP"},
    "grid_sync": {"": r"BPT\.TRAP"},
    "groups": {"": r"BRA\.DIV R2UR$"},
    "bits_to_predicates": {"sm_120": "R2P"},
    "barriers": {"": r"BAR\.SYNC BAR\.ARV"},
    "three_way": {
        "sm_90": r"VIMNMX3$ VIMNMX3\.U32 VIMNMX3\.RELU VIMNMX3\.S16x2 VIMNMX\.U16x2 VIADDMNMX\.S16x2\.RELU VIADDMNMX\.U16x2 VIADD\.16x2",
        "sm_120": r"VIMNMX\.S32\.RELU VIMNMX\.[SU]8x4 VIADD\.U8x4 VIADD\.16x2",
    },
    "narrow_integers": {"": r"I2IP\.S8\.S32\.SAT F2I\.S16", "sm_80": r"PLOP3", "sm_120": r"VIADD\.S32\.ISAT F2IP\.U8"},
    "halves": {"": r"HSET2 FRND\.F16 F2I\.F16 F2I\.U64\.F16", "sm_90": r"MUFU\.TANH\.F16 MUFU\.EX2\.F16 MUFU\.TANH\.BF16 I2F\.BF16"},
    "bytes_of_floats": {"sm_89": r"F2FP\.SATFINITE\.E4M3 F2FP\.SATFINITE\.E5M2 F2FP\.F16\.E4M3\.UNPACK_B"},
    "doubles": {"": r"DSETP\.MIN DSETP\.MAX"},
    "generic": {"": r"QSPC ATOMS\.CAST", "sm_90": r"REDG\.E\.ADD\.F32x4"},
    "specials": {"sm_90": "ELECT", "sm_120": "CS2R|CS2UR"},
    "matrices": {"sm_80": r"DMMA\.884 IMMA\.8832 BMMA\.168256", "sm_90": r"DMMA\.8x8x4 DMMA\.16x8x8 BMMA"},
}
CTAS, THREADS, WORDS, N, DYNAMIC_BYTES = 2, 64, 2048, 5, 256


@functools.cache
def module(arch: str) -> Module:
    """The kernels for an architecture; a multiplication and an addition stay two, so that there is one result."""
    return fasim.compile(Path(__file__).parent / "data" / "kinds.cu", arch=arch, options=["--fmad=false"])


def run(kernel: fasim.Kernel, n: int = N) -> np.ndarray:
    """The output of a launch."""
    out, data = np.zeros(WORDS, np.uint32), np.random.default_rng(5).integers(0, 1 << 32, 1024, dtype=np.uint32)
    kernel.launch(CTAS, THREADS, [out, data, n], dynamic_smem_bytes=DYNAMIC_BYTES)
    return out


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", KINDS)
def test_machine_code_gives_what_ptx_gives(name: str, arch: str) -> None:
    code = section(module(arch).cubin(), name)
    found = {line.text.split(" ", 1)[-1 if line.text.startswith("@") else 0].split(" ")[0] for line in code.lines}
    for kind in f"{KINDS[name].get('', '')} {KINDS[name].get(arch, '')}".split():
        assert any(re.match(kind, mnemonic) for mnemonic in found), f"no {kind} in {sorted(found)}"
    ptx, sass = (run(module(arch).kernel(name, isa=isa)) for isa in ("ptx", "sass"))
    assert np.array_equal(ptx, sass)
    assert ptx.any() or (name == "bytes_of_floats" and arch == "sm_80")


@functools.cache
def random_module(arch: str) -> Module:
    """Programs that a generator of random ones found."""
    return fasim.compile(Path(__file__).parent / "data" / "random.cu", arch=arch, options=["--fmad=false"])


#: what ptxas makes of them for sm_120: a table of jumps that leaves the inner barrier B1 without a BREAK, a BREAK on two predicates
RANDOM = {"leaves_by_a_table": r"BSYNC\.RELIABLE B1", "leaves_on_two_conditions": r"@!P\d BREAK\.RELIABLE P\d, B\d"}


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", RANDOM)
def test_random_programs(name: str, arch: str) -> None:
    if arch == "sm_120":
        code = section(random_module(arch).cubin(), name)
        assert any(re.match(RANDOM[name], line.text) for line in code.lines)
    found = []
    for isa in ("ptx", "sass"):
        out, data = np.zeros(512, np.uint64), np.random.default_rng(7).integers(0, 1 << 32, 512, dtype=np.uint32)
        random_module(arch).kernel(name, isa=isa).launch(CTAS, THREADS, [out, data, N])
        found.append(out)
    assert np.array_equal(*found) and found[0].any()


@pytest.mark.parametrize("name", ["pairs", "groups", "recursion", "spin_locks"])
def test_the_reference_machine_agrees(name: str) -> None:
    out = [np.zeros(WORDS, np.uint32) for _ in range(2)]
    for array, backend in zip(out, ("jit", "reference"), strict=True):
        data = np.random.default_rng(5).integers(0, 1 << 32, 1024, dtype=np.uint32)
        module("sm_120").kernel(name, isa="sass").launch(1, 32, [array, data, 2], backend=backend)
    assert np.array_equal(*out) and out[0].any()


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_a_switch_takes_every_case(arch: str) -> None:
    for n in range(10):
        assert np.array_equal(*(run(module(arch).kernel("uniform_switch", isa=isa), n) for isa in ("ptx", "sass")))


POINTERS = """
__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int minus(int x) { return -x; }
__device__ int (*both[2])(int) = {twice, minus};
__constant__ int (*other[2])(int) = {minus, twice};
extern "C" __global__ void only(int *out) { int i = threadIdx.x; out[i] = both[i & 1](i) + other[i >> 1 & 1](100); }
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_pointers_of_a_single_kernel_are_places_in_its_code(arch: str) -> None:
    out = np.zeros(32, np.int32)
    fasim.compile(POINTERS, arch=arch).kernel("only", isa="sass").launch(1, 32, [out])
    i = np.arange(32)
    assert (out == np.where(i & 1, -i, 2 * i) + np.where(i >> 1 & 1, 200, -100)).all()


TRANSPOSE = """
extern "C" __global__ void transpose(unsigned *x) {
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(x[threadIdx.x]) : "r"(x[threadIdx.x]));
}
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_movm_transposes(arch: str) -> None:
    matrix = np.random.default_rng(2).integers(0, 1 << 16, (8, 8), dtype=np.uint16)
    words = matrix.reshape(-1).view(np.uint32).copy()
    fasim.compile(TRANSPOSE, arch=arch).kernel("transpose", isa="sass").launch(1, 32, [words])
    assert np.array_equal(words.view(np.uint16).reshape(8, 8), matrix.T)


def test_a_grid_that_does_not_fit_cannot_synchronise() -> None:
    kernel = module("sm_90").kernel("grid_sync", isa="sass")
    with pytest.raises(LaunchError, match="synchronises its grid"):
        kernel.launch(100_000, 64, [np.zeros(WORDS, np.uint32), np.zeros(1024, np.uint32), 1])


def test_a_lane_that_nobody_lets_through_is_found() -> None:
    source = 'extern "C" __global__ void stuck(int *out) { volatile int *v = out; if (threadIdx.x) while (v[0] == 0); out[1] = 1; }'
    kernel = fasim.compile(source).kernel("stuck", isa="sass")
    with pytest.raises(FasimError, match=r"livelock"):
        kernel.launch(1, 32, [np.zeros(32, np.int32)])
