"""Kernel arguments as text: `q=f16[2,128,64]:normal`, `n=i32:128`, `q=@q.npy`, `scale=0.125`."""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fasim.errors import UsageError
from fasim.numerics.dtypes import DTYPES, bf16_bits, is_float, short_name

Array = np.ndarray[Any, Any]

_ARRAY = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[^\]]*)\](?::(?P<init>.+))?")
_FILE = re.compile(r"(?P<dtype>\w+)?@(?P<path>.+)")
_SCALAR = re.compile(r"(?P<dtype>[a-z]\w*):(?P<value>.+)")
_INIT = re.compile(r"(?P<name>\w+)(?:\((?P<params>[^)]*)\))?")
_NAME = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.DOTALL)


@dataclass(frozen=True)
class Value:
    """One argument: `value` is an array (a device buffer), a scalar, or None for a null pointer.

    dtype: short name; "" where the parameter's type decides.
    """

    name: str
    value: Any
    dtype: str

    @property
    def is_array(self) -> bool:
        """Whether it is a device buffer."""
        return isinstance(self.value, np.ndarray)


@dataclass(frozen=True)
class Initialiser:
    """A way to fill an array: fill(shape, dtype, rng, params) and how many parameters it takes."""

    fill: Callable[[tuple[int, ...], str, np.random.Generator, list[str]], Any]
    signature: str
    params: tuple[int, int]
    help: str


def parse_argument(text: str, position: int, seed: int, *, flag: str = "--arg", shown: str = "") -> Value:
    """One --arg; random values come from numpy.random.default_rng([seed, position]).

    flag, shown: the option and its text in messages.

    Raises: UsageError.
    """
    named = _NAME.fullmatch(text)
    name, spec = (named["name"], named["value"].strip()) if named else (f"arg{position}", text.strip())
    try:
        return _parse(name, spec, np.random.default_rng([seed, position]))
    except UsageError as error:
        raise UsageError(f"{flag} {(shown or text)!r}: {error}") from None


def parse_expectation(text: str) -> tuple[str, Array, str]:
    """One --expect: name, array and its type, "bf16" where bit patterns are meant, else "".

    Raises: UsageError.
    """
    named = _NAME.fullmatch(text)
    file = _FILE.fullmatch(named["value"].strip()) if named else None
    if named is None or file is None:
        raise UsageError(f"--expect {text!r}: write NAME=@FILE.npy or NAME=@FILE.npz:ARRAY")
    try:
        values = load_array(file["path"])
        if file["dtype"] is None:
            return named["name"], values, ""
        return named["name"], convert(values, _dtype(file["dtype"])), "bf16" if file["dtype"] == "bf16" else ""
    except UsageError as error:
        raise UsageError(f"--expect {text!r}: {error}") from None


def _parse(name: str, spec: str, rng: np.random.Generator) -> Value:
    if spec in ("null", "nullptr"):
        return Value(name, None, "")
    if match := _FILE.fullmatch(spec):
        values = load_array(match["path"])
        dtype = _dtype(match["dtype"]) if match["dtype"] else short_name(values.dtype)
        values = convert(values, dtype) if match["dtype"] else values
        return Value(name, values if values.ndim else values[()], dtype)
    if match := _ARRAY.fullmatch(spec):
        dtype = _dtype(match["dtype"])
        shape = _shape(match["shape"])
        check_memory(shape, dtype)
        if match["init"] is None:
            raise UsageError(f"say what is in the array, for example {match['dtype']}[{match['shape']}]:zeros; {_known_initialisers()}")
        return Value(name, _fill(match["init"], shape, dtype, rng), dtype)
    if match := _SCALAR.fullmatch(spec):
        dtype = _dtype(match["dtype"])
        return Value(name, scalar(match["value"].strip(), dtype), dtype)
    return Value(name, _bare(spec), "")


def _dtype(name: str) -> str:
    if name not in DTYPES:
        near = difflib.get_close_matches(name, DTYPES, 1, 0.4)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UsageError(f"no element type {name!r}{hint}; types: {', '.join(DTYPES)}")
    return name


def _shape(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in re.split(r"[,x]", text)]
    if not all(part.isdecimal() for part in parts):
        raise UsageError(f"the shape [{text}] is not a list of whole numbers, for example [2,128,64]")
    return tuple(int(part) for part in parts)


def check_memory(shape: tuple[int, ...], dtype: str) -> None:
    """Refuse an array that this machine cannot hold.

    Raises: UsageError with both sizes.
    """
    needed, available = math.prod(shape) * DTYPES[dtype].itemsize, available_bytes()
    if needed > available:
        shown = "x".join(map(str, shape))
        raise UsageError(f"{dtype}[{shown}] takes {needed:,} bytes, and this machine has {available:,} bytes of memory free")


