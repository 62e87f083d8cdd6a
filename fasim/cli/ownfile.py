"""`fasim run FILE.cu`: a person's own kernel with the launch and the arguments from the command line."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import fasim
from fasim.cli.collection import unknown_option
from fasim.cli.job import Job, expectations
from fasim.cli.run_options import RunOptions
from fasim.cli.signature import check_names, check_type, describe, example_command, parameters
from fasim.cli.slices import check_slices
from fasim.errors import UsageError
from fasim.sm.module import Kernel, Module
from fasim.sm.symbol import Symbol
from fasim.sm.values import by_value, made_again, parse_argument
from fasim.toolchain.names import did_you_mean


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
            raise unknown_option(words[0], general, f"fasim {options.command} FILE")
        raise UsageError(f"unexpected argument {words[0]!r} after {path!r}")
    grid = parse_sizes(options.grid, "--grid") if options.grid else None
    block = parse_sizes(options.block, "--block") if options.block else None
    args = [parse_argument(text, i, options.seed) for i, text in enumerate(options.args)]
    names = [value.name for value in args]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"two arguments are called {doubled[0]!r}")
    expected = expectations(options, args)
    if not options.expect and (options.rtol is not None or options.atol is not None):
        raise UsageError("--rtol and --atol need something to compare with: --expect NAME=@FILE")
    check_slices(options.prints, args)
    defines = dict(parse_define(text) for text in options.defines)
    if defines and str(path).endswith(".ptx"):
        raise UsageError(f"-D {options.defines[0]}: {path} is PTX, in which macros no longer mean anything; give the .cu file")
    start = time.perf_counter()
    name = f"/{Path(path).name}" if options.portable and not path.endswith(".ptx") else None
    module = fasim.compile(
        path, arch=options.target_arch, defines=defines, include_dirs=options.include_dirs, entry=options.entry, name=name
    )
    if module.compiled is not None and (options.counts or not module.compiled.from_cache):
        _show_warnings(module.compiled.log)
    kernel = module.kernel(options.entry, options.isa)
    compile_seconds = time.perf_counter() - start
    if grid is None or block is None or len(args) != len(kernel.program.parameters):
        raise _missing(path, kernel, options, len(args))
    if complaint := check_names(names, parameters(kernel)) if module.compiled is not None else None:
        raise UsageError(complaint)
    for value, declared in zip(args, kernel.signature or ()):
        if complaint := check_type(value.name, value.dtype, declared) if value.is_array else None:
            raise UsageError(complaint)
    set_symbols(module, options)
    return Job(
        kernel,
        path,
        [by_value(value, parameter.type_, parameter.size_bytes) for value, parameter in zip(args, kernel.program.parameters)],
        grid,
        block,
        options.smem_bytes or 0,
        options.rtol or 0.0,
        options.atol or 0.0,
        compile_seconds,
        lambda: expected if options.check else {},
        defines=dict(defines),
        made=tuple(made_again(text) for text in options.args),
        seed=options.seed,
    )


def _missing(path: str, kernel: Kernel, options: RunOptions, given: int) -> UsageError:
    known = parameters(kernel)
    missing = [flag for flag, value in (("--grid", options.grid), ("--block", options.block)) if not value]
    if given != len(known):
        missing.append(f"{len(known)} --arg, one a parameter in their order (got {given})")
    symbols = ", ".join(map(repr_symbol, map(kernel.module.symbol, kernel.module.symbol_names)))
    variables = f"Variables that --symbol sets: {symbols}.\n" if symbols else ""
    given_options = [*(("-D", text) for text in options.defines), *(("-I", str(directory)) for directory in options.include_dirs)]
    kept = [word for pair in given_options for word in pair]
    return UsageError(
        f"kernel {kernel.name} needs {' and '.join(missing)}. It takes:\n{describe(known)}\n{variables}"
        f"For example (adapt the sizes):\n  {example_command(path, kernel, known, options.smem_bytes or 0, kept, options.command)}"
    )


def set_symbols(module: Module, options: RunOptions) -> None:
    """Carry out --symbol.

    Raises: UsageError with the module's variables.
    """
    for i, text in enumerate(options.symbols):
        listed = ", ".join(map(repr_symbol, map(module.symbol, module.symbol_names))) or "none"
        if not re.match(r"[A-Za-z_][\w:]*=", text):
            raise UsageError(f"--symbol {text!r}: write NAME=VALUE; variables of the module: {listed}")
        name, _, spec = text.partition("=")
        if name not in module.symbol_names:
            raise UsageError(f"--symbol {text!r}: no variable {name!r}{did_you_mean(name, module.symbol_names)}; there are: {listed}")
        value = parse_argument(f"symbol={spec}", i, options.seed, flag="--symbol", shown=text).value
        if value is None:
            raise UsageError(f"--symbol {text!r}: a variable takes numbers, not null")
        try:
            module.symbol(name).write(value)
        except UsageError as error:
            raise UsageError(f"--symbol {text!r}: {error}") from None


def repr_symbol(symbol: Symbol) -> str:
    """A variable with its size, for lists."""
    return f"{symbol.name} ({symbol.size_bytes} bytes{' of ' + symbol.dtype if symbol.dtype else ''})"


def _show_warnings(log: str) -> None:
    if "warning" not in log:
        return
    from fasim.toolchain.diagnostics import read_log

    for message in read_log(log):
        if message.severity == "warning":
            print(message.block.rstrip(), file=sys.stderr)
