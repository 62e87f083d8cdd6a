"""Kernels on a fake GPU: the same bytes as in the simulation, and what is said when the driver refuses or the kernel fails."""

from __future__ import annotations

import numpy as np
import pytest

import fasim
from fasim import device_array
from fasim.errors import GpuError, GpuFault, LaunchError, UsageError
from fasim.gpu.device import Device
from fasim.gpu.launch import Buffers, GpuModule
from fasim.gpu.packed import Packing
from tests.gpu.test_packed import SOURCE

FAULTS = """
#include <cstdio>
#include <cassert>
__device__ int seen;
extern "C" {
__global__ void outside(int* p) { p[1 << 20] = 1; }
__global__ void misaligned(int* p) { *(int*)((char*)p + 2) = 1; }
__global__ void trapped(int* p) { __trap(); }
__global__ void asserted(int* p) { assert(p == nullptr); }
__global__ void forever(int* p) { while (atomicAdd(p, 0) == 0) p[1] += 1; }
__global__ void fine(int* p) { p[threadIdx.x] += 1; seen = 5; }
__global__ void talk(int* p) { if (threadIdx.x < 2) printf("lane %d of %d\\n", threadIdx.x, blockDim.x); }
__global__ void dynamic(int* p) { extern __shared__ int tile[]; tile[threadIdx.x] = p[threadIdx.x]; __syncthreads();
                                  p[threadIdx.x] = tile[31 - threadIdx.x]; }
}
"""


def load(device, source=FAULTS):
    module = fasim.compile(source)
    return module, GpuModule(device, module.compiled.cubin, "sm_90")


def run(device, name, args, source=FAULTS, *, block=32, **more):
    module, loaded = load(device, source)
    packing = Packing(module.kernel(name), 1, block, args, **more)
    done = loaded.kernel(packing.launch.entry).run(packing.launch, timeout_seconds=0.05)
    packing.write_back(done.variables)
    return module, done


def scalars():
    pair = np.zeros((), np.dtype([("a", "i4"), ("b", "f4"), ("c", "f8")], align=True))
    pair["a"], pair["b"], pair["c"] = 3, 0.5, 2.5
    return pair[()]


CASES = {
    "nothing": ("nothing", lambda: []),
    "pointers": ("pointers", lambda: [np.full(1, 1.5, np.float32), np.zeros(1, np.float32), np.full(1, 3, np.int32)]),
    "views": ("pointers", lambda: [(w := np.arange(8, dtype=np.float32)), w[5:], np.full(1, 3, np.int32)]),
    "reversed": ("pointers", lambda: [np.full(1, 1.5, np.float32), np.arange(8, dtype=np.float32)[::-1], np.ones(1, np.int32)]),
    "device arrays": ("pointers", lambda: [(d := device_array(np.arange(8, dtype=np.float32))) + 6, d + 2, device_array([9], np.int32)]),
    "scalars": (
        "scalars",
        lambda: [True, -1, 255, -2, 65535, -3, 7, -4, 2**40 + 5, np.float16(1.5), np.uint16(0x4040), 10.25, -5.5, np.zeros(1, np.int32)],
    ),
    "structure": ("structure", lambda: [2, scalars(), np.zeros(4, np.int32)]),
    "template": ("weighted<2, float>", lambda: [np.zeros(1, np.float32)]),
}


def contents(args):
    return [np.asarray(a).tobytes() for a in args if isinstance(a, np.ndarray) or hasattr(a, "buffer")]


@pytest.mark.parametrize("case", CASES)
def test_the_same_bytes_as_in_the_simulation(device, case):
    name, make = CASES[case]
    ours, theirs = make(), make()
    simulated = fasim.compile(SOURCE)
    before = contents(ours)
    simulated.kernel(name).launch(1, 1, ours)
    module, _ = run(device, name, theirs, SOURCE, block=1)
    assert contents(theirs) == contents(ours)
    assert contents(ours) != before or case == "nothing"
    for symbol in ("total", "deep::counts", "weights"):
        assert np.array_equal(module.symbol(symbol).read(), simulated.symbol(symbol).read()), symbol


