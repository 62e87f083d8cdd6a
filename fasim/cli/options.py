"""Options that several commands have, as typer shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KERNEL | FILE | RECORDING] [KERNEL OPTIONS]",
        help="A kernel of the collection (fasim kernels), a .cu or .ptx file, or a recording (.zip).",
        show_default=False,
    ),
]
Entry = Annotated[str | None, typer.Option(metavar="NAME", help="File: the kernel, for example axpy or 'gemm<128,64>'.")]
Grid = Annotated[str | None, typer.Option(metavar="X,Y,Z", help="File: CTAs of the grid: 8, 8,2 or 8x2x1.")]
Block = Annotated[str | None, typer.Option(metavar="X,Y,Z", help="File: threads of a CTA.")]
Smem = Annotated[int | None, typer.Option(min=0, metavar="BYTES", help="File: dynamic shared memory.", show_default="0")]
Arg = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]VALUE",
        help="File: one argument, in the order of the parameters: q=f16[2,128,64]:normal, q=@q.npy, q=@in.npz:q, n=i32:128, s=0.5, "
        "p=null. Types: f16 bf16 f32 f64 i8-i64 u8-u64 bool. "
        "Contents: zeros, ones, full(v), arange, normal, uniform(lo,hi), randint(lo,hi), bits, uninit.",
    ),
]
Symbol = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="File: set a __constant__ or __device__ variable; values as in --arg.")
]
Define = Annotated[list[str] | None, typer.Option("-D", "--define", metavar="NAME[=VALUE]", help="File: a macro.")]
Include = Annotated[list[Path] | None, typer.Option("-I", metavar="DIR", help="File: a directory of headers.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random inputs.")]
Arch = Annotated[str | None, typer.Option(metavar="sm_NN", help="Target architecture.", show_default="sm_90; on a GPU its own")]
Isa = Annotated[str, typer.Option("--isa", metavar="ptx|sass", help="Run the PTX, or the machine code that ptxas made of it.")]
Backend = Annotated[str, typer.Option(metavar="jit|reference", help="The compiled machine, or its source as plain Python.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Threads that run CTAs.", show_default="one a core")]
Gpus = Annotated[
    str | None,
    typer.Option(metavar="LIST", help="GPUs, or data files (.toml) of GPUs, with commas between.", show_default="h200; a recording's own"),
]
Cold = Annotated[bool, typer.Option("--cold", help="With caches that do not hold the buffers.")]
MaxInstructions = Annotated[int | None, typer.Option(min=1, help="End a launch that needs more.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the table.")]
Rtol = Annotated[float | None, typer.Option(min=0, help="Relative tolerance.", show_default="the kernel's; 0 for files")]
Atol = Annotated[float | None, typer.Option(min=0, help="Absolute tolerance.", show_default="the kernel's; 0 for files")]
Check = Annotated[bool, typer.Option("--check/--no-check", help="Compare with the reference.")]
Print = Annotated[list[str] | None, typer.Option("--print", metavar="NAME[SLICE]", help="Print a part of a buffer after the run: 'y[:8]'.")]
Save = Annotated[Path | None, typer.Option(metavar="FILE.npz", help="Save all arrays as they are after the launch.")]
Expect = Annotated[list[str] | None, typer.Option(metavar="NAME=@FILE", help="What an array should hold: o=@ref.npy.")]
Device = Annotated[int, typer.Option(min=0, metavar="N", help="Which GPU, as the driver counts.")]
Timeout = Annotated[float, typer.Option(min=0.001, metavar="SECONDS", help="Give a launch up after this long.")]
