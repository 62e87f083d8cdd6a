"""GPUs as data: one entry an architecture, each value with where it comes from."""

from fasim.arch.table import ARCHITECTURES, Architecture, architecture

__all__ = ["ARCHITECTURES", "Architecture", "architecture"]
