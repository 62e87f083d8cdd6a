"""Kernel arguments: numpy arrays as device buffers, scalars to the parameter's type, structures by value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fasim.errors import LaunchError
from fasim.gmem import AddressSpace, Allocation, DeviceBuffer, live_buffers
from fasim.isa.program import Parameter, Program
from fasim.sm.fresh import launched, undefined_bits
from fasim.sm.watch import Shadows
from fasim.toolchain.signature import Declared, bits_name, numpy_name, refuses, signed_range

Array = np.ndarray[Any, Any]
_FLOATS: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


@dataclass(frozen=True, eq=False)
class DeviceArray:
    """A pointer into a buffer that keeps its contents and its device address over launches; `array + n` points n elements further."""

    buffer: DeviceBuffer
    offset: int = 0

    @property
    def data(self) -> Array:
        """The buffer's memory, as kernels see it."""
        return self.buffer.data

    def __add__(self, elements: int) -> DeviceArray:
        """A pointer `elements` further on."""
        return DeviceArray(self.buffer, self.offset + elements)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """The whole array, wherever the pointer is."""
        return np.asarray(self.data, dtype)


def device_array(values: Any, dtype: Any = None) -> DeviceArray:
    """Copy values into a new device buffer.

    Returns: a DeviceArray; its `data` is the memory that kernels see.
    """
    return DeviceArray(DeviceBuffer(np.array(values, dtype=dtype, order="C")))


def _place_of(array: Array) -> tuple[int, tuple[int, ...], tuple[int, ...], int]:
    return int(array.ctypes.data), array.shape, array.strides, array.itemsize