def test_each_launch_finds_variables_as_the_first_did(device):
    module = fasim.compile("__device__ int calls = 40;\n__global__ void count(int* o) { o[0] = ++calls; }\n")
    packing = Packing(module.kernel(), 1, 1, [np.zeros(1, np.int32)])
    kernel = GpuModule(device, module.compiled.cubin).kernel(packing.launch.entry)
    for _ in range(2):
        kernel.run(packing.launch)
        assert packing.launch.buffers[0].tolist() == [41]


def test_an_interrupt_leaves_a_kernel_alone_that_still_runs(gpu, monkeypatch):
    def interrupt(seconds):
        raise KeyboardInterrupt

    module = fasim.compile("__global__ void endless(volatile int* o) { while (o[0] == 0) {} }\n")
    packing = Packing(module.kernel(), 1, 1, [np.zeros(1, np.int32)])
    monkeypatch.setattr("fasim.gpu.launch.time.sleep", interrupt)
    with pytest.raises(KeyboardInterrupt), Device() as device:
        GpuModule(device, module.compiled.cubin).kernel(packing.launch.entry).run(packing.launch)
    assert device.broken
    assert gpu.contexts == ["made", "popped"]
    assert not gpu.late


def test_variables_are_set_and_read_back(device):
    module, loaded = load(device, SOURCE)
    module.symbol("weights").write(np.array([10, 20, 30, 40], np.int32))
    module.symbol("total").write(100.0)
    out = np.zeros(1, np.float32)
    packing = Packing(module.kernel("weighted<2, float>"), 1, 1, [out])
    done = loaded.kernel(packing.launch.entry).run(packing.launch)
    packing.write_back(done.variables)
    assert out[0] == 131.0
    assert module.symbol("total").read().tobytes() == np.float32(131).tobytes()
    assert module.symbol("deep::counts").read().tobytes() == np.array([0, 7, 0], np.int16).tobytes()


def test_a_variable_of_another_size(device):
    module, loaded = load(device)
    name = next(v.name for v in module.kernel("fine").program.variables)
    with pytest.raises(UsageError, match=r"has 4 bytes on the GPU, 3 in the PTX"):
        loaded.write(name, b"abc")
    loaded.write(name, b"\1\2\3\4")
    assert loaded.read(name) == b"\1\2\3\4"
    with pytest.raises(GpuError, match="no variable _Z5other in the machine code: named symbol not found"):
        loaded.read("_Z5other")


def test_arrays_that_cannot_be_written_stay(device):
    values = np.arange(32, dtype=np.int32)
    values.flags.writeable = False
    run(device, "fine", [values])
    assert values.tolist() == list(range(32))


def test_memory_is_given_back(gpu, device):
    run(device, "fine", [np.zeros(32, np.int32)])
    # what is left are the module's variables
    assert [each.size_bytes for each in gpu.memory.values()] == [4]
    assert gpu.late == []


def test_empty_arrays_have_addresses(device):
    buffers = Buffers(device, [np.zeros(0, np.int32), np.zeros(3, np.int8)], ["a", "b"])
    buffers.upload()
    buffers.download()
    assert len(set(buffers.addresses)) == 2
    buffers.free()


@pytest.mark.parametrize("dynamic", [128, 48 * 1024, 48 * 1024 + 1, 232448])
def test_shared_memory_is_opted_in(device, dynamic):
    values = np.arange(32, dtype=np.int32)
    run(device, "dynamic", [values], dynamic_smem_bytes=dynamic)
    assert values.tolist() == list(range(31, -1, -1))


