"""`fasim run NAME`: a kernel that comes with fasim, its options, inputs and reference."""

from __future__ import annotations

import difflib
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import fasim
from fasim.cli.job import Job, Reference, expectations
from fasim.cli.run_options import RunOptions
from fasim.cli.slices import check_slices
from fasim.errors import UsageError
from fasim.numerics.dtypes import short_name
from fasim.sm.values import Value

if TYPE_CHECKING:
    from fasim.kernels import KernelSpec, Option
    from fasim.kernels.spec import OptionValue

DEFAULT_KERNEL = "fa_v21"


def flag_of(option: Option) -> str:
    """How an option is written on the command line."""
    return "--" + option.name.replace("_", "-")


#: options of `fasim run` about what a launch leaves behind
OF_RUN = ("--expect", "--rtol", "--atol", "--print", "--save", "--counts")


def unknown_option(word: str, known: Sequence[str], of: str) -> UsageError:
    """The error for an option that nobody knows."""
    name = word.split("=")[0]
    if name in OF_RUN and name not in known:
        return UsageError(f"{name} is for fasim run, which looks at outputs; leave it out here")
    near = difflib.get_close_matches(name, known, 1, 0.5)
    return UsageError(f"{of} has no option {name}; {f'did you mean {near[0]}?' if near else 'options: ' + ', '.join(known)}")


def parse_kernel_options(spec: KernelSpec, words: Sequence[str], general: Sequence[str]) -> dict[str, OptionValue]:
    """The kernel's own options among the words of a command line; general: the options that every kernel has, for hints.

    Raises: UsageError.
    """
    return {option.name: option.parse(text) for option, text in _kernel_options(spec, words, general)}


def parse_variants(spec: KernelSpec, words: Sequence[str], general: Sequence[str]) -> list[dict[str, OptionValue]]:
    """The same where an option may have several values, separated by commas: all combinations, the last option changes fastest.

    Raises: UsageError.
    """
    given = {option.name: [option.parse(part) for part in text.split(",")] for option, text in _kernel_options(spec, words, general)}
    return [dict(zip(given, values)) for values in itertools.product(*(dict.fromkeys(values) for values in given.values()))]


def _kernel_options(spec: KernelSpec, words: Sequence[str], general: Sequence[str]) -> Iterator[tuple[Option, str]]:
    """The options among the words, each with the text of its value."""
    flags = {flag_of(option): option for option in spec.options}
    negations = {f"--no-{flag[2:]}": option for flag, option in flags.items() if option.kind is bool}
    pending = list(words)
    while pending:
        word = pending.pop(0)
        if not word.startswith("-"):
            raise UsageError(f"unexpected argument {word!r}; options of {spec.name} are written {', '.join(flags)}")
        flag, equals, text = word.partition("=")
        if flag in negations and not equals:
            yield negations[flag], "false"
            continue
        if flag not in flags:
            raise unknown_option(word, [*flags, *general], f"kernel {spec.name}")
        option = flags[flag]
        if not equals:
            if option.kind is bool:
                text = "true"
            elif pending:
                text = pending.pop(0)
            else:
                raise UsageError(f"{flag} needs a value: {option.help}")
        yield option, text


def prepare(name: str, words: Sequence[str], options: RunOptions, general: Sequence[str]) -> Job:
    """Compile a kernel of the collection and make its inputs.

    Raises: UsageError, CompileError, ToolMissing.
    """
    from fasim import kernels

    spec = kernels.load(name)
    return prepare_variant(spec, parse_kernel_options(spec, words, general), options)


def prepare_variant(spec: KernelSpec, chosen: Mapping[str, OptionValue], options: RunOptions) -> Job:
    """The same, with the kernel's own options as values."""
    given = spec.resolve(chosen)
    _refuse_file_options(spec, options)
    start = time.perf_counter()
    defines = spec.defines(given)
    name = f"/kernels/{spec.source}" if options.portable else None
    kernel = fasim.compile(spec.path, arch=options.target_arch, defines=defines, name=name).kernel(spec.entry, options.isa)
    compile_seconds = time.perf_counter() - start
    try:
        inputs = spec.inputs(given, options.seed)
        # the reference is computed from the inputs as they were before the launch
        args = [Value(a.name, a.value.copy() if a.direction == "inout" else a.value, short_name(a.value.dtype)) for a in inputs]
    except MemoryError as error:
        raise UsageError(f"the inputs of {spec.name} do not fit into memory: {error}") from None
    check_slices(options.prints, args)
    launch = spec.launch(given)
    given_references = expectations(options, args)
    rtol, atol = spec.tolerance(given)

    def references() -> Mapping[str, Reference]:
        outputs = {a.name for a in inputs if a.direction != "in"}
        if not options.check or outputs <= set(given_references):
            return given_references
        own = {key: Reference(values, "the float64 reference") for key, values in spec.reference(given, inputs).items()}
        return {**own, **given_references}

    return Job(
        kernel,
        spec.source,
        args,
        launch.grid,
        launch.block,
        launch.dynamic_smem_bytes,
        rtol if options.rtol is None else options.rtol,
        atol if options.atol is None else options.atol,
        compile_seconds,
        references,
        tuple(a.name for a in inputs if a.direction != "in"),
        dict(given),
        dict(defines),
        ("kernel",) * len(args),
        spec.name,
        spec.flops(given),
        options.seed,
    )


def _refuse_file_options(spec: KernelSpec, options: RunOptions) -> None:
    given = {
        "--entry": options.entry, "--grid": options.grid, "--block": options.block, "--smem": options.smem_bytes, "--arg": options.args,
        "--symbol": options.symbols, "-D": options.defines, "-I": options.include_dirs,
    }  # fmt: skip
    for flag, value in given.items():
        if value not in (None, ()):
            raise UsageError(f"{flag} is for files; {spec.name} brings its own. To change it, copy {spec.path} and run the copy")
