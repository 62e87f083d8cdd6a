"""Loads, stores, atomics, matrix loads and asynchronous copies.

These touch memory, so their semantics is the machine's (fasim.warp.memory and its neighbours); the rows say what PTX may write. An atomic's
function is a row of its own kind: it computes the new value from the old one.

The modifiers that only steer caches and memory order are left out of the names: see fasim.isa.lookup.
"""

from __future__ import annotations

from collections.abc import Callable

from fasim.isa.table import op
from fasim.numerics.lanes import Lanes, where

DOC = "data-movement-and-conversion-instructions-"
MEMORY_TYPES = [f"{k}{n}" for n in (8, 16, 32, 64) for k in "bus"] + ["f32", "f64"]


def _register_type(type_: str) -> str:
    return type_


for _type in MEMORY_TYPES:
    op(f"ld.{_type}", f"d:{_type} = address:address", kind="load", doc=DOC + "ld")(_register_type)
    op(f"ldu.{_type}", f"d:{_type} = address:address", kind="load", doc=DOC + "ldu")(_register_type)
    op(f"st.{_type}", f"address:address, a:{_type}", kind="store", doc=DOC + "st")(_register_type)
    for _count in (2, 4, 8):
        if int(_type[1:]) * _count > 256 or (_count == 8 and _type[1:] != "32") or (_count == 4 and _type[1:] == "64"):
            continue
        _arch = 100 if int(_type[1:]) * _count > 128 else 0
        op(f"ld.v{_count}.{_type}", f"d:{_type}*{_count} = address:address", kind="load", doc=DOC + "ld", min_arch=_arch)(_register_type)
        op(f"st.v{_count}.{_type}", f"address:address, a:{_type}*{_count}", kind="store", doc=DOC + "st", min_arch=_arch)(_register_type)
for _type in ("b64", "u64", "s64", "f64"):
    op(f"ld.v4.{_type}", f"d:{_type}*4 = address:address", kind="load", doc=DOC + "ld", min_arch=100)(_register_type)
    op(f"st.v4.{_type}", f"address:address, a:{_type}*4", kind="store", doc=DOC + "st", min_arch=100)(_register_type)
op("ld.b128", "d:b64*2 = address:address", kind="load", doc=DOC + "ld", min_arch=70)(_register_type)
op("st.b128", "address:address, a:b64*2", kind="store", doc=DOC + "st", min_arch=70)(_register_type)

for _count in (1, 2, 4):
    for _trans in ("", ".trans"):
        for _space in ("", ".shared", ".shared::cta"):
            op(
                f"ldmatrix.sync.aligned.m8n8.x{_count}{_trans}{_space}.b16",
                f"d:b32*{_count} = address:address",
                kind="ldmatrix",
                doc="warp-level-matrix-instructions-ldmatrix",
                min_arch=75,
                transposed=bool(_trans),
            )(_register_type)
            op(
                f"stmatrix.sync.aligned.m8n8.x{_count}{_trans}{_space}.b16",
                f"address:address, a:b32*{_count}",
                kind="stmatrix",
                doc="warp-level-matrix-instructions-stmatrix",
                min_arch=90,
                transposed=bool(_trans),
            )(_register_type)

for _cache, _sizes in (("ca", (4, 8, 16)), ("cg", (16,))):
    op(
        [f"cp.async.{_cache}.shared{cta}.global" for cta in ("", "::cta")],
        "target:address, source:address, size:immediate, source_size:b32",
        kind="cp_async",
        doc=DOC + "cp-async",
        min_arch=80,
        sizes=_sizes,
    )(_register_type)
op("cp.async.commit_group", "", kind="cp_commit", doc=DOC + "cp-async-commit-group", min_arch=80)(_register_type)
op("cp.async.wait_group", "n:immediate", kind="cp_wait", doc=DOC + "cp-async-wait-group", min_arch=80)(_register_type)
op("cp.async.wait_all", "", kind="cp_wait", doc=DOC + "cp-async-wait-all", min_arch=80)(_register_type)

PREFETCHES = [
    f"{opcode}{space}.{level}"
    for opcode in ("prefetch",)
    for space in ("", ".global", ".local")
    for level in ("L1", "L2", "L2::evict_last", "L2::evict_normal")
]
op(
    [
        *PREFETCHES,
        "prefetchu.L1",
        "discard.L2",
        "discard.global.L2",
        "applypriority.L2::evict_normal",
        "applypriority.global.L2::evict_normal",
    ],
    "",
    kind="nop",
    doc=DOC + "prefetch-prefetchu",
)(_register_type)

# --- atomics: (old, b[, c]) to new ---------------------------------------------------------------------------------------------

ATOM_DOC = "parallel-synchronization-and-communication-instructions-atom"


def _minimum(old: Lanes, b: Lanes) -> Lanes:
    return where(b < old, b, old)


def _maximum(old: Lanes, b: Lanes) -> Lanes:
    return where(b > old, b, old)


def _exchange(old: Lanes, b: Lanes) -> Lanes:
    return where(old == old, b, b)


def _compare_and_swap(old: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return where(old == b, c, old)


def _increment(old: Lanes, b: Lanes) -> Lanes:
    return where(old >= b, 0, old + 1)


def _decrement(old: Lanes, b: Lanes) -> Lanes:
    return where((old == 0) | (old > b), b, old - 1)


def _add(old: Lanes, b: Lanes) -> Lanes:
    return old + b


def _and(old: Lanes, b: Lanes) -> Lanes:
    return old & b


def _or(old: Lanes, b: Lanes) -> Lanes:
    return old | b


def _xor(old: Lanes, b: Lanes) -> Lanes:
    return old ^ b


def atomic(function: Callable[..., Lanes], name: str, types: list[str], operands: int = 1, *, red: bool = True, min_arch: int = 0) -> None:
    """Declare atom.NAME.TYPE and, unless it makes no sense without the old value, red.NAME.TYPE."""
    for type_ in types:
        inputs = "".join(f", {'bc'[i]}:{type_}" for i in range(operands))
        for opcode in ("atom", "red") if red else ("atom",):
            op(f"{opcode}.{name}.{type_}", f"new:{type_} = old:{type_}{inputs}", kind="atom", doc=ATOM_DOC, min_arch=min_arch)(function)


atomic(_add, "add", ["u32", "s32", "u64"])
atomic(_minimum, "min", ["u32", "s32", "u64", "s64"])
atomic(_maximum, "max", ["u32", "s32", "u64", "s64"])
atomic(_and, "and", ["b32", "b64"])
atomic(_or, "or", ["b32", "b64"])
atomic(_xor, "xor", ["b32", "b64"])
atomic(_increment, "inc", ["u32"])
atomic(_decrement, "dec", ["u32"])
atomic(_exchange, "exch", ["b32", "b64"], red=False)
atomic(_compare_and_swap, "cas", ["b16", "b32", "b64"], 2, red=False)
