"""PTX in which a multiply and an add that the assembler contracted are one fma, so that it computes what the machine code does.

PTX leaves open whether `mul` and `add` or `sub` without a rounding modifier become one fused operation; with `.rn` they never do.
"""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_TYPE = r"(?P<type>f32|f64|f16|bf16|f16x2|bf16x2)"
_OPERAND = r"[^,;]+"
_INSTRUCTION = re.compile(
    rf"(?P<guard>@!?\S+\s+)?(?P<op>add|sub|mul)(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.{_TYPE}\s+"
    rf"(?P<d>{_OPERAND}),\s*(?P<a>{_OPERAND}),\s*(?P<b>{_OPERAND});"
)
_DESTINATION = re.compile(r"^\s*(?:@!?\S+\s+)?[a-z][\w.:]*\s+(\{[^}]*\}|%[\w|%]+)")
_LABEL = re.compile(r"\s*\$?\w+:")
_FUNCTION = re.compile(r"\s*(?:\.(?:visible|weak|extern|common)\s+)?\.(?:entry|func)\b")
_REGISTER = re.compile(r"%[A-Za-z_]\w*")
#: machine instructions that multiply and add, or multiply alone
_FUSED, _PRODUCT = re.compile(r"\b[FDH]FMA2?\b|\bHFMA2\b"), re.compile(r"\b[FDH]MUL2?\b")
_BITS = {"f32": "f32", "f64": "f64", "f16": "b16", "bf16": "b16", "f16x2": "b32", "bf16x2": "b32"}


@dataclass(frozen=True)
class Contraction:
    """An addition that the machine code does together with a multiplication.

    ptx_line, code: the addition; product_line: the multiplication; machine: the instruction; place: file and line, from the kernel inwards.
    """

    ptx_line: int
    code: str
    product_line: int
    machine: str
    place: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class MachineLine:
    """One machine instruction with the PTX line that it was made of, and its place in the source."""

    text: str
    ptx_line: int
    place: tuple[tuple[str, int], ...] = ()


def contract(ptx: str, machine: Iterable[MachineLine]) -> tuple[str, list[Contraction]]:
    """Contract in PTX what the machine code contracted; lines keep their numbers.

    Returns: the PTX, and what was contracted: nothing if the machine code has no fused operation for an addition.
    """
    lines = ptx.splitlines()
    by_line: dict[int, list[MachineLine]] = {}
    for each in machine:
        by_line.setdefault(each.ptx_line, []).append(each)
    functions = _functions(lines)
    definitions = _definitions(lines, functions)
    products = {number for number, found in by_line.items() if any(_PRODUCT.search(each.text) for each in found)}
    found = []
    for number, made in sorted(by_line.items()):
        fused = next((each for each in made if _FUSED.search(each.text)), None)
        addition = _INSTRUCTION.fullmatch(lines[number - 1].strip()) if fused and 0 < number <= len(lines) else None
        if fused is None or addition is None or addition["op"] == "mul":
            continue
        candidates = list(_candidates(number, addition, lines, definitions[functions[number - 1]]))
        if chosen := _choose(candidates, addition, fused.text, products):
            side, product_line, product = chosen
            lines[number - 1] = _fma(addition, side, product, number)
            found.append(Contraction(number, addition.group(0), product_line, fused.text, fused.place))
    return "\n".join(lines) + "\n", found


_Candidate = tuple[str, int, "re.Match[str]"]


def _functions(lines: Sequence[str]) -> list[int]:
    """For each line the number of its function, whose registers are its own."""
    return list(itertools.accumulate(int(bool(_FUNCTION.match(line))) for line in lines))


def _definitions(lines: Sequence[str], functions: Sequence[int]) -> dict[int, dict[str, list[int]]]:
    """The lines that write each register, by function."""
    found: dict[int, dict[str, list[int]]] = collections.defaultdict(lambda: collections.defaultdict(list))
    for number, (line, function) in enumerate(zip(lines, functions), 1):
        if match := _DESTINATION.match(line):
            for register in _REGISTER.findall(match[1]):
                found[function][register].append(number)
    return found


def _candidates(
    number: int, addition: re.Match[str], lines: Sequence[str], definitions: Mapping[str, Sequence[int]]
) -> Iterator[_Candidate]:
    """The operands of an addition that are products whose factors still are what they were."""
    for side in ("a", "b"):
        written = definitions.get(addition[side].strip(), ())
        at = max((line for line in written if line < number), default=0)
        product = _INSTRUCTION.fullmatch(lines[at - 1].strip()) if at else None
        if product is None or product["op"] != "mul" or product["sat"] or product["guard"]:
            continue
        alike = all(product[part] == addition[part] for part in ("type", "ftz"))
        factors = [definitions.get(product[factor].strip(), ()) for factor in ("a", "b")]
        straight = not any(_LABEL.match(line) for line in lines[at:number])
        # in one block the last writer counts, otherwise there must be no other
        kept = all(not any(at < line < number for line in factor) for factor in factors)
        alone = len(written) == 1 and all(len(factor) <= 1 for factor in factors)
        if alike and kept and (straight or alone):
            yield side, at, product


def _choose(candidates: Sequence[_Candidate], addition: re.Match[str], machine: str, products: set[int]) -> _Candidate | None:
    """Which product was contracted: the one that the machine code does not compute; of two, by the sign that a subtraction needs."""
    gone = [each for each in candidates if each[1] not in products] or list(candidates)
    if len(gone) > 1 and addition["op"] == "sub":
        side = "a" if machine.rsplit(",", 1)[-1].strip().startswith("-") else "b"
        gone = [each for each in gone if each[0] == side]
    return gone[0] if gone else None


def _fma(addition: re.Match[str], side: str, product: re.Match[str], number: int) -> str:
    """The addition as an fma; a subtraction negates the addend, or a factor, in a register of its own."""
    kind, guard = addition["type"], addition["guard"] or ""
    factor, other = product["a"].strip(), product["b"].strip()
    addend = addition["b" if side == "a" else "a"].strip()
    negated = f"%contracted{number}"
    before = ""
    if addition["op"] == "sub":
        before = f".reg .{_BITS[kind]} {negated}; neg.{kind} {negated}, {addend if side == 'a' else factor}; "
        addend, factor = (negated, factor) if side == "a" else (addend, negated)
    name = f"fma.rn{addition['ftz'] or ''}{addition['sat'] or ''}.{kind}"
    return f"{{ {before}{guard}{name} {addition['d'].strip()}, {factor}, {other}, {addend}; }}"
