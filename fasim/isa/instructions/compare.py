"""Comparisons of integers, f32 and f64: setp and set.

The functions that make semantics are cached, so that rows of the same meaning (lt and lo, .u32 and .b32) have the same function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fasim.isa.table import op
from fasim.numerics.lanes import Lanes, bits, const, where, width

DOC = "comparison-and-selection-instructions-"
Compare = Callable[[Lanes, Lanes], Lanes]

EQUALITY: dict[str, Compare] = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b}
ORDER: dict[str, Compare] = {"lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b}
UNSIGNED_ORDER = {"lo": ORDER["lt"], "ls": ORDER["le"], "hi": ORDER["gt"], "hs": ORDER["ge"]}
BOOLEAN: dict[str, Compare] = {"and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b}
INTEGER = {"b": EQUALITY, "s": EQUALITY | ORDER, "u": EQUALITY | ORDER | UNSIGNED_ORDER}
# != is true of a NaN in the lane language, as neu is in PTX; ne is not
FLOAT: dict[str, Compare] = {
    "eq": EQUALITY["eq"],
    "ne": lambda a, b: (a < b) | (a > b),
    **ORDER,
    "equ": lambda a, b: ~((a < b) | (a > b)),
    "neu": EQUALITY["ne"],
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
    "num": lambda a, b: (a == a) & (b == b),
    "nan": lambda a, b: (a != a) | (b != b),
}
"""For operands a < b, a == b, a > b, unordered: what each comparison says (used for the cases of the rows)."""
TRUTH = {
    "eq": "0100", "ne": "1010", "lt": "1000", "le": "1100", "gt": "0010", "ge": "0110",
    "equ": "0101", "neu": "1011", "ltu": "1001", "leu": "1101", "gtu": "0011", "geu": "0111", "num": "1110", "nan": "0001",
}  # fmt: skip
TRUTH |= {"lo": TRUTH["lt"], "ls": TRUTH["le"], "hi": TRUTH["gt"], "hs": TRUTH["ge"]}

F32_ONE, F32_TWO, F32_NAN = 0x3F800000, 0x40000000, 0x7FC00000
SAMPLES = {
    "f32": [(F32_ONE, F32_TWO), (0x80000000, 0), (F32_TWO, F32_ONE), (F32_NAN, F32_ONE)],
    "f64": [(0x3FF << 52, 1 << 62), (1 << 63, 0), (1 << 62, 0x3FF << 52), (0x7FF8 << 48, 0)],
}


def flush(a: Lanes) -> Lanes:
    """Subnormal f32 values as zero; the sign of a zero does not matter to a comparison."""
    return where((bits(a, "u32") & 0x7F800000) == 0, 0.0, a)


@functools.cache
def flushed(compare: Compare) -> Compare:
    """The comparison of .ftz."""
    return lambda a, b: compare(flush(a), flush(b))


@functools.cache
def setp(compare: Compare) -> Callable[..., tuple[Lanes, Lanes]]:
    """p = a ? b and q = not p."""

    def semantics(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
        p = compare(a, b)
        return p, ~p

    return semantics


@functools.cache
def setp_with(compare: Compare, combine: Compare) -> Callable[..., tuple[Lanes, Lanes]]:
    """p = (a ? b) op c and q = not (a ? b) op c."""

    def semantics(a: Lanes, b: Lanes, c: Lanes) -> tuple[Lanes, Lanes]:
        p = compare(a, b)
        return combine(p, c), combine(~p, c)

    return semantics


@functools.cache
def set_(compare: Compare, type_: str, true: Any, combine: Compare | None = None) -> Callable[..., Lanes]:
    """`true` of the type where the comparison holds, else 0."""

    def semantics(a: Lanes, b: Lanes, *c: Lanes) -> Lanes:
        p = compare(a, b)
        if combine:
            p = combine(p, c[0])
        return where(p, const(true, like=a, type_=type_), 0)

    return semantics


def comparisons(type_: str) -> list[tuple[str, str, Compare, list[tuple[tuple[int, int], bool]]]]:
    """(comparison, .ftz or "", function, cases) for every legal comparison of a type."""
    if type_ in ("f32", "f64"):
        plain = [(name, "", f) for name, f in FLOAT.items()]
        flushing = [(name, ".ftz", flushed(f)) for name, f in FLOAT.items()] if type_ == "f32" else []
        samples = SAMPLES[type_]
    else:
        plain, flushing = [(name, "", f) for name, f in INTEGER[type_[0]].items()], []
        ones = 2 ** width("u" + type_[1:]) - 1
        samples = [(ones, 1), (7, 7), (1, ones)] if type_[0] == "s" else [(1, ones), (7, 7), (ones, 1)]
    result = []
    for name, ftz, function in plain + flushing:
        cases = [(pair, truth == "1") for pair, truth in zip(samples, TRUTH[name])]
        if type_ == "f32":  # subnormals of both signs: a > b, or equal where they count as zero
            cases.append(((1, 0x80000001), TRUTH[name][1 if ftz else 2] == "1"))
        result.append((name, ftz, function, cases))
    return result


COMPARED = [f"{letter}{n}" for n in (16, 32, 64) for letter in "bus"] + ["f32", "f64"]
#: destination types of set: register type, value of "true", its bits, least target
RESULTS: dict[str, tuple[str, Any, int, int]] = {
    "u32": ("u32", 0xFFFFFFFF, 0xFFFFFFFF, 0),
    "s32": ("u32", 0xFFFFFFFF, 0xFFFFFFFF, 0),
    "f32": ("f32", 1.0, F32_ONE, 0),
    "f16": ("u16", 0x3C00, 0x3C00, 53),
    "bf16": ("u16", 0x3F80, 0x3F80, 90),
}

for _t in COMPARED:
    for _name, _ftz, _function, _cases in comparisons(_t):
        _two, _three = f"a:{_t}, b:{_t}", f"a:{_t}, b:{_t}, c:pred"
        op(f"setp.{_name}{_ftz}.{_t}", f"p:pred, q:pred = {_two}", doc=DOC + "setp", cases=[(pair, (t, not t)) for pair, t in _cases])(
            setp(_function)
        )
        for _boolean, _combine in BOOLEAN.items():
            op(f"setp.{_name}.{_boolean}{_ftz}.{_t}", f"p:pred, q:pred = {_three}", doc=DOC + "setp")(setp_with(_function, _combine))
        for _d, (_register, _true, _bits, _arch) in RESULTS.items():
            if _ftz and _d == "bf16":
                continue
            _doc = ("half-precision-comparison-instructions-" if _arch else DOC) + "set"
            op(
                f"set.{_name}{_ftz}.{_d}.{_t}",
                f"d:{_register} = {_two}",
                doc=_doc,
                min_arch=_arch,
                cases=[(pair, _bits * t) for pair, t in _cases],
            )(set_(_function, _register, _true))
            for _boolean, _combine in BOOLEAN.items():
                op(f"set.{_name}.{_boolean}{_ftz}.{_d}.{_t}", f"d:{_register} = {_three}", doc=_doc, min_arch=_arch)(
                    set_(_function, _register, _true, _combine)
                )
