"""Loads, stores and atomics of every width and pattern of addresses, on both machines, against numpy."""

import numpy as np
import pytest

import fasim

ELEMENTS = 512
#: PTX type: numpy type, PTX register type, constraint of the C++ variable, its C++ type
TYPES = {
    "u8": (np.uint8, "h", "unsigned short", np.uint16),
    "s8": (np.int8, "h", "short", np.int16),
    "u16": (np.uint16, "h", "unsigned short", np.uint16),
    "s16": (np.int16, "r", "int", np.int32),
    "u32": (np.uint32, "r", "unsigned", np.uint32),
    "s32": (np.int32, "l", "long long", np.int64),
    "u64": (np.uint64, "l", "unsigned long long", np.uint64),
}
LANES = np.arange(32)
PATTERNS = {
    "contiguous": LANES + 3,
    "uniform": np.full(32, 7),
    "strided": 9 * LANES + 1,
    "reversed": 40 - LANES,
    "pairs": LANES // 2 + 5,
    "scattered": np.random.default_rng(1).integers(0, ELEMENTS, 32),
}
MASKS = (0xFFFFFFFF, 0xFFFF0000, 0xA5A5A5A5, 1 << 31, 0x00000070)


def source(type_: str) -> str:
    _, constraint, c_type, _ = TYPES[type_]
    bits = int(type_[1:])
    stored = f"b{bits}"
    return f"""
extern "C" __global__ void transfer(const char *in, char *out, {c_type} *wide, const int *index, unsigned mask) {{
    __shared__ __align__(16) char shared[{ELEMENTS * 8}];
    for (int i = threadIdx.x; i < {ELEMENTS * 8}; i += 32) shared[i] = 0;
    __syncwarp();
    if (mask >> threadIdx.x & 1) {{
        const int at = index[threadIdx.x] * {bits // 8};
        const unsigned s = __cvta_generic_to_shared(shared + at);
        {c_type} value, again;
        asm volatile("ld.global.{type_} %0, [%1];" : "={constraint}"(value) : "l"(in + at) : "memory");
        asm volatile("st.shared.{stored} [%0], %1;" :: "r"(s), "{constraint}"(value) : "memory");
        __syncwarp(mask);
        asm volatile("ld.shared.{type_} %0, [%1];" : "={constraint}"(again) : "r"(s) : "memory");
        wide[threadIdx.x] = again;
        asm volatile("st.global.{stored} [%0], %1;" :: "l"(out + at), "{constraint}"(value) : "memory");
    }}
}}
"""


@pytest.fixture(scope="module")
def kernels():
    return {type_: fasim.compile(source(type_)).kernel("transfer") for type_ in TYPES}


@pytest.mark.parametrize("backend", ["jit", "reference"])
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("type_", TYPES)
def test_widths_and_patterns(kernels, backend, pattern, type_):
    dtype, _, _, wide_type = TYPES[type_]
    rng = np.random.default_rng(2)
    data = rng.integers(0, 256, ELEMENTS * dtype().nbytes, np.uint8).view(dtype)
    index = PATTERNS[pattern].astype(np.int32)
    for mask in MASKS if backend == "jit" else MASKS[:3]:
        out, wide = np.zeros_like(data), np.full(32, 77, wide_type)
        kernels[type_].launch(1, 32, [data, out, wide, index, mask], backend=backend)
        active = (mask >> LANES & 1).astype(bool)
        expected = np.zeros_like(data)
        expected[index[active]] = data[index[active]]
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(wide, np.where(active, data[index].astype(wide_type), wide_type(77)))