def test_too_much_shared_memory(device, gpu):
    module, loaded = load(device)
    gpu.attributes["MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"] = 1 << 20
    packing = Packing(module.kernel("dynamic"), 1, 32, [np.zeros(32, np.int32)], dynamic_smem_bytes=232448)
    kernel = loaded.kernel("dynamic")
    object.__setattr__(packing.launch, "dynamic_smem_bytes", 240_000)
    with pytest.raises(GpuError, match=r"240,000 bytes of dynamic shared memory are too many for NVIDIA H200: invalid argument"):
        kernel.run(packing.launch)
    assert not gpu.memory


def test_printed_text_is_caught(device, capfd):
    _, done = run(device, "talk", [np.zeros(1, np.int32)])
    assert done.output == "lane 0 of 32\nlane 1 of 32\n"
    assert capfd.readouterr().out == ""


FAULTY = [
    ("outside", "an illegal memory access was encountered"),
    ("misaligned", "misaligned address"),
    ("trapped", "unspecified launch failure"),
    ("asserted", "device-side assert triggered"),
]


@pytest.mark.parametrize(("kernel", "said"), FAULTY)
def test_faults(gpu, kernel, said):
    values = np.arange(8, dtype=np.int32)
    with pytest.raises(GpuFault, match=rf"kernel {kernel} on NVIDIA H200: {said}. `fasim run`") as caught, Device() as device:
        run(device, kernel, [values])
    assert caught.value.exit_code == 1
    assert values.tolist() == list(range(8))
    # nothing that follows a fault works, so nothing is taken apart
    assert gpu.contexts == ["made", "popped"]
    assert gpu.fault == said


def test_a_kernel_that_does_not_end(gpu):
    with (
        pytest.raises(GpuFault, match=r"kernel forever on NVIDIA H200 did not end within 0.05 s. .*--timeout .*--max-instructions"),
        Device() as d,
    ):
        run(d, "forever", [np.zeros(2, np.int32)])
    assert gpu.contexts == ["made", "popped"]


def test_out_of_memory(gpu, device):
    gpu.total_bytes = 5000
    with pytest.raises(
        GpuError, match=r"no device memory for big, 4,096 of 8,192 bytes: out of memory. Make the buffers smaller"
    ) as caught:
        Buffers(device, [np.zeros(512), np.zeros(512)], ["small", "big"])
    assert caught.value.exit_code == 2


def test_no_such_kernel(device):
    with pytest.raises(GpuError, match="there is no kernel other in the machine code: named symbol not found"):
        load(device)[1].kernel("other")


def test_machine_code_of_another_gpu(device, gpu):
    gpu.capability = (8, 0)
    with pytest.raises(
        GpuError, match=r"NVIDIA H200 \(sm_90\) cannot load the machine code for sm_90: no kernel image .*: leave --arch out"
    ):
        load(device)


def test_no_machine_code(device):
    with pytest.raises(GpuError, match="cannot load the machine code: device kernel image is invalid"):
        GpuModule(device, b"\x7fELF nothing")


PTX = ".version {}\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{ ret; }}\n"


def test_ptx_is_assembled_by_the_driver(device, gpu):
    assert GpuModule(device, PTX.format("9.0")).kernel("k").static_smem_bytes == 0
    assert gpu.loaded == [PTX.format("9.0").encode() + b"\0"]
    with pytest.raises(GpuError, match=r"cannot load the PTX: .*unsupported toolchain.*version 9.5; current version is '9.0'. .*let ptxas"):
        GpuModule(device, PTX.format("9.5"))


def test_the_short_way(gpu):
    source = 'extern "C" __global__ void twice(const float* x, float* y) { y[threadIdx.x] = 2.0f * x[threadIdx.x]; }\n'
    kernel = fasim.compile(source).kernel()
    x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    assert fasim.gpu.run(kernel, 1, 32, [x, y]) == ""
    assert y.tolist() == (2 * x).tolist()
    with pytest.raises(LaunchError, match=r"block\.x is 4096; NVIDIA H200 \(sm_90\) allows 1 to 1024"):
        fasim.gpu.run(kernel, 1, 4096, [x, y])
