"""The Python interface: arguments, symbols, launch limits."""

from __future__ import annotations

import numpy as np
import pytest

import fasim
from fasim.errors import LaunchError, MemoryAccessError, UnsupportedInstruction, UsageError
from fasim.sm.cta import FRESH_BYTE

SOURCE = """
#include <cuda_fp16.h>
struct Pair { int a; double b; char c[3]; };
__constant__ float factor = 2.0f;
__device__ int total[4] = {1, 2, 3, 4};
__device__ int* pointer = total + 1;
__global__ void scale(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = factor * x[i]; }
__global__ void scalars(char c, unsigned short s, int i, unsigned long long l, float f, double d, half h, bool b, double *out) {
  double v[] = {(double)c, (double)s, (double)i, (double)l, f, d, __half2float(h), (double)b};
  for (int k = 0; k < 8; k++) out[k] = v[k];
}
__global__ void by_value(Pair p, double *out) { out[0] = p.a; out[1] = p.b; out[2] = p.c[2]; }
__global__ void bump() { total[threadIdx.x] += *pointer; }
__global__ void sizes(int *o) {
  if (threadIdx.x == 0) { o[0] = gridDim.x; o[1] = gridDim.y; o[2] = gridDim.z; o[3] = blockDim.x; o[4] = blockDim.y; o[5] = blockDim.z; } }
extern __shared__ int dynamic[];
__global__ void uses_shared(int *o) { dynamic[threadIdx.x] = 1; o[threadIdx.x] = dynamic[threadIdx.x]; }
__global__ void fixed_shared(int *o) { __shared__ int a[11 * 1024]; a[threadIdx.x] = 3; o[threadIdx.x] = a[threadIdx.x]; }
__global__ __launch_bounds__(64) void bounded(int *o) { o[threadIdx.x] = 1; }
namespace deep { template <int N> __global__ void fill(int *o) { o[threadIdx.x] = N; } template __global__ void fill<7>(int *); }
"""


@pytest.fixture(scope="module")
def module():
    return fasim.compile(SOURCE)


def test_kernels_are_found_by_plain_names(module):
    assert {"scale", "scalars", "by_value", "bump"} <= {name.split("(")[0] for name in module.kernel_names}
    out = np.zeros(32, np.int32)
    module.kernel("deep::fill<7>").launch(1, 32, [out])
    assert (out == 7).all()
    with pytest.raises(UsageError, match="scale"):
        module.kernel("scal")


def test_scalars_are_converted_to_the_parameter_types(module):
    out = np.zeros(8)
    args = [-5, 65535, np.int64(-7), 2**63, 0.5, np.float32(0.25), np.float16(1.5), True, out]
    module.kernel("scalars").launch(1, 1, args)
    assert out.tolist() == [-5, 65535, -7, float(2**63), 0.5, 0.25, 1.5, 1]


GOOD = [1, 2, 3, 4, 0.5, 0.25, np.float16(1), True]


@pytest.mark.parametrize(
    "position, value, words",
    [
        (0, 256, "does not fit"),
        (0, -129, "does not fit"),
        (1, -40000, "does not fit"),
        (2, 2**32, "does not fit"),
        (2, 1.5, "float"),
        (3, 2**64, "does not fit"),
        (4, 1e39, "does not fit"),
        (4, "x", "str"),
        (5, None, "not a pointer"),
        (2, np.zeros(3), "not a pointer"),
        (8, 1.0, r"argument out of scalars is double \*, a pointer: give a buffer or null"),
        (8, 5, "a pointer: give a buffer or null"),
        (8, [1, 2], r"is double \*: pass a numpy array, not list"),
        (2, 2**31, r"argument i of scalars is int: 2147483648 does not fit \(-2147483648 to 2147483647\)"),
        (0, 128, "c of scalars is char: 128"),
        (8, np.array([None]), "objects"),
    ],
)
def test_arguments_that_do_not_fit(module, position, value, words):
    args = [*GOOD, np.zeros(8)]
    args[position] = value
    with pytest.raises(LaunchError, match=words):
        module.kernel("scalars").launch(1, 1, args)


