"""Instructions of machine code that lanes of a warp execute together: SHFL, VOTE, MATCH, REDUX, ELECT, MOVM, HMMA, IMMA, DMMA, BMMA.

They take part who executes: there is no member mask, since WARPSYNC has brought the lanes together before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fasim.isa.instructions import mma as _mma  # noqa: F401  fills ROWS
from fasim.isa.instructions import warp
from fasim.isa.sass.declare import sass
from fasim.isa.table import ROWS, Row
from fasim.numerics.lanes import Lanes, ballot, brev, clz, const, gather, lane_id, where

FULL = 0xFFFFFFFF


def _everybody(function: Callable[..., Any]) -> Callable[..., Any]:
    """A collective function of PTX whose member mask names all."""

    def semantics(*values: Any) -> Any:
        *operands, active = values
        return function(*operands, const(FULL, like=active, type_="u32"), active)

    return semantics


for _mode in ("UP", "DOWN", "BFLY", "IDX"):
    sass(f"SHFL.{_mode}", "d:b32, p:pred = a:b32, b:b32, c:b32, active:pred", raw=False)(_everybody(warp._shfl(_mode.lower())))
for _name, _function in (("ANY", warp.vote_any), ("ALL", warp.vote_all), ("EQ", warp.vote_uni)):

    def _vote(function: Callable[..., Lanes]) -> Callable[..., Any]:
        def semantics(a: Lanes, active: Lanes) -> tuple[Lanes, Lanes]:
            mask = const(FULL, like=active, type_="u32")
            return warp.vote_ballot(a, mask, active), function(a, mask, active)

        return semantics

    sass(f"VOTE.{_name}", "d:b32, p:pred = a:pred, active:pred")(_vote(_function))
for _size, _suffix in ((32, ""), (64, ".U64")):
    sass(f"MATCH.ANY{_suffix}", f"d:b32 = a:b{_size}, active:pred")(_everybody(warp.match_any))
    sass(f"MATCH.ALL{_suffix}", f"d:b32, p:pred = a:b{_size}, active:pred")(_everybody(warp.match_all))
for _ptx, _type, _name in (
    ("add", "u32", ".SUM"),
    ("add", "s32", ".SUM.S32"),
    ("min", "u32", ".MIN"),
    ("min", "s32", ".MIN.S32"),
    ("max", "u32", ".MAX"),
    ("max", "s32", ".MAX.S32"),
    ("and", "b32", ""),
    ("or", "b32", ".OR"),
    ("xor", "b32", ".XOR"),
):
    _row = ROWS[f"redux.sync.{_ptx}.{_type}"]
    assert _row.semantics is not None
    sass(f"REDUX{_name}", f"d:{_type} = a:{_type}, active:pred")(_everybody(_row.semantics))


def first_lane(a: Lanes, active: Lanes) -> Lanes:
    """The value of the first lane that executes, for all: a uniform register has one."""
    return gather(a, clz(brev(ballot(active))))


sass("R2UR", "d:b32 = a:b32, active:pred", cases=[(7, 7)])(first_lane)


@sass("R2UR:which", "d:b32, p:pred = a:b32, active:pred", cases=[(7, (7, 0))])
def first_and_others(a: Lanes, active: Lanes) -> tuple[Lanes, Lanes]:
    """The same, and whether other lanes have another value.

    Source: ptxas asks so whether the member masks of a warp's lanes differ, before it takes one path for all of them.
    """
    first = first_lane(a, active)
    return first, ballot(active & (a != first)) != 0


@sass("ACTIVE", "d:b32 = active:pred", cases=[((), FULL)])
def active_mask(active: Lanes) -> Lanes:
    """The lanes that execute, for BSSY and BRA.DIV."""
    return ballot(active)


@sass("DIVERGED", "p:pred = a:pred, mask:b32, active:pred", cases=[((1, FULL), 0), ((1, 1), 1), ((0, FULL), 1)])
def diverged(a: Lanes, mask: Lanes, active: Lanes) -> Lanes:
    """Whether the lanes that execute, and for which `a` holds, are others than those of the mask."""
    return ballot(active & a) != mask


@sass("ELECT", "d:b32, p:pred = active:pred")
def elect(active: Lanes) -> tuple[Lanes, Lanes]:
    leader = clz(brev(ballot(active)))
    return leader, leader == lane_id(leader)


# --- matrices ----------------------------------------------------------------------------------------------------------------------

#: the PTX that a matrix instruction is: it has the same layout
PTX_MATRIX: dict[str, str] = {
    f"{opcode}.16.{'MT' if trans else 'M'}88{count}": f"{ptx}.sync.aligned.m8n8.{size}{trans}.shared.b16"
    for opcode, ptx in (("LDSM", "ldmatrix"), ("STSM", "stmatrix"))
    for trans in ("", ".trans")
    for count, size in (("", "x1"), (".2", "x2"), (".4", "x4"))
}
#: what follows the shape in machine code -> types of PTX: D, A, B, C
_FLOATS = {
    ".F32": "f32.f16.f16.f32",
    ".F16": "f16.f16.f16.f16",
    ".F32.BF16": "f32.bf16.bf16.f32",
    ".F32.TF32": "f32.tf32.tf32.f32",
}


def _matrix(name: str, ptx: str) -> None:
    row: Row | None = ROWS.get(f"mma.sync.aligned.{ptx}")
    if row is not None:
        signature = ", ".join(f"{a.name}:{a.type_}" + (f"*{a.count}" if a.count else "") for a in row.sources)
        dests = ", ".join(f"{a.name}:{a.type_}*{a.count}" for a in row.dests)
        semantics = row.semantics
        assert semantics is not None

        def without_signs(*values: Any) -> Any:
            return semantics(*values[:-1])

        sass(name, f"{dests} = {signature}", raw=True, archs=row.attributes.get("archs"))(without_signs)
        PTX_MATRIX[name] = row.mnemonic


for _shape, _digits in (("m16n8k16", "16816"), ("m16n8k8", "1688"), ("m16n8k4", "1684")):
    for _ending, _types in _FLOATS.items():
        _matrix(f"HMMA.{_digits}{_ending}", f"{_shape}.row.col.{_types}")
for _shape, _digits in (
    *(("m16n8k32", "16832"), ("m16n8k16", "16816"), ("m8n8k16", "8816")),
    *(("m16n8k64", "16864"), ("m8n8k32", "8832")),
):
    for _a in ("S8", "U8", "S4", "U4"):
        for _b in ("S8", "U8", "S4", "U4"):
            for _sat in ("", ".SAT"):
                _matrix(
                    f"IMMA.{_digits}.{_a}.{_b}{_sat}",
                    f"{_shape}.row.col.{'satfinite.' if _sat else ''}s32.{_a.lower()}.{_b.lower()}.s32",
                )
for _shape, _digits in (("m8n8k4", "884"), ("m16n8k4", "1684"), ("m16n8k8", "1688"), ("m16n8k16", "16816")):
    for _form in (_digits, _shape.replace("m", "").replace("n", "x").replace("k", "x")):  # 884, as sm_90 writes it 8x8x4
        _matrix(f"DMMA.{_form}", f"{_shape}.row.col.f64.f64.f64.f64")
for _shape, _digits in (("m8n8k128", "88128"), ("m16n8k128", "168128"), ("m16n8k256", "168256")):
    for _operation in ("AND", "XOR"):
        _matrix(f"BMMA.{_digits}.{_operation}.POPC", f"{_shape}.row.col.s32.b1.b1.s32.{_operation.lower()}.popc")


@sass("MOVM.16.MT88", "d:b32 = a:b32, active:pred", cases=[(0x00070007, 0x00070007)])
def movm(a: Lanes, active: Lanes) -> Lanes:
    """An 8 x 8 matrix of 16-bit elements, two of a row in a lane, transposed."""
    lane = lane_id(a)
    # element (row, 2 k) and (row, 2 k + 1) come from column `row` of the rows 2 k and 2 k + 1
    row, k = lane >> 2, lane & 3
    source, upper = (k << 3) | (row >> 1), (row & 1) != 0
    low, high = (gather(a, source + offset) for offset in (0, 4))
    return where(upper, (low >> 16) | (high & 0xFFFF0000), (low & 0xFFFF) | (high << 16))
