"""Reports of Nsight Compute, read without a GPU through the package ncu-report."""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fasim.errors import FasimError, ToolMissing, UsageError
from fasim.gpu.ncu import COUNTERS
from fasim.report.measured import MachineInstruction, Profile
from fasim.sass.listing import SassLine

#: totals of the counters that ncu has an instruction: they are in SourceCounters
_TOTALS = (
    "inst_executed",
    "thread_inst_executed",
    "thread_inst_executed_true",
    "memory_l1_wavefronts_shared",
    "memory_l1_wavefronts_shared_ideal",
    "smsp__pcsamp_sample_count",
)

#: launch statistics and occupancy; what is not a number, or says again what grid and block say, is left out
_LAUNCH = (
    "launch__block_size",
    "launch__grid_size",
    "launch__thread_count",
    "launch__cluster_size",
    "launch__sm_count",
    "launch__registers_per_thread",
    "launch__registers_per_thread_allocated",
    "launch__barrier_count",
    "launch__stack_size",
    # bytes: what the kernel declares, what the launch adds, what the driver adds, all in the unit of allocation, and the SM's carve-out
    "launch__shared_mem_per_block_static",
    "launch__shared_mem_per_block_dynamic",
    "launch__shared_mem_per_block_driver",
    "launch__shared_mem_per_block",
    "launch__shared_mem_per_block_allocated",
    "launch__shared_mem_config_size",
    # CTAs an SM that each resource would allow; the least holds
    "launch__occupancy_limit_barriers",
    "launch__occupancy_limit_blocks",
    "launch__occupancy_limit_registers",
    "launch__occupancy_limit_shared_mem",
    "launch__occupancy_limit_warps",
    "launch__waves_per_multiprocessor",
    # theoretical, then achieved
    "sm__maximum_warps_avg_per_active_cycle",
    "sm__maximum_warps_per_active_cycle_pct",
    "sm__warps_active.avg.per_cycle_active",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
)

_PCS_OF_FUNCTIONS = "launch__function_pcs"
_STALL = "smsp__pcsamp_warps_issue_stalled_"
_NOT_ISSUED = "_not_issued"

#: fields of MachineInstruction by ncu's names
_FIELDS = {
    "executions": "inst_executed",
    "threads": "thread_inst_executed",
    "threads_on": "thread_inst_executed_true",
    "wavefronts_shared": "memory_l1_wavefronts_shared",
    "wavefronts_shared_ideal": "memory_l1_wavefronts_shared_ideal",
    "samples": "smsp__pcsamp_sample_count",
}


