"""Layouts against execution: what instructions put into registers, and take from them, is what the maps say."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import fasim
from fasim.isa.rows import ROWS
from fasim.report.layout_catalog import catalog, find
from fasim.report.layout_hand_over import HAND_OVER_MMA, hand_over, side_by_side
from tests.harness import run_row
from tests.matrices import decode, encode

MATRIX = [name for name in catalog() if name.startswith(("ld", "st"))]
PRODUCTS = [name for name in catalog() if name not in MATRIX]
ARCH = 90


@functools.cache
def transfers():
    """A kernel for each ldmatrix and stmatrix; lane 8i + r gives the address of the 16 bytes at place[8i + r]."""
    source = []
    for name in MATRIX:
        opcode, count = name.split(".")[0], int(name.split(".")[1][1:])
        registers = ", ".join(f"%{i}" for i in range(count))
        mnemonic = find(name)[0].mnemonics[1]
        assert ".shared." in mnemonic
        loads = opcode == "ldmatrix"
        values = ", ".join(f'"{"=r" if loads else "r"}"(r[{i}])' for i in range(count))
        address = f"%{count}"
        body = f"{{{registers}}}, [{address}];" if loads else f"[{address}], {{{registers}}};"
        operands = f': {values} : "r"(at) : "memory"' if loads else f': : {values}, "r"(at) : "memory"'
        source.append(f"""
extern "C" __global__ void {name.replace(".", "_")}(const int* place, const unsigned* in, unsigned* out) {{
  __shared__ __align__(16) unsigned tile[128];
  unsigned r[{count}], lane = threadIdx.x;
  for (int i = 0; i < 4; i++) tile[i * 32 + lane] = {"in[i * 32 + lane]" if loads else "0xffffffffu"};
  for (int i = 0; i < {count}; i++) r[i] = {"0" if loads else "in[i * 32 + lane]"};
  __syncwarp();
  unsigned at = (unsigned)__cvta_generic_to_shared(tile) + 16 * place[lane];
  asm volatile("{mnemonic} {body}" {operands});
  __syncwarp();
  for (int i = 0; i < 4; i++) out[i * 32 + lane] = {f"i < {count} ? r[i < {count} ? i : 0] : 0" if loads else "tile[i * 32 + lane]"};
}}""")
    return fasim.compile("\n".join(source), arch="sm_90")


@pytest.mark.parametrize("backend", ["jit", "reference"])
@pytest.mark.parametrize("name", MATRIX)
def test_matrices_of_element_numbers(name, backend):
    (held,) = find(name)[0].fragments()
    place = np.random.default_rng(5).permutation(32).astype(np.int32)
    memory, registers = np.zeros((32, 8), np.uint16), np.zeros((4, 32, 2), np.uint16)
    loads = name.startswith("ld")
    (memory if loads else registers)[...] = 1000 + np.arange(256).reshape((memory if loads else registers).shape)
    out = np.zeros(128, np.uint32)
    given = memory if loads else registers
    transfers().kernel(name.replace(".", "_")).launch(1, 32, [place, given.reshape(-1).view(np.uint32), out], backend=backend)
    if loads:
        registers = out.view(np.uint16).reshape(4, 32, 2)
    else:
        memory = out.view(np.uint16).reshape(32, 8)
        untouched = np.setdiff1d(np.arange(32), place[: 8 * held.matrices])
        assert (memory[untouched] == 0xFFFF).all()
    for cell in held.cells:
        found = registers[cell.register, cell.lane, cell.low_bit // 16]
        assert found == memory[place[8 * cell.matrix + cell.row], cell.column] != 0, cell


def scatter(held, matrices):
    """The registers (arrays of 32) of a fragment whose matrices, bit patterns [matrix, row, column], are given."""
    registers = [np.zeros(32, np.uint64) for _ in range(held.registers)]
    mask = (1 << held.element_bits) - 1
    for cell in held.cells:
        bits = int(matrices[cell.matrix, cell.row, cell.column]) & mask
        registers[cell.register][cell.lane] |= np.uint64(bits << cell.low_bit)
    return registers


def gather(held, registers):
    """The matrices that a fragment's registers hold."""
    matrices = np.zeros((held.matrices, held.rows, held.columns), np.uint64)
    for cell in held.cells:
        bits = int(registers[cell.register][cell.lane]) >> cell.low_bit & ((1 << held.element_bits) - 1)
        matrices[cell.matrix, cell.row, cell.column] = bits
    return matrices