def test_a_wrong_number_of_arguments_names_the_parameters(module):
    with pytest.raises(LaunchError, match=r"takes 3 arguments \(x: const float \*, y: float \*, n: int\), got 2"):
        module.kernel("scale").launch(1, 32, [np.zeros(1, np.float32), 1])


def test_a_structure_by_value(module):
    pair = np.zeros((), np.dtype([("a", np.int32), ("b", np.float64), ("c", np.int8, 3)], align=True))
    pair["a"], pair["b"], pair["c"] = -3, 2.5, [1, 2, 9]
    out = np.zeros(3)
    module.kernel("by_value").launch(1, 1, [pair[()], out])
    assert out.tolist() == [-3, 2.5, 9]
    with pytest.raises(LaunchError, match="24 bytes"):
        module.kernel("by_value").launch(1, 1, [np.zeros((), np.dtype("i4,f8"))[()], out])


def test_bytes_are_a_structure_by_value(module):
    raw, out = np.zeros(24, np.uint8), np.zeros(3)
    raw[0], raw[18] = 7, 9
    module.kernel("by_value").launch(1, 1, [raw, out])
    assert out.tolist() == [7, 0, 9]
    for wrong, message in ((np.zeros(23, np.uint8), "24 bytes, got 23"), (3, "24 bytes as np.uint8"), (np.zeros(3), "not a pointer")):
        with pytest.raises(LaunchError, match=message):
            module.kernel("by_value").launch(1, 1, [wrong, out])


@pytest.mark.parametrize("dtype, fits", [("f4", True), ("u4", True), ("f8", False), ("i4", False), ("f2", False), ("u8", False)])
@pytest.mark.parametrize("wrap", [np.asarray, fasim.device_array])
def test_an_array_is_what_the_pointer_points_to(module, dtype, fits, wrap):
    x, y = np.ones(32, dtype), np.zeros(32, np.float32)
    if fits:
        module.kernel("scale").launch(1, 32, [wrap(x), y, 32])
        assert y.tobytes() == (2 * x.view(np.float32)).tobytes()
        return
    wanted = rf"argument x of scale is const float \*, and the array is {x.dtype}: .*\.astype\(np.float32\).*\.view\(np.uint32\)"
    with pytest.raises(LaunchError, match=wanted):
        module.kernel("scale").launch(1, 32, [wrap(x), y, 32])
    assert not y.any()


def test_names_given_replace_those_of_the_source(module):
    with pytest.raises(LaunchError, match="argument length of scale"):
        module.kernel("scale").launch(1, 32, [None, None, 1.5], names=["a", "b", "length"])


def test_ptx_alone_knows_the_types_of_the_mangled_name(module):
    kernel = fasim.compile(module.ptx).kernel("scale")
    with pytest.raises(LaunchError, match=r"argument #0 of scale is const float\*|argument #0 of scale is const float \*"):
        kernel.launch(1, 32, [np.zeros(1), None, 0])
    plain = fasim.compile(module.ptx.replace("_Z5scalePKfPfi", "scale")).kernel("scale")
    for n in (-1, 2**32 - 1):
        plain.launch(1, 1, [np.zeros(1), np.zeros(1), n])


def test_zero_is_a_null_pointer(module):
    module.kernel("scale").launch(1, 32, [0, np.int64(0), 0])


def test_representations_are_short(module):
    kernel = module.kernel("scale")
    assert repr(kernel) == "<Kernel scale(x: const float *, y: float *, n: int) for sm_90>"
    assert repr(kernel.launch(1, 32, [None, None, 0])).startswith("<LaunchResult of scale: grid (1, 1, 1), block (32, 1, 1), ")
    assert repr(module).startswith("<Module source.cu for sm_90: kernels scale, scalars, ")
    assert repr(module.symbol("total")) == "<Symbol total: 16 bytes of int32>"


def test_dir_lists_the_public_names():
    assert set(dir(fasim)) == {*fasim.__all__, "__version__"}
    assert all(hasattr(fasim, name) for name in fasim.__all__)


