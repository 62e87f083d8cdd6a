"""Extended-precision integer arithmetic: add, sub and mad with the carry flag.

The flag is the adder's carry. PTX describes a borrow for sub.cc and subc, which is the same as long as the two are not mixed with add.cc
and addc; where they are, ptxas hands the carry over as it is (a sub.cc without borrow sets it).
Source: nvdisasm of sub.cc + addc and add.cc + subc for sm_90 (CUDA 13.0), checked on an H200.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fasim.isa.table import op
from fasim.numerics.lanes import Lanes, bits, cast, mulhi

DOC = "extended-precision-arithmetic-instructions-"


def _sum(a: Lanes, b: Lanes, cc: Lanes | None) -> tuple[Lanes, Lanes]:
    """a + b (+ carry) and the carry out, both unsigned."""
    total = a + b
    carry = total < a
    if cc is not None:
        with_carry = total + cast(cc, total.type)
        carry = carry | (with_carry < total)
        total = with_carry
    return total, carry


def _difference(a: Lanes, b: Lanes, cc: Lanes | None) -> tuple[Lanes, Lanes]:
    """a - b, or a + ~b + carry, and the carry out, both unsigned."""
    return (a - b, a >= b) if cc is None else _sum(a, ~b, cc)


def _declare(
    name: str, type_: str, operands: str, doc: str, compute: Callable[..., tuple[Lanes, Lanes]], takes: bool, gives: bool, cases: Any
) -> None:
    """One row; `compute(a, b, ..., cc or None)`, `takes` and `gives` tell whether the flag is read and written."""

    def semantics(*values: Lanes) -> Any:
        unsigned = [v if v.type == "pred" else bits(v, "u" + v.type[1:]) for v in values]
        result = compute(*(unsigned if takes else [*unsigned, None]))
        return result if gives else result[0]

    dests = f"d:{type_}" + (", cc:pred" if gives else "")
    sources = ", ".join(f"{x}:{type_}" for x in operands) + (", cc:pred" if takes else "")
    op(name, f"{dests} = {sources}", doc=DOC + doc, cases=[(i, o if gives else o[0]) for i, o in cases])(semantics)


def _mad(upper: bool) -> Callable[..., tuple[Lanes, Lanes]]:
    return lambda a, b, c, cc: _sum(a * b if not upper else mulhi(a, b), c, cc)


def _mad_hi_signed(a: Lanes, b: Lanes, c: Lanes, cc: Lanes | None) -> tuple[Lanes, Lanes]:
    signed = "s" + a.type[1:]
    return _sum(bits(mulhi(bits(a, signed), bits(b, signed)), a.type), c, cc)


for _n in (32, 64):
    for _t in (f"u{_n}", f"s{_n}"):
        _ones = 2**_n - 1
        _add = [((_ones, 1), (0, 1)), ((5, 7), (12, 0))]
        _sub = [((5, 7), (_ones - 1, 0)), ((7, 5), (2, 1)), ((7, 7), (0, 1))]
        _addc = [
            ((_ones, 0, 1), (0, 1)),
            ((_ones, _ones, 1), (_ones, 1)),
            ((5, 7, 0), (12, 0)),
            ((5, 7, 1), (13, 0)),
            ((_ones, 0, 0), (_ones, 0)),
        ]
        _subc = [((7, 7, 0), (_ones, 0)), ((7, 7, 1), (0, 1)), ((0, _ones, 0), (0, 0)), ((9, 7, 0), (1, 1))]
        _declare(f"add.cc.{_t}", _t, "ab", "add-cc", _sum, False, True, _add)
        _declare(f"addc.{_t}", _t, "ab", "addc", _sum, True, False, _addc)
        _declare(f"addc.cc.{_t}", _t, "ab", "addc", _sum, True, True, _addc)
        _declare(f"sub.cc.{_t}", _t, "ab", "sub-cc", _difference, False, True, _sub)
        _declare(f"subc.{_t}", _t, "ab", "subc", _difference, True, False, _subc)
        _declare(f"subc.cc.{_t}", _t, "ab", "subc", _difference, True, True, _subc)
        _high = _ones - 1 if _t[0] == "u" else 0
        for _part, _compute, _product in (
            ("lo", _mad(False), 1),
            ("hi", _mad(True) if _t[0] == "u" else _mad_hi_signed, _high),
        ):
            _cases = [((_ones, _ones, _ones - _product), (_ones, 0)), ((_ones, _ones, _ones), ((_product - 1) & _ones, int(_product > 0)))]
            _cases_c = [((_ones, _ones, _ones - _product, 1), (0, 1)), ((0, 3, 5, 1), (6, 0))]
            _declare(f"mad.{_part}.cc.{_t}", _t, "abc", "mad-cc", _compute, False, True, _cases)
            _declare(f"madc.{_part}.{_t}", _t, "abc", "madc", _compute, True, False, _cases_c)
            _declare(f"madc.{_part}.cc.{_t}", _t, "abc", "madc", _compute, True, True, _cases_c)