def test_highest_lane_wins_a_shared_address():
    kernel = fasim.compile(
        'extern "C" __global__ void k(int *o, long long *p, int d) { int i = threadIdx.x / d; o[i] = threadIdx.x; p[i] = threadIdx.x; }\n'
    ).kernel()
    for divisor in (1, 2, 5, 32):
        for backend in ("jit", "reference"):
            narrow, wide = np.zeros(32, np.int32), np.zeros(32, np.int64)
            kernel.launch(1, 32, [narrow, wide, divisor], backend=backend)
            expected = np.zeros(32, np.int32)
            expected[LANES // divisor] = LANES
            assert narrow.tolist() == wide.tolist() == expected.tolist()


def test_a_buffer_at_an_odd_host_address():
    kernel = fasim.compile(
        'extern "C" __global__ void k(const unsigned short *in, unsigned short *o) { o[threadIdx.x * 3] = in[threadIdx.x * 3]; }\n'
    ).kernel()
    raw = np.random.default_rng(3).integers(0, 256, 401, np.uint8)
    data, out = raw[1:].view(np.uint16), np.zeros(200, np.uint16)
    kernel.launch(1, 32, [data, out])
    np.testing.assert_array_equal(out[:96:3], data[:96:3])


def test_local_arrays_are_per_lane():
    kernel = fasim.compile("""
extern "C" __global__ void k(int *o, int n) {
    volatile int a[16];
    for (int i = 0; i < 16; i++) a[i] = i * 100 + threadIdx.x;
    o[threadIdx.x] = a[n] + 10000 * a[(threadIdx.x + n) % 16];
}
""").kernel()
    for backend in ("jit", "reference"):
        out, threads = np.zeros(64, np.int32), np.arange(64)
        kernel.launch(1, 64, [out, 5], backend=backend)
        assert out.tolist() == (500 + threads + 10000 * ((threads + 5) % 16 * 100 + threads)).tolist()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_atomics(pattern):
    kernel = fasim.compile("""
extern "C" __global__ void k(unsigned *g, unsigned long long *w, float *f, unsigned *old, const int *index) {
    __shared__ unsigned s[512];
    for (int i = threadIdx.x; i < 512; i += 32) s[i] = 0;
    __syncwarp();
    const int at = index[threadIdx.x];
    old[threadIdx.x] = atomicAdd(s + at, threadIdx.x + 1);
    atomicMax(w + at, (unsigned long long)threadIdx.x << 33);
    atomicAdd(f + at, 0.5f);
    __syncwarp();
    g[at] = s[at];
}
""").kernel()
    index = PATTERNS[pattern].astype(np.int32)
    for backend in ("jit", "reference"):
        g, w, f, old = np.zeros(512, np.uint32), np.zeros(512, np.uint64), np.zeros(512, np.float32), np.zeros(32, np.uint32)
        kernel.launch(1, 32, [g, w, f, old, index], backend=backend)
        sums, before, most, halves = np.zeros(512, np.uint32), [], np.zeros(512, np.uint64), np.zeros(512, np.float32)
        for lane, at in enumerate(index):
            before.append(int(sums[at]))
            sums[at] += lane + 1
            most[at] = max(most[at], np.uint64(lane << 33))
            halves[at] += np.float32(0.5)
        assert old.tolist() == before
        np.testing.assert_array_equal(g, sums)
        np.testing.assert_array_equal(w, most)
        np.testing.assert_array_equal(f, halves)


@pytest.mark.parametrize("size", [4, 8, 16])
@pytest.mark.parametrize("short", [False, True], ids=["whole", "src-size"])
def test_cp_async(size, short):
    source_size = ", %3" if short else ""
    kernel = fasim.compile(f"""
extern "C" __global__ void k(const char *a, const char *b, char *out, const int *index, const int *bytes, unsigned mask, unsigned from_b) {{
    __shared__ __align__(16) char shared[{32 * size}];
    const int lane = threadIdx.x;
    for (int i = lane; i < {32 * size}; i += 32) shared[i] = 0x55;
    __syncwarp();
    if (mask >> lane & 1) {{
        const char *source = (from_b >> lane & 1 ? b : a) + index[lane] * {size};
        const unsigned target = __cvta_generic_to_shared(shared + lane * {size});
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2{source_size};" ::
                     "r"(target), "l"(source), "n"({size}), "r"(bytes[lane]) : "memory");
    }}
    asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
    __syncwarp();
    for (int i = lane; i < {32 * size}; i += 32) out[i] = shared[i];
}}
""").kernel()
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 256, (2, 64, size), np.uint8)
    index, bytes_ = rng.integers(0, 64, 32).astype(np.int32), rng.integers(0, size + 1, 32).astype(np.int32)
    for backend in ("jit", "reference"):
        for mask, from_b in ((0xFFFFFFFF, 0), (0xFFFFFFFF, 0xF00FF00F), (0x0FF0F00F, 0), (0x80000001, 0x80000000)):
            out = np.zeros((32, size), np.uint8)
            kernel.launch(1, 32, [a, b, out, index, bytes_, mask, from_b], backend=backend)
            expected = np.full((32, size), 0x55, np.uint8)
            for lane in range(32):
                if mask >> lane & 1:
                    count = bytes_[lane] if short else size
                    expected[lane] = 0
                    expected[lane, :count] = (b if from_b >> lane & 1 else a)[index[lane], :count]
            np.testing.assert_array_equal(out, expected)
