"""What fasim does not model is refused by the name of the CUDA feature, with the person's own line, before anything runs."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fasim
from fasim.errors import MemoryAccessError, UnsupportedInstruction

SOURCES = {
    "cuda::barrier": (
        """#include <cuda/barrier>
__global__ void k(int *o) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  bar.arrive_and_wait();
  o[threadIdx.x] = 1;
}""",
        "asynchronous barriers in shared memory",
        r"source.cu:[46]",
    ),
    "textures": (
        """__global__ void k(cudaTextureObject_t t, float *o) {
  o[threadIdx.x] = tex1D<float>(t, threadIdx.x);
}""",
        "textures",
        r"source.cu:2",
    ),
    "clusters": (
        """#include <cooperative_groups.h>
__global__ void k(int *o) {
  cooperative_groups::this_cluster().sync();
  o[threadIdx.x] = 1;
}""",
        "thread block clusters",
        r"source.cu:3",
    ),
    "tma": (
        """__global__ void k(unsigned s, void *g, unsigned bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 16, [%2];" :: "r"(s), "l"(g), "r"(bar));
}""",
        "Tensor Memory Accelerator|thread block clusters",
        r"source.cu:2",
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_features_by_name_and_own_line(name):
    source, feature, line = SOURCES[name]
    with pytest.raises(UnsupportedInstruction, match=feature) as caught:
        fasim.compile(source, arch="sm_90").kernel("k")
    assert re.search(line, str(caught.value)), caught.value
    assert "nearest" not in str(caught.value)


def test_a_misspelled_instruction_names_its_neighbours():
    ptx = ".version 8.0\n.target sm_90\n.address_size 64\n.entry k()\n{\n.reg .b32 %r<3>;\nadd.s3 %r1, %r2, 1;\nret;\n}\n"
    with pytest.raises(UnsupportedInstruction, match=r"<ptx>:7.*add.s3.*nearest known: .*add\.s32"):
        fasim.compile(ptx).kernel("k")


def test_a_finding_in_a_helper_names_the_call():
    source = """__device__ __forceinline__ float read(const float *x, int i) {
  return x[i];
}
__global__ void k(const float *x, float *o) {
  o[0] = read(x, 100);
}"""
    with pytest.raises(MemoryAccessError, match=r"source.cu:2, called at .*source.cu:5") as caught:
        fasim.compile(source).kernel("k").launch(1, 1, [np.zeros(2, np.float32), np.zeros(2, np.float32)])
    assert [line for _, line in caught.value.where.inlined_at] == [5]
