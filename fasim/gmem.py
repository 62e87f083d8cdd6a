"""Device memory: allocations with guard gaps between them, and the table by which the machine checks every access."""

from __future__ import annotations

import bisect
import threading
import weakref
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fasim.isa.machine import DEVICE_BASE, GLOBAL_BASE, align_up

ALIGNMENT_BYTES = 512  # cudaMalloc gives 256 at least; kernels may rely on it
GAP_BYTES = 1 << 32  # addresses cost nothing: a wrong stride or a dropped offset should not land in the next buffer


@dataclass
class Allocation:
    """One buffer: `data` is a C-contiguous numpy array that is the memory itself, seen from the device at `address`."""

    name: str
    data: np.ndarray[Any, Any]
    address: int
    constant: bool = False

    @property
    def size_bytes(self) -> int:
        """Size of the buffer."""
        return int(self.data.nbytes)

    @property
    def map_bytes(self) -> int:
        """Size of its part of an access map: one bit a byte, in whole words of 64."""
        return align_up(self.size_bytes, 64) // 8

    @property
    def host(self) -> int:
        """Address of the data in this process."""
        return int(self.data.ctypes.data)


@dataclass(frozen=True, eq=False)
class DeviceBuffer:
    """Memory that keeps its address as long as it lives, so that pointers to it may be stored in other memory."""

    data: np.ndarray[Any, Any]
    address: int = field(init=False)

    def __post_init__(self) -> None:
        with _LOCK:
            object.__setattr__(self, "address", _NEXT_ADDRESS[0])
            _NEXT_ADDRESS[0] += align_up(self.data.nbytes + GAP_BYTES, ALIGNMENT_BYTES)
            _LIVE.add(self)


_LOCK = threading.Lock()
_NEXT_ADDRESS = [DEVICE_BASE]
_LIVE: weakref.WeakSet[DeviceBuffer] = weakref.WeakSet()


def live_buffers() -> list[DeviceBuffer]:
    """All device buffers that somebody holds, by address."""
    with _LOCK:
        return sorted(_LIVE, key=lambda buffer: buffer.address)


@dataclass
class AddressSpace:
    """The allocations of a launch or a module, in order of address."""

    allocations: list[Allocation] = field(default_factory=list)
    next_address: int = GLOBAL_BASE

    def add(self, name: str, data: np.ndarray[Any, Any], *, constant: bool = False) -> Allocation:
        """Give a C-contiguous array an address (aligned to 512 bytes, as cudaMalloc's)."""
        allocation = Allocation(name, data, self.next_address, constant)
        self.next_address += align_up(data.nbytes + GAP_BYTES, ALIGNMENT_BYTES)
        self.allocations.append(allocation)
        return allocation

    def keep(self, name: str, buffer: DeviceBuffer) -> Allocation:
        """Add a buffer at its own address."""
        allocation = Allocation(name, buffer.data, buffer.address)
        self.allocations.append(allocation)
        return allocation

    def table(self) -> np.ndarray[Any, Any]:
        """int64[n, 4] for the machine: base, size, host address, bit offset of the access maps (bit 0 of the last: constant)."""
        rows, at = [], 0
        for a in self.allocations:
            rows.append((a.address, a.size_bytes, a.host, at << 1 | a.constant))
            at += a.map_bytes
        return np.array(rows, np.int64).reshape(-1, 4)

    @property
    def map_bytes(self) -> int:
        """Size of a bit map with one bit a byte of memory."""
        return sum(a.map_bytes for a in self.allocations)

    def nearest(self, address: int) -> tuple[Allocation, int] | None:
        """The closest allocation and the distance in bytes from its nearest end (0 inside; negative before its start)."""
        if not self.allocations:
            return None
        bases = [a.address for a in self.allocations]
        i = bisect.bisect_right(bases, address)
        found: list[tuple[int, Allocation, int]] = []
        for a in self.allocations[max(i - 1, 0) : i + 1]:
            if address < a.address:
                found.append((a.address - address, a, address - a.address))
            elif address >= a.address + a.size_bytes:
                distance = address - (a.address + a.size_bytes) + 1
                found.append((distance, a, distance))
            else:
                found.append((0, a, 0))
        _, allocation, distance = min(found, key=lambda f: f[0])
        return allocation, distance
