"""The Python interface: compile a module, take a kernel, launch it."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from fasim.arch import Architecture, architecture
from fasim.errors import ExecutionError, LaunchError, UsageError
from fasim.gmem import AddressSpace, Allocation
from fasim.isa import machine as m
from fasim.isa.operands import P_SPACE
from fasim.isa.program import ModuleVariable, Program
from fasim.sm.accounting import shared_accesses, totals
from fasim.sm.arguments import Arguments
from fasim.sm.bank0 import bank0, bank0_words
from fasim.sm.grid import GridRun
from fasim.sm.hazards import checks_of, hazards
from fasim.sm.launch_options import LaunchOptions, completed, takes_launch_options
from fasim.sm.limits import RESERVED_SMEM, RESERVED_SMEM_BYTES, launch_shape, triple
from fasim.sm.machines import link, machine
from fasim.sm.programs import (
    load,
    parse_index,
    ptx_program,
    ptx_register_names,
    ptx_variables,
    sass_program,
    sass_register_names,
)
from fasim.sm.result import InstructionCount, LaunchResult
from fasim.sm.services import HEAP_BYTES, HEAP_NAME
from fasim.sm.state import LaunchShape, Shared
from fasim.sm.symbol import Symbol
from fasim.sm.watch import aligned
from fasim.toolchain import CompiledModule, compile_cuda, find_entry, plain_name
from fasim.toolchain.signature import Declared, signature, variable_dtype

if TYPE_CHECKING:
    from fasim.ptx.names import RegisterNames

Array = np.ndarray[Any, Any]


class Module:
    """A compiled module: kernels by name, variables by name."""

    def __init__(self, ptx: str, path: str, arch: Architecture, compiled: CompiledModule | None = None) -> None:
        self.ptx, self.path, self.arch, self.compiled = ptx, path, arch, compiled
        self._programs: dict[tuple[str, str], Program] = {}
        self._data: dict[tuple[str, bytes], Array] = {}
        self._signatures: dict[str, list[Declared] | None] = {}

    def __repr__(self) -> str:
        return f"<Module {self.path.removesuffix('.ptx')} for {self.arch.name}: kernels {', '.join(self.kernel_names) or 'none'}>"

    @functools.cached_property
    def _index(self) -> tuple[list[str], dict[str, str]]:
        """Entry names and the names of variables, from the cache if this PTX was seen before."""
        return load(self.ptx, "index", lambda: parse_index(self.ptx, self.path))  # type: ignore[no-any-return]

    @property
    def kernel_names(self) -> list[str]:
        """Kernels by their plain names."""
        return [plain_name(name) for name in self._index[0]]

    @property
    def symbol_names(self) -> list[str]:
        """__device__ and __constant__ variables by their plain names, without those that the compiler made."""
        return sorted(name for name in self._index[1] if "$" not in name)

    def kernel(self, name: str | None = None, isa: str = "ptx") -> Kernel:
        """A kernel by exact, plain or template name; the only one if no name is given. isa: "ptx", or "sass" to run the machine code.

        Raises: UsageError listing the kernels, or without machine code; UnsupportedInstruction if it needs what fasim does not model.
        """
        if isa not in ("ptx", "sass"):
            raise UsageError(f"isa {isa!r}: there are ptx and sass")
        lowered = self.compiled.lowered_names if self.compiled else {}
        if not self._index[0]:
            source = self.compiled.source_path if self.compiled else self.path
            raise UsageError(f"{source} has no kernel: no function is marked {'__global__' if self.compiled else '.entry'}")
        entry = lowered.get(name or "") or find_entry(self._index[0], name)
        if (entry, isa) not in self._programs:
            if isa == "ptx":
                self._programs[entry, isa] = ptx_program(self.ptx, self.path, entry, self.arch.number)
            else:
                self._programs[entry, isa] = sass_program(self.cubin(), self.ptx, self.path, entry, self.arch.number)
        return Kernel(self, self._programs[entry, isa])

    def cubin(self) -> bytes:
        """The machine code; of PTX text ptxas makes it.

        Raises: as `fasim.toolchain.ptxas.assemble`.
        """
        if self.compiled is not None:
            return self.compiled.cubin
        from fasim.toolchain.ptxas import assemble

        return assemble(self.ptx, self.path, self.arch.name).cubin

    def symbol(self, name: str) -> Symbol:
        """A variable by its plain name.

        Raises: UsageError listing the variables.
        """
        names = self._index[1]
        if name not in names:
            raise UsageError(f"no variable {name!r} in this module; there are: {', '.join(self.symbol_names) or 'none'}")
        for variable in self._variables():
            if variable.name == names[name]:
                return Symbol(name, self.data(variable), self._element_type(name))
        raise UsageError(f"variable {name!r} has no storage in this module")

    def _element_type(self, name: str) -> str:
        return variable_dtype(self.compiled.source_text, name.split("::")[-1]) if self.compiled else ""

    def signature(self, program: Program) -> list[Declared] | None:
        """What the source or the mangled name says of a kernel's parameters."""
        if program.name not in self._signatures:
            text = self.compiled.source_text if self.compiled else None
            self._signatures[program.name] = signature(program.name, len(program.parameters), text)
        return self._signatures[program.name]

    def _variables(self) -> list[ModuleVariable]:
        return ptx_variables(self.ptx, self.path, self.arch.number)

    def data(self, variable: ModuleVariable) -> Array:
        """The memory of a variable, which all kernels of the module share; addresses of functions are others in machine code."""
        key = variable.name, variable.initial if variable.relocated else b""
        if key not in self._data:
            self._data[key] = np.frombuffer(variable.initial, np.uint8).copy()
        return self._data[key]


