"""What of PTX fasim does not model, by the CUDA feature that a person knows it as."""

from __future__ import annotations

#: (start of the mnemonic, feature); the first that fits counts
NOT_MODELLED: tuple[tuple[str, str], ...] = (
    ("wgmma", "warpgroup matrix multiplication (wgmma, sm_90a)"),
    ("tcgen05", "tensor memory and its matrix multiplication (tcgen05, sm_100a)"),
    ("cp.async.bulk", "bulk copies by the Tensor Memory Accelerator (TMA)"),
    ("cp.reduce.async.bulk", "bulk copies by the Tensor Memory Accelerator (TMA)"),
    ("tensormap", "tensor maps of the Tensor Memory Accelerator (TMA)"),
    ("fence.proxy.tensormap", "tensor maps of the Tensor Memory Accelerator (TMA)"),
    ("fence.proxy.async", "the asynchronous proxy (TMA, wgmma)"),
    ("mbarrier", "asynchronous barriers in shared memory (mbarrier: cuda::barrier and shared-scope cuda::pipeline)"),
    ("fence.mbarrier_init", "asynchronous barriers in shared memory (mbarrier)"),
    ("cp.async.mbarrier", "asynchronous barriers in shared memory (mbarrier)"),
    ("red.async", "asynchronous operations on the shared memory of a cluster"),
    ("st.async", "asynchronous operations on the shared memory of a cluster"),
    ("st.bulk", "bulk stores (sm_100)"),
    ("barrier.cluster", "thread block clusters"),
    ("mapa", "thread block clusters (distributed shared memory)"),
    ("getctarank", "thread block clusters"),
    ("clusterlaunchcontrol", "thread block clusters (launch control)"),
    ("griddepcontrol", "programmatic dependent launch"),
    ("multimem", "multicast memory of several GPUs"),
    ("tex", "textures"),
    ("tld4", "textures"),
    ("txq", "textures"),
    ("suld", "surfaces"),
    ("sust", "surfaces"),
    ("sured", "surfaces"),
    ("suq", "surfaces"),
    ("istypep", "textures and surfaces"),
    ("alloca", "variable-length arrays on the stack (alloca)"),
    ("stacksave", "variable-length arrays on the stack (alloca)"),
    ("stackrestore", "variable-length arrays on the stack (alloca)"),
)
#: functions of the device runtime that a kernel calls, by their start
NOT_MODELLED_CALLS: tuple[tuple[str, str], ...] = (
    ("cudaGetParameterBuffer", "dynamic parallelism (launching kernels from kernels)"),
    ("cudaLaunchDevice", "dynamic parallelism (launching kernels from kernels)"),
    ("cuda", "the device runtime"),
)


def feature(name: str, table: tuple[tuple[str, str], ...] = NOT_MODELLED) -> str:
    """The feature that a mnemonic or function belongs to; empty if it is none that fasim knows to lack."""
    if "::cluster" in name:
        return "thread block clusters (distributed shared memory)"
    return next((words for start, words in table if name == start or name.startswith(start)), "")
