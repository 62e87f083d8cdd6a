"""PTX kernels that execute one row of the instruction table each: load the operands of every lane, execute, store all destinations.

    python -m tests.hardware.make_ptx FOLDER

writes modules of kernels and FOLDER/manifest.json. Parameters of a kernel: the inputs, 8 bytes a value, [source, round, lane], and the
outputs in the same form, [destination, round, lane]. One CTA of 32 threads is one round. Rows that depend on the executing lanes get
those as one more source and branch around the instruction; a carry row sets and reads the flag with add.cc and addc. Atomics get a word
of memory for each thread and also return what it holds afterwards.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import fasim.isa.rows  # noqa: F401  the import fills the table
from fasim.isa.table import ROWS, Arg, Row
from tests.hardware import inputs
from tests.hardware.exceptions import TARGET, exception

PTX_VERSION, MODULE_SIZE = "9.0", 100
HEADER = f""".version {PTX_VERSION}
.target sm_{TARGET}
.address_size 64
.global .align 16 .b8 memory[{inputs.ROUNDS * inputs.LANES * 16}];
"""
#: values of the immediates of a row, by their names
IMMEDIATES: dict[tuple[str, ...], list[tuple[int, ...]]] = {
    (): [()],
    ("arch",): [(TARGET,)],
    ("lut",): [(v,) for v in (0x96, 0xE8, 0x2C, 0x80, 0xFE, 0x1D, 0x00, 0xFF)],
    ("c",): [(v,) for v in (0x3210, 0x5410, 0x7531, 0x0246, 0xC8BA, 0x9876)],
    ("b", "c"): [(1, 31), (1, 0), (16, 31), (3, 0x181F), (37, 31), (2, 0x1800), (9, 4), (31, 0x1F)],
    ("mask",): [(inputs.FULL,), (0x0FF0,), (0x80000001,)],
}


@dataclass(frozen=True, slots=True)
class Variant:
    """One kernel: a row with its immediates, for atomics also the state space."""

    row: Row
    immediates: tuple[int, ...] = ()
    space: str = ""

    @property
    def key(self) -> str:
        """Its name in recordings."""
        return self.row.name + "".join(f" {i:#x}" for i in self.immediates) + (f" @{self.space}" if self.space else "")


def spaces(row: Row) -> tuple[str, ...]:
    """The state spaces of an atomic: a row that ends in `:global` stands beside one for shared memory."""
    if "scalar" in row.attributes or row.name.endswith(":global"):
        return ("global",)
    return ("shared",) if f"{row.name}:global" in ROWS else ("global", "shared")


def variants() -> Iterator[Variant]:
    """All kernels: every row that only touches registers, and the atomics, in global and in shared memory; without exceptions."""
    for row in ROWS.values():
        if exception(row) is not None:
            continue
        if row.kind in ("lanes", "collective"):
            names = tuple(a.name for a in row.sources if a.type_ == "imm")
            for choice in IMMEDIATES[names]:
                yield Variant(row, choice)
        elif row.kind == "atom":
            for space in spaces(row):
                yield Variant(row, (), space)


# --- text ----------------------------------------------------------------------------------------------------------------------


def register_type(type_: str) -> str:
    """The type of the PTX register for an operand type."""
    return type_ if type_ in ("pred", "f32", "f64") else f"b{type_[1:]}"


def _flat(args: tuple[Arg, ...], prefix: str) -> list[tuple[Arg, str]]:
    result = []
    for number, arg in enumerate(args):
        if arg.type_ != "imm" and arg.name != "active":
            count = max(arg.count, 1)
            result += [(arg, f"%{prefix}{number}" + (f"_{i}" if arg.count else "")) for i in range(count)]
    return result


def _operand(arg: Arg, prefix: str, number: int) -> str:
    if arg.count:
        return "{" + ", ".join(f"%{prefix}{number}_{i}" for i in range(arg.count)) + "}"
    return f"%{prefix}{number}"


def statement(variant: Variant) -> list[str]:
    """The instruction itself."""
    row, immediates = variant.row, iter(variant.immediates)
    if row.name.startswith("mov.b128"):  # the table has pairs of 64 bits where PTX has 128-bit registers
        return [".reg .b128 %wide;", "mov.b128 %wide, {%s0_0, %s0_1};", "mov.b128 {%d0_0, %d0_1}, %wide;"]
    dests = [_operand(a, "d", n) for n, a in enumerate(row.dests) if not a.implicit]
    sources = []
    for number, arg in enumerate(row.sources):
        if arg.type_ == "imm":
            value = next(immediates)
            sources += [] if arg.implicit else [str(value)]
        elif not arg.implicit:
            sources.append(_operand(arg, "s", number))
    return [f"{row.mnemonic} " + ", ".join(["|".join(dests), *sources]) + ";"]


def atomic(variant: Variant) -> list[str]:
    """The atomic on the thread's own word, from whose old value on to its new one."""
    row = variant.row
    opcode, rest = row.mnemonic.split(".", 1)
    element = rest.rsplit(".", 1)[-1].removesuffix("x2")
    if element in ("f16", "bf16"):
        first, last = rest.split(".", 1)
        rest = f"{first}.noftz.{last}"
    old = row.sources[0]
    bits = inputs.WIDTH[old.type_]
    parts = [f"%s0_{i}" for i in range(old.count)] if old.count else ["%s0"]
    lines = [".reg .b64 %at, %lane64;"]
    if variant.space == "shared":
        lines += [f".shared .align 16 .b8 words[{32 * 16}];", "cvt.u64.u32 %lane64, %lane;", "mov.u64 %at, words;"]
    else:
        lines += ["cvt.u64.u32 %lane64, %index;", "mov.u64 %at, memory;"]
    lines += ["mad.lo.u64 %at, %lane64, 16, %at;"]
    lines += [f"st.{variant.space}.b{bits} [%at+{i * bits // 8}], {p};" for i, p in enumerate(parts)]
    sources = [_operand(a, "s", n) for n, a in enumerate(row.sources)][1:]
    dest = [] if opcode == "red" else [_operand(Arg("d", old.type_, old.count), "d", 0)]
    lines.append(f"{opcode}.{variant.space}.{rest} " + ", ".join([*dest, "[%at]", *sources]) + ";")
    number = 0 if opcode == "red" else 1
    news = [f"%d{number}_{i}" for i in range(old.count)] if old.count else [f"%d{number}"]
    return lines + [f"ld.volatile.{variant.space}.b{bits} {p}, [%at+{i * bits // 8}];" for i, p in enumerate(news)]


