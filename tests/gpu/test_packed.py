"""A launch as bytes: parameters of every kind, addresses among them, buffers, variables."""

from __future__ import annotations

import numpy as np
import pytest

import fasim
from fasim import device_array
from fasim.arch import ARCHITECTURES
from fasim.errors import LaunchError, NotModelled
from fasim.gpu.packed import Packing, Pointer

SOURCE = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
struct Pair { int a; float b; double c; };
extern "C" {
__global__ void nothing() {}
__global__ void pointers(const float* a, float* b, int* c) { b[0] = a[0] + c[0]; }
__global__ void scalars(bool t, signed char i8, unsigned char u8, short i16, unsigned short u16, int i32, unsigned u32, long long i64,
                        unsigned long long u64, __half h, __nv_bfloat16 b, float f, double d, int* o) {
  o[0] = t + i8 + u8 + i16 + u16 + i32 + u32 + i64 + u64 + (int)(float)h + (int)(float)b + (int)f + (int)d;
}
__global__ void structure(int n, Pair pair, int* o) { o[n] = pair.a + pair.b + pair.c; }
}
__constant__ int weights[4] = {1, 2, 3, 4};
__device__ float total = 0.5f;
__device__ int* where = nullptr;
__device__ int place[2];
__device__ int* fixed = place;
namespace deep { __device__ short counts[3]; }
template <int N, class T> __global__ void weighted(T* o) {
  deep::counts[1] = 7;
  total += weights[N] + (where == nullptr) + fixed[0];
  o[0] = total;
}
template __global__ void weighted<2, float>(float*);
"""


@pytest.fixture(scope="module")
def module():
    return fasim.compile(SOURCE)


def pack(module, kernel, args, **more):
    return Packing(module.kernel(kernel), 1, 32, args, **more)


def test_no_parameters(module):
    launch = pack(module, "nothing", []).launch
    assert (launch.params, launch.pointers, launch.buffers, launch.names) == (b"", (), (), ())
    assert launch.parameters([]) == b""
    assert (launch.entry, launch.title, launch.grid, launch.block) == ("nothing", "nothing", (1, 1, 1), (32, 1, 1))


def test_addresses_take_the_places_of_pointers(module):
    a, b, c = np.arange(4, dtype=np.float32), np.zeros(4, np.float32), np.zeros(2, np.int32)
    launch = pack(module, "pointers", [a, b, c], names=("in", "out", "n")).launch
    assert launch.pointers == (Pointer(0, 0, 0), Pointer(8, 1, 0), Pointer(16, 2, 0))
    assert launch.names == ("in", "out", "n")
    assert [buffer is array for buffer, array in zip(launch.buffers, (a, b, c))] == [True] * 3
    assert launch.parameters([0x100, 0x7F0012345600, 2**64 - 256]) == bytes.fromhex("0001000000000000 0056341200 7f0000 00ffffffffffffff")


VIEWS = [
    # arguments as slices of one array of eight floats; the buffers that it takes, and pointers as (buffer, delta)
    ([slice(0, 8), slice(4, 8)], 1, [(0, 0), (0, 16)]),
    ([slice(0, 8), slice(0, 8)], 1, [(0, 0), (0, 0)]),
    ([slice(0, 4), slice(4, 8)], 2, [(0, 0), (1, 0)]),
]


@pytest.mark.parametrize(("slices", "buffers", "pointers"), VIEWS)
def test_views_of_one_array_keep_their_distance(module, slices, buffers, pointers):
    whole = np.arange(8, dtype=np.float32)
    launch = pack(module, "pointers", [*(whole[each] for each in slices), np.zeros(1, np.int32)]).launch
    assert len(launch.buffers) == buffers + 1
    assert [(pointer.buffer, pointer.delta_bytes) for pointer in launch.pointers[:2]] == pointers


@pytest.mark.parametrize("elements", [-2, 0, 3, 8])
def test_pointers_into_device_arrays(module, elements):
    unused, used = device_array(np.ones(100)), device_array(np.arange(8, dtype=np.float32))
    launch = pack(module, "pointers", [used, used + 3, device_array(np.zeros(1, np.int32))]).launch
    assert [pointer.delta_bytes for pointer in launch.pointers] == [0, 12, 0]
    assert [buffer.nbytes for buffer in launch.buffers] == [32, 4]
    assert unused.data.sum() == 100
    if elements >= 0:
        moved = pack(module, "pointers", [used + elements, used, device_array(np.zeros(1, np.int32))]).launch
        assert moved.pointers[0] == Pointer(0, moved.pointers[1].buffer, 4 * elements)


def test_a_null_pointer_is_zero(module):
    launch = pack(module, "pointers", [None, np.zeros(1, np.float32), None]).launch
    assert launch.pointers == (Pointer(8, 0, 0),)
    assert launch.parameters([0x1234]) == bytes(8) + (0x1234).to_bytes(8, "little") + bytes(8)


def test_scalars_of_all_types(module):
    values = [True, -1, 255, -2, 65535, -3, 2**32 - 1, -4, 2**64 - 1, np.float16(1.5), np.uint16(0xBFC0), 0.25, -0.5]
    launch = pack(module, "scalars", [*values, np.zeros(1, np.int32)]).launch
    expected = bytes.fromhex(
        "01 ff ff 00 feff ffff fdffffff ffffffff fcffffffffffffff ffffffffffffffff 003e c0bf 0000803e 000000000000e0bf"
    )
    # by alignment: the bytes of a C structure
    fields = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "u2", "u2", "f4", "f8", "u8"]
    layout = np.dtype({"names": [str(i) for i in range(14)], "formats": fields}, align=True)
    record = np.frombuffer(launch.params.ljust(layout.itemsize, b"\0"), layout)[0]
    got = b"".join(np.asarray(record[name]).tobytes() for name in layout.names[:13])
    assert got == expected.replace(b"\x01\xff\xff\x00", b"\x01\xff\xff", 1)
    assert launch.pointers == (Pointer(layout.fields["13"][1], 0, 0),)


def test_structures_by_value(module):
    pair = np.zeros((), np.dtype([("a", "i4"), ("b", "f4"), ("c", "f8")], align=True))
    pair["a"], pair["b"], pair["c"] = 3, 0.5, 2.0
    for value in (pair[()], np.frombuffer(pair.tobytes(), np.uint8)):
        launch = pack(module, "structure", [1, value, np.zeros(2, np.int32)]).launch
        assert launch.params[:4] == b"\1\0\0\0"
        assert launch.params[8:24] == pair.tobytes()
        assert launch.pointers == (Pointer(24, 0, 0),)


@pytest.mark.parametrize("make", [lambda a: a[::2], lambda a: a[::-1], lambda a: a.reshape(4, 4).T])
def test_arrays_that_are_not_contiguous_are_written_back(module, make):
    memory = np.arange(16, dtype=np.float32)
    given = make(memory)
    packing = pack(module, "pointers", [np.zeros(4, np.float32), given, np.zeros(1, np.int32)])
    buffer = packing.launch.buffers[1]
    assert buffer.flags.c_contiguous
    assert buffer.tobytes() == np.ascontiguousarray(given).tobytes()
    buffer[...] += 100
    before = given.copy()
    packing.write_back({})
    assert given.tobytes() == (before + 100).tobytes()


def test_variables(module):
    packing = pack(module, "weighted<2, float>", [np.zeros(1, np.float32)])
    variables = {variable.title: variable for variable in packing.launch.variables}
    # constants are no outputs, and addresses of the GPU would mean nothing here
    assert {title: v.content for title, v in variables.items() if v.read_back} == {
        "total": None,
        "deep::counts": None,
        "where": None,
        "place": None,
    }
    assert packing.launch.entry.startswith("_Z8weighted")
    assert variables["deep::counts"].size_bytes == 6


def test_strings_of_assert_are_no_variables():
    module = fasim.compile("#include <cassert>\n__device__ int seen;\n__global__ void k(int* p) { assert(p); seen = 1; }\n")
    assert [variable.title for variable in pack(module, "k", [None]).launch.variables] == ["seen"]


def test_variables_that_were_set_and_what_the_launch_left():
    module = fasim.compile(SOURCE)
    module.symbol("weights").write(np.array([9, 8, 7, 6], np.int32))
    module.symbol("total").write(2.5)
    packing = pack(module, "weighted<2, float>", [np.zeros(1, np.float32)])
    variables = {variable.title: variable for variable in packing.launch.variables}
    assert variables["weights"].content == np.array([9, 8, 7, 6], np.int32).tobytes()
    assert not variables["weights"].read_back
    assert variables["total"].content == np.float32(2.5).tobytes()
    assert variables["place"].content is None
    packing.write_back({variables["total"].name: np.float32(-1).tobytes()})
    assert module.symbol("total").read().tobytes() == np.float32(-1).tobytes()
    assert module.symbol("weights").read().tobytes() == np.array([9, 8, 7, 6], np.int32).tobytes()


@pytest.mark.parametrize(
    ("grid", "block", "smem", "message"),
    [
        (1, 1025, 0, r"block.x is 1025; .*allows 1 to 1024"),
        ((1, 65536), 1, 0, r"grid.y is 65536; .*allows 1 to 65535"),
        (0, 1, 0, r"grid.x is 0"),
        (1, 1, 232449, r"needs 232449 bytes of shared memory .*allows 232448"),
        (1, 1, -1, "cannot be -1 bytes"),
    ],
)
def test_what_no_gpu_takes_is_refused_before(module, grid, block, smem, message):
    with pytest.raises(LaunchError, match=message):
        Packing(module.kernel("nothing"), grid, block, [], dynamic_smem_bytes=smem)


def test_the_limits_are_those_of_the_gpu(module):
    assert Packing(module.kernel("nothing"), 1, 32, [], dynamic_smem_bytes=200_000).launch.dynamic_smem_bytes == 200_000
    with pytest.raises(LaunchError, match="sm_120 allows 101376"):
        Packing(module.kernel("nothing"), 1, 32, [], dynamic_smem_bytes=200_000, arch=ARCHITECTURES[120])


def test_a_grid_that_synchronises(tmp_path):
    source = "#include <cooperative_groups.h>\n__global__ void k() { cooperative_groups::this_grid().sync(); }\n"
    with pytest.raises(NotModelled, match="no cooperative launch") as caught:
        Packing(fasim.compile(source).kernel("k"), 1, 32)
    assert caught.value.exit_code == 3
