"""The commands and options of `fasim`, as typer shows them; what they do is in the modules beside this one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import fasim
from fasim.cli import options as o
from fasim.cli.gpu_app import app as gpu_app
from fasim.cli.launching import Call, launch_command

EPILOG = (
    "Exit codes: 0 right, 1 wrong output or a finding, 2 usage, 3 not modelled, 4 missing GPU or tool, 5 does not compile, 130 interrupted."
)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True, epilog=EPILOG)
app.add_typer(gpu_app, name="gpu")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"fasim {fasim.__version__}")
        raise typer.Exit


@app.callback()
def fasim_options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """The CUDA kernel lab that needs no GPU: compile, execute lane by lane, check."""


@launch_command(app, EPILOG)
def run(
    call: Call,
    expect: o.Expect = None,
    rtol: o.Rtol = None,
    atol: o.Atol = None,
    check: o.Check = True,
    print_: o.Print = None,
    save: o.Save = None,
    counts: Annotated[bool, typer.Option("--counts", "--verbose", help="Print the instruction mix and executions by line.")] = False,
    trace: Annotated[bool, typer.Option("--trace", help="Step through it, forward and back (? there shows the keys).")] = False,
    trace_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html|.json|.pftrace|.svg|.png",
            help="Write what a CTA does: as a page for a browser, as data, for ui.perfetto.dev; or draw its buffers over time.",
        ),
    ] = None,
    cta: Annotated[str | None, typer.Option(metavar="X,Y,Z", help="Trace this CTA.", show_default="(0,0,0)")] = None,
    warp: Annotated[int | None, typer.Option(min=0, metavar="N", help="Trace this warp.", show_default="all")] = None,
    tile: Annotated[
        int | None, typer.Option(min=-1, metavar="N", help="--trace-out: this tile; -1: before the first.", show_default="all")
    ] = None,
    steps: Annotated[
        str | None, typer.Option(metavar="TEXT", help='--trace-out: these steps, such as "S = QK^T".', show_default="all")
    ] = None,
) -> int:
    """Compile a kernel, run it on the CPU, and judge its output; or step through it.

    Alone it runs fa_v21. `fasim kernels` lists the kernels of the collection and their options.
    """
    call = call.with_options(
        expect=tuple(expect or ()), rtol=rtol, atol=atol, check=check, prints=tuple(print_ or ()), save=save, counts=counts
    )
    if trace or trace_out is not None or any(each is not None for each in (cta, warp, tile, steps)):
        from fasim.cli.trace import TraceOptions
        from fasim.cli.trace import trace as carry_trace_out

        return carry_trace_out(call, TraceOptions(trace, trace_out, cta, warp, tile, steps))
    from fasim.cli.run import run as carry_out

    return carry_out(call)


@launch_command(app, EPILOG)
def banks(
    call: Call,
    line: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Show lanes and banks of the accesses on this line.", show_default="the worst")
    ] = None,
    all_groups: Annotated[bool, typer.Option("--all-groups", help="Show all groups of lanes, not only the one that costs most.")] = False,
    pitch: Annotated[
        int | None, typer.Option(min=1, metavar="BYTES", help="Distance of the rows, for the advice.", show_default="found from the lanes")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE.png|.svg", help="Draw lanes and banks into a file.")] = None,
    lines_out: Annotated[
        Path | None, typer.Option(metavar="FILE.png|.svg", help="Draw wavefronts by source line into a file, variants side by side.")
    ] = None,
) -> int:
    """Count wavefronts and bank conflicts by source line, show which lanes collide, and say what cures it.

    Alone it looks at fa_v21. A kernel option or a macro with several values compares them: --layout linear,padded,swizzled or
    -D LAYOUT=0,1,2.
    """
    from fasim.cli.banks import BanksOptions
    from fasim.cli.banks import banks as carry_out

    return carry_out(call, BanksOptions(line, all_groups, pitch, out, lines_out))


@launch_command(app, EPILOG)
def check(
    call: Call,
    only: Annotated[
        str, typer.Option(metavar="LIST", help="Some of race, init, sync, with commas between.", show_default="all of them")
    ] = "all",
    sarif: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the findings as SARIF 2.1.0, for code review tools.")] = None,
) -> int:
    """Look for hazards: races in shared memory, copies not waited for, uninitialised values, barriers and masks that lanes miss.

    Exit code 1 if there is a finding that is more than a note. Alone it looks at fa_v21.
    """
    from fasim.cli.check import check as carry_out

    return carry_out(call, only, sarif)


@launch_command(app, EPILOG)
def compare(
    call: Call,
    all_: Annotated[bool, typer.Option("--all", help="Show also what is equal.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Leave out recordings that take more than some seconds to simulate.")] = False,
    counters: Annotated[bool, typer.Option("--counters/--no-counters", help="On a GPU: with ncu's counters, or output bits alone.")] = True,
    device: o.Device = 0,
    timeout: o.Timeout = 60.0,
    out: Annotated[Path | None, typer.Option(metavar="FILE.png|.svg", help="Draw simulated against measured into a file.")] = None,
) -> int:
    """Simulate what a GPU did, and compare bit for bit and count for count.

    Recordings (.zip) and folders of them as arguments: no GPU is needed; alone it takes the folder recordings. A kernel or file: the GPU
    of this machine, or else a recording of the same launch. Exit code 1 for a real mismatch; what ptxas changed between PTX and machine
    code, and noise in the hardware's counters, is explained. --isa sass runs the machine code and compares instruction by instruction.
    """
    from fasim.cli.compare import CompareOptions
    from fasim.cli.compare import compare as carry_out
    from fasim.cli.on_gpu import GpuOptions

    return carry_out(call, GpuOptions(device, timeout), CompareOptions(all_, counters, out, quick))


@launch_command(app, EPILOG, simulates=False)
def time(
    call: Call,
    gpu: o.Gpus = None,
    cold: o.Cold = False,
    lines: Annotated[int, typer.Option(min=0, metavar="N", help="Source lines to show.")] = 12,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.png|.svg|.pftrace", help="Draw a figure, or write a trace for ui.perfetto.dev.")
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(metavar="roofline|gantt|measured", help="--out: which figure; measured: of recordings.", show_default="roofline"),
    ] = None,
    window: Annotated[str | None, typer.Option(metavar="FIRST,LAST", help="--out: cycles of the Gantt chart or the trace.")] = None,
    workers: o.Workers = None,
) -> int:
    """Predict how long a launch takes, and say why: what bounds it, and where warps wait, by source line and step.

    Needs no GPU: the machine code runs in a model of an SM and of its way to memory. Several values of options, macros or --gpu are put
    side by side. Recordings (.zip) and folders of them: measured times stand beside the predicted ones.
    """
    from fasim.cli.time import TimeOptions
    from fasim.cli.time import time as carry_out

    return carry_out(call, TimeOptions(gpu, cold, lines, out, figure, window, workers))


@launch_command(app, EPILOG, simulates=False)
def sweep(
    call: Call,
    gpu: o.Gpus = None,
    cold: o.Cold = False,
    top: Annotated[int, typer.Option(min=0, metavar="N", help="Launches to show in the table; 0: all.")] = 20,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="Try up to so many combinations.", show_default="1000")] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv|.png|.svg", help="Write all rows as a table, or draw them: bars, or a map of two options."),
    ] = None,
    over: Annotated[
        str | None, typer.Option(metavar="A,B", help="--out: a map over these two, the best of all others in each cell.")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="tcp://HOST:PORT|local", help="Run on a Dask cluster; local: one for this command.", show_default="processes of its own"
        ),
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes on this machine.", show_default="one a core")] = None,
) -> int:
    """Predict all combinations of several values, and rank them by time.

    Values have commas between: options of a kernel (--bc 32,64 --layout padded,swizzled), macros (-D TILE=16,32), --gpu, and for files
    --block and --grid (128,256 or 16x16,32x8; --grid '131072/blockDim.x' or 'M/TILE x N/TILE' follows from the rest). What does not compile
    or does not fit is listed at the end.
    """
    from fasim.cli.sweep import SweepOptions
    from fasim.cli.sweep import sweep as carry_out

    return carry_out(call, SweepOptions(gpu, cold, top, limit, out, over, scheduler, workers))


@app.command()
def layout(
    name: Annotated[
        str | None, typer.Argument(help="For example mma.m16n8k16.f16, ldmatrix.x4.trans, hand-over.", show_default=False)
    ] = None,
    operand: Annotated[str | None, typer.Option(metavar="A|B|C|D", help="This operand alone.", show_default=False)] = None,
    element: Annotated[
        str | None, typer.Option(metavar="ROW,COLUMN", help="Who holds this element? With several matrices also MATRIX,ROW,COLUMN.")
    ] = None,
    lane: Annotated[int | None, typer.Option(metavar="N", help="What does this lane hold?")] = None,
    reg: Annotated[str | None, typer.Option(metavar="N", help="What is in this register? 2 or, as the tables call it, a2.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE.png|.svg", help="Draw the picture into a file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Show which lane and register holds which element of a matrix, for ldmatrix, stmatrix, mma and wmma.

    Alone it lists the names. hand-over shows how fa_v21 turns results into operands without moving them.
    """
    from fasim.cli.layout import layout as carry_out

    return carry_out(name, operand=operand, element=element, lane=lane, register=reg, out=out, json=json)


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