def outputs(variant: Variant) -> list[Arg]:
    """The destinations as kernels store them: an atomic's are the old value (unless it is a `red`) and the new one."""
    row = variant.row
    dests = row.dests
    if row.kind == "atom":
        dests = row.dests if row.name.startswith("red.") else row.dests * 2
    return [a for a in dests for _ in range(max(a.count, 1))]


def uses_active(row: Row) -> bool:
    """Whether the result depends on which lanes execute."""
    return any(a.name == "active" for a in row.sources)


def kernel(variant: Variant, name: str) -> str:
    """The text of one kernel."""
    row = variant.row
    dest_args = row.dests if row.kind != "atom" else row.dests if row.name.startswith("red.") else row.dests * 2
    dests, sources = _flat(dest_args, "d"), _flat(row.sources, "s")
    lines = [
        ".reg .b64 %in, %out, %size, %slot, %value;",
        ".reg .b32 %lane, %round, %index, %count, %flag, %active, %bit;",
        ".reg .pred %runs;",
        *(f".reg .{register_type(a.type_)} {r};" for a, r in dests + sources),
        "ld.param.u64 %in, [in]; ld.param.u64 %out, [out];",
        "cvta.to.global.u64 %in, %in; cvta.to.global.u64 %out, %out;",
        "mov.u32 %lane, %tid.x; mov.u32 %round, %ctaid.x; mov.u32 %count, %nctaid.x;",
        "mad.lo.u32 %index, %round, 32, %lane;",
        "mul.wide.u32 %slot, %index, 8; mul.wide.u32 %size, %count, 256;",
        "add.u64 %in, %in, %slot; add.u64 %out, %out, %slot;",
    ]
    for arg, register in sources:
        if arg.type_ == "pred":
            lines += ["ld.global.b32 %flag, [%in];", f"setp.ne.b32 {register}, %flag, 0;"]
        else:
            lines.append(f"ld.global.{register_type(arg.type_)} {register}, [%in];")
        lines.append("add.u64 %in, %in, %size;")
    body = atomic(variant) if row.kind == "atom" else statement(variant)
    if any(a.name == "cc" for a in row.sources):
        carry = next(r for a, r in sources if a.name == "cc")
        body = [f"selp.b32 %flag, 1, 0, {carry};", "add.cc.u32 %flag, %flag, 0xffffffff;", *body]
    if any(a.name == "cc" for a in row.dests):
        carry = next(r for a, r in dests if a.name == "cc")
        body += ["addc.u32 %flag, 0, 0;", f"setp.ne.b32 {carry}, %flag, 0;"]
    if uses_active(row):
        for arg, register in dests:  # lanes that do not execute
            if arg.type_ == "pred":
                lines.append(f"setp.ne.b32 {register}, %lane, %lane;")
            else:
                lines.append(f"mov.{register_type(arg.type_)} {register}, 0;")
        lines += ["ld.global.b32 %active, [%in];", "shr.u32 %bit, %active, %lane; and.b32 %bit, %bit, 1;", "setp.ne.b32 %runs, %bit, 0;"]
        body = ["@!%runs bra done;", *body, "done:"]
    lines += body
    for arg, register in dests:
        if arg.type_ == "pred":
            lines.append(f"selp.b64 %value, 1, 0, {register};")
        elif inputs.WIDTH[arg.type_] == 64:
            lines.append(f"mov.b64 %value, {register};")
        elif inputs.WIDTH[arg.type_] == 32:
            lines.append(f"mov.b32 %flag, {register}; cvt.u64.u32 %value, %flag;")
        else:
            lines.append(f"cvt.u64.u{inputs.WIDTH[arg.type_]} %value, {register};")
        lines += ["st.global.b64 [%out], %value;", "add.u64 %out, %out, %size;"]
    text = "\n    ".join([*lines, "ret;"])
    return f".visible .entry {name}(.param .u64 in, .param .u64 out)\n{{\n    {text}\n}}\n"


def modules() -> Iterator[tuple[str, list[tuple[str, Variant]]]]:
    """(text of a module, its kernels by name)."""
    every = list(variants())
    for start in range(0, len(every), MODULE_SIZE):
        named = [(f"k{start + i}", v) for i, v in enumerate(every[start : start + MODULE_SIZE])]
        yield HEADER + "\n".join(kernel(v, n) for n, v in named), named


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    manifest = {}
    for number, (text, named) in enumerate(modules()):
        (folder / f"m{number:03}.ptx").write_text(text)
        manifest[f"m{number:03}"] = {name: v.key for name, v in named}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))


if __name__ == "__main__":
    main()
