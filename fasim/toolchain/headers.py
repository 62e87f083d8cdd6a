"""The headers that nvcc's host compiler brings and NVRTC lacks, as a table of virtual headers.

Source: the C++ standard's lists of headers; POSIX; the CUDA Toolkit's list of libraries.
"""

from __future__ import annotations

import functools
from pathlib import Path

INCLUDE_DIRECTORY = Path(__file__).parent / "include"
PRE_INCLUDE = "fasim_nvcc.h"

# everything these define that device code can use is in the pre-included header
_C_HEADERS = "limits.h math.h stddef.h stdint.h stdio.h stdlib.h string.h strings.h sys/types.h"
_C_HEADERS_IN_STD = "climits cmath cstddef cstdint cstdio cstdlib cstring limits new initializer_list version"
_STD_FROM_LIBCUDACXX = (
    "algorithm array bit bitset compare complex concepts functional iterator numbers numeric optional ratio span tuple "
    "type_traits utility variant"
)
_HOST_CONTAINERS = (
    "any atomic charconv chrono codecvt condition_variable deque exception execution filesystem format forward_list fstream "
    "future iomanip ios iosfwd iostream istream list locale map memory memory_resource mutex ostream queue random regex "
    "scoped_allocator semaphore set shared_mutex sstream stack stdexcept streambuf string string_view strstream "
    "system_error thread typeindex typeinfo unordered_map unordered_set valarray vector print ranges source_location "
    "stop_token latch barrier coroutine syncstream"
)
_HOST_SYSTEM = (
    "alloca.h ctype.h cctype errno.h cerrno fcntl.h fenv.h cfenv getopt.h dirent.h dlfcn.h libgen.h locale.h clocale "
    "malloc.h pthread.h sched.h setjmp.h csetjmp signal.h csignal stdatomic.h stdnoreturn.h sys/ioctl.h sys/mman.h "
    "sys/resource.h sys/stat.h sys/time.h sys/times.h sys/wait.h sys/sysinfo.h unistd.h uchar.h wchar.h cwchar wctype.h "
    "cwctype memory.h values.h features.h endian.h semaphore.h immintrin.h x86intrin.h xmmintrin.h emmintrin.h smmintrin.h "
    "tmmintrin.h nmmintrin.h omp.h mpi.h execinfo.h cxxabi.h linux/types.h windows.h direct.h io.h"
)
_HOST_CUDA = (
    "cublas_v2.h cublas.h cublasLt.h cublasXt.h cufft.h cufftXt.h curand.h cusparse.h cusolverDn.h cusolverSp.h cudnn.h "
    "nccl.h nvml.h nvrtc.h nvToolsExt.h nvtx3/nvToolsExt.h nvtx3/nvtx3.hpp cuda_profiler_api.h cudaProfiler.h "
    "cuda_gl_interop.h cupti.h thrust/device_vector.h thrust/host_vector.h thrust/universal_vector.h thrust/device_ptr.h "
    "thrust/device_malloc.h thrust/device_free.h thrust/sort.h thrust/reduce.h thrust/transform.h thrust/transform_reduce.h "
    "thrust/transform_scan.h thrust/scan.h thrust/fill.h thrust/copy.h thrust/sequence.h thrust/generate.h thrust/count.h "
    "thrust/extrema.h thrust/unique.h thrust/remove.h thrust/for_each.h thrust/inner_product.h thrust/execution_policy.h "
    "thrust/system/cuda/execution_policy.h thrust/system/cuda/vector.h thrust/gather.h thrust/scatter.h thrust/partition.h "
    "thrust/merge.h thrust/set_operations.h thrust/binary_search.h thrust/equal.h thrust/logical.h thrust/memory.h "
    "thrust/adjacent_difference.h thrust/tabulate.h thrust/replace.h thrust/mismatch.h thrust/find.h thrust/swap.h "
    "thrust/async/reduce.h"
)

_INTTYPES_MACROS = "#include <stdint.h>\n" + "\n".join(
    f'#define PRI{letter}{bits} "{"l" if bits in ("64", "MAX", "PTR") else ""}{letter}"'
    for letter in "dioxuX"
    for bits in ("8", "16", "32", "64", "MAX", "PTR")
)

# the macro of NVRTC ignores NDEBUG; like the standard's header, this one can be included again with another NDEBUG
_ASSERT_H = """
#undef assert
#ifdef NDEBUG
#define assert(expression) ((void)0)
#else
#define assert(expression) ((expression) ? (void)0 : __assertfail(#expression, __FILE__, __LINE__, __PRETTY_FUNCTION__, sizeof(char)))
#endif
"""


@functools.cache
def virtual_headers() -> dict[str, str]:
    """Header name, as between the brackets of an include, to its text."""
    table = dict.fromkeys(_C_HEADERS.split(), "")
    table |= dict.fromkeys(_C_HEADERS_IN_STD.split(), "")
    table |= dict.fromkeys(_STD_FROM_LIBCUDACXX.split(), '#include "fasim_std.h"\n')
    table |= dict.fromkeys(_HOST_CONTAINERS.split(), '#include "fasim_host_types.h"\n')
    table |= dict.fromkeys(_HOST_SYSTEM.split(), "")
    table |= dict.fromkeys(["inttypes.h", "cinttypes"], _INTTYPES_MACROS)
    table |= dict.fromkeys(["float.h", "cfloat"], '#include "fasim_float.h"\n')
    table |= dict.fromkeys(["time.h", "ctime"], "#include <cuda/std/ctime>\n")
    table |= dict.fromkeys(["assert.h", "cassert"], _ASSERT_H)
    table |= dict.fromkeys(["stdbool.h", "cstdbool", "stdalign.h", "cstdalign", "ciso646", "iso646.h"], "")
    table |= dict.fromkeys(["stdarg.h", "cstdarg"], "")
    return table


@functools.cache
def host_library_headers() -> frozenset[str]:
    """Headers of host-side CUDA libraries: empty here, unless a directory on the include path has the real one."""
    return frozenset(_HOST_CUDA.split())
