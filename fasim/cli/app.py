"""The commands and options of `fasim`, as typer shows them; what they do is in the modules beside this one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import fasim
from fasim.cli import options as o

EPILOG = (
    "Exit codes: 0 right, 1 wrong output or a finding, 2 usage, 3 not modelled, 4 missing GPU or tool, 5 does not compile, 130 interrupted."
)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True, epilog=EPILOG)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"fasim {fasim.__version__}")
        raise typer.Exit


@app.callback()
def fasim_options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """The CUDA kernel lab that needs no GPU: compile, execute lane by lane, check."""


@app.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    epilog=EPILOG,
)
def run(
    ctx: typer.Context,
    words: o.Words = None,
    entry: o.Entry = None,
    grid: o.Grid = None,
    block: o.Block = None,
    smem: o.Smem = None,
    arg: o.Arg = None,
    symbol: o.Symbol = None,
    define: o.Define = None,
    include: o.Include = None,
    expect: Annotated[list[str] | None, typer.Option(metavar="NAME=@FILE", help="What an array should hold: o=@ref.npy.")] = None,
    rtol: Annotated[float | None, typer.Option(min=0, help="Relative tolerance.", show_default="the kernel's; 0 for files")] = None,
    atol: Annotated[float | None, typer.Option(min=0, help="Absolute tolerance.", show_default="the kernel's; 0 for files")] = None,
    check: Annotated[bool, typer.Option("--check/--no-check", help="Compare with the reference.")] = True,
    print_: Annotated[
        list[str] | None, typer.Option("--print", metavar="NAME[SLICE]", help="Print a part of a buffer after the run: 'y[:8]'.")
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE.npz", help="Save all arrays as they are after the launch.")] = None,
    seed: o.Seed = 0,
    arch: o.Arch = "sm_90",
    backend: o.Backend = "jit",
    workers: o.Workers = None,
    max_instructions: o.MaxInstructions = None,
    json: o.Json = False,
    counts: Annotated[bool, typer.Option("--counts", "--verbose", help="Print the instruction mix and executions by line.")] = False,
) -> int:
    """Compile a kernel, run it on the CPU, and judge its output.

    Alone it runs fa_v21. `fasim kernels` lists the kernels of the collection and their options.
    """
    from fasim.cli.job import RunOptions
    from fasim.cli.run import run as carry_out

    options = RunOptions(
        entry, grid, block, smem, tuple(arg or ()), tuple(define or ()), tuple(include or ()), tuple(expect or ()), rtol, atol, check, save,
        seed, arch, backend, workers, max_instructions, json, counts, tuple(symbol or ()), tuple(print_ or ()),
    )  # fmt: skip
    return carry_out(words or [], options, _general_options(ctx), ctx.obj)


def _general_options(ctx: typer.Context) -> list[str]:
    """The options of a command in every spelling, for hints."""
    return [opt for param in ctx.command.params if param.param_type_name == "option" for opt in (*param.opts, *param.secondary_opts)]


@app.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    epilog=EPILOG,
)
def banks(
    ctx: typer.Context,
    words: o.Words = None,
    entry: o.Entry = None,
    grid: o.Grid = None,
    block: o.Block = None,
    smem: o.Smem = None,
    arg: o.Arg = None,
    symbol: o.Symbol = None,
    define: o.Define = None,
    include: o.Include = None,
    seed: o.Seed = 0,
    arch: o.Arch = "sm_90",
    backend: o.Backend = "jit",
    workers: o.Workers = None,
    max_instructions: o.MaxInstructions = None,
    json: o.Json = False,
    line: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Show lanes and banks of the accesses on this line.", show_default="the worst")
    ] = None,
    all_groups: Annotated[bool, typer.Option("--all-groups", help="Show all groups of lanes, not only the one that costs most.")] = False,
    pitch: Annotated[
        int | None, typer.Option(min=1, metavar="BYTES", help="Distance of the rows, for the advice.", show_default="found from the lanes")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE.png|.svg", help="Draw the picture into a file.")] = None,
) -> int:
    """Count wavefronts and bank conflicts by source line, show which lanes collide, and say what cures it.

    Alone it looks at fa_v21. A kernel option or a macro with several values compares them: --layout linear,padded,swizzled or
    -D LAYOUT=0,1,2.
    """
    from fasim.cli.banks import BanksOptions
    from fasim.cli.banks import banks as carry_out
    from fasim.cli.job import RunOptions

    options = RunOptions(
        entry, grid, block, smem, tuple(arg or ()), tuple(define or ()), tuple(include or ()), check=False, seed=seed, arch=arch,
        backend=backend, workers=workers, max_instructions=max_instructions, json=json, symbols=tuple(symbol or ()), command="banks",
    )  # fmt: skip
    return carry_out(words or [], options, _general_options(ctx), BanksOptions(line, all_groups, pitch, out))


@app.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    epilog=EPILOG,
)
def check(
    ctx: typer.Context,
    words: o.Words = None,
    entry: o.Entry = None,
    grid: o.Grid = None,
    block: o.Block = None,
    smem: o.Smem = None,
    arg: o.Arg = None,
    symbol: o.Symbol = None,
    define: o.Define = None,
    include: o.Include = None,
    seed: o.Seed = 0,
    arch: o.Arch = "sm_90",
    backend: o.Backend = "jit",
    workers: o.Workers = None,
    max_instructions: o.MaxInstructions = None,
    json: o.Json = False,
    only: Annotated[
        str, typer.Option(metavar="LIST", help="Some of race, init, sync, with commas between.", show_default="all of them")
    ] = "all",
    sarif: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the findings as SARIF 2.1.0, for code review tools.")] = None,
) -> int:
    """Look for hazards: races in shared memory, copies not waited for, uninitialised values, barriers and masks that lanes miss.

    Exit code 1 if there is a finding that is more than a note. Alone it looks at fa_v21.
    """
    from fasim.cli.check import check as carry_out
    from fasim.cli.job import RunOptions

    options = RunOptions(
        entry, grid, block, smem, tuple(arg or ()), tuple(define or ()), tuple(include or ()), check=False, seed=seed, arch=arch,
        backend=backend, workers=workers, max_instructions=max_instructions, json=json, symbols=tuple(symbol or ()), command="check",
    )  # fmt: skip
    return carry_out(words or [], options, _general_options(ctx), only, sarif)


@app.command()
def kernels(
    name: Annotated[str | None, typer.Argument(help="Show this kernel alone.", show_default=False)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """List the kernels that come with fasim, with their options."""
    from fasim.cli.listing import show

    return show(name, json=json)


@app.command()
def doctor(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> int:
    """Say what is there, what is missing, and which command mends it."""
    from fasim.cli.doctor import examine

    return examine(json=json)


@app.command()
def cache(clear: Annotated[bool, typer.Option("--clear", help="Delete what is kept.")] = False) -> int:
    """Say where compiled kernels are kept and how much there is, or delete them."""
    from fasim.cli.kept import show

    return show(clear=clear)
