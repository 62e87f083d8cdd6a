"""Arithmetic on f16, bf16 and their pairs: add, sub, mul, fma, neg, abs, min, max."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fasim.isa.table import op
from fasim.numerics import narrow
from fasim.numerics.lanes import Lanes, cast, where
from fasim.numerics.narrow import FORMATS, Format

Semantics = Callable[..., Lanes]

_DOC = "half-precision-floating-point-instructions-"
LETTERS = "abc"


def paired(function: Semantics) -> Semantics:
    """The same on both halves of 32-bit registers."""

    def semantics(*operands: Lanes) -> Lanes:
        high = function(*(narrow.high_half(x) for x in operands))
        return narrow.pack(high, function(*(narrow.low_half(x) for x in operands)))

    return semantics


def modified(
    function: Semantics, format_: Format, ftz: bool = False, sat: bool = False, relu: bool = False, tiny: Semantics | None = None
) -> Semantics:
    """A semantics of one half with `.ftz`, `.sat` and `.relu`; `tiny` tells which results `.ftz` makes zero, if not the subnormal ones."""

    def semantics(*operands: Lanes) -> Lanes:
        if ftz:
            operands = tuple(narrow.flush_f16(x) for x in operands)
        result = function(*operands)
        if ftz:
            result = where(tiny(*operands), result & 0x8000, result) if tiny else narrow.flush_f16(result)
        if sat:
            return narrow.saturate(result, format_)
        return narrow.relu(result, format_) if relu else result

    return semantics


def declare(names: Sequence[str], function: Semantics, arity: int, doc: str, cases: Sequence[Any] = (), min_arch: int = 0) -> None:
    """Rows for one half and for pairs; `names` end in the type of one half, `cases` are of one half."""
    scalar = ", ".join(f"{x}:b16" for x in LETTERS[:arity])
    op(names, f"d:b16 = {scalar}", doc=doc, cases=cases, min_arch=min_arch)(function)
    pairs = []
    for (inputs, expected), (inputs2, expected2) in zip(cases, [*cases[1:], *cases[:1]]):
        first, second = (x if isinstance(x, tuple) else (x,) for x in (inputs, inputs2))
        pairs.append((tuple(x << 16 | y for x, y in zip(first, second)), expected << 16 | expected2))
    op([f"{n}x2" for n in names], f"d:b32 = {scalar.replace('b16', 'b32')}", doc=doc, cases=pairs, min_arch=min_arch)(paired(function))


def _of(function: Callable[..., Lanes], format_: Format) -> Semantics:
    return lambda *operands: function(*operands, format_)


_CASES: dict[tuple[str, str], Sequence[Any]] = {
    # f16: 1.0 = 0x3c00, ulp 2**-10, largest 0x7bff = 65504, 2**-24 = 1
    ("add", "f16"): [
        ((0x3C00, 0x1000), 0x3C00),
        ((0x3C01, 0x1000), 0x3C02),
        ((0x7BFF, 0x4C00), 0x7C00),
        ((0x7C00, 0xFC00), 0x7FFF),
        ((1, 1), 2),
    ],
    ("sub", "f16"): [((0x3C00, 0x3C00), 0), ((0x8000, 0), 0x8000), ((0xFE01, 0), 0x7FFF)],
    ("mul", "f16"): [((0x3C01, 0x3C01), 0x3C02), ((1, 0x3800), 0), ((3, 0x3800), 2), ((0x7BFF, 0x4000), 0x7C00), ((0, 0xFC00), 0x7FFF)],
    # (1 + 2**-10)**2 - (1 + 2**-9) = 2**-20; 1 + 2**-11 is a tie, and a little less is not
    ("fma", "f16"): [
        ((0x3C01, 0x3C01, 0xBC02), 0x0010),
        ((0x3C00, 0x1000, 0x3C01), 0x3C02),
        ((0x1000, 0x3BFF, 0x3C01), 0x3C01),
        ((0x7C00, 0, 0), 0x7FFF),
    ],
    # bf16: 1.0 = 0x3f80, ulp 2**-7
    ("add", "bf16"): [((0x3F80, 0x3B80), 0x3F80), ((0x3F81, 0x3B80), 0x3F82), ((0x7F7F, 0x7F7F), 0x7F80), ((0x7F80, 0xFF80), 0x7FFF)],
    ("sub", "bf16"): [((0x3F80, 0x3F80), 0), ((1, 0x8001), 2)],
    ("mul", "bf16"): [((0x3F81, 0x3F81), 0x3F82), ((0, 0x7F80), 0x7FFF), ((0x8001, 0x3F00), 0x8000)],
    # 2**-126 * 2**-126 breaks the tie of 1 * (1 + 2**-8)
    ("fma", "bf16"): [
        ((0x0080, 0x0080, 0x3F81), 0x3F81),
        ((0x3F80, 0x3B80, 0x3F81), 0x3F82),
        ((0x7F7F, 0x4000, 0xFF7F), 0x7F7F),
        ((0x7FC1, 0, 0), 0x7FFF),
    ],
}
_FUNCTIONS: dict[str, Callable[..., Lanes]] = {"add": narrow.add, "sub": narrow.sub, "mul": narrow.mul, "fma": narrow.fma}
_SAT: dict[str, Sequence[Any]] = {
    "add": [((0x3C00, 0x3C00), 0x3C00), ((0xBC00, 0), 0), ((0x7E00, 0), 0), ((0x3800, 0), 0x3800), ((0x8000, 0x8000), 0)],
    "fma": [((0x4000, 0x4000, 0), 0x3C00), ((0xC000, 0x4000, 0), 0)],
}
_FTZ: dict[str, Sequence[Any]] = {
    "add": [((1, 0x8400), 0x8400), ((1, 0x3FF), 0), ((0x8001, 0x8000), 0x8000)],
    # 2**-14 (1 - 2**-11) is no subnormal, which would round it up, but is below 2**-14
    "mul": [((0x8400, 0x3800), 0x8000), ((0x0400, 0x3BFF), 0)],
    "fma": [((0xA0CB, 0x1C28, 0x067D), 0)],
}
#: operations whose exact result can lie below 2**-14 and round up to it
_TINY: dict[str, Semantics] = {"mul": narrow.product_underflows, "fma": narrow.fma_underflows}
_RELU: Sequence[Any] = [((0xBC00, 0x3C00, 0), 0), ((0xBC00, 0, 0), 0), ((0xFE00, 0, 0), 0x7FFF), ((0x4000, 0x4000, 0), 0x4400)]

for _name, _function in _FUNCTIONS.items():
    _arity, _doc = (3 if _name == "fma" else 2), _DOC + _name
    for _ftz in ("", ".ftz"):
        for _mode in ("", ".sat", ".relu") if _name == "fma" else ("", ".sat"):
            _names = [f"{_name}.rn{_ftz}{_mode}.f16"]
            if _name != "fma":
                _names.append(f"{_name}{_ftz}{_mode}.f16")
            _cases: Sequence[Any] = _CASES[_name, "f16"]
            if _ftz:
                _cases = () if _mode else _FTZ.get(_name, ())
            elif _mode:
                _cases = _RELU if _mode == ".relu" else _SAT.get(_name, ())
            _semantics = modified(_of(_function, narrow.F16), narrow.F16, bool(_ftz), _mode == ".sat", _mode == ".relu", _TINY.get(_name))
            declare(_names, _semantics, _arity, _doc, _cases, 80 if _mode == ".relu" else 53)
    for _mode in ("", ".relu") if _name == "fma" else ("",):
        _names = [f"{_name}.rn{_mode}.bf16"] + ([f"{_name}.bf16"] if _name != "fma" else [])
        _semantics = modified(_of(_function, narrow.BF16), narrow.BF16, relu=bool(_mode))
        declare(_names, _semantics, _arity, _doc, () if _mode else _CASES[_name, "bf16"], 80 if _name == "fma" else 90)

for _type, _format in FORMATS.items():
    _one = 0x3C00 if _type == "f16" else 0x3F80
    _least_arch = 53 if _type == "f16" else 80
    _neg, _absolute = _of(narrow.neg, _format), _of(narrow.absolute, _format)
    declare([f"neg.{_type}"], _neg, 1, _DOC + "neg", [(_one, _one | 0x8000), (0x8000, 0), (1, 0x8001), (0xFFC1, 0x7FFF)], _least_arch)
    declare([f"abs.{_type}"], _absolute, 1, _DOC + "abs", [(_one | 0x8000, _one), (0x8000, 0), (0x8001, 1), (0xFFC1, 0x7FFF)], _least_arch)
    if _type == "f16":
        declare(["neg.ftz.f16"], modified(_neg, _format, ftz=True), 1, _DOC + "neg", [(_one, _one | 0x8000), (0x03FF, 0x8000)], 53)
        declare(["abs.ftz.f16"], modified(_absolute, _format, ftz=True), 1, _DOC + "abs", [(_one | 0x8000, _one), (0x83FF, 0)], 53)


def extreme(format_: Format, largest: bool, nan: bool, xorsign: bool) -> Semantics:
    """`min` or `max` of one half with `.NaN` and `.xorsign.abs`."""

    def semantics(a: Lanes, b: Lanes) -> Lanes:
        if not xorsign:
            return narrow.extreme(a, b, format_, largest=largest, nan=nan)
        result = narrow.extreme(a & 0x7FFF, b & 0x7FFF, format_, largest=largest, nan=nan)
        return result | ((a ^ b) & 0x8000 & ~(cast(narrow.is_nan(result, format_), "u16") << 15))

    return semantics


for _type, _format in FORMATS.items():
    _one, _two = (0x3C00, 0x4000) if _type == "f16" else (0x3F80, 0x4000)
    for _name in ("min", "max"):
        _least = _name == "min"
        _plain = [
            ((_one, _two), _one if _least else _two),
            ((0, 0x8000), 0x8000 if _least else 0),
            ((0x8000, 0), 0x8000 if _least else 0),
            ((_one | 0x8000, _two | 0x8000), (_two if _least else _one) | 0x8000),
        ]
        _some_nan = {
            "": [((_one, 0x7FFF), _one), ((0xFFC1, _two), _two), ((0xFFC1, 0x7FC1), 0x7FFF)],
            ".NaN": [((_one, 0xFFC1), 0x7FFF), ((0xFFC1, _one), 0x7FFF)],
        }
        for _ftz in ("", ".ftz") if _type == "f16" else ("",):
            for _nan in ("", ".NaN"):
                for _xor in ("", ".xorsign.abs"):
                    _cases = [*_plain, *_some_nan[_nan]]
                    if _xor:
                        _cases = [((_one | 0x8000, _two), (_one if _least else _two) | 0x8000), ((0xFFC1, 0x7FC1), 0x7FFF)]
                    _semantics = modified(extreme(_format, not _least, bool(_nan), bool(_xor)), _format, bool(_ftz))
                    declare([f"{_name}{_ftz}{_nan}{_xor}.{_type}"], _semantics, 2, _DOC + _name, _cases, 86 if _xor else 80)