def test_symbols_take_lists_in_their_own_type():
    module = fasim.compile(SOURCE)
    assert module.symbol_names == ["factor", "pointer", "total"]
    total = module.symbol("total")
    total.write([7, 8])
    assert total.read(np.int32, (2, 2)).tolist() == [[7, 8], [3, 4]]
    module.symbol("factor").write(3)
    assert module.symbol("factor").read(np.float32).tolist() == [3]
    for symbol, values, message in [
        ("total", [1.5], "takes int32 numbers"),
        ("total", [2**31], "takes int32 numbers"),
        ("total", ["a"], "takes int32 numbers"),
        ("total", [[1], [2, 3]], "takes int32 numbers"),
        ("total", np.zeros(2), r"has i32 elements, got float64: write .astype\(np.int32\) or .view\(np.uint32\)"),
        ("pointer", [1], "write an array with a dtype"),
        ("total", [0] * 5, "holds 16 bytes, got 20"),
    ]:
        with pytest.raises(UsageError, match=message):
            module.symbol(symbol).write(values)
    for dtype, shape in (("f16x", None), (np.int32, (3,)), (np.dtype("V3"), None), (object, None)):
        with pytest.raises(UsageError, match="symbol total of 16 bytes cannot be read as"):
            total.read(dtype, shape)


def test_a_source_without_kernels():
    with pytest.raises(UsageError, match=r"source.cu has no kernel: no function is marked __global__"):
        fasim.compile("__device__ int x;\n").kernel()


def test_symbols_last_over_launches_and_relocations_hold_addresses():
    module = fasim.compile(SOURCE)
    assert module.symbol("total").read(np.int32).tolist() == [1, 2, 3, 4]
    module.kernel("bump").launch(1, 4)
    assert module.symbol("total").read(np.int32).tolist() == [3, 4, 5, 6]
    module.symbol("factor").write(np.float32(10))
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    module.kernel("scale").launch(1, 32, [x, y, 8])
    assert (y == 10 * x).all()
    with pytest.raises(UsageError, match=r"factor.*total"):
        module.symbol("nothing")
    with pytest.raises(UsageError, match="4 bytes"):
        module.symbol("factor").write(np.zeros(2, np.float32))


def test_arrays_that_are_not_contiguous_or_not_writeable(module):
    base = np.zeros((8, 4), np.float32)
    column, x = base[:, 1], np.arange(8, dtype=np.float32)
    x.flags.writeable = False
    module.kernel("scale").launch(1, 32, [x, column, 8])
    assert (base[:, 1] == 2 * x).all() and not base[:, 0].any()


def test_device_arrays_with_an_offset_and_views_of_one_array(module):
    data = fasim.device_array(np.arange(16), np.float32)
    module.kernel("scale").launch(1, 32, [data, data + 8, 8])
    assert np.asarray(data)[8:].tolist() == [2.0 * i for i in range(8)]
    whole = np.arange(16, dtype=np.float32)
    module.kernel("scale").launch(1, 32, [whole, whole[8:], 8])
    assert whole[8:].tolist() == [2.0 * i for i in range(8)]


def test_device_arrays_keep_their_address():
    source = """__device__ int *kept;
__global__ void keep(int *p) { kept = p; }
__global__ void follow() { kept[threadIdx.x] += 10 * threadIdx.x; }"""
    module = fasim.compile(source)
    spare, data = fasim.device_array(np.zeros(100, np.int32)), fasim.device_array(np.ones(4, np.int32))
    module.kernel("keep").launch(1, 1, [data + 1])
    del spare
    module.kernel("follow").launch(1, 3)
    assert data.data.tolist() == [1, 1, 11, 21]
    del data
    with pytest.raises(MemoryAccessError, match="out of bounds"):
        module.kernel("follow").launch(1, 3)


def test_empty_is_filled_so_that_missing_writes_show():
    assert (fasim.empty((2, 3), np.uint8) == FRESH_BYTE).all()
    assert np.isnan(fasim.empty(5, np.float32)).all()


def test_a_zero_size_array(module):
    module.kernel("scale").launch(1, 32, [np.zeros(0, np.float32), np.zeros(0, np.float32), 0])


