"""Shadow handlers: origins, what passes between lanes, partial masks, and how machine and program call them."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from fasim.isa.program import HandlerUse
from fasim.isa.rows import ROWS
from fasim.numerics import native
from fasim.sm.machines import machine
from fasim.warp.handlers import FULL_MASK, HandlerKey
from fasim.warp.jit import compile_ir, engine
from fasim.warp.shadow import RegisterOperand, dest_operands, source_operands
from fasim.warp.shadow_rules import ABSENT_LANE
from tests.harness import BACKENDS, aligned
from tests.warp.shadow_files import Files

ALL = 0xFFFFFFFF
IDS = np.arange(32)
ODD = IDS % 2
both = pytest.mark.parametrize("backend", BACKENDS)


def lanes(mask: int) -> np.ndarray:
    return mask >> IDS & 1


# --- origins and masks ----------------------------------------------------------------------------------------------------------


@both
def test_the_origin_is_that_of_the_first_undefined_source(backend):
    files = Files("fma.rn.f32", (0, 0, 0), (lanes(0b100), lanes(0b110), lanes(0b1111)), (100 + IDS, 200 + IDS, 300 + IDS))
    assert files.run(backend)[0].tolist() == [ALL] * 4 + [0] * 28
    assert files.origin().tolist() == [300, 201, 102, 303] + [0] * 28


@both
def test_lanes_that_do_not_execute_keep_shadow_and_origin(backend):
    files = Files("add.u32", (0, 0), (lanes(0xFF), 0), (7, 8))
    files.put(files.shadow, 0, 0x55)
    files.put_origin(0, 99)
    assert files.run(backend, mask=0xFF0)[0].tolist() == [0x55] * 4 + [1] * 4 + [0] * 4 + [0x55] * 20
    assert files.origin().tolist() == [99] * 4 + [7] * 4 + [0] * 4 + [99] * 20


@both
def test_a_destination_may_be_a_source(backend):
    files = Files("shl.b32", (1, 4), (0xF, 0), (5, 6))
    files.offsets[0] = files.offsets[1]
    for expected in (0xF0, 0xF00):
        assert files.run(backend)[0].tolist() == [expected] * 32
        assert files.origin().tolist() == [5] * 32


@both
def test_registers_of_64_bits_have_an_origin_a_lane(backend):
    files = Files("cvt.u64.u32", (0,), (ODD,), (100 + IDS,))
    assert files.run(backend)[0].tolist() == ODD.tolist()
    assert files.origin().tolist() == ((100 + IDS) * ODD).tolist()
    back = Files("mov.b64:unpack2", (0,), (ODD.astype(np.uint64) << 63,), (100 + IDS,))
    low, high = back.run(backend)
    assert not low.any()
    assert high.tolist() == (ODD << 31).tolist()
    assert not back.origin(0).any()
    assert back.origin(1).tolist() == ((100 + IDS) * ODD).tolist()


@both
def test_a_selection_has_the_origin_of_the_side_that_was_taken(backend):
    files = Files("selp.u32", (1, 2, ODD), (1, 1, lanes(0xC)), (10, 20, 30))
    assert files.run(backend)[0].tolist() == [1, 1, 3, 3] + [1] * 28
    assert files.origin().tolist() == [20, 10, 30, 30] + [20, 10] * 14
    files.negate("c")
    files.run(backend)
    assert files.origin().tolist() == [10, 20, 30, 30] + [10, 20] * 14


@both
def test_the_origin_of_a_predicate_is_that_of_its_lowest_undefined_lane(backend):
    files = Files("setp.eq.u32", (0, 0), (lanes(0xF0), 0), (100 + IDS, 0))
    files.put_origin(0, 99)
    files.put(files.shadow, 0, lanes(0x1))

    def run(mask: int, shadow: int) -> tuple[np.ndarray, list[int]]:
        files.put(files.shadow, 2, lanes(shadow))
        return files.run(backend, mask)[0], files.origin().tolist()

    for mask, shadow, expected, origin in (
        (0xFFE0, 0xF0, 0xE1, 105),  # lane 0 stays undefined as it was, lane 4 does not execute
        (0x0020, 0, 0xC1, 105),  # others are still undefined
        (0xFFFE, 0, 0x01, 105),
        (0x0001, 0, 0x00, 0),
    ):
        found, origins = run(mask, shadow)
        assert found.tolist() == lanes(expected).tolist()
        assert origins == [origin]


@both
def test_a_predicate_hands_its_origin_to_what_it_decides(backend):
    files = Files("selp.u32", (1, 2, 0), (0, 0, ODD), (10, 20, 30))
    assert files.run(backend)[0].tolist() == (3 * ODD).tolist()
    assert files.origin().tolist() == (30 * ODD).tolist()


@both
def test_a_negated_predicate_decides_by_its_opposite(backend):
    files = Files("and.pred", (0, 1), (0, 1), (1, 2))
    assert not files.run(backend)[0].any()
    files.negate("a")
    assert files.run(backend)[0].all()
    assert files.origin().tolist() == [2]


# --- between lanes ---------------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("immediate", [False, True])
def test_shfl_moves_shadows_and_origins(backend, immediate):
    data, member = (IDS, lanes(0x2) * 0xFF00, 100 + IDS), (ALL, 0, 9)
    operands = (data, member) if immediate else (data, (1, 0, 7), (31, 0, 8), member)
    name, constants = "shfl.sync.bfly.b32" + (":imm" if immediate else ""), (1, 31) if immediate else ()
    files = Files(name, *zip(*operands), immediates=constants)
    shadow, inside = files.run(backend)
    assert shadow.tolist() == [0xFF00] + [0] * 31
    assert not inside.any()
    assert files.origin().tolist() == [101] + [0] * 31


@both
@pytest.mark.parametrize("immediate", [False, True])
@pytest.mark.parametrize("member", [ALL, 0xFFFFFFFD])
def test_shfl_from_a_lane_that_does_not_take_part_is_undefined(backend, immediate, member):
    operands = ((IDS, 0), (member, 0)) if immediate else ((IDS, 0), (1, 0), (31, 0), (member, 0))
    name, constants = "shfl.sync.down.b32" + (":imm" if immediate else ""), (1, 31) if immediate else ()
    files = Files(name, *zip(*operands), immediates=constants)
    shadow, inside = files.run(backend, mask=0xFFFFFFFD)
    assert shadow.tolist() == [ALL] + [0] * 31
    assert not inside.any()
    assert files.origin().tolist()[:1] + files.origin().tolist()[2:] == [ABSENT_LANE] + [0] * 30


@both
def test_shfl_from_an_undefined_lane_number_is_undefined(backend):
    files = Files("shfl.sync.idx.b32", (IDS, 3, 31, ALL), (0, lanes(0x4), 0, 0), (1, 200 + IDS, 3, 4))
    shadow, inside = files.run(backend)
    assert shadow.tolist() == (ALL * lanes(0x4)).tolist()
    assert inside.tolist() == lanes(0x4).tolist()
    assert files.origin(0)[2] == 202
    assert files.origin(1).tolist() == [202]


GROUPS = [0x0000FFFF] * 16 + [0xFFFF0000] * 16
LOW = [1] * 16 + [0] * 16
#: name, values, shadow of the first source, shadow of the (first) result by lane, for two groups of 16 lanes
BETWEEN = [
    ("vote.sync.any.pred", 0, 0x10, LOW),
    ("vote.sync.any.pred", lanes(0x1), 0x10, [0] * 32),
    ("vote.sync.any.pred", lanes(0x10), 0x10, LOW),
    ("vote.sync.all.pred", lanes(0xFFFE), 0x10, [0] * 32),
    ("vote.sync.all.pred", lanes(0xFFEF), 0x10, LOW),
    ("vote.sync.all.pred", 1, 0x10, LOW),
    ("vote.sync.uni.pred", lanes(0x2), 0x10, [0] * 32),
    ("vote.sync.uni.pred", 0, 0x10, LOW),
    ("vote.sync.ballot.b32", 0, 0x80010, [0x10] * 16 + [0x80000] * 16),
    ("redux.sync.add.u32", 1, 0x10, [ALL * x for x in LOW]),
    ("match.any.sync.b32", 1, 0x10, [ALL * x for x in LOW]),
    ("match.all.sync.b64", 1, 0x10, [ALL * x for x in LOW]),
]


@both
@pytest.mark.parametrize("name,values,undefined,expected", BETWEEN)
def test_undefined_values_spread_over_their_group(backend, name, values, undefined, expected):
    files = Files(name, (values, GROUPS), (lanes(undefined), 0), (50, 60))
    assert files.run(backend)[0].tolist() == expected
    origin = files.origin().tolist()
    assert origin == ([50] if any(expected) else [0]) if len(origin) == 1 else origin == [50 * (x != 0) for x in expected]


@both
def test_lanes_outside_a_group_do_not_count(backend):
    files = Files("redux.sync.or.b32", (0, 0xFF), (lanes(0x100), 0))
    assert not files.run(backend, mask=0xFF)[0].any()
    files = Files("redux.sync.or.b32:imm", (0,), (lanes(0x102),), (100 + IDS,), immediates=(0x1FF,))
    assert files.run(backend, mask=0x1FF)[0].tolist() == (ALL * lanes(0x1FF)).tolist()
    assert files.origin().tolist()[:9] == [101] * 9


@both
def test_an_undefined_member_mask_makes_the_result_undefined(backend):
    for name in ("vote.sync.ballot.b32", "redux.sync.add.u32", "match.any.sync.b32"):
        files = Files(name, (0, ALL), (0, lanes(0x8)), (50, 200 + IDS))
        assert files.run(backend)[0].tolist() == (ALL * lanes(0x8)).tolist(), name
        assert files.origin()[3] == 203


@both
def test_matrix_products_are_defined_since_their_sources_are_reported(backend):
    name = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    files = Files(name, [0] * 10, [1] * 10, immediates=(90,))
    for i in range(4):
        files.put(files.shadow, i, ALL)
    assert not any(x.any() for x in files.run(backend))
    assert not files.origin().any()


# --- what machine and program need -----------------------------------------------------------------------------------------------


def test_operands_are_listed_with_their_numbers_and_banks():
    row = ROWS["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"]
    assert [(o.number, o.name) for o in source_operands(row)] == list(enumerate("aaaabbcccc", 4))
    assert source_operands(ROWS["shfl.sync.idx.b32"])[-1] == RegisterOperand(5, "mask", 32)
    assert source_operands(ROWS["lop3.or.b32"])[-1] == RegisterOperand(5, "q", 1)
    assert dest_operands(ROWS["add.cc.u64"]) == [RegisterOperand(0, "d", 64), RegisterOperand(1, "cc", 1)]


def test_keys_of_shadow_handlers_differ():
    assert HandlerKey("add.u32").symbol != HandlerKey("add.u32", shadow=True).symbol
    assert HandlerKey("add.u32") != HandlerKey("add.u32", shadow=True)


def test_the_reference_machine_calls_shadow_handlers_by_address():
    use = HandlerUse("shfl.sync.bfly.b32:imm", (1, 31))
    address = machine("reference").shadow_addresses([use])[use]
    assert machine("reference").shadow_addresses([use, use])[use] == address
    files = Files(use.name, (IDS, ALL), (lanes(1), 0), immediates=use.immediates)
    pointers = (x.ctypes.data for x in (files.registers, files.shadow, files.origins, files.offsets))
    native.call_shadow(address, *pointers, FULL_MASK)
    assert files.get(files.shadow, 0).tolist() == lanes(2).tolist()
    assert native.lanes_nonzero_u32(files.shadow.ctypes.data + int(files.offsets[0]), FULL_MASK) == 2


def call_and_look(arguments, row64):
    """A machine function: calls a shadow handler and says which lanes of a 32-bit and of a 64-bit row are not 0."""
    shadow, mask = native.peek_i64(arguments + 16), native.peek_i64(arguments + 40)
    native.call_shadow(
        native.peek_i64(arguments),
        native.peek_i64(arguments + 8),
        shadow,
        native.peek_i64(arguments + 24),
        native.peek_i64(arguments + 32),
        mask,
    )
    return native.lanes_nonzero_u32(shadow + 64, mask) << 32 | native.lanes_nonzero_i64(row64, mask)


def test_compiled_machine_code_calls_shadow_handlers():
    from fasim.numerics.native_numba import machine_ir

    text, name = machine_ir(call_and_look, "int64(int64, int64)")
    address = engine().add(compile_ir(text, keep=name), name)
    compiled = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address)
    use = HandlerUse("cvt.u32.u64")
    handler = machine("jit").shadow_addresses([use])[use]
    files, wide = Files(use.name, (0,), (lanes(0x40000003),)), aligned(256)
    wide.view(np.uint64)[[3, 9, 31]] = 1 << 63
    files.put_origin(1, 77)
    pointers = [x.ctypes.data for x in (files.registers, files.shadow, files.origins, files.offsets)]
    arguments = np.array([handler, *pointers, 0xF000020F], np.int64)
    result, exception = ctypes.c_int64(), ctypes.c_void_p()
    compiled(ctypes.addressof(result), ctypes.addressof(exception), arguments.ctypes.data, wide.ctypes.data)
    assert result.value & ALL == 0x80000208
    assert result.value >> 32 == 0x40000003
    assert files.origin()[:4].tolist() == [77, 77, 0, 0]
