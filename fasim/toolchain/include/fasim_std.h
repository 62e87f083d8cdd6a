// The part of the C++ standard library that device code can use, taken from libcu++.
// Left out where the file names nothing of namespace std once host code is set aside: these headers take about a second.
#pragma once

#ifdef FASIM_USES_STD
#include <cuda/std/type_traits>
#include <cuda/std/utility>
#include <cuda/std/array>
#include <cuda/std/tuple>
#include <cuda/std/limits>
#if __has_include(<cuda/std/algorithm>)
#include <cuda/std/algorithm>
#else // CCCL up to 3.1
#include <cuda/std/detail/libcxx/include/algorithm>
#endif
#include <cuda/std/functional>
#include <cuda/std/numeric>
#include <cuda/std/iterator>
#include <cuda/std/bit>
#include <cuda/std/complex>
#include <cuda/std/optional>
#include <cuda/std/span>
namespace std {
using namespace ::cuda::std;
// NVRTC has functions of these names in namespace std for move and forward only
}
#endif
