"""What an instruction of the machine code says: nvdisasm's text as opcode, modifiers and operands.

Immediates are taken from the encoding where nvdisasm rounds them: of floating-point numbers its text does not keep every bit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fasim.errors import FasimError
from fasim.sass.listing import SassLine

#: numbers of the registers that hold nothing: RZ, URZ, PT, UPT
RZ, URZ, PT = 255, 63, 7
_GUARD = re.compile(r"@(!?)(U?)P(T|\d+)\s+")
_REGISTER = re.compile(r"(U?)R(Z|\d+)((?:\.\w+)*)")
_PREDICATE = re.compile(r"(U?)P(T|\d+)")
_CONSTANT = re.compile(r"c\[(0x[0-9a-f]+|UR\d+|URZ)\]\[(.*?)\]((?:\.\w+)*)")
_MEMORY = re.compile(r"(?:desc\[UR(\d+|Z)\])?\[(.*?)\](?:\.\w+)*")
_FLOAT = re.compile(r"[-+]?(\d+(\.\d+)?(e[-+]\d+)?|INF|[SQ]?NAN)")
_INTEGER = re.compile(r"-?0x[0-9a-f]+")
_LABEL = re.compile(r"`\((.*)\)")


@dataclass(frozen=True, slots=True)
class Register:
    """R12 or UR12 as an operand: with signs, and what follows the dot.

    negated: -R; absolute: |R|; inverted: ~R. parts: `H0_H0`, `64`, `reuse`, `ROW` and the like.
    """

    number: int
    uniform: bool = False
    negated: bool = False
    absolute: bool = False
    inverted: bool = False
    parts: tuple[str, ...] = ()

    @property
    def is_zero(self) -> bool:
        """RZ or URZ."""
        return self.number == (URZ if self.uniform else RZ)

    @property
    def name(self) -> str:
        """As nvdisasm writes it."""
        return ("UR" if self.uniform else "R") + ("Z" if self.is_zero else str(self.number))


@dataclass(frozen=True, slots=True)
class Predicate:
    """P3, !P3, UP3 or PT."""

    number: int
    uniform: bool = False
    negated: bool = False

    @property
    def is_true(self) -> bool:
        """PT or UPT, which as a destination is a place for what nobody wants."""
        return self.number == PT

    @property
    def name(self) -> str:
        """As nvdisasm writes it, without the sign."""
        return ("UP" if self.uniform else "P") + ("T" if self.is_true else str(self.number))


@dataclass(frozen=True, slots=True)
class Number:
    """An immediate: an integer as it is written, or the bits of what nvdisasm shows as a floating-point number."""

    value: int
    is_float: bool = False


@dataclass(frozen=True, slots=True)
class Constant:
    """c[bank][offset], the offset perhaps with a register; with signs and parts as registers have them."""

    bank: int
    offset: int
    base: Register | None = None
    negated: bool = False
    absolute: bool = False
    inverted: bool = False
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Address:
    """[R2.64+UR4+0x10], with the memory descriptor that a uniform register holds (-1: none)."""

    base: Register | None
    uniform: Register | None
    offset: int
    descriptor: int = -1


@dataclass(frozen=True, slots=True)
class Label:
    """A place in the code, or a function."""

    name: str


@dataclass(frozen=True, slots=True)
class Name:
    """SR_TID.X, SRZ, B0, SB0, PR, {2,1}."""

    text: str


Operand = Register | Predicate | Number | Constant | Address | Label | Name


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. mnemonic: opcode and modifiers with dots between."""

    line: SassLine
    guard: Predicate | None
    mnemonic: str
    operands: tuple[Operand, ...]

    @property
    def opcode(self) -> str:
        """The first part of the mnemonic."""
        return self.mnemonic.split(".", 1)[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        """The other parts."""
        return tuple(self.mnemonic.split(".")[1:])


def _number(text: str, nothing: int) -> int:
    return nothing if text in ("Z", "T") else int(text)


def _operands(text: str) -> list[str]:
    """The operands, split at commas outside of brackets."""
    found, depth, start = [], 0, 0
    for i, character in enumerate(text):
        depth += character in "[({"
        depth -= character in "])}"
        if character == "," and depth == 0:
            found.append(text[start:i])
            start = i + 1
    # a few opcodes write two operands without a comma: RET.REL.NODEC R4 `(kernel)
    return [piece for part in (*found, text[start:]) for piece in ([part.strip()] if "[" in part else part.split()) if piece]


def parse(line: SassLine) -> Instruction:
    """Read one instruction.

    Raises: FasimError for an operand that nvdisasm writes in a way that is not known.
    """
    text, guard = line.text, None
    if match := _GUARD.match(text):
        guard = Predicate(_number(match[3], PT), bool(match[2]), bool(match[1]))
        text = text[match.end() :]
    mnemonic, _, rest = text.partition(" ")
    operands = []
    for part in _operands(rest):
        operand = _operand(part)
        if operand is None:
            raise FasimError(f"machine code at {line.offset:#x}: {line.text!r}: the operand {part!r} is not understood")
        operands.append(operand)
    return Instruction(line, guard, mnemonic, _with_bits(operands, mnemonic, line.encoding))


def _with_bits(operands: list[Operand], mnemonic: str, encoding: int) -> tuple[Operand, ...]:
    """Floating-point immediates by their bits: a word of the encoding, of packed halves two operands that are one word."""
    bits = encoding >> 32 & 0xFFFFFFFF
    floats = [i for i, operand in enumerate(operands) if isinstance(operand, Number) and operand.is_float]
    packed = mnemonic.startswith(("HADD2", "HFMA2", "HMUL2", "HSETP2", "HSET2", "HMNMX2")) and ".F32" not in mnemonic
    made: list[Operand] = []
    for i, operand in enumerate(operands):
        if i not in floats:
            made.append(operand)
        elif not packed or i == floats[0]:
            made.append(Number(bits, True))
    return tuple(made)


def _operand(text: str) -> Operand | None:
    if match := _LABEL.fullmatch(text):
        return Label(match[1])
    if "[" in text and not text.startswith(("c[", "-c[", "|c[", "-|c[", "~c[")):
        return _address(text)
    if _INTEGER.fullmatch(text):
        return Number(int(text, 16))
    if _FLOAT.fullmatch(text):
        return Number(0, True)
    negated, absolute, inverted, bare = _signs(text)
    if match := _REGISTER.fullmatch(bare):
        uniform = bool(match[1])
        return Register(_number(match[2], URZ if uniform else RZ), uniform, negated, absolute, inverted, tuple(match[3].split(".")[1:]))
    if match := _PREDICATE.fullmatch(bare.removeprefix("!")):
        return Predicate(_number(match[2], PT), bool(match[1]), bare.startswith("!"))
    if match := _CONSTANT.fullmatch(bare):
        bank = int(match[1], 16) if match[1].startswith("0x") else None
        base, offset = _sum(match[2])
        if bank is None or len(base) > 1:
            return None
        return Constant(bank, offset, base[0] if base else None, negated, absolute, inverted, tuple(match[3].split(".")[1:]))
    if re.fullmatch(r"SRZ?(_\w+(\.\w+)*)?|U?B\d+|SB\d|U?PR|\{\d(,\d)*\}", text):
        return Name(text)
    return None


def _signs(text: str) -> tuple[bool, bool, bool, str]:
    """Minus, bars, tilde, and what is left; parts may stand behind the bars."""
    negated, inverted = text.startswith("-"), text.startswith("~")
    text = text.lstrip("-~")
    if match := re.fullmatch(r"\|(.*)\|((?:\.\w+)*)", text):
        return negated, True, inverted, match[1] + match[2]
    return negated, False, inverted, text


def _sum(text: str) -> tuple[list[Register], int]:
    """R2.64+UR4+-0x10 as its registers and the offset."""
    registers, offset = [], 0
    for part in text.split("+"):
        operand = _operand(part.strip())
        if isinstance(operand, Register):
            registers.append(operand)
        elif isinstance(operand, Number):
            offset += operand.value
        elif part.strip():
            raise FasimError(f"machine code: the address [{text}] is not understood")
    return registers, offset


def _address(text: str) -> Operand | None:
    match = _MEMORY.fullmatch(text)
    if match is None:
        return None
    registers, offset = _sum(match[2])
    base = next((reg for reg in registers if not reg.uniform), None)
    uniform = next((reg for reg in registers if reg.uniform), None)
    descriptor = -1 if match[1] is None else _number(match[1], URZ)
    return Address(base, uniform, offset, descriptor)
