"""What `fasim gpu` finds, as plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fasim.report.gpu_reports import GpuLaunchFacts, GpuProfiled, GpuProfileReport, GpuRunReport, GpuTimed, GpuTimeReport
from fasim.report.measured import Card, MachineInstruction, Profile
from fasim.report.option_text import options_text
from fasim.report.text import aligned, output_lines, size
from fasim.trace.steps import SourceLines

#: totals of a profile, by ncu's names, with what a person calls them
_TOTALS = (
    ("time under ncu", "gpu__time_duration.sum", "ns"),
    ("cycles", "sm__cycles_elapsed.max", ""),
    ("warp instructions", "smsp__inst_executed.sum", ""),
    ("shared ld wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", ""),
    ("shared st wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", ""),
    ("shared ld conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", ""),
    ("shared st conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", ""),
    ("shared atom conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum", ""),
    ("source page wavefronts", "memory_l1_wavefronts_shared", ""),
    ("source page ideal", "memory_l1_wavefronts_shared_ideal", ""),
)
_HASH_SHOWN = 16
_LINES_SHOWN = 30


def card_text(card: Card) -> str:
    """A GPU with its driver in one line."""
    return f"{card.name} ({card.arch}, {card.sms} SMs, driver {card.driver})"


def _head(launch: GpuLaunchFacts, card: Card) -> list[tuple[str, str]]:
    options = options_text(launch.options)
    smem = launch.static_smem_bytes + launch.dynamic_smem_bytes
    return [
        ("kernel", launch.kernel + options),
        ("source", f"{launch.source} ({launch.arch}, {launch.made_by})"),
        ("machine code", _code(launch)),
        ("GPU", card_text(card)),
        (
            "grid x block",
            f"{size(launch.grid)} x {size(launch.block)}, shared memory {smem:,} bytes a CTA, {launch.registers} registers a thread",
        ),
    ]


def _code(launch: GpuLaunchFacts) -> str:
    what = "PTX, assembled by the driver," if launch.made_by == "the driver" else "cubin"
    return f"{what} sha256 {launch.code_sha256[:_HASH_SHOWN]}..."


def run_table(report: GpuRunReport, *, color: bool = False) -> str:
    """What `fasim gpu run` prints."""
    rows = _head(report.launch, report.card)
    for output in report.outputs:
        rows += [(f"output {output.name}", text) for text in output_lines(output, color)]
    if not report.outputs:
        rows.append(("output", "the kernel changed none of its arrays"))
    if report.saved:
        rows.append(("saved", report.saved))
    return "\n".join([*aligned(rows), *(["", *report.prints] if report.prints else [])])


def time_table(report: GpuTimeReport) -> str:
    """What `fasim gpu time` prints: one line a variant."""
    first = report.variants[0].launch
    rows = [row for row in _head(first, report.card) if len(report.variants) == 1 or row[0] in ("source", "GPU")]
    lines = [*aligned(rows), ""]
    labels = [each.launch.label or each.launch.kernel for each in report.variants]
    width = max(len(label) for label in [*labels, "variant"])
    has_flops = any(each.cold.flops for each in report.variants)
    lines.append(
        f"{'variant':<{width}}  {'L2':<4}  {'median':>11}  {'5 % to 95 %':>21}{'      TFLOPS' if has_flops else ''}  {'SM clock':>8}"
    )
    for label, each in zip(labels, report.variants):
        lines += [_time_line(label if kind == "cold" else "", width, kind, each, has_flops) for kind in ("cold", "warm")]
    colds = [each.cold for each in report.variants]
    launches = _range([timing.repetitions for each in report.variants for timing in (each.cold, each.warm)])
    lines += [
        "",
        f"Events around each launch, {launches} launches after {_range([cold.warm_up for cold in colds])}. cold: "
        f"{_range([cold.input_sets for cold in colds])} copies of the buffers in turn, and where",
        "the L2 cache holds all of them, it is overwritten before each launch; warm: the same buffers each time. SM clock: cycles by",
        "nanoseconds on the SMs meanwhile.",
    ]
    return "\n".join(lines)


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low} to {high}"


def _time_line(label: str, width: int, kind: str, each: GpuTimed, has_flops: bool) -> str:
    timing = each.cold if kind == "cold" else each.warm
    spread = f"{timing.low_us:,.2f} to {timing.high_us:,.2f}"
    flops = f"  {timing.tflops:>10.2f}" if has_flops else ""
    clock = f"{timing.sm_clock_mhz:,.0f} MHz" if timing.sm_clock_mhz else "-"
    return f"{label:<{width}}  {kind:<4}  {timing.median_us:>8,.2f} us  {spread:>21}{flops}  {clock:>8}"


def print_profiles(report: GpuProfileReport, texts: Mapping[str, str], *, columns: int) -> None:
    """What `fasim gpu profile` prints; texts: sources by path."""
    lines = SourceLines(dict(texts))
    for i, each in enumerate(report.variants):
        if i:
            print()
        print("\n".join(aligned([*_head(each.launch, report.card), *_profile_rows(each)])))
        if each.profile.instructions:
            print()
            print("\n".join(_by_line(each.profile, lines, columns)))
        else:
            print("\nThe driver made the machine code: there are no counters by line. With ptxas (pip install nvidia-cuda-nvcc) there are.")
    if report.saved:
        print(f"\nsaved  {report.saved}")


def _profile_rows(each: GpuProfiled) -> list[tuple[str, str]]:
    profile = each.profile
    rows = [("tool", f"ncu {profile.tool}, --clock-control none")]
    for label, name, unit in _TOTALS:
        if name in profile.counters:
            rows.append((label, f"{profile.counters[name]:,.0f}{' ' + unit if unit else ''}"))
    rows += [(name.removeprefix("launch__").replace("_", " "), _number(value)) for name, value in profile.launch.items()]
    return rows


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}"


def _by_line(profile: Profile, sources: SourceLines, columns: int) -> list[str]:
    """Counters by source line, those with the most samples first."""
    places: dict[tuple[str, int], list[MachineInstruction]] = {}
    for instruction in profile.instructions:
        places.setdefault(instruction.place[0] if instruction.place else ("", 0), []).append(instruction)
    ranked = sorted(places.items(), key=lambda item: (-sum(i.samples for i in item[1]), -sum(i.executions for i in item[1]), item[0]))
    total = max(1, sum(i.samples for i in profile.instructions))
    head = f"{'samples':>8}  {'share':>6}  {'executed':>12}  {'wavefronts':>11}  {'ideal':>11}  {'most stalled by':<18}  line"
    lines = [head]
    for (file, line), instructions in ranked[:_LINES_SHOWN]:
        samples = sum(i.samples for i in instructions)
        stalls: dict[str, int] = {}
        for instruction in instructions:
            for reason, count in instruction.stalls.items():
                stalls[reason] = stalls.get(reason, 0) + count
        worst = max(stalls, key=lambda reason: stalls[reason]) if stalls else ""
        numbers = [sum(getattr(i, name) for i in instructions) for name in ("executions", "wavefronts_shared", "wavefronts_shared_ideal")]
        code = sources.text(file, line) if line else "(no source line)"
        counted = "  ".join(f"{number:>{width},}" for number, width in zip(numbers, (12, 11, 11)))
        row = f"{samples:>8,}  {100 * samples / total:>5.1f}%  {counted}  {worst:<18}  {line or '':>4} {code.strip()}"
        lines.append(row[:columns].rstrip())
    if len(ranked) > _LINES_SHOWN:
        lines.append(f"{'':>8}  and {len(ranked) - _LINES_SHOWN} more lines (all instructions: --json)")
    return lines
