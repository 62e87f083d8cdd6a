"""Shared memory: banks and wavefronts, layouts, asynchronous copies, and the shadow state from which hazards are found."""

from fasim.smem.layouts import Layout, Linear, Padded, Swizzle, Swizzled
from fasim.smem.wavefronts import Wavefronts, count_wavefronts

__all__ = ["Layout", "Linear", "Padded", "Swizzle", "Swizzled", "Wavefronts", "count_wavefronts"]
