"""NVIDIA's compiler: CUDA C++ to PTX and cubin."""

from fasim.toolchain.cache import cache_dir, cached
from fasim.toolchain.compile import CompiledModule, compile_cuda
from fasim.toolchain.names import find_entry, plain_name

__all__ = ["CompiledModule", "cache_dir", "cached", "compile_cuda", "find_entry", "plain_name"]
