"""What undefined bits make of an instruction: for each row a rule that computes the shadows of its results from those of its sources.

A shadow has a bit for each bit of a register, 1 where it is undefined. A rule must be sound: a result bit that can change when undefined
source bits change has a shadow of 1. How exact it is beyond that decides on false alarms. Rules are written in the lane language, so
both machines take them from here; most of them get what the instruction does from the row's own semantics, run on other values.

Undefined bits make a range of values, from all of them 0 to all of them 1; what is monotone in its sources is bounded by the results at
both ends. That is exact for sums: the carry into a bit is monotone, so it is defined where both ends agree.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence

from fasim.isa.machine import ABSENT_LANE
from fasim.numerics.lanes import FLOATS, Lanes, ballot, bits, brev, cast, clz, const, gather, lane_id, where, width
from fasim.warp.shadow_values import (
    Execution,
    Operand,
    Outcome,
    any_undefined,
    dest_types,
    everywhere,
    first_origin,
    nonzero,
    unsigned,
)

Rule = Callable[[Execution], Sequence[Outcome]]


def _union(operands: Iterable[Operand], type_: str) -> Lanes | None:
    """The undefined bits of all operands of that shadow type."""
    result = None
    for operand in operands:
        if operand.shadow.type == type_:
            result = operand.shadow if result is None else result | operand.shadow
    return result


def _upward(shadow: Lanes) -> Lanes:
    """All bits from the lowest undefined one upwards: where carries can go."""
    return shadow | -shadow


def _downward(shadow: Lanes) -> Lanes:
    """All bits from the highest undefined one downwards."""
    return const(-1, like=shadow) >> clz(shadow)


# --- rules ---------------------------------------------------------------------------------------------------------------------


def default(ex: Execution) -> Sequence[Outcome]:
    """Any undefined source bit makes all results of the lane undefined."""
    return ex.outcomes(ex.all_where(any_undefined(ex.operands, ex.active)))


def defined(ex: Execution) -> Sequence[Outcome]:
    """Always defined: the instruction has no sources, or is one where undefined bits are reported and then forgotten."""
    return ex.outcomes(ex.all_where(ex.number(False, "pred")))


def routing(controls: str = "") -> Rule:
    """Every result bit is some source bit or a constant; which one, the operands named in `controls` decide."""

    def rule(ex: Execution) -> Sequence[Outcome]:
        moved = ex.run(lambda operand: operand.value if operand.arg.name in controls else operand.shadow_as_value)
        lost = ex.all_where(any_undefined(ex.among(controls), ex.active))
        return ex.outcomes(a | b for a, b in zip(moved, lost)) if controls else ex.outcomes(moved)

    return rule


def vector_routing(ex: Execution) -> Sequence[Outcome]:
    """Registers copied one by one."""
    return [Outcome(shadow, operand.origin) for shadow, operand in zip(ex.run(lambda o: o.shadow_as_value), ex.operands)]


def selection(ex: Execution) -> Sequence[Outcome]:
    """a or b, as c says; where c is undefined, the bits that a and b have in common are defined."""
    a, b, c = ex.operands
    ones, zero = (bits(const(x, like=a.shadow), a.value.type) for x in (-1, 0))
    is_a = ex.run(lambda o: o.value if o is c else ones if o is a else zero)[0] != 0
    either = (unsigned(a.value) ^ unsigned(b.value)) | a.shadow | b.shadow
    shadow = where(c.undefined, either, where(is_a, a.shadow, b.shadow))
    return [Outcome(shadow, where(c.undefined, c.origin, where(is_a, a.origin, b.origin)))]


def truth_shadow(lut: int, sources: Sequence[tuple[Lanes, Lanes]]) -> Lanes:
    """Shadow of a boolean function (truth table as lop3 has it) of (value, shadow) pairs: undefined where both results are possible."""
    possible = [(~value | shadow, value | shadow) for value, shadow in sources]
    found: list[Lanes | None] = [None, None]
    for row in range(1 << len(sources)):
        term = None
        for i, ends in enumerate(possible):
            end = ends[row >> (len(sources) - 1 - i) & 1]
            term = end if term is None else term & end
        result = lut >> row & 1
        before = found[result]
        found[result] = term if before is None or term is None else before | term
    zero, one = found
    shadow = sources[0][1]
    return shadow ^ shadow if zero is None or one is None else zero & one


AND, OR, XOR, NOT = 0x8, 0xE, 0x6, 0x1
TABLES = {"and": AND, "or": OR, "xor": XOR, "not": NOT}


def logic(ex: Execution) -> Sequence[Outcome]:
    """and, or, xor, not."""
    lut = TABLES[ex.row.name.split(".")[0]]
    return ex.outcomes([truth_shadow(lut, [(o.value, o.shadow) for o in ex.operands])])


def lop3(ex: Execution) -> Sequence[Outcome]:
    """lop3, and its forms that also compare the result with 0."""
    d = truth_shadow(ex.immediates[0], [(o.value, o.shadow) for o in ex.operands[:3]])
    if len(ex.row.dests) == 1:
        return ex.outcomes([d])
    q = ex.operand("q")
    lut = TABLES[ex.row.name.split(".")[1]]
    neutral = ex.number(lut == AND, "pred")
    value, differs = ex.run(lambda o: neutral if o is q else o.value)
    p = equality_shadow(value, d, const(0, like=d), const(0, like=d))
    return ex.outcomes([d, truth_shadow(lut, [(differs, p), (q.value, q.shadow)])])


def equality_shadow(a: Lanes, a_shadow: Lanes, b: Lanes, b_shadow: Lanes) -> Lanes:
    """Whether a == b is undefined: not where defined bits differ."""
    shadow = a_shadow | b_shadow
    return (shadow != 0) & (((a ^ b) & ~shadow) == 0)


def is_zero(ex: Execution) -> Sequence[Outcome]:
    """cnot: 1 for 0, else 0."""
    (a,) = ex.operands
    zero = const(0, like=a.shadow)
    unknown = equality_shadow(unsigned(a.value), a.shadow, zero, zero)
    return ex.outcomes([where(unknown, const(1, like=a.shadow), 0)])


_FLOAT_NAMES = FLOATS | {"bf16", "f16x2", "bf16x2"}


def comparison(ex: Execution) -> Sequence[Outcome]:
    """set and setp: a comparison, of pairs two, and what it is combined with."""
    parts = ex.row.mnemonic.split(".")
    combined = parts[2] in TABLES
    a, b, *rest = ex.operands
    paired = parts[-1] in ("f16x2", "bf16x2")
    neutral = ex.number(parts[2] == "and", "pred")  # what makes the result that of the comparison alone

    def compared(left: Lanes, right: Lanes) -> list[Lanes]:
        results = ex.run(lambda o: left if o is a else right if o is b else neutral)
        if paired and results[0].type != "pred":
            return [(results[0] & 0xFFFF) != 0, (results[0] >> 16) != 0]
        return [nonzero(x) for x in results]

    values = compared(a.value, b.value)
    if paired:
        either = a.shadow | b.shadow
        unknown = [(either & 0xFFFF) != 0, (either >> 16) != 0]
    elif parts[-1] in _FLOAT_NAMES:
        unknown = [a.undefined | b.undefined] * len(values)
    elif parts[1] in ("eq", "ne"):
        unknown = [equality_shadow(unsigned(a.value), a.shadow, unsigned(b.value), b.shadow)] * len(values)
    else:
        ends = zip(compared(a.least, b.greatest), compared(a.greatest, b.least))
        unknown = [low ^ high for low, high in ends]
    if combined:
        c = rest[0]
        unknown = [truth_shadow(TABLES[parts[2]], [(v, u), (c.value, c.shadow)]) for v, u in zip(values, unknown)]
    if parts[0] == "setp":
        return ex.outcomes(unknown)
    type_ = dest_types(ex.row)[0]
    if not paired:
        return ex.outcomes([everywhere(unknown[0], type_)])
    return ex.outcomes([(everywhere(unknown[0], type_) & 0xFFFF) | (everywhere(unknown[1], type_) << 16)])


def add_shadow(a: Lanes, a_shadow: Lanes, b: Lanes, b_shadow: Lanes) -> Lanes:
    """Shadow of an unsigned sum: exact."""
    least, greatest = (a & ~a_shadow) + (b & ~b_shadow), (a | a_shadow) + (b | b_shadow)
    return (least ^ greatest) | a_shadow | b_shadow


def total(negative: str = "") -> Rule:
    """A sum, the sources named in `negative` subtracted; also with the carry flag."""

    def rule(ex: Execution) -> Sequence[Outcome]:
        least = ex.run(lambda o: _unsigned_end(o, o.arg.name in negative))
        greatest = ex.run(lambda o: _unsigned_end(o, o.arg.name not in negative))
        shadows = []
        for low, high in zip(least, greatest):
            own = _union(ex.operands, low.type) if low.type != "pred" else None
            shadows.append(low ^ high if own is None else (low ^ high) | own)
        return ex.outcomes(shadows)

    return rule


def _unsigned_end(operand: Operand, upper: bool) -> Lanes:
    value = unsigned(operand.value)
    return bits(value | operand.shadow if upper else value & ~operand.shadow, operand.value.type)


def _lowest(x: Lanes) -> Lanes:
    """The lowest bit that is set."""
    return x & -x


def product(ex: Execution) -> Sequence[Outcome]:
    """mul.lo, mul.wide, mad.lo, mad.wide: defined below the lowest undefined bit of a factor, shifted by the zeros that end the other."""
    type_ = dest_types(ex.row)[0]
    a, b, *addend = ex.operands
    (x, x_shadow), (y, y_shadow) = ((cast(unsigned(o.value), type_), cast(o.shadow, type_)) for o in (a, b))
    steps = _lowest(x_shadow) * _lowest(y | y_shadow) | _lowest(y_shadow) * _lowest(x | x_shadow)
    shadow = _upward(steps)
    if addend:
        (c,) = addend
        zero = bits(const(0, like=c.shadow), c.value.type)
        value = ex.run(lambda o: zero if o is c else o.value)[0]
        shadow = add_shadow(value, shadow, unsigned(c.value), c.shadow)
    return ex.outcomes([shadow])


def monotone(falling: str = "") -> Rule:
    """Grows with its sources, in the order of the type, and falls with those named: what both ends have in common at the top is defined."""

    def rule(ex: Execution) -> Sequence[Outcome]:
        least = ex.run(lambda o: o.greatest if o.arg.name in falling else o.least)
        greatest = ex.run(lambda o: o.least if o.arg.name in falling else o.greatest)
        return ex.outcomes(_downward(low ^ high) for low, high in zip(least, greatest))

    return rule


def elements(size: int, dest_size: int = 0, sources: str = "abc") -> Rule:
    """Packed elements of `size` bits, each computed for itself to one of `dest_size` bits."""
    dest_size = dest_size or size

    def rule(ex: Execution) -> Sequence[Outcome]:
        type_ = dest_types(ex.row)[0]
        operands = ex.among(sources)
        united = _union(operands, operands[0].shadow.type)
        assert united is not None
        shadow = ex.number(0, type_)
        for i in range(width(united.type) // size):
            mask, dest_mask = (1 << size) - 1 << size * i, (1 << dest_size) - 1 << dest_size * i
            shadow = shadow | where((united & mask) != 0, ex.number(dest_mask, type_), 0)
        origin = first_origin(operands, like=ex.active)
        return [Outcome(shadow, origin)]

    return rule


def packing(size: int) -> Rule:
    """a above b, `size` bits each, above them the low bits of c."""

    def rule(ex: Execution) -> Sequence[Outcome]:
        type_ = dest_types(ex.row)[0]
        a, b, *rest = ex.operands
        low = (1 << size) - 1
        shadow = where(a.undefined, ex.number(low << size, type_), 0) | where(b.undefined, ex.number(low, type_), 0)
        return ex.outcomes([shadow | (rest[0].shadow << 2 * size) if rest else shadow])

    return rule


# --- between lanes ---------------------------------------------------------------------------------------------------------------


def shfl(ex: Execution) -> Sequence[Outcome]:
    """shfl: shadows move like the values; who reads from a lane that does not take part gets nothing defined."""
    a, mask = ex.operand("a"), ex.operand("mask")
    own, every = lane_id(ex.active), ex.number(-1)
    source = ex.run(lambda o: own if o is a else every if o is mask else o.value, active=ex.number(True, "pred"))[0]
    there = (((ballot(ex.active) & mask.value) >> source) & 1) != 0
    absent = ~there & (source != own)
    steered = any_undefined(ex.among("bc"), ex.active)
    lost = steered | mask.undefined
    controls = [operand for operand in ex.operands if operand is not a]
    shadow = gather(a.shadow, source) | everywhere(absent | lost, "u32")
    origin = where(lost, first_origin(controls, ex.active), where(absent, ex.number(ABSENT_LANE), gather(a.origin, source)))
    return [Outcome(shadow, origin), Outcome(steered, origin)]


def _members(ex: Execution) -> Lanes:
    """The lanes, as bits, that take part for each lane."""
    return ballot(ex.active) & (ex.immediates[0] if ex.immediates else ex.operand("mask").value)


def _group(ex: Execution, unknown: Callable[[Lanes, Lanes], Lanes]) -> Sequence[Outcome]:
    """A result for a group of lanes, undefined where `unknown(undefined members, members)` or the mask says so."""
    a, members = ex.operand("a"), _members(ex)
    undefined = ballot(a.undefined) & members
    lost = any_undefined([o for o in ex.operands if o is not a], ex.active)
    shadow = unknown(undefined, members)
    first = gather(a.origin, clz(brev(undefined)) & 31)
    origin = first if ex.immediates else where(lost, ex.operand("mask").origin, first)
    shadows = (shadow if shadow.type == type_ else everywhere(shadow, type_) for type_ in dest_types(ex.row))
    return [Outcome(each | everywhere(lost, each.type), origin) for each in shadows]


def group(ex: Execution) -> Sequence[Outcome]:
    """match, redux: undefined for all lanes of a group if it is in one."""
    return _group(ex, lambda undefined, members: undefined != 0)


def vote(ex: Execution) -> Sequence[Outcome]:
    """vote.any, all and uni: defined values decide where they can."""
    a, mode = ex.operand("a"), ex.row.name.split(".")[2]

    def unknown(undefined: Lanes, members: Lanes) -> Lanes:
        known = members & ~undefined
        true, false = (ballot(a.value) & known) != 0, (ballot(~a.value) & known) != 0
        decided = {"any": true, "all": false, "uni": true & false}[mode]
        return (undefined != 0) & ~decided

    return _group(ex, unknown)


def vote_ballot(ex: Execution) -> Sequence[Outcome]:
    """vote.ballot: a bit from each lane."""
    return _group(ex, lambda undefined, members: undefined)


# --- which row has which rule --------------------------------------------------------------------------------------------------

_INTEGER = r"[us](?:8|16|32|64)"
#: the first pattern that fits a row's whole name decides
RULES: tuple[tuple[str, Rule], ...] = (
    (r"(?:wmma\.)?mma\..*|activemask\..*|createpolicy\..*", defined),
    (r"mov\.b128.*", vector_routing),
    (r"mov\..*|brev\..*|prmt\.b32:imm", routing()),
    (rf"cvt\.{_INTEGER}\.{_INTEGER}(?::\w+)?", routing()),
    (r"sh[lr]\..*", routing("n")),
    (r"shf\..*|prmt\..*", routing("c")),
    (r"bfe\..*", routing("bc")),
    (r"bfi\..*", routing("cd")),
    (r"szext\..*", routing("b")),
    (r"(?:selp|slct)\..*", selection),
    (r"(?:and|or|xor|not)\..*", logic),
    (r"lop3\..*", lop3),
    (r"cnot\..*", is_zero),
    (r"setp?\..*", comparison),
    (rf"(?:add|addc|add\.cc|addc\.cc)\.{_INTEGER}|cvta\..*", total()),
    (rf"(?:sub|subc|sub\.cc|subc\.cc)\.{_INTEGER}", total("b")),
    (rf"neg\.{_INTEGER}", total("a")),
    (rf"(?:mul|mad)\.(?:lo|wide)\.{_INTEGER}", product),
    (rf"(?:min|max)\.(?:relu\.)?{_INTEGER}(?:\.relu)?|popc\..*|bfind\.u\d+|mul\.hi\.u\d+|add\.sat\.s32", monotone()),
    (rf"cvt\.sat\.{_INTEGER}\.{_INTEGER}(?::d\d+)?", monotone()),
    (r"clz\..*|bfind\.shiftamt\.u\d+", monotone("a")),
    (r"sub\.sat\.s32|div\.u\d+", monotone("b")),
    (r"cvt\.r\w\..*b?f16x2\.f32", packing(16)),
    (r"cvt\.r\w\..*e\dm\dx2\.f32", packing(8)),
    (r"cvt\.r\w\..*e\dm\dx2\.f16x2", elements(16, 8)),
    (r"cvt\.r\w\..*f16x2\.e\dm\dx2", elements(8, 16)),
    *((rf"cvt\.pack\.sat\.[us]{size}\.s32.*", packing(size)) for size in (2, 4, 8, 16)),
    (r".*\.(?:b?f|u|s)16x2(?:\..*)?", elements(16)),
    (r".*\.f32x2", elements(32)),
    (r"v[a-z]+[24]\..*\.add", default),
    (r"v[a-z]+2\..*", elements(16, sources="ab")),
    (r"v[a-z]+4\..*", elements(8, sources="ab")),
    (r"shfl\..*", shfl),
    (r"vote\.sync\.ballot\..*", vote_ballot),
    (r"vote\..*", vote),
    (r"(?:match|redux)\..*", group),
)


@functools.cache
def rule_of(name: str) -> Rule:
    """The rule of the row of that name."""
    return next((rule for pattern, rule in RULES if re.fullmatch(pattern, name)), default)