@dataclass(frozen=True)
class Launch:
    """One profiled launch of a report.

    kernel: the mangled name. counters, launch: as in Profile; a metric that the report does not have is not in it.
    by_pc: ncu's metrics by the absolute address of the instruction. function_pcs: where the functions of the kernel were loaded.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    counters: dict[str, float]
    launch: dict[str, float]
    by_pc: dict[str, dict[int, int]] = field(repr=False)
    function_pcs: tuple[int, ...] = field(repr=False)
    _text_at: Callable[[int], str] = field(repr=False, compare=False)

    def profile(self, lines: Sequence[SassLine], tool: str) -> Profile:
        """The counters joined with the listing of the kernel's cubin. tool: ncu's version.

        Functions outside of the kernel's section (vprintf and the like) count in the totals but have no line here.
        Raises: FasimError if the report was not made with this machine code.
        """
        base = self._base(lines)
        by_offset = {name: {pc - base: value for pc, value in values.items()} for name, values in self.by_pc.items()}
        known = {line.offset for line in lines}
        end = max(known, default=0)
        for name, values in by_offset.items():
            stray = next((offset for offset in values if 0 <= offset <= end and offset not in known), None)
            if stray is not None:
                raise FasimError(f"ncu counted {name} at byte {stray:#x} of {self.kernel}, where the listing has no instruction")
        return Profile(tool, dict(self.counters), dict(self.launch), tuple(_instruction(line, by_offset) for line in lines))

    def _base(self, lines: Sequence[SassLine]) -> int:
        """The address of the first instruction: of those that are possible, the one where all texts agree with the listing."""
        if not lines:
            raise UsageError(f"the listing of {self.kernel} is empty")
        candidates = self.function_pcs
        if not candidates:
            pcs = self.by_pc.get("inst_executed") or {}
            candidates = tuple(min(pcs) - line.offset for line in lines) if pcs else ()
        wrong = {base: self._first_difference(base, lines) for base in candidates}
        right = [base for base, line in wrong.items() if line is None]
        if len(right) == 1:
            return right[0]
        if right:
            raise FasimError(f"the report has {len(right)} functions with the machine code of {self.kernel}: it is not known which one ran")
        base, line = max(wrong.items(), key=lambda item: item[1].offset if item[1] else 0, default=(0, None))
        if line is None:
            raise FasimError(f"the report has no machine code of {self.kernel}: it was made without the section SourceCounters")
        raise FasimError(
            f"the report was not made with this machine code of {self.kernel}: at byte {line.offset:#x} the report has "
            f"{_words(self._text_at(base + line.offset)) or 'nothing'!r} and the cubin {line.text!r}. Profile the same cubin again"
        )

    def _first_difference(self, base: int, lines: Sequence[SassLine]) -> SassLine | None:
        return next((line for line in lines if not same_instruction(self._text_at(base + line.offset), line.text)), None)


def _instruction(line: SassLine, by_offset: dict[str, dict[int, int]]) -> MachineInstruction:
    counts = {name: by_offset.get(metric, {}).get(line.offset, 0) for name, metric in _FIELDS.items()}
    stalls = {
        metric.removeprefix(_STALL): values[line.offset]
        for metric, values in by_offset.items()
        if metric.startswith(_STALL) and values.get(line.offset)
    }
    return MachineInstruction(line.offset, line.text, line.ptx_line, line.place, **counts, stalls=stalls)


def read_report(path: str | Path) -> list[Launch]:
    """The profiled launches of a report, in the order in which they ran.

    A file that was cut off reads as one with fewer launches: who knows how many there must be has to check it.
    Raises: ToolMissing without the package ncu-report; UsageError if there is no such file; FasimError if it is not a report.
    """
    path = Path(path)
    if not path.is_file():
        raise UsageError(f"there is no report {path}")
    package = _package()
    try:
        context = package.load_report(str(path))
        ranges = [context.range_by_idx(i) for i in range(context.num_ranges())]
        actions = [(part, part.action_by_idx(i)) for part in ranges for i in range(part.num_actions())]
        found = [_launch(package, action, (context, part)) for part, action in actions]
    except FasimError:
        raise
    except Exception as error:  # the package raises whatever its C++ throws
        raise FasimError(f"{path} cannot be read as a report of Nsight Compute: {error}") from error
    if not found:
        raise FasimError(f"{path} holds no profiled launch, or is no report of Nsight Compute")
    return found


def _package() -> Any:
    try:
        with warnings.catch_warnings():
            # older releases were made with a SWIG whose types lack __module__; Python 3.12 warns of that at import
            warnings.simplefilter("ignore", DeprecationWarning)
            return importlib.import_module("ncu_report")
    except ImportError as error:
        raise ToolMissing(
            f"reports of Nsight Compute are read with a package that cannot be loaded ({error}): pip install ncu-report"
        ) from error


def _launch(package: Any, action: Any, owners: tuple[Any, ...]) -> Launch:
    names = set(action.metric_names())

    def number(name: str) -> float | None:
        value = action.metric_by_name(name).value() if name in names else None
        return value if isinstance(value, int | float) else None

    def numbers(wanted: Sequence[str]) -> dict[str, float]:
        return {name: value for name in wanted if (value := number(name)) is not None}

    def shape(of: str) -> tuple[int, int, int]:
        x, y, z = (int(number(f"launch__{of}_dim_{axis}") or 0) for axis in "xyz")
        return x, y, z

    def text_at(pc: int, _alive: tuple[Any, ...] = owners) -> str:
        # the objects that own the action go when nobody holds them
        return str(action.sass_by_pc(pc))

    stalls = sorted(name for name in names if name.startswith(_STALL) and not name.endswith(_NOT_ISSUED))
    by_pc = {name: _instances(action.metric_by_name(name)) for name in (*_FIELDS.values(), *stalls) if name in names}
    functions = action.metric_by_name(_PCS_OF_FUNCTIONS) if _PCS_OF_FUNCTIONS in names else None
    pcs = tuple(functions.as_uint64(i) for i in range(functions.num_instances())) if functions else ()
    kernel = action.name(package.IAction.NameBase_MANGLED)
    counters = numbers((*COUNTERS, *_TOTALS))
    return Launch(kernel, shape("grid"), shape("block"), counters, numbers(_LAUNCH), by_pc, pcs, text_at)


def _instances(metric: Any) -> dict[int, int]:
    """The values of a metric by program counter; those that are 0 are kept, since they say that the instruction was not executed."""
    ids = metric.correlation_ids() if metric.has_correlation_ids() else None
    return {ids.as_uint64(i): metric.as_uint64(i) for i in range(metric.num_instances())} if ids else {}


_REGISTER = re.compile(r"\b(?:U?R\d+|U?P\d|B\d+|SB\d)\b")
_NUMBER = re.compile(r"0x[0-9a-f]+")
_SYMBOL = re.compile(r"`\(|@(?![!UP])|^(?:@\S+ )?(?:BRX|BRXU|JMX|JMXU)\b")


def same_instruction(ours: str, theirs: str) -> bool:
    """Whether ncu's text and nvdisasm's are the same instruction.

    Equal but for what differs by nature: .reuse, which ncu does not print; targets and addresses of symbols, which are absolute in ncu; and
    modifiers and the order of operands, which change with the release of the disassembler (ncu 2025.3 prints `LDGSTS desc[UR12][R12.64],
    !P0, [R61]`, nvdisasm 13 `LDGSTS [R61], desc[UR12][R12.64], !P0`). Predicate, opcode, registers and numbers agree.
    ours: ncu's. theirs: nvdisasm's.
    """
    a, b = _words(ours), _words(theirs)
    if a == b:
        return True
    if _head(a) != _head(b) or sorted(_REGISTER.findall(a)) != sorted(_REGISTER.findall(b)):
        return False
    return bool(_SYMBOL.search(b)) or sorted(_NUMBER.findall(a)) == sorted(_NUMBER.findall(b))


def _words(text: str) -> str:
    return " ".join(text.replace(".reuse", "").split())


def _head(text: str) -> tuple[str, str]:
    """The predicate and the opcode without modifiers."""
    words = text.split()
    predicate = words.pop(0) if words and words[0].startswith("@") else ""
    return predicate, words[0].split(".")[0] if words else ""