class Kernel:
    """A kernel ready to launch."""

    def __init__(self, module: Module, program: Program) -> None:
        self.module, self.program = module, program

    @property
    def name(self) -> str:
        """The plain name."""
        return self.program.title

    @property
    def isa(self) -> str:
        """What is run: "ptx", or "sass" for machine code."""
        return "sass" if self.program.barriers_only else "ptx"

    @property
    def signature(self) -> list[Declared] | None:
        """The parameters by name and C++ type, None where only PTX is known."""
        return self.module.signature(self.program)

    def __repr__(self) -> str:
        known, params = self.signature, self.program.parameters
        shown = [f"{d.name}: {d.type_}" if d.name else d.type_ for d in known] if known else [p.type_ for p in params]
        return f"<Kernel {self.name}({', '.join(shown)}) for {self.module.arch.name}>"

    @property
    def register_names(self) -> RegisterNames:
        """Which register of the code stands in which row, worked out when it is asked for."""
        module, entry = self.module, self.program.name
        if self.isa == "sass":
            return sass_register_names(module.cubin(), module.ptx, module.path, entry, module.arch.number)
        return ptx_register_names(module.ptx, module.path, entry, module.arch.number)

    @property
    def registers(self) -> int:
        """Registers a thread as ptxas assigned them; 0 if the module came as PTX."""
        compiled = self.module.compiled
        return compiled.registers.get(self.program.name, 0) if compiled else 0

    @takes_launch_options
    def launch(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any] = (),
        *,
        count: bool = True,
        progress: Callable[[int, int], None] | None = None,
        output: Callable[[str], None] | None = None,
        **options: Unpack[LaunchOptions],
    ) -> LaunchResult:
        """Run the kernel on the grid; numpy arrays among `args` are device buffers and change in place.

        grid, block: one to three sizes. opt_in: allow more than 48 KB of shared memory, as kernels that set the attribute do.
        backend: "jit" or "reference". workers: threads (None: one a core). names: names of the arguments, for messages.
        output: gets the text of device printf (None: standard output).
        count: account for the wavefronts and conflicts of each access to shared memory. check: what to look for, "all" or some of
        "race,init,sync"; what is found are the result's hazards.
        Raises: LaunchError, MemoryAccessError, DeadlockError, InstructionLimit, KernelAssertion, KernelTrap.
        """
        run, arguments = self.prepare(grid, block, args, **options)
        program, shape, wanted = run.program, run.shape, checks_of(options.get("check", ""))
        text: list[str] = []

        def collect(part: str) -> None:
            text.append(part)
            (output or _to_stdout)(part)

        run.count, run.progress, run.output = count, progress, collect
        start = time.perf_counter()
        try:
            run.run()
        except ExecutionError as error:
            # what a warp read before the run ended, another one might still have written
            certain = wanted if shape.warps == 1 else wanted - {"init"}
            error.hazards = hazards(program, shape, run.checks, certain, run.buffer_names)
            raise
        finally:
            arguments.write_back()
        result = self._result(run, shape, time.perf_counter() - start, "".join(text))
        result.shared_accesses = shared_accesses(program, shape, run.accounts)
        if count:
            result.shared_instructions = sum(access.executions for access in result.shared_accesses)
        result.totals = totals(result.shared_accesses) if count else {}
        result.hazards = hazards(program, shape, run.checks, wanted, run.buffer_names)
        return result

    @takes_launch_options
    def prepare(
        self, grid: int | Sequence[int], block: int | Sequence[int], args: Sequence[Any] = (), **options: Unpack[LaunchOptions]
    ) -> tuple[GridRun, Arguments]:
        """Everything of a launch but running it; the options are those of `launch`.

        Raises: LaunchError, UsageError.
        """
        given, program, arch = completed(options), self.program, self.module.arch
        wanted, sizes = checks_of(given["check"]), (triple(grid, "grid"), triple(block, "block"))
        shape = launch_shape(program, arch, self.registers, *sizes, given["dynamic_smem_bytes"], given["opt_in"])
        space, addresses = AddressSpace(), {}  # type: tuple[AddressSpace, dict[int, Allocation]]
        arguments = Arguments(program, space, addresses, given["names"], self.signature)
        params = arguments.pack(args)
        for variable in program.variables:
            space.allocations.append(
                Allocation(plain_name(variable.name), self.module.data(variable), variable.address, variable.space == "const")
            )
        if "malloc" in program.services.values():
            space.add(HEAP_NAME, np.zeros(HEAP_BYTES, np.uint8))
        workspace = 0
        if program.syncs_grid or "%envreg2" in program.launch_rows:
            room = arch.resident_ctas(shape.warps, shape.smem_bytes, self.registers)
            if shape.ctas > room:
                raise LaunchError(f"kernel {self.name} synchronises its grid: {shape.ctas} CTAs do not fit on {arch.name}, {room} do")
            workspace = space.add("grid workspace", np.zeros(8, np.uint8)).address
        if program.parameter_base:
            params = bank0(program, shape, params, workspace)
        space.allocations.sort(key=lambda a: a.address)
        chosen = machine(given["backend"])
        shared = Shared(
            code=link(program, chosen, shadows=bool(wanted)),
            pool=program.pool,
            template=self._template(shape, workspace, params),
            specials=np.array(program.specials, np.int64).reshape(-1, 2),
            params=params,
            allocations=space.table(),
            functions=np.array([len(program.functions), *program.functions], np.int64),
        )
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        resident = arch.resident_ctas(shape.warps, shape.smem_bytes, self.registers)
        run = GridRun(program, shape, shared, space, chosen, given["workers"] or available, given["max_instructions"], resident)
        run.shadows = arguments.shadows(checked=bool(wanted))
        return run, arguments

    def _template(self, shape: LaunchShape, workspace: int, params: Array) -> Array:
        program = self.program
        template = aligned(len(program.template))
        template[:] = program.template
        values = {
            **{f"%ntid.{axis}": size for axis, size in zip("xyz", shape.block)},
            **{f"%nctaid.{axis}": size for axis, size in zip("xyz", shape.grid)},
            "%nwarpid": self.module.arch.warps_per_sm,
            "%nsmid": self.module.arch.sms,
            "%dynamic_smem_size": shape.dynamic_smem_bytes,
            "%total_smem_size": shape.smem_bytes,
            "%envreg1": workspace >> 32,
            "%envreg2": workspace & 0xFFFFFFFF,
            RESERVED_SMEM: shape.smem_bytes - RESERVED_SMEM_BYTES,
        }
        if program.parameter_base:
            values |= bank0_words(params)
        for name, row in program.launch_rows.items():
            template[row : row + m.ROW32_BYTES].view(np.uint32)[:] = values[name]
        return template

    def _result(self, run: GridRun, shape: LaunchShape, seconds: float, text: str) -> LaunchResult:
        program, counts = self.program, []
        kinds = program.code[:, 0]
        shared = 0
        memory = {m.LOAD, m.STORE, m.ATOM, m.LDMATRIX, m.STMATRIX, m.CP_ASYNC}
        for pc, source in enumerate(program.source):
            if source is None:
                continue
            counts.append(InstructionCount(source, int(run.counts[pc]), m.KINDS[kinds[pc]]))
            if kinds[pc] in memory and program.pool[program.code[pc, m.AT_POOL // 4] + P_SPACE // 4] == m.SHARED:
                shared += int(run.counts[pc])
        return LaunchResult(
            kernel=self.name,
            grid=shape.grid,
            block=shape.block,
            dynamic_smem_bytes=shape.dynamic_smem_bytes,
            smem_bytes=shape.smem_bytes,
            counts=counts,
            warp_instructions=sum(c.executions for c in counts),
            shared_instructions=shared,
            seconds=seconds,
            ordered=run.ordered,
            workers=run.workers,
            output=text,
        )


def _to_stdout(text: str) -> None:
    print(text, end="", flush=True)


def compile(
    source: str | Path,
    *,
    arch: str = "sm_90",
    defines: Mapping[str, object] | None = None,
    include_dirs: Sequence[str | Path] = (),
    entry: str | None = None,
    options: Sequence[str] = (),
    name: str | None = None,
) -> Module:
    """Compile a .cu file, read a .ptx file, or take either as text.

    source: a path, or source text (PTX text is known by its .version line). entry: needed only for templates that the file does not
    instantiate. name: what messages and line information call a .cu file, instead of its path.
    Returns: a Module. Raises: CompileError, PtxError, UsageError, ToolMissing.
    """
    target = architecture(arch)
    text, path = _ptx_text(source)
    if text is not None:
        return Module(text, path, target)
    compiled = compile_cuda(source, arch=arch, defines=defines, include_dirs=include_dirs, entry=entry, options=options, name=name)
    return Module(compiled.ptx, compiled.source_path + ".ptx", target, compiled)


def _ptx_text(source: str | Path) -> tuple[str | None, str]:
    """PTX text and its name, (None, "") if the source is CUDA C++."""
    if isinstance(source, Path) or (isinstance(source, str) and "\n" not in source and source.endswith(".ptx")):
        path = Path(source)
        if path.suffix == ".ptx":
            try:
                return path.read_text(), str(path)
            except OSError as error:
                raise UsageError(f"cannot read {path}: {error.strerror}") from error
        return None, ""
    if "\n" in source and any(line.lstrip().startswith(".version") for line in source.splitlines()[:200]):
        return source, "<ptx>"
    return None, ""
