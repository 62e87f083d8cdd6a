"""The `.approx` functions: the MUFU unit, and the instructions that ptxas puts around it.

Source: machine code that ptxas 13.0 makes for sm_90; the functions themselves are in fasim.numerics.mufu and mufu_trig.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from fasim.isa.instructions.half import paired
from fasim.isa.table import op
from fasim.numerics import ieee, mufu, mufu_trig, narrow
from fasim.numerics.lanes import Lanes, bits, cast, const, fma, where
from fasim.numerics.narrow import FORMATS, Format

Function = Callable[[Any], Any]

_DOC = "floating-point-instructions-"
_LEAST = 2.0**-126
NAN, INF, ONE, TWO = 0x7FFFFFFF, 0x7F800000, 0x3F800000, 0x40000000


def unit(function: Function, x: Lanes) -> Lanes:
    """A MUFU function, which is defined on bits, of an f32."""
    return bits(function(bits(x, "u32")), "f32")


def ex2(x: Lanes) -> Lanes:
    low = x < -126.0
    y = unit(mufu.ex2_approx_ftz, where(low, x * 0.5, x))
    return where(low, y * y, y)


def lg2(x: Lanes) -> Lanes:
    tiny = ieee.magnitude(x) < _LEAST
    y = unit(mufu.lg2_approx_ftz, where(tiny, x * 2.0**24, x))
    return where(tiny, y - 24.0, y)


def rcp(x: Lanes) -> Lanes:
    size = ieee.magnitude(x)
    scale = where(size > 2.0**126, 0.25, where(size < _LEAST, const(2.0**24, like=x), const(1.0, like=x)))
    return ieee.mul(unit(mufu.rcp_approx_ftz, x * scale), scale)


def rsqrt(x: Lanes) -> Lanes:
    tiny = ieee.magnitude(x) < _LEAST
    y = unit(mufu.rsqrt_approx_ftz, where(tiny, x * 2.0**24, x))
    return where(tiny, ieee.mul(y, const(2.0**12, like=y)), y)


def sqrt(x: Lanes) -> Lanes:
    tiny = ieee.magnitude(x) < _LEAST
    y = unit(mufu.sqrt_approx_ftz, where(tiny, x * 2.0**24, x))
    return where(tiny, ieee.mul(y, const(2.0**-12, like=y)), y)


def _plain(function: Function) -> Callable[[Lanes], Lanes]:
    return lambda x: unit(function, x)


_FUNCTIONS: dict[str, tuple[Function, Callable[[Lanes], Lanes]]] = {
    # name: the function with .ftz, on bits; the one without, on f32
    "ex2": (mufu.ex2_approx_ftz, ex2),
    "lg2": (mufu.lg2_approx_ftz, lg2),
    "rcp": (mufu.rcp_approx_ftz, rcp),
    "rsqrt": (mufu.rsqrt_approx_ftz, rsqrt),
    "sqrt": (mufu.sqrt_approx_ftz, sqrt),
    "sin": (mufu_trig.sin_approx_ftz, _plain(mufu_trig.sin_approx_ftz)),
    "cos": (mufu_trig.cos_approx_ftz, _plain(mufu_trig.cos_approx_ftz)),
}
_BOTH: dict[str, list[tuple[int, int]]] = {
    "ex2": [(0, ONE), (ONE, TWO), (0xBF000000, 0x3F3504F2), (0x43000000, INF), (0xFF800000, 0), (0x7F800001, NAN), (1, ONE)],
    "lg2": [(ONE, 0), (TWO, ONE), (0, 0xFF800000), (0xBF800000, NAN), (INF, INF)],
    "rcp": [(ONE, ONE), (TWO, 0x3F000000), (0x80000000, 0xFF800000), (0xFF800000, 0x80000000), (0xFFC00000, NAN)],
    "rsqrt": [(ONE, ONE), (0x40800000, 0x3F000000), (0, INF), (INF, 0), (0xBF800000, NAN)],
    "sqrt": [(ONE, ONE), (0x40800000, TWO), (0x80000000, 0x80000000), (INF, INF), (0xBF800000, NAN)],
    "sin": [(0, 0), (0x80000000, 0x80000000), (INF, NAN)],
    "cos": [(0, ONE), (INF, NAN), (1, ONE)],
}
_FTZ_ONLY: dict[str, list[tuple[int, int]]] = {
    "ex2": [(0xC2FE0000, 0)],  # 2**-127
    "lg2": [(1, 0xFF800000)],
    "rcp": [(1, INF), (0x7F000000, 0)],
    "rsqrt": [(1, INF)],
    "sqrt": [(0x80000001, 0x80000000)],
}
_PLAIN_ONLY: dict[str, list[tuple[int, int]]] = {
    "ex2": [(0xC2FE0000, 0x003FFFFF), (0xC3150000, 1), (0xC3160000, 0)],  # the squares of ex2(-63.5), ex2(-74.5) and 2**-75
    "lg2": [(1, 0xC3150000)],  # -149
    "rcp": [(1, INF), (0x7F000000, 0x00400000), (0x00400000, 0x7F000000)],
    "rsqrt": [(2, 0x64800000)],  # 2**-148
    "sqrt": [(2, 0x1A800000)],
}

for _name, (_ftz, _function) in _FUNCTIONS.items():
    op(f"{_name}.approx.ftz.f32", "d:f32 = a:f32", doc=_DOC + _name, cases=[*_BOTH[_name], *_FTZ_ONLY.get(_name, [])])(_plain(_ftz))
    op(f"{_name}.approx.f32", "d:f32 = a:f32", doc=_DOC + _name, cases=[*_BOTH[_name], *_PLAIN_ONLY.get(_name, [])])(_function)


# --- division ------------------------------------------------------------------------------------------------------------------

_DIV = "floating-point-instructions-div"
_DIV_CASES = [((ONE, TWO), 0x3F000000), ((ONE, 0), INF), ((0, 0), NAN), ((INF, INF), NAN), ((ONE, 0xFF800000), 0x80000000)]


def _quotient(a: Lanes, b: Lanes) -> Lanes:
    return ieee.mul(a, unit(mufu.rcp_approx_ftz, b))


@op("div.approx.f32", "d:f32 = a:f32, b:f32", doc=_DIV, cases=[*_DIV_CASES, ((1, 1), ONE)])
def div_approx(a: Lanes, b: Lanes) -> Lanes:
    tiny = ieee.magnitude(b) < _LEAST
    return _quotient(where(tiny, a * 2.0**24, a), where(tiny, b * 2.0**24, b))


@op("div.approx.ftz.f32", "d:f32 = a:f32, b:f32", doc=_DIV, cases=[*_DIV_CASES, ((1, 1), NAN), ((ONE, 0x7F000000), 0)])
def div_approx_ftz(a: Lanes, b: Lanes) -> Lanes:
    reciprocal = unit(mufu.rcp_approx_ftz, b)
    return ieee.mul_ftz(a, reciprocal)


@op("div.full.f32", "d:f32 = a:f32, b:f32", doc=_DIV, cases=[*_DIV_CASES, ((1, 1), ONE), ((0x7F000000, 0x7F000000), ONE)])
def div_full(a: Lanes, b: Lanes) -> Lanes:
    size = ieee.magnitude(b)
    scale = where(size > 2.0**126, 0.25, where(size < _LEAST, const(2.0**24, like=b), const(1.0, like=b)))
    return _quotient(a * scale, b * scale)


@op("div.full.ftz.f32", "d:f32 = a:f32, b:f32", doc=_DIV, cases=[*_DIV_CASES, ((1, 1), NAN), ((0x7F000000, 0x7F000000), ONE)])
def div_full_ftz(a: Lanes, b: Lanes) -> Lanes:
    large = ieee.magnitude(b) > 2.0**126
    quarter = where(large, ieee.mul_ftz(a, const(0.25, like=a)), a)
    return ieee.mul_ftz(quarter, unit(mufu.rcp_approx_ftz, where(large, b * 0.25, b)))


# --- f64 -----------------------------------------------------------------------------------------------------------------------

_D_ONE, _D_TWO, _D_INF, _D_NAN, _D_SIGN = 0x3FF << 52, 1 << 62, 0x7FF << 52, 0x7FFFFFFF << 32, 1 << 63


def of_upper_word(function: Function, x: Lanes) -> Lanes:
    """A MUFU function that sees the upper word of an f64 and gives that of the result; the lower one is 0."""
    high = function(cast(bits(x, "u64") >> 32, "u32"))
    return bits(cast(high, "u64") << 32, "f64")


@op(
    "rcp.approx.ftz.f64",
    "d:f64 = a:f64",
    doc=_DOC + "rcp-approx-ftz-f64",
    cases=[(_D_ONE, _D_ONE), (_D_ONE | 1 << 32, 0x3FEFFFFE << 32), (1, _D_INF), (_D_SIGN | _D_INF, _D_SIGN), (_D_INF | 1 << 32, _D_NAN)],
)
def rcp_f64(x: Lanes) -> Lanes:
    return of_upper_word(mufu.rcp64h, x)


@op(
    "rsqrt.approx.ftz.f64",
    "d:f64 = a:f64",
    doc=_DOC + "rsqrt-approx-ftz-f64",
    cases=[(_D_ONE, _D_ONE), (0x7D0 << 52, 0x2166A09E << 32), (1, _D_INF), (_D_INF, 0), (_D_SIGN | _D_ONE, _D_NAN)],
)
def rsqrt_f64_ftz(x: Lanes) -> Lanes:
    return of_upper_word(mufu.rsq64h, x)


@op(
    "rsqrt.approx.f64",
    "d:f64 = a:f64",
    doc=_DOC + "rsqrt",
    cases=[(_D_ONE, _D_ONE), (1 << 33, 0x6076A09E667F3BCD), (_D_SIGN, _D_SIGN | _D_INF), (_D_INF, 0), (_D_SIGN | _D_ONE, 0xFFF8 << 48)],
)
def rsqrt_f64(x: Lanes) -> Lanes:
    tiny = x < 2.0**-1022
    scaled = where(tiny, x * 2.0**54, x)
    y = rsqrt_f64_ftz(scaled)
    error = fma(scaled, -(y * y), const(1.0, like=x))
    y = fma(fma(error, const(0.375, like=x), const(0.5, like=x)), y * error, y)
    y = where(tiny, y * 2.0**27, y)
    y = where(x == float("inf"), 0.0, y)
    y = where(x < 0.0, ieee.pattern(ieee.NAN["f64"], x), y)
    y = where(x == 0.0, ieee.copy_sign(ieee.pattern(_D_INF, x), x), y)
    return where(ieee.is_nan(x), ieee.canonical(x + x, x), y)


# --- tanh, and functions of f16 and bf16 ---------------------------------------------------------------------------------------

_TANH_CASES = [(0, 0), (0x80000000, 0x80000000), (INF, ONE), (0xFF800000, 0xBF800000), (0x7F800001, NAN), (1, 1), (0x42C80000, ONE)]
op("tanh.approx.f32", "d:f32 = a:f32", doc=_DOC + "tanh", min_arch=75, cases=_TANH_CASES)(_plain(mufu_trig.tanh_approx))


def of_half(function: Function, format_: Format) -> Callable[[Lanes], Lanes]:
    """A MUFU function of one f16 or bf16: the f32 result truncated; an f16 overflows to infinity.

    Source: all inputs of every type on an H200.
    """

    def semantics(x: Lanes) -> Lanes:
        y = unit(function, narrow.widen(x, format_))
        h = narrow.narrow(y, format_, "rz")
        return where(y >= 2.0**16, format_.infinity, h) if format_ is narrow.F16 else h

    return semantics


_HALF_CASES = {
    ("ex2", "f16"): [(0, 0x3C00), (0x3C00, 0x4000), (0xCE00, 1), (0x4C00, 0x7C00), (0x7C01, 0x7FFF), (0xFC00, 0)],
    ("tanh", "f16"): [(0x8000, 0x8000), (0x7C00, 0x3C00), (0xFC00, 0xBC00), (0x7C01, 0x7FFF), (1, 1)],
    ("ex2", "bf16"): [(0, 0x3F80), (0x3F80, 0x4000), (0x4300, 0x7F80), (0x7F81, 0x7FFF), (0xC2FE, 0), (0xFF80, 0)],
    ("tanh", "bf16"): [(0x8000, 0x8000), (0x7F80, 0x3F80), (0xFF80, 0xBF80), (0x7F81, 0x7FFF)],
}
for (_name, _type), _cases in _HALF_CASES.items():
    _semantics = of_half(mufu.ex2_approx_ftz if _name == "ex2" else mufu_trig.tanh_approx, FORMATS[_type])
    _mnemonic = f"{_name}.approx{'.ftz' if (_name, _type) == ('ex2', 'bf16') else ''}.{_type}"
    _arch = 75 if _type == "f16" else 90
    _anchor = f"half-precision-floating-point-instructions-{_name}"
    op(_mnemonic, "d:b16 = a:b16", doc=_anchor, cases=_cases, min_arch=_arch)(_semantics)
    _pairs = [(a << 16 | b, x << 16 | y) for (a, x), (b, y) in itertools.pairwise(_cases)]
    op(_mnemonic + "x2", "d:b32 = a:b32", doc=_anchor, cases=_pairs, min_arch=_arch)(paired(_semantics))