def _share_memory(a: Array, b: Array) -> bool:
    try:
        return np.shares_memory(a, b, max_work=1_000_000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


class Arguments:
    """Lays out one launch's parameters and the buffers behind them; pointers: where in the parameters an address stands, and which."""

    def __init__(
        self,
        program: Program,
        space: AddressSpace,
        addresses: dict[int, Allocation],
        names: Sequence[str] = (),
        signature: Sequence[Declared] | None = None,
    ) -> None:
        self.program, self.space, self.addresses, self.names = program, space, addresses, names
        self.signature = signature
        self.copies: list[tuple[Array, Array]] = []
        self.pointers: list[tuple[int, int]] = []
        for buffer in live_buffers():  # those that are no arguments too: pointers to them may stand in memory
            addresses[int(buffer.data.ctypes.data)] = space.keep("a device array", buffer)

    def pack(self, args: Sequence[Any]) -> Array:
        """Parameter bytes.

        Raises: LaunchError for a wrong number, type or range of arguments.
        """
        params = self.program.parameters
        if not isinstance(args, (Sequence, np.ndarray)) or isinstance(args, (str, bytes)):
            raise LaunchError(f"the arguments of {self.program.title} are a sequence, got {type(args).__name__}")
        if len(args) != len(params):
            names = ", ".join(f"{self._name(p, i)}: {self._type(p, i)}" for i, p in enumerate(params))
            raise LaunchError(f"kernel {self.program.title} takes {len(params)} arguments ({names}), got {len(args)}")
        data = np.zeros(max(self.program.param_bytes, 8), np.uint8)
        for i, (param, value) in enumerate(zip(params, args)):
            part = self._bytes(i, param, value)
            data[param.offset : param.offset + len(part)] = np.frombuffer(part, np.uint8)
        return data

    def shadows(self, *, checked: bool) -> Shadows | None:
        """The buffers that may hold undefined bytes; after a launch that is not checked nobody knows, so they count as defined."""
        found = Shadows()
        for allocation in self.space.allocations:
            shadow = undefined_bits(allocation.data, checked=checked)
            if shadow is not None:
                found.buffers.append((allocation.name, allocation.data, shadow))
        return found if checked else None

    def write_back(self) -> None:
        """After the launch: arrays that had to be copied get their new contents."""
        for allocation in self.space.allocations:
            launched(allocation.data)
        for original, copy in self.copies:
            if original.flags.writeable:
                original[...] = copy

    def _name(self, param: Parameter, index: int) -> str:
        """What to call a parameter: compilers only write `kernel_param_0`."""
        if index < len(self.names):
            return self.names[index]
        if self.signature and self.signature[index].name:
            return self.signature[index].name
        return f"#{index}" if "_param_" in param.name else param.name

    def _type(self, param: Parameter, index: int) -> str:
        return self.signature[index].type_ if self.signature else param.type_

    def _bytes(self, index: int, param: Parameter, value: Any) -> bytes:
        name = self._name(param, index)
        if isinstance(value, DeviceArray):
            self._check_array(index, param, value.data, "a device array")
            return self._pointer(param, self._allocate(name, value.data).address + value.offset * value.data.itemsize)
        structure = param.type_.startswith("b8[")
        if isinstance(value, np.ndarray) and value.ndim and not (structure and value.dtype == np.uint8):
            self._check_array(index, param, value, "an array")
            return self._pointer(param, self._allocate(name, value).address)
        if value is None:
            self._need_pointer(index, param, "None (a null pointer)")
            return bytes(8)
        if isinstance(value, (np.void, np.generic, np.ndarray)) and (structure or isinstance(value, np.void)):
            raw = bytes(np.asarray(value).tobytes())
            if len(raw) != param.size_bytes:
                raise LaunchError(f"{self._is(index, param)}, a structure of {param.size_bytes} bytes, got {len(raw)}")
            return raw
        return self._scalar(index, param, value)

    def _pointer(self, param: Parameter, address: int) -> bytes:
        self.pointers.append((param.offset, address))
        return (address & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")

    def _is(self, index: int, param: Parameter) -> str:
        """The beginning of a message."""
        return f"argument {self._name(param, index)} of {self.program.title} is {self._type(param, index)}"

    def _need_pointer(self, index: int, param: Parameter, what: str) -> None:
        declared = self.signature[index] if self.signature else None
        # a structure that holds one pointer is as large as a pointer
        scalar = declared is not None and not declared.is_pointer and declared.dtype != "" and not declared.dtype.endswith("64")
        if param.size_bytes != 8 or param.type_[0] == "f" or scalar:
            raise LaunchError(f"{self._is(index, param)}, not a pointer: it cannot take {what}")

    def _check_array(self, index: int, param: Parameter, array: Array, what: str) -> None:
        self._need_pointer(index, param, what)
        declared = self.signature[index] if self.signature else None
        if declared is None or not refuses(declared, array.dtype.kind, array.dtype.itemsize):
            return
        wanted, bits = numpy_name(declared.dtype), bits_name(declared.dtype)
        convert = f".astype(np.{wanted}) converts the values" if wanted else "numpy has no bfloat16: give its bits as np.uint16"
        raise LaunchError(
            f"{self._is(index, param)}, and the array is {array.dtype}: the kernel would read its bytes as {declared.dtype} elements. "
            f"{convert}, .view(np.{bits}) passes the bits as they are"
        )

    def _scalar(self, index: int, param: Parameter, value: Any) -> bytes:
        type_, size = param.type_, param.size_bytes
        declared = self.signature[index] if self.signature else None
        refused = LaunchError(f"{self._is(index, param)}, got {type(value).__name__}")
        if declared is not None and declared.is_pointer:
            if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) == 0:
                return bytes(size)
            if isinstance(value, (bool, int, float, np.generic)):
                raise LaunchError(f"{self._is(index, param)}, a pointer: give a buffer or null (None), not {value}")
            raise LaunchError(f"{self._is(index, param)}: pass a numpy array, not {type(value).__name__}")
        if isinstance(value, np.generic) and not isinstance(value, (np.bool_, np.integer, np.floating)):
            raise LaunchError(f"{self._is(index, param)}: {type(value).__name__} is no scalar that a kernel takes")
        if type_.startswith("b8[") and isinstance(value, (bool, int, float)):
            raise LaunchError(f"{self._is(index, param)}, a structure of {size} bytes: pass a numpy record or {size} bytes as np.uint8")
        if type_ in _FLOATS:
            if not isinstance(value, (int, float, np.integer, np.floating)):
                raise refused
            try:
                with np.errstate(over="ignore"):
                    result = _FLOATS[type_](value)
                fits = not np.isinf(result) or bool(np.isinf(value))
            except OverflowError:
                fits = False
            if not fits:
                raise LaunchError(f"{self._is(index, param)}: {value} does not fit")
            return bytes(result.tobytes())
        if isinstance(value, np.floating):
            # PTX calls half precision b16, and floats in structures b8[...]
            if value.itemsize == size and size == 2:
                return bytes(value.tobytes())
            raise refused
        if not isinstance(value, (bool, int, np.integer, np.bool_)):
            raise refused
        number = int(value)
        low, high = (signed_range(declared) if declared else None) or (-(1 << (8 * size - 1)), (1 << 8 * size) - 1)
        if not low <= number <= high:
            raise LaunchError(f"{self._is(index, param)}: {number} does not fit ({low} to {high})")
        return (number & ((1 << 8 * size) - 1)).to_bytes(size, "little")

    def _allocate(self, name: str, array: Array) -> Allocation:
        if array.dtype.hasobject:
            raise LaunchError(f"argument {name}: an array of Python objects cannot be device memory")
        if not array.dtype.isnative:
            raise LaunchError(
                f"argument {name} has dtype {array.dtype.str!r}: device memory has the byte order of the machine; pass array.astype(...)"
            )
        if array.flags.c_contiguous:
            self._separate(name, array, self.copies)
            return self._place(name, array)
        for original, copy in self.copies:
            if _place_of(original) == _place_of(array):
                return self._place(name, copy)
        self._separate(name, array, [*self.copies, *((a.data, a.data) for a in self.addresses.values())])
        copy = np.ascontiguousarray(array)
        copy.flags.writeable = array.flags.writeable
        self.copies.append((array, copy))
        return self._place(name, copy)

    def _separate(self, name: str, array: Array, others: Sequence[tuple[Array, Array]]) -> None:
        """Arrays that are not contiguous are copied for the launch, which must not break a connection to another argument."""
        for original, _ in others:
            if np.may_share_memory(array, original) and _share_memory(array, original):
                raise LaunchError(f"argument {name} shares memory with another argument, and one of them is not contiguous; pass copies")

    def _place(self, name: str, array: Array) -> Allocation:
        key = int(array.ctypes.data)
        known = self.addresses.get(key)
        if known is not None and known.data.nbytes >= array.nbytes:
            known.name = name
            known.constant = known.constant and not array.flags.writeable
            return known
        for other in self.addresses.values():
            if other.host < key + array.nbytes and key < other.host + other.size_bytes:
                # views of one array: keep the distance between their addresses
                if other.host <= key and key + array.nbytes <= other.host + other.size_bytes:
                    other.constant = other.constant and not array.flags.writeable
                    return Allocation(name, array, other.address + key - other.host)
                raise LaunchError(f"argument {name} overlaps {other.name} but is not inside it; pass the whole array first, or copies")
        allocation = self.space.add(name, array, constant=not array.flags.writeable)
        self.addresses[key] = allocation
        return allocation