def available_bytes() -> int:
    """Memory that a new array may take."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 1 << 40


def convert(values: Array, dtype: str) -> Array:
    """An array as elements of `dtype`, which must hold every value (floats are rounded); for bf16, uint16 is taken for bit patterns.

    Raises: UsageError.
    """
    if dtype == "bf16":
        return values if values.dtype == np.uint16 else bf16_bits(values)
    target = DTYPES[dtype]
    if is_float(dtype) or target.kind == "b":
        with np.errstate(over="ignore", invalid="ignore"):
            result = values.astype(target)
        finite = np.isfinite(values)
        if is_float(dtype) and np.isinf(result[finite]).any():
            raise UsageError(f"values up to {np.abs(values[finite]).max():g} do not fit into {dtype}")
        return result
    limits = np.iinfo(target)
    if values.size:
        low, high = values.min().item(), values.max().item()
        if values.dtype.kind == "f" and not np.array_equal(values, np.trunc(values)):
            raise UsageError(f"the values are not whole numbers, so they do not fit into {dtype}")
        if not (limits.min <= low and high <= limits.max):
            raise UsageError(f"values from {low:g} to {high:g} do not fit into {dtype} ({limits.min} to {limits.max})")
    return values.astype(target)


def scalar(text: str, dtype: str) -> Any:
    """A scalar of type `dtype`; bf16 gives its bits as uint16.

    Raises: UsageError if the text is no number or the type does not hold it.
    """
    if dtype == "bool":
        known = {"true": True, "1": True, "false": False, "0": False}
        if text.lower() not in known:
            raise UsageError(f"{text!r} is not true or false")
        return np.bool_(known[text.lower()])
    if is_float(dtype):
        return convert(np.array(_float(text)), dtype)[()]
    try:
        number = int(text, 0)
    except ValueError:
        raise UsageError(f"{text!r} is not a whole number") from None
    limits = np.iinfo(DTYPES[dtype])
    if not limits.min <= number <= limits.max:
        raise UsageError(f"{number} does not fit into {dtype} ({limits.min} to {limits.max})")
    return DTYPES[dtype].type(number)


def _float(text: str) -> float:
    try:
        return float.fromhex(text) if "0x" in text.lower() else float(text)
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r} is not a number") from None


def _bare(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return _float(text)
    except UsageError:
        raise UsageError(
            f"{text!r} is neither TYPE[SHAPE]:INITIALISER (f16[2,128]:normal), TYPE:VALUE (i32:128), @FILE (@q.npy), a number, nor null"
        ) from None


def load_array(where: str) -> Array:
    """An array from FILE.npy, FILE.npz (if it holds one) or FILE.npz:NAME, C-contiguous and in this machine's byte order.

    Raises: UsageError.
    """
    file, name = where, ""
    if not Path(where).exists() and ":" in where:
        file, name = where.rsplit(":", 1)
    try:
        loaded = np.load(file, allow_pickle=False)
    except FileNotFoundError:
        raise UsageError(f"there is no file {file!r}") from None
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(f"cannot read {file!r} as .npy or .npz: {error}") from None
    if isinstance(loaded, np.ndarray):
        if name:
            raise UsageError(f"{file!r} holds one array without names; leave out {':' + name!r}")
        return _usable(loaded, file)
    with loaded:
        held = list(loaded.files)
        if not name and len(held) == 1:
            name = held[0]
        if name not in held:
            what = f"no array {name!r}" if name else f"{len(held)} arrays"
            raise UsageError(f"{file!r} has {what}; write {file}:NAME with one of: {', '.join(held)}")
        try:
            return _usable(loaded[name], file)
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read {name!r} in {file!r}: {error}") from None


def _usable(values: Array, file: str) -> Array:
    if values.dtype.hasobject or values.dtype.kind in "SUmM":
        raise UsageError(f"{file!r} holds {values.dtype}, which is no type that a kernel reads")
    return np.array(values, dtype=values.dtype.newbyteorder("="), order="C")


# --- initialisers ---------------------------------------------------------------------------------------------------------------


def _fill(text: str, shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Array:
    match = _INIT.fullmatch(text.strip())
    if match is None or match["name"] not in INITIALISERS:
        near = difflib.get_close_matches(match["name"] if match else text, INITIALISERS, 1, 0.5)
        hint = f" (did you mean {INITIALISERS[near[0]].signature}?)" if near else ""
        raise UsageError(f"no initialiser {text!r}{hint}; {_known_initialisers()}")
    known = INITIALISERS[match["name"]]
    params = [part.strip() for part in match["params"].split(",")] if match["params"] else []
    if not known.params[0] <= len(params) <= known.params[1]:
        raise UsageError(f"{text!r} does not fit; write {known.signature}")
    return np.ascontiguousarray(known.fill(shape, dtype, rng, params)).reshape(shape)


def _known_initialisers() -> str:
    return "initialisers: " + ", ".join(known.signature for known in INITIALISERS.values())


def _constant(value: int) -> Callable[..., Array]:
    return lambda shape, dtype, rng, params: np.full(shape, scalar(str(value), dtype), DTYPES[dtype])


def _full(shape: tuple[int, ...], dtype: str, rng: np.random.Generator, params: list[str]) -> Array:
    return np.full(shape, scalar(params[0], dtype), DTYPES[dtype])


def _arange(shape: tuple[int, ...], dtype: str, rng: np.random.Generator, params: list[str]) -> Array:
    return convert(np.arange(math.prod(shape)), dtype).reshape(shape)


def _need_float(dtype: str, what: str) -> None:
    if not is_float(dtype):
        raise UsageError(f"{what} gives floating-point numbers, not {dtype}; use randint(lo,hi) or bits")


def _draw(dtype: str) -> Any:
    return np.float64 if dtype == "f64" else np.float32


def _normal(shape: tuple[int, ...], dtype: str, rng: np.random.Generator, params: list[str]) -> Array:
    _need_float(dtype, "normal")
    values = rng.standard_normal(shape, dtype=_draw(dtype))
    if params:
        mean, deviation = (*map(_float, params), 1.0)[:2]
        values = values * deviation + mean
    return convert(values, dtype)


def _uniform(shape: tuple[int, ...], dtype: str, rng: np.random.Generator, params: list[str]) -> Array:
    _need_float(dtype, "uniform")
    if len(params) == 1:
        raise UsageError("uniform takes two bounds: uniform(lo,hi)")
    low, high = map(_float, params) if params else (0.0, 1.0)
    return convert(low + (high - low) * rng.random(shape, dtype=_draw(dtype)), dtype)


def _randint(shape: tuple[int, ...], dtype: str, rng: np.random.Generator, params: list[str]) -> Array:
    try:
        low, high = (int(text, 0) for text in params)
    except ValueError:
        raise UsageError("randint(lo,hi) takes two whole numbers") from None
    target = DTYPES[dtype]
    if low >= high:
        raise UsageError(f"randint({low},{high}) is empty: lo is included, hi is not")
    if is_float(dtype):
        return convert(rng.integers(low, high, shape), dtype)
    if target.kind == "b":
        return rng.integers(low, high, shape).astype(np.bool_)
    limits = np.iinfo(target)
    if not (limits.min <= low and high - 1 <= limits.max):
        raise UsageError(f"randint({low},{high}) does not fit into {dtype} ({limits.min} to {limits.max})")
    return rng.integers(low, high, shape, dtype=target)


def _bits(shape: tuple[int, ...], dtype: str, rng: np.random.Generator, params: list[str]) -> Array:
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    raw = rng.integers(0, 256, math.prod(shape) * DTYPES[dtype].itemsize, dtype=np.uint8)
    return raw.view(DTYPES[dtype]).reshape(shape)


def _uninit(shape: tuple[int, ...], dtype: str, rng: np.random.Generator, params: list[str]) -> Array:
    from fasim.sm.fresh import empty

    return empty(shape, DTYPES[dtype])


INITIALISERS: dict[str, Initialiser] = {
    "zeros": Initialiser(_constant(0), "zeros", (0, 0), "0"),
    "ones": Initialiser(_constant(1), "ones", (0, 0), "1"),
    "full": Initialiser(_full, "full(v)", (1, 1), "v"),
    "arange": Initialiser(_arange, "arange", (0, 0), "0, 1, 2, ..."),
    "normal": Initialiser(_normal, "normal", (0, 2), "standard normal; normal(mean,deviation) too"),
    "uniform": Initialiser(_uniform, "uniform(lo,hi)", (0, 2), "uniform in [lo, hi), [0, 1) without them"),
    "randint": Initialiser(_randint, "randint(lo,hi)", (2, 2), "whole numbers, hi not included"),
    "bits": Initialiser(_bits, "bits", (0, 0), "random bit patterns"),
    "uninit": Initialiser(_uninit, "uninit", (0, 0), "uninitialised memory"),
}


def made_again(text: str) -> str:
    """How a recording says what an --arg means: the text without the name, or "stored" for what comes from a file."""
    named = _NAME.fullmatch(text)
    spec = (named["value"] if named else text).strip()
    return "stored" if _FILE.fullmatch(spec) else spec


def by_value(value: Value, type_: str, size_bytes: int) -> Value:
    """An array for a parameter that is a structure becomes that structure's bytes.

    Raises: UsageError if their numbers differ.
    """
    if not (value.is_array and type_.startswith("b8[")):
        return value
    if value.value.nbytes != size_bytes:
        raise UsageError(f"argument {value.name} is a structure of {size_bytes} bytes, the array has {value.value.nbytes}")
    return Value(value.name, np.frombuffer(value.value.tobytes(), f"V{size_bytes}")[0], value.dtype)
