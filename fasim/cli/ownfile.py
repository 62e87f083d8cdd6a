"""`fasim run FILE.cu`: a person's own kernel with the launch and the arguments from the command line."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence

import numpy as np

import fasim
from fasim.cli.collection import unknown_option
from fasim.cli.failures import warn
from fasim.cli.job import Job, RunOptions, expectations
from fasim.cli.signature import Parameter, check_names, describe, example_command, parameters
from fasim.cli.values import Value, parse_argument
from fasim.errors import UsageError
from fasim.report.dtypes import DTYPES
from fasim.sm.module import Kernel


def parse_sizes(text: str, what: str) -> tuple[int, ...]:
    """`8`, `8,2` or `8x2x1`.

    Raises: UsageError.
    """
    parts = re.split(r"[,x]", text.strip("() "))
    if not 1 <= len(parts) <= 3 or not all(part.strip().isdecimal() for part in parts):
        raise UsageError(f"{what} {text!r}: one to three whole numbers expected, for example 8 or 8,2 or 8x2x1")
    return tuple(int(part) for part in parts)


def parse_define(text: str) -> tuple[str, str | None]:
    """`NAME=VALUE` or `NAME`."""
    name, equals, value = text.partition("=")
    return name, value if equals else None


def prepare(path: str, words: Sequence[str], options: RunOptions, general: Sequence[str]) -> Job:
    """Compile a file and make the arguments.

    Raises: UsageError with the kernel's parameters and an example if something is missing; CompileError; NotModelled; ToolMissing.
    """
    if words:
        if words[0].startswith("-"):
            raise unknown_option(words[0], general, "fasim run FILE")
        raise UsageError(f"unexpected argument {words[0]!r} after {path!r}")
    grid = parse_sizes(options.grid, "--grid") if options.grid else None
    block = parse_sizes(options.block, "--block") if options.block else None
    args = [parse_argument(text, i, options.seed) for i, text in enumerate(options.args)]
    names = [value.name for value in args]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"two arguments are called {doubled[0]!r}")
    expected = expectations(options, args)
    defines = dict(parse_define(text) for text in options.defines)
    start = time.perf_counter()
    module = fasim.compile(path, arch=options.arch, defines=defines, include_dirs=options.include_dirs, entry=options.entry)
    if module.compiled is not None:
        _show_warnings(module.compiled.log)
    kernel = module.kernel(options.entry)
    compile_seconds = time.perf_counter() - start
    if grid is None or block is None or len(args) != len(kernel.program.parameters):
        raise _missing(path, kernel, options, len(args))
    known = parameters(kernel) if module.compiled is not None else []
    if complaint := check_names(names, known) if known else None:
        raise UsageError(complaint)
    _warn_types(args, known)
    return Job(
        kernel,
        path,
        [_by_value(value, parameter.type_, parameter.size_bytes) for value, parameter in zip(args, kernel.program.parameters)],
        grid,
        block,
        options.smem_bytes or 0,
        options.rtol or 0.0,
        options.atol or 0.0,
        compile_seconds,
        lambda: expected if options.check else {},
        defines=dict(defines),
    )


def _missing(path: str, kernel: Kernel, options: RunOptions, given: int) -> UsageError:
    known = parameters(kernel)
    missing = [flag for flag, value in (("--grid", options.grid), ("--block", options.block)) if not value]
    if given != len(known):
        missing.append(f"{len(known)} --arg, one a parameter in their order (got {given})")
    return UsageError(
        f"kernel {kernel.name} needs {' and '.join(missing)}. It takes:\n{describe(known)}\n"
        f"For example:\n  {example_command(path, kernel, known, options.smem_bytes or 0)}"
    )


def _by_value(value: Value, type_: str, size_bytes: int) -> Value:
    """An array for a parameter that is a structure becomes that structure's bytes."""
    if not (value.is_array and type_.startswith("b8[")):
        return value
    if value.value.nbytes != size_bytes:
        raise UsageError(f"argument {value.name} is a structure of {size_bytes} bytes, the array has {value.value.nbytes}")
    return Value(value.name, np.frombuffer(value.value.tobytes(), f"V{size_bytes}")[0], value.dtype)


def _warn_types(args: Sequence[Value], known: Sequence[Parameter]) -> None:
    """Tell of buffers whose elements have another size or kind than the parameter's: the kernel reads the bytes as its own type."""
    for value, parameter in zip(args, known):
        if not (value.is_array and parameter.is_pointer and parameter.dtype and value.dtype in DTYPES):
            continue
        given, wanted = DTYPES[value.dtype], DTYPES[parameter.dtype]
        raw = given.itemsize == 1 or (given.itemsize == wanted.itemsize and (given.kind in "iu" or wanted.kind in "iu"))
        if not raw and value.dtype != parameter.dtype:
            declared = f"{parameter.type_} {parameter.name}"
            warn(f"argument {value.name} is {value.dtype}, and the kernel declares `{declared}`: it reads the bytes as its own type")


def _show_warnings(log: str) -> None:
    if "warning" not in log:
        return
    from fasim.toolchain.diagnostics import read_log

    for message in read_log(log):
        if message.severity == "warning":
            print(message.block.rstrip(), file=sys.stderr)
