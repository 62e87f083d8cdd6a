"""The commands below `fasim gpu`, as typer shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fasim.cli import options as o
from fasim.cli.launching import Call, launch_command

EPILOG = (
    "Needs an NVIDIA GPU, its driver and pycuda: pip install pycuda ncu-report. Exit code 4 if one of them is missing, with what to do "
    "about it. Without a GPU: fasim compare."
)
PACK_EPILOG = "Then, on the machine with the GPU: fasim gpu record FOLDER -o RECORDINGS"
app = typer.Typer(no_args_is_help=True, epilog=EPILOG, help="The identical kernel on a real GPU: run, time, profile, record.")

_OutFolder = Annotated[
    Path | None, typer.Option("-o", "--out", metavar="FILE.zip|FOLDER", help="Where to write.", show_default="FOLDER = .")
]
_Name = Annotated[str | None, typer.Option(metavar="NAME", help="Name of the recording.", show_default="from kernel and options")]
_Share = Annotated[bool, typer.Option("--share-cubins", help="Keep machine code once for a folder, in FOLDER/cubins.")]


@app.command(name="list")
def list_(json: o.Json = False) -> int:
    """List the GPUs that there are, with their limits as the driver states them."""
    from fasim.cli.gpu_list import show

    return show(json=json)


@app.command(epilog=EPILOG)
def calibrate(
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE.toml", help="The data file to write.")] = None,
    json: Annotated[Path | None, typer.Option(metavar="FILE.json", help="All results, raw ones too.")] = None,
    placement: Annotated[Path | None, typer.Option(metavar="FILE.npz", help="SM and time of each CTA of some grids.")] = None,
    device: o.Device = 0,
    code: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Machine code that --pack wrote.")] = None,
    pack: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Only compile, for a machine that has no compiler. Needs no GPU.")
    ] = None,
    arch: Annotated[str, typer.Option(metavar="sm_NN", help="What --pack compiles for.")] = "sm_90",
) -> int:
    """Measure latencies, intervals, bandwidths, launches and clocks of a GPU, and write the data file that fasim time reads.

    Takes about a minute. Prints what was measured beside what the nearest known card's data file says.
    """
    from fasim.cli.gpu_calibrate import CalibrateOptions
    from fasim.cli.gpu_calibrate import calibrate as carry_out
    from fasim.cli.gpu_calibrate import pack as write_code

    if pack is not None:
        return write_code(pack, arch)
    return carry_out(CalibrateOptions(out, json, placement, code), device)


@launch_command(app, EPILOG, simulates=False, path="gpu")
def run(
    call: Call,
    device: o.Device = 0,
    timeout: o.Timeout = 60.0,
    expect: o.Expect = None,
    rtol: o.Rtol = None,
    atol: o.Atol = None,
    check: o.Check = True,
    print_: o.Print = None,
    save: o.Save = None,
) -> int:
    """Launch on the GPU and judge the output, with the same inputs and the same machine code as fasim run."""
    from fasim.cli.gpu_run import run as carry_out
    from fasim.cli.on_gpu import GpuOptions

    asked = {"expect": tuple(expect or ()), "rtol": rtol, "atol": atol, "check": check, "prints": tuple(print_ or ()), "save": save}
    return carry_out(call.with_options(**asked), GpuOptions(device, timeout))


@launch_command(app, EPILOG, simulates=False, path="gpu")
def time(
    call: Call,
    device: o.Device = 0,
    timeout: o.Timeout = 60.0,
    repetitions: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Launches to time.", show_default="as many as take a second, 20 to 300")
    ] = None,
    warm_up: Annotated[int, typer.Option(min=0, metavar="N", help="Launches before.")] = 5,
    flops: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Floating-point operations of a launch.", show_default="the kernel's")
    ] = None,
) -> int:
    """Time a launch by events, with a cold and with a warm L2 cache. Options with several values give a line each."""
    from fasim.cli.gpu_time import time as carry_out
    from fasim.cli.on_gpu import GpuOptions

    return carry_out(call, GpuOptions(device, timeout), repetitions, warm_up, flops)


@launch_command(app, EPILOG, simulates=False, path="gpu")
def profile(
    call: Call,
    device: o.Device = 0,
    timeout: o.Timeout = 60.0,
    keep: Annotated[Path | None, typer.Option(metavar="FILE.ncu-rep", help="Keep ncu's report, which Nsight Compute opens.")] = None,
) -> int:
    """Count with Nsight Compute (ncu): by source line and in total. Needs ncu on the PATH and permission for the counters."""
    from fasim.cli.gpu_profile import profile as carry_out
    from fasim.cli.on_gpu import GpuOptions

    return carry_out(call, GpuOptions(device, timeout), keep)


@launch_command(app, EPILOG, simulates=False, path="gpu")
def record(
    call: Call,
    out: _OutFolder = None,
    name: _Name = None,
    device: o.Device = 0,
    timeout: o.Timeout = 60.0,
    profile: Annotated[bool, typer.Option("--profile/--no-profile", help="With ncu's counters.")] = True,
    time: Annotated[bool, typer.Option("--time/--no-time", help="With times.")] = True,
    share_cubins: _Share = False,
) -> int:
    """Write what the GPU does into recordings that fasim compare reads anywhere: output bits, counters, times, one file a launch.

    Recordings and folders of them as arguments are recorded anew on this GPU: fasim gpu record recordings/h200 -o recordings/mine
    """
    from fasim.cli.gpu_record import RecordOptions
    from fasim.cli.gpu_record import record as carry_out
    from fasim.cli.on_gpu import GpuOptions

    return carry_out(call, GpuOptions(device, timeout), RecordOptions(out, name, profile, time, share_cubins))


@launch_command(app, PACK_EPILOG, simulates=False, path="gpu")
def pack(call: Call, out: _OutFolder = None, name: _Name = None, share_cubins: _Share = False) -> int:
    """Write compiled launches that wait for a GPU, to record them on a machine that has no compiler. Needs no GPU."""
    from fasim.cli.gpu_record import RecordOptions
    from fasim.cli.gpu_record import pack as carry_out

    return carry_out(call, RecordOptions(out, name, share_cubins=share_cubins))
