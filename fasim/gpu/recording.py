"""A recording: one launch, everything that repeats it, and what a GPU did with it, in one file.

The file is a zip archive: `run.json` (what was run where, figures, hashes), `kernel.ptx`, `kernel.cubin`, `source.cu`, `inputs.npz`
(what no seed gives), `outputs.npz` (bits, below a size) and `instructions.json` (counters by machine instruction). Without a card in it,
it is a launch that waits for a GPU.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fasim.arch import architecture
from fasim.errors import UsageError
from fasim.report.bits import sha256_of
from fasim.report.measured import Card, Output, Profile, Timing
from fasim.sm.module import Kernel, Module
from fasim.sm.values import Value, by_value, parse_argument
from fasim.toolchain import CompiledModule
from fasim.toolchain.names import plain_name

Array = np.ndarray[Any, Any]
RECORDING_SCHEMA = "fasim.recording/1"
#: outputs of up to this size are kept bit by bit, larger ones as a hash
KEPT_BYTES = 1 << 16
#: how an argument is made, if not by the text of an --arg
BY_KERNEL, STORED = "kernel", "stored"


@dataclass(frozen=True)
class RecordedArgument:
    """One argument; made: "kernel" (the collection's inputs by seed), "stored", or the text after --arg NAME=.

    dtype: short name. shape: of a buffer, None for a scalar; sha256: of its bytes. value: what is stored.
    """

    name: str
    made: str
    dtype: str
    shape: tuple[int, ...] | None
    sha256: str = ""
    value: Any = None


@dataclass(frozen=True)
class Recording:
    """One launch and what a GPU did with it.

    name: unique among the recordings of a folder. kernel: the plain name; entry: the mangled one. source: the file as a person calls it.
    options: of a collection kernel. variables: contents of module variables that were set, by mangled name.
    card, date, tools: None or empty before it was recorded. outputs: the arrays and `__device__` variables that the kernel changed.
    printed: what printf wrote. timings: by kind: "warm" (the same buffers each time) and "cold" (copies in turn).
    """

    name: str
    kernel: str
    entry: str
    source: str
    module: CompiledModule
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_smem_bytes: int
    arguments: tuple[RecordedArgument, ...]
    seed: int = 0
    collection: str = ""
    options: dict[str, int | str | bool] = field(default_factory=dict)
    defines: dict[str, int | str | None] = field(default_factory=dict)
    flops: int = 0
    variables: dict[str, bytes] = field(default_factory=dict)
    card: Card | None = None
    date: str = ""
    tools: dict[str, str] = field(default_factory=dict)
    outputs: tuple[Output, ...] = ()
    printed: str = ""
    profile: Profile | None = None
    timings: dict[str, Timing] = field(default_factory=dict)

    @property
    def ptx_sha256(self) -> str:
        """SHA-256 of the PTX."""
        return hashlib.sha256(self.module.ptx.encode("utf-8", "surrogateescape")).hexdigest()

    @property
    def cubin_sha256(self) -> str:
        """SHA-256 of the machine code that ran, "" if the driver assembled the PTX."""
        return hashlib.sha256(self.module.cubin).hexdigest() if self.module.cubin else ""

    def load_kernel(self, isa: str = "ptx") -> Kernel:
        """The kernel from the recorded PTX or machine code ("sass"), ready to simulate; variables hold what they held."""
        compiled = self.module if self.module.source_text else None
        path = self.module.source_path + (".ptx" if compiled else "")
        # machine code is what ran on the GPU, also of what came as PTX
        module = Module(self.module.ptx, path, architecture(self.module.arch), compiled or (self.module if self.module.cubin else None))
        kernel = module.kernel(self.entry, isa)
        for variable in kernel.program.variables:
            if variable.name in self.variables:
                module.data(variable)[:] = np.frombuffer(self.variables[variable.name], np.uint8)
        return kernel

    def make_arguments(self, kernel: Kernel) -> list[Value]:
        """The arguments as they were before the launch.

        Raises: UsageError if what the seed gives today are other bytes than were recorded.
        """
        made: dict[str, Value] = {}
        if any(argument.made == BY_KERNEL for argument in self.arguments):
            from fasim import kernels

            for given in kernels.load(self.collection).inputs(self.options, self.seed):
                made[given.name] = Value(given.name, given.value, "")
        if len(self.arguments) != len(kernel.program.parameters):
            raise UsageError(
                f"recording {self.name} has {len(self.arguments)} arguments, its kernel takes {len(kernel.program.parameters)}"
            )
        values = []
        for position, (argument, parameter) in enumerate(zip(self.arguments, kernel.program.parameters, strict=True)):
            if argument.made == BY_KERNEL and argument.name not in made:
                raise UsageError(f"recording {self.name}: {self.collection} has no argument {argument.name}")
            if argument.made == BY_KERNEL:
                value = replace(made[argument.name], dtype=argument.dtype)
            elif argument.made == STORED:
                value = Value(
                    argument.name, argument.value.copy() if isinstance(argument.value, np.ndarray) else argument.value, argument.dtype
                )
            else:
                value = replace(parse_argument(f"{argument.name}={argument.made}", position, self.seed), name=argument.name)
            if argument.sha256 and sha256_of(value.value) != argument.sha256:
                raise UsageError(
                    f"recording {self.name}: argument {argument.name} ({argument.made}, seed {self.seed}) has other bytes today than when "
                    f"it was recorded with numpy {self.tools.get('numpy', '?')}; this is numpy {np.__version__}"
                )
            values.append(by_value(value, parameter.type_, parameter.size_bytes))
        return values


def recorded_argument(value: Value, made: str) -> RecordedArgument:
    """The record of an argument; made: see RecordedArgument."""
    array = value.value if isinstance(value.value, np.ndarray) else None
    kept = None
    if made == STORED:
        # the launch changes the array
        kept = value.value if array is None else array.copy()
    shape = None if array is None else tuple(array.shape)
    return RecordedArgument(value.name, made, value.dtype, shape, "" if array is None else sha256_of(array), kept)


def recorded_output(name: str, dtype: str, array: Array, kept_bytes: int = KEPT_BYTES) -> Output:
    """The record of an array after the launch."""
    values = np.ascontiguousarray(array).copy() if array.nbytes <= kept_bytes else None
    return Output(name, dtype, tuple(array.shape), sha256_of(array), values)


def plain_module(ptx: str, path: str, arch: str, *, cubin: bytes = b"", compiler: str = "") -> CompiledModule:
    """The module of a file that came as PTX."""
    return CompiledModule(ptx, cubin, arch, path, "", "", {}, compiler)


def variable_name(name: str) -> str:
    """What a `__device__` variable is called among the outputs; name: the mangled one."""
    return f"{plain_name(name)} (variable)"


def figures(recording: Recording) -> dict[str, Any]:
    """What stands in run.json: all but the bytes that have files of their own."""
    module = {key: value for key, value in vars(recording.module).items() if key not in ("ptx", "cubin", "source_text", "from_cache")}
    profile = recording.profile
    return {
        "schema": RECORDING_SCHEMA,
        **{
            f.name: getattr(recording, f.name)
            for f in dataclasses.fields(recording)
            if f.name not in ("module", "arguments", "variables", "outputs", "profile", "card", "timings")
        },
        "arch": recording.module.arch,
        "compiler": recording.module.compiler,
        "ptx_sha256": recording.ptx_sha256,
        "cubin_sha256": recording.cubin_sha256,
        "card": None if recording.card is None else dataclasses.asdict(recording.card),
        "arguments": [{key: value for key, value in vars(a).items() if key != "value"} for a in recording.arguments],
        "variables": {name: content.hex() for name, content in recording.variables.items()},
        "outputs": [{key: value for key, value in vars(o).items() if key != "values"} for o in recording.outputs],
        "timings": {kind: {**dataclasses.asdict(timing), "tflops": round(timing.tflops, 3)} for kind, timing in recording.timings.items()},
        "profile": None if profile is None else {"tool": profile.tool, "counters": profile.counters, "launch": profile.launch},
        "module": module,
    }


def arrays_of(arguments: Sequence[RecordedArgument]) -> Mapping[str, Array]:
    """The stored arguments by position; null pointers need no bytes."""
    return {f"a{i}": np.asarray(argument.value) for i, argument in enumerate(arguments) if argument.value is not None}
