"""Matrix multiply-accumulate of integers (s8, u8, s4, u4) and single bits."""

from __future__ import annotations

from collections.abc import Sequence

from fasim.numerics.fragments import ELEMENT_BITS, Source, sources
from fasim.numerics.lanes import Lanes, cast, const, permute, popc, where


class Moved:
    """Values of a fragment's elements in other lanes, each made once."""

    def __init__(self, elements: Sequence[Lanes]) -> None:
        self.elements = elements
        self._made: dict[Source, Lanes] = {}

    def __getitem__(self, source: Source) -> Lanes:
        if source not in self._made:
            self._made[source] = permute(self.elements[source[0]], source[1])
        return self._made[source]


def unpack(registers: Sequence[Lanes], type_: str) -> list[Lanes]:
    """The integers of packed registers as s32."""
    bits = ELEMENT_BITS[type_]
    result = []
    for register in registers:
        for at in range(0, 32, bits):
            top = register << (32 - bits - at)
            result.append(cast(top, "s32") >> (32 - bits) if type_[0] == "s" else cast(top >> (32 - bits), "s32"))
    return result


def saturating_add(a: Lanes, b: Lanes) -> Lanes:
    """a + b of s32, clamped."""
    wrapped = a + b
    return where((a ^ wrapped) & (b ^ wrapped) < 0, (a >> 31) ^ 0x7FFFFFFF, wrapped)


def integer_multiply(
    shape: str, types: tuple[str, str], a: Sequence[Lanes], b: Sequence[Lanes], c: Sequence[Lanes], satfinite: bool
) -> list[Lanes]:
    """A*B + C with s32 accumulators that wrap, or with `satfinite` clamp the exact result; types: of A and of B."""
    left, right = Moved(unpack(a, types[0])), Moved(unpack(b, types[1]))
    sums = [const(0, like=x) for x in c]
    for products in zip(*sources(shape, types[0])):
        for number, (of_a, of_b) in enumerate(products):
            sums[number] = sums[number] + left[of_a] * right[of_b]
    return [saturating_add(x, s) if satfinite else x + s for x, s in zip(c, sums)]


def bit_multiply(shape: str, operation: str, a: Sequence[Lanes], b: Sequence[Lanes], c: Sequence[Lanes]) -> list[Lanes]:
    """C plus the number of bits set in A op B along k; operation: 'xor' or 'and'."""
    left, right, d = Moved(a), Moved(b), list(c)
    for number, products in enumerate(sources(shape, "b1")):
        for (of_a, a_lanes), (of_b, b_lanes) in products[::32]:  # 32 bits of k share a register
            x, y = left[of_a // 32, a_lanes], right[of_b // 32, b_lanes]
            d[number] = d[number] + cast(popc(x ^ y if operation == "xor" else x & y), "s32")
    return d
