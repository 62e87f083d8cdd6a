"""The commands and options of `fasim`, as typer shows them; what they do is in the modules beside this one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import fasim

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
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KERNEL | FILE] [KERNEL OPTIONS]",
            help="A kernel of the collection (fasim kernels), or a .cu or .ptx file.",
            show_default=False,
        ),
    ] = None,
    entry: Annotated[str | None, typer.Option(metavar="NAME", help="File: the kernel, for example axpy or 'gemm<128,64>'.")] = None,
    grid: Annotated[str | None, typer.Option(metavar="X,Y,Z", help="File: CTAs of the grid: 8, 8,2 or 8x2x1.")] = None,
    block: Annotated[str | None, typer.Option(metavar="X,Y,Z", help="File: threads of a CTA.")] = None,
    smem: Annotated[int | None, typer.Option(min=0, metavar="BYTES", help="File: dynamic shared memory.", show_default="0")] = None,
    arg: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]VALUE",
            help="File: one argument, in the order of the parameters: q=f16[2,128,64]:normal, q=@q.npy, q=@in.npz:q, n=i32:128, s=0.5, "
            "p=null. Types: f16 bf16 f32 f64 i8-i64 u8-u64 bool. "
            "Contents: zeros, ones, full(v), arange, normal, uniform(lo,hi), randint(lo,hi), bits, uninit.",
        ),
    ] = None,
    symbol: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="File: set a __constant__ or __device__ variable; values as in --arg.")
    ] = None,
    define: Annotated[list[str] | None, typer.Option("-D", metavar="NAME[=VALUE]", help="File: a macro.")] = None,
    include: Annotated[list[Path] | None, typer.Option("-I", metavar="DIR", help="File: a directory of headers.")] = None,
    expect: Annotated[list[str] | None, typer.Option(metavar="NAME=@FILE", help="What an array should hold: o=@ref.npy.")] = None,
    rtol: Annotated[float | None, typer.Option(min=0, help="Relative tolerance.", show_default="the kernel's; 0 for files")] = None,
    atol: Annotated[float | None, typer.Option(min=0, help="Absolute tolerance.", show_default="the kernel's; 0 for files")] = None,
    check: Annotated[bool, typer.Option("--check/--no-check", help="Compare with the reference.")] = True,
    print_: Annotated[
        list[str] | None, typer.Option("--print", metavar="NAME[SLICE]", help="Print a part of a buffer after the run: 'y[:8]'.")
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE.npz", help="Save all arrays as they are after the launch.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random inputs.")] = 0,
    arch: Annotated[str, typer.Option(metavar="sm_NN", help="Target architecture.")] = "sm_90",
    backend: Annotated[str, typer.Option(metavar="jit|reference", help="The compiled machine, or its source as plain Python.")] = "jit",
    workers: Annotated[int | None, typer.Option(min=1, help="Threads that run CTAs.", show_default="one a core")] = None,
    max_instructions: Annotated[int | None, typer.Option(min=1, help="End a launch that needs more.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the table.")] = False,
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
    general = [opt for param in ctx.command.params if param.param_type_name == "option" for opt in (*param.opts, *param.secondary_opts)]
    return carry_out(words or [], options, general, ctx.obj)


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
