"""NVRTC, NVIDIA's run-time compiler, called through ctypes.

Source: nvrtc.h of the wheel `nvidia-cuda-nvrtc`.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fasim.errors import CompileError, ToolMissing, UsageError
from fasim.toolchain.wheels import PIP_COMMAND, library_paths

_SUCCESS = 0
_ERROR_INVALID_OPTION = 5
_ERROR_COMPILATION = 6
_ERROR_NAME_EXPRESSION_NOT_VALID = 10


@dataclass(frozen=True)
class NvrtcOutput:
    """What one call of NVRTC gave: `ok` is False when the source does not compile, and then only `log` is filled."""

    ok: bool
    log: str
    ptx: str = ""
    cubin: bytes = b""
    lowered_names: Mapping[str, str] | None = None


@functools.cache
def library() -> ctypes.CDLL:
    """Load libnvrtc.

    Raises: ToolMissing, with the command that installs it.
    """
    failures = []
    for path in library_paths():
        try:
            _load_builtins(path.parent)
            lib = ctypes.CDLL(str(path))
        except OSError as error:
            failures.append(f"{path}: {error}")
            continue
        lib.nvrtcGetErrorString.restype = ctypes.c_char_p
        return lib
    reason = "; ".join(failures) or "neither the wheel nvidia-cuda-nvrtc nor a CUDA toolkit (CUDA_HOME, CUDA_PATH, /usr/local/cuda) has it"
    raise ToolMissing(f"NVRTC, NVIDIA's compiler, cannot be loaded: {reason}. Install it with: {PIP_COMMAND}")


def _load_builtins(directory: Path) -> None:
    """Load the library of built-in functions beside an NVRTC, which asks for it by name when it compiles.

    Up to 13.0 NVRTC looks for it only where the loader of the system does; one that is loaded is found under its name.
    """
    for pattern in ("libnvrtc-builtins.so*", "nvrtc-builtins64_*.dll"):
        for path in directory.glob(pattern):
            ctypes.CDLL(str(path))


def _check(lib: ctypes.CDLL, result: int, what: str) -> None:
    if result != _SUCCESS:
        raise CompileError(f"{what}: {lib.nvrtcGetErrorString(result).decode()}")


@functools.cache
def nvrtc_version() -> str:
    """The compiler's own version, for example `13.3`."""
    lib = library()
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(lib, lib.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "nvrtcVersion")
    return f"{major.value}.{minor.value}"


@functools.cache
def supported_archs() -> tuple[int, ...]:
    """The compute capabilities that this NVRTC compiles for, as numbers: 90 for sm_90."""
    lib = library()
    count = ctypes.c_int()
    _check(lib, lib.nvrtcGetNumSupportedArchs(ctypes.byref(count)), "nvrtcGetNumSupportedArchs")
    archs = (ctypes.c_int * count.value)()
    _check(lib, lib.nvrtcGetSupportedArchs(archs), "nvrtcGetSupportedArchs")
    return tuple(archs)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _strings(texts: Iterable[str]) -> ctypes.Array[ctypes.c_char_p]:
    encoded = [_bytes(text) for text in texts]
    return (ctypes.c_char_p * len(encoded))(*encoded)


class _Program:
    """An nvrtcProgram that is destroyed at the end of the `with` block."""

    def __init__(self, source: str, name: str, headers: Mapping[str, str]) -> None:
        self.lib = library()
        self.handle = ctypes.c_void_p()
        texts = _strings(headers.values())
        names = _strings(headers)
        result = self.lib.nvrtcCreateProgram(ctypes.byref(self.handle), _bytes(source), _bytes(name), len(headers), texts, names)
        _check(self.lib, result, "nvrtcCreateProgram")

    def __enter__(self) -> _Program:
        return self

    def __exit__(self, *exc: object) -> None:
        self.lib.nvrtcDestroyProgram(ctypes.byref(self.handle))

    def blob(self, kind: str) -> bytes:
        size = ctypes.c_size_t()
        _check(self.lib, getattr(self.lib, f"nvrtcGet{kind}Size")(self.handle, ctypes.byref(size)), f"nvrtcGet{kind}Size")
        data = ctypes.create_string_buffer(size.value)
        _check(self.lib, getattr(self.lib, f"nvrtcGet{kind}")(self.handle, data), f"nvrtcGet{kind}")
        return data.raw

    def text(self, kind: str) -> str:
        return self.blob(kind).rstrip(b"\0").decode("utf-8", "replace")

    def lowered_name(self, expression: str) -> str:
        name = ctypes.c_char_p()
        result = self.lib.nvrtcGetLoweredName(self.handle, expression.encode(), ctypes.byref(name))
        _check(self.lib, result, f"nvrtcGetLoweredName({expression})")
        return (name.value or b"").decode()


def compile_program(
    source: str,
    name: str,
    options: Sequence[str],
    name_expressions: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    optional: Sequence[str] = (),
) -> NvrtcOutput:
    """Compile CUDA C++ text to PTX and a cubin.

    name: what messages, `.file` and quoted includes call the file.
    headers: header name to text, found before all include directories. optional: options that older releases may not know.
    Raises: CompileError for an option that NVRTC refuses; an error in the source is returned, not raised.
    """
    with _Program(source, name, headers or {}) as program:
        lib = program.lib
        for expression in name_expressions:
            _check(lib, lib.nvrtcAddNameExpression(program.handle, _bytes(expression)), f"nvrtcAddNameExpression({expression})")
        result = lib.nvrtcCompileProgram(program.handle, len(options) + len(optional), _strings([*options, *optional]))
        log = program.text("ProgramLog")
        if result in (_ERROR_COMPILATION, _ERROR_NAME_EXPRESSION_NOT_VALID):
            return NvrtcOutput(False, log)
        if result == _ERROR_INVALID_OPTION:
            unknown = [option for option in optional if option in log]
            if unknown:
                others = [option for option in optional if option not in unknown]
                return compile_program(source, name, options, name_expressions, headers, others)
            raise UsageError(f"NVRTC refuses an option: {log.strip()} (options: {' '.join(options)})")
        _check(lib, result, f"NVRTC failed on {name}: {log.strip()}")
        lowered = {expression: program.lowered_name(expression) for expression in name_expressions}
        return NvrtcOutput(True, log, program.text("PTX"), program.blob("CUBIN"), lowered)