def operands(name):
    entry = find(name)[0]
    return [entry.fragments(operand)[0] for operand in "ABCD"]


def multiply(mnemonic, held, a, b, c, backend="reference"):
    """D of a row of the instruction table, from matrices of bit patterns."""
    row = ROWS[mnemonic]
    of_a, of_b, of_c, of_d = held
    sources = [*scatter(of_a, a), *scatter(of_b, b), *scatter(of_c, c)]
    immediates = (ARCH,) if row.sources[-1].name == "arch" else ()
    return gather(of_d, run_row(mnemonic, sources, immediates=immediates, backend=backend))


def numbers(rng, held):
    """Small numbers that every type holds."""
    low, high = {"b1": (0, 2), "u4": (0, 8), "u8": (0, 200), "s4": (-8, 8), "s8": (-100, 100)}.get(held.type, (-4, 5))
    return rng.integers(low, high, (held.matrices, held.rows, held.columns))


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_is_where_the_maps_say(name):
    rng, held = np.random.default_rng(6), operands(name)
    a, b, c = (numbers(rng, each) for each in held[:3])
    mnemonic = next((each for each in find(name)[0].mnemonics if "and.popc" in each), find(name)[0].mnemonics[0])
    bits = [
        encode(values.astype(np.float64) if each.type[0] in "ftb" and each.type != "b1" else values, each.type)
        for values, each in zip((a, b, c), held)
    ]
    d = decode(multiply(mnemonic, held, *bits), held[3].type)
    assert (d == np.matmul(a, b) + c).all()


@pytest.mark.parametrize("name", ["mma.m16n8k16.f16", "mma.m16n8k16.f16.f16.f16.f16", "mma.m8n8k4.row.col.f16", "wmma.m16n16k16.bf16"])
def test_one_hot(name):
    # a single 1 of A in row r and column k copies row k of B, which holds numbers of its elements, to row r of D
    held = operands(name)
    mnemonic = find(name)[0].mnemonics[0]
    shape = [(each.matrices, each.rows, each.columns) for each in held]
    numbered = np.arange(1, 1 + shape[1][1] * shape[1][2], dtype=np.float64).reshape(shape[1][1:])
    b = encode(np.broadcast_to(numbered, shape[1]).copy(), held[1].type)
    for row in range(held[0].rows):
        for k in range(held[0].columns):
            one = np.zeros(shape[0])
            one[:, row, k] = 1
            d = decode(multiply(mnemonic, held, encode(one, held[0].type), b, np.zeros(shape[2], np.uint64), "jit"), held[3].type)
            wanted = np.zeros(shape[3])
            wanted[:, row] = numbered[k]
            assert (d == wanted).all(), (row, k)


def test_the_hand_over_multiplies():
    # S is computed, converted and packed register by register as the moves say; then P times one returns it
    held = operands(HAND_OVER_MMA)
    of_a, of_b, of_c, _ = held
    mnemonic = find(HAND_OVER_MMA)[0].mnemonics[0]
    rng = np.random.default_rng(7)
    zero = np.zeros((1, of_c.rows, of_c.columns), np.uint64)
    a = numbers(rng, of_a)
    results, expected = [], []
    for _ in range(2):
        b = numbers(rng, of_b)
        expected.append(np.matmul(a, b)[0])
        sources = [scatter(each, encode(values.astype(np.float64), "f16")) for each, values in ((of_a, a), (of_b, b))]
        results.append(run_row(mnemonic, [*sources[0], *sources[1], *scatter(of_c, zero)], immediates=(ARCH,)))
    packed = {}
    for move in hand_over(side_by_side(of_c, of_a), of_a):
        packed[move.register, move.low_bit] = results[move.block][move.from_register]
    p = [run_row("cvt.rn.f16x2.f32", [packed[i, 16], packed[i, 0]])[0] for i in range(of_a.registers)]
    wanted = np.concatenate(expected, axis=1)
    for half in range(2):
        columns = np.eye(16)[:, 8 * half : 8 * half + 8][None]
        sources = [*p, *scatter(of_b, encode(columns, "f16")), *scatter(of_c, zero)]
        d = decode(gather(of_c, run_row(mnemonic, sources, immediates=(ARCH,))), "f32")[0]
        assert (d == wanted[:, 8 * half : 8 * half + 8]).all()