def test_grid_and_block_sizes(module):
    out = np.zeros(6, np.int32)
    module.kernel("sizes").launch((2, 3, 4), (8, 2, 2), [out])
    assert out.tolist() == [2, 3, 4, 8, 2, 2]


@pytest.mark.parametrize(
    "kernel, grid, block, keywords, words",
    [
        ("uses_shared", 0, 32, {}, "grid.x is 0"),
        ("uses_shared", (1, 65536), 32, {}, "grid.y is 65536"),
        ("uses_shared", 1, 1025, {}, "block.x is 1025"),
        ("uses_shared", 1, (32, 33), {}, "1056 threads"),
        ("uses_shared", 1, (1, 1, 65), {}, "block.z is 65"),
        ("uses_shared", (1, 1, 1, 1), 32, {}, "one to three"),
        ("uses_shared", 1, 1.5, {}, "one to three"),
        ("uses_shared", 1, 32, {"dynamic_smem_bytes": 232449}, "232448"),
        ("uses_shared", 1, 32, {"dynamic_smem_bytes": 49153, "opt_in": False}, "opt_in=True allows up to 232448"),
        ("uses_shared", 1, 32, {"dynamic_smem_bytes": -1}, "-1 bytes"),
        ("fixed_shared", 1, 32, {"dynamic_smem_bytes": 190000}, "45056 static"),
        ("bounded", 1, 96, {}, "64 threads"),
        ("bounded", 1, 32, {"backend": "gpu"}, "jit and reference"),
    ],
)
def test_launches_that_the_driver_would_refuse(module, kernel, grid, block, keywords, words):
    with pytest.raises(UsageError, match=words):
        module.kernel(kernel).launch(grid, block, [np.zeros(64, np.int32)], **keywords)


def test_registers_limit_the_threads_of_a_cta():
    body = "".join(f"x{i} = x{i} * x{(i * 7 + 3) % 100} + s;" for i in range(100))
    source = (
        'extern "C" __global__ void k(float *o, int n) { float s = o[0];'
        + "".join(f"float x{i} = o[{i}];" for i in range(100))
        + f"for (int j = 0; j < n; j++) {{ {body} }}"
        + "".join(f"o[{i}] = x{i};" for i in range(100))
        + "}"
    )
    kernel = fasim.compile(source).kernel("k")
    assert kernel.registers > 64
    with pytest.raises(LaunchError, match=rf"{kernel.registers} registers a thread"):
        kernel.launch(1, 1024, [np.zeros(100, np.float32), 1])
    kernel.launch(1, 256, [np.zeros(100, np.float32), 1])


@pytest.mark.parametrize("arch, limit", [("sm_80", 166912), ("sm_89", 101376), ("sm_90", 232448), ("sm_120", 101376)])
def test_shared_memory_up_to_the_limit_of_the_architecture(arch, limit):
    kernel = fasim.compile(SOURCE, arch=arch).kernel("uses_shared")
    out = np.zeros(32, np.int32)
    kernel.launch(1, 32, [out], dynamic_smem_bytes=limit)
    assert (out == 1).all()
    with pytest.raises(LaunchError):
        kernel.launch(1, 32, [out], dynamic_smem_bytes=limit + 1)


def test_what_is_not_modelled_is_named_before_anything_runs():
    ptx = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k()
{
    wgmma.fence.sync.aligned;
    ret;
}
"""
    with pytest.raises(UnsupportedInstruction, match=r"<ptx>:7: 'wgmma.fence.sync.aligned;': fasim does not model .*wgmma"):
        fasim.compile(ptx, arch="sm_90a").kernel("k")


def test_an_instruction_newer_than_the_target():
    ptx = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
    .reg .b32 %r<3>;
    elect.sync %r1|%p1, 0xffffffff;
    ret;
}
""".replace(".reg .b32 %r<3>;", ".reg .b32 %r<3>; .reg .pred %p<2>;")
    with pytest.raises(UnsupportedInstruction, match="needs sm_90, the target is sm_80"):
        fasim.compile(ptx, arch="sm_80").kernel("k")
