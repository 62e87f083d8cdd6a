"""A recording as something to run: `fasim run RECORDING.zip`, and all other commands that take a kernel."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

import fasim
from fasim.cli.job import Job, Reference, expectations
from fasim.cli.run_options import RunOptions
from fasim.cli.slices import check_slices
from fasim.errors import CompileError, UsageError
from fasim.gpu.recording import Recording, plain_module, recorded_argument
from fasim.gpu.recording_file import load
from fasim.sm.limits import triple
from fasim.sm.module import Kernel


def prepare(path: Path, options: RunOptions) -> Job:
    """The launch of a recording: the recorded PTX, compiled anew only for another architecture than it was recorded with.

    Raises: UsageError if options are given that the recording brings itself.
    """
    refuse_options(path, options)
    recording = load(path)
    return job_of(recording, options, str(path))


def job_of(recording: Recording, options: RunOptions, source: str = "") -> Job:
    """The same for a recording that was read; source: what to call it."""
    start = time.perf_counter()
    as_recorded = options.arch in ("", recording.module.arch)
    kernel = recording.load_kernel(options.isa) if as_recorded else recompiled(recording, options.arch, options.isa)
    args = recording.make_arguments(kernel)
    compile_seconds = time.perf_counter() - start
    check_slices(options.prints, args)
    given = expectations(options, args)
    rtol, atol = (options.rtol or 0.0, options.atol or 0.0)
    references, judged = _references(recording, options, given), None
    if recording.collection:
        from fasim import kernels

        spec = kernels.load(recording.collection)
        tolerance = spec.tolerance(recording.options)
        rtol, atol = (given if given is not None else own for given, own in zip((options.rtol, options.atol), tolerance))
        judged = tuple(a.name for a in spec.inputs(recording.options, recording.seed) if a.direction != "in")
    return Job(
        kernel,
        source or recording.source,
        args,
        recording.grid,
        recording.block,
        recording.dynamic_smem_bytes,
        rtol,
        atol,
        compile_seconds,
        references,
        judged,
        dict(recording.options),
        dict(recording.defines),
        tuple(argument.made for argument in recording.arguments),
        recording.collection,
        recording.flops,
        recording.seed,
    )


def recording_of(job: Job, name: str, old: Recording | None = None) -> Recording:
    """The record of a job before it ran; old: the recording that it was made from, if any."""
    module, program = job.kernel.module, job.kernel.program
    compiled = module.compiled or plain_module(module.ptx, Path(module.path).name, module.arch.name)
    variables = {}
    for variable in program.variables:
        content = bytes(module.data(variable))
        if content != variable.initial and "$" not in variable.name:
            variables[variable.name] = content
    return Recording(
        name=name,
        kernel=job.kernel.name,
        entry=program.name,
        source=old.source if old else Path(job.source).name,
        module=replace(compiled, from_cache=False),
        grid=triple(job.grid, "grid"),
        block=triple(job.block, "block"),
        dynamic_smem_bytes=job.dynamic_smem_bytes,
        arguments=tuple(recorded_argument(value, made) for value, made in zip(job.args, job.made, strict=True)),
        seed=job.seed,
        collection=job.collection,
        options=dict(job.options),
        defines=dict(job.defines),
        flops=job.flops,
        variables=variables,
    )


def recompiled(recording: Recording, arch: str, isa: str = "ptx") -> Kernel:
    """The recorded source for another architecture.

    Raises: UsageError if there is only PTX; CompileError.
    """
    module = recording.module
    if not module.source_text:
        if arch_number(arch) < arch_number(module.arch):
            raise UsageError(f"recording {recording.name} holds PTX for {module.arch} and no source: it cannot run on {arch}")
        entry, compiled = None, fasim.compile(module.ptx, arch=arch)
    else:
        entry = recording.kernel if "<" in recording.kernel else None
        name = module.source_path if module.source_path.startswith("/") else None
        try:
            compiled = fasim.compile(module.source_text, arch=arch, defines=recording.defines, entry=entry, name=name)
        except CompileError as error:
            what = f"recording {recording.name} is for {module.arch}, and its source alone, without headers of its own, does not compile"
            raise CompileError(f"{what} for {arch}:\n{error}") from error
    kernel = compiled.kernel(entry or recording.entry, isa)
    for variable in kernel.program.variables:
        if variable.name in recording.variables:
            compiled.data(variable)[:] = np.frombuffer(recording.variables[variable.name], np.uint8)
    return kernel


def arch_number(arch: str) -> int:
    """90 for `sm_90` and `sm_90a`."""
    return int("".join(character for character in arch if character.isdigit()) or 0)


def _references(recording: Recording, options: RunOptions, given: dict[str, Reference]) -> Callable[[], Mapping[str, Reference]]:
    def references() -> Mapping[str, Reference]:
        if not options.check or not recording.collection:
            return given
        from fasim import kernels

        spec = kernels.load(recording.collection)
        inputs = spec.inputs(recording.options, recording.seed)
        own = {name: Reference(values, "the float64 reference") for name, values in spec.reference(recording.options, inputs).items()}
        return {**own, **given}

    return references


def refuse_options(path: Path, options: RunOptions) -> None:
    """Raises: UsageError for an option that the recording brings itself."""
    given = {
        "--entry": options.entry, "--grid": options.grid, "--block": options.block, "--smem": options.smem_bytes, "--arg": options.args,
        "--symbol": options.symbols, "-D": options.defines, "-I": options.include_dirs, "--seed": options.seed or None,
    }  # fmt: skip
    for flag, value in given.items():
        if value not in (None, ()):
            raise UsageError(
                f"{flag} is for {'kernels and ' if flag == '--seed' else ''}files; recording {path} brings all that the launch needs"
            )
