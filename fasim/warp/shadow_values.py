"""Source registers with undefined bits, and what rules for them are made of (see fasim.warp.shadow_rules)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fasim.isa.table import Arg, Row
from fasim.numerics.lanes import Lanes, bits, const, where, width
from fasim.warp.handlers import apply


@dataclass(frozen=True, slots=True)
class Operand:
    """A source register: its value, its shadow (unsigned or `pred`) and the origin of what is undefined in it."""

    arg: Arg
    value: Lanes
    shadow: Lanes
    origin: Lanes

    @property
    def undefined(self) -> Lanes:
        """The lanes that have an undefined bit."""
        return nonzero(self.shadow)

    @property
    def least(self) -> Lanes:
        """The least value that the undefined bits can make."""
        return self._end(self.shadow & sign_bit(self.value))

    @property
    def greatest(self) -> Lanes:
        """The greatest value that the undefined bits can make."""
        return self._end(self.shadow & ~sign_bit(self.value))

    def _end(self, ones: Lanes) -> Lanes:
        return bits((unsigned(self.value) & ~self.shadow) | ones, self.value.type)

    @property
    def shadow_as_value(self) -> Lanes:
        """The shadow in the type of the value."""
        return bits(self.shadow, self.value.type)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The shadow of a result, and the origin where it is not 0."""

    shadow: Lanes
    origin: Lanes


@dataclass(frozen=True, slots=True)
class Execution:
    """One instruction on 32 lanes: its source registers in the row's order, vectors flattened, and the lanes that execute."""

    row: Row
    immediates: tuple[int, ...]
    operands: tuple[Operand, ...]
    active: Lanes

    def run(self, pick: Callable[[Operand], Lanes], active: Lanes | None = None) -> list[Lanes]:
        """The row's results, as unsigned bits, when each source register holds `pick(operand)`."""
        first = sum(max(arg.count, 1) for arg in self.row.dests)
        results = apply(
            self.row, self.immediates, lambda _, number: pick(self.operands[number - first]), self.active if active is None else active
        )
        return [unsigned(result) for result in results]

    def operand(self, name: str) -> Operand:
        """The source register of that name."""
        return next(operand for operand in self.operands if operand.arg.name == name)

    def among(self, names: str) -> list[Operand]:
        """The source registers whose names (one letter) are in `names`, in order."""
        return [operand for operand in self.operands if operand.arg.name in tuple(names)]

    def outcomes(self, shadows: Iterable[Lanes]) -> list[Outcome]:
        """Results whose origin is that of the first source with an undefined bit."""
        origin = first_origin(self.operands, like=self.active)
        return [Outcome(shadow, origin) for shadow in shadows]

    def all_where(self, condition: Lanes) -> list[Lanes]:
        """Shadows of all results: every bit where the condition holds."""
        return [everywhere(condition, type_) for type_ in dest_types(self.row)]

    def number(self, value: int, type_: str = "u32") -> Lanes:
        """A constant."""
        return const(value, like=self.active, type_=type_)


def shadow_type(type_: str) -> str:
    """The type of the shadow of a value."""
    return type_ if type_ == "pred" else f"u{width(type_)}"


def dest_types(row: Row) -> list[str]:
    """Shadow types of a row's destination registers."""
    return [shadow_type(arg.type_) for arg in row.dests for _ in range(max(arg.count, 1))]


def unsigned(x: Lanes) -> Lanes:
    """The bits of a value."""
    return bits(x, shadow_type(x.type))


def nonzero(shadow: Lanes) -> Lanes:
    """The lanes that have an undefined bit."""
    return shadow if shadow.type == "pred" else shadow != 0


def everywhere(condition: Lanes, type_: str) -> Lanes:
    """All bits of a shadow of that type in the lanes where the condition holds."""
    return condition if type_ == "pred" else where(condition, const(-1, like=condition, type_=type_), 0)


def first_origin(operands: Sequence[Operand], like: Lanes) -> Lanes:
    """The origin of the first operand that has an undefined bit."""
    origin = const(0, like=like, type_="u32")
    for operand in reversed(operands):
        origin = where(operand.undefined, operand.origin, origin)
    return origin


def any_undefined(operands: Sequence[Operand], like: Lanes) -> Lanes:
    """The lanes where some operand has an undefined bit."""
    result = const(False, like=like, type_="pred")
    for operand in operands:
        result = result | operand.undefined
    return result


def sign_bit(value: Lanes) -> Lanes:
    """The sign bit of a signed value, no bit of others."""
    sign = 1 << (width(value.type) - 1) if value.type[0] == "s" else 0
    return const(sign, like=value, type_=shadow_type(value.type))
