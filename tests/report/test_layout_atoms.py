"""Layouts against the atoms of the package tensor-layouts, which describes CUTLASS's."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tensor_layouts import atoms_nv
from tensor_layouts.atoms import CopyAtom, MMAAtom

from fasim.errors import UsageError
from fasim.report.layout_catalog import catalog, find
from tests.report.fragments import elements_of

#: what fasim does not model: scalar dot products, fp8 and complex mma, warpgroups, tensor memory, copies that are no matrix loads
OTHERS = re.compile(r"SM61_|SM89_|SM90_16x8x\d+_C64|SM90_64x|SM100_|SM120_|SM50_Shuffle|SM80_CP_ASYNC")
#: operands of atoms that leave elements out: B of this one steps by 4 along k, where the PTX manual has 8 elements of each lane in a row
FAULTY = {("SM80_16x8x32_S32S4S4S32_TN", "B")}
ATOMS = {atom.name: atom for atom in vars(atoms_nv).values() if isinstance(atom, (MMAAtom, CopyAtom))}


def our_name(atom):
    """The layout of an atom, None if there is none."""
    match = re.fullmatch(r"(ld|st)matrix\.sync\.aligned\.(x\d)(\.trans)?\.m8n8\.shared\.b16", atom.ptx)
    try:
        return find(f"{match[1]}matrix.{match[2]}{match[3] or ''}" if match else atom.ptx)[0].name
    except UsageError:
        return None


MODELLED = {name: our_name(atom) for name, atom in ATOMS.items() if our_name(atom)}
MMA = [name for name in MODELLED if isinstance(ATOMS[name], MMAAtom)]
COPY = [name for name in MODELLED if isinstance(ATOMS[name], CopyAtom)]


def test_which_atoms_are_modelled():
    assert [name for name in ATOMS if name not in MODELLED and not OTHERS.match(name)] == []
    assert [name for name in MODELLED if OTHERS.match(name)] == []
    assert (len(MMA), len(COPY)) == (31, 12)
    # every ldmatrix and stmatrix has an atom
    assert {MODELLED[name] for name in COPY} == {name for name in catalog() if name.startswith(("ld", "st"))}


@pytest.mark.parametrize("name", MMA)
def test_mma(name):
    atom = ATOMS[name]
    m, n, k = atom.shape_mnk
    for operand, layout, rows in (("A", atom.a_layout, m), ("B", atom.b_layout, n), ("C", atom.c_layout, m), ("D", atom.c_layout, m)):
        (held,) = find(MODELLED[name])[0].fragments(operand)
        assert (held.rows, held.columns) == {"A": (m, k), "B": (k, n)}.get(operand, (m, n))
        ours = elements_of(held)
        threads = 32 // held.matrices
        told = {layout(thread, value) for thread in range(threads) for value in range(ours.shape[1])}
        assert (len(told) < held.rows * held.columns) == ((name, operand) in FAULTY)
        if (name, operand) in FAULTY:
            # the smaller shape multiplies the same B, and its atom is whole
            (smaller,) = find(MODELLED["SM80_8x8x32_S32S4S4S32_TN"])[0].fragments(operand)
            assert smaller.cells == held.cells
            continue
        for thread in range(threads):
            offsets = [layout(thread, value) for value in range(ours.shape[1])]
            # atoms see B as n x k
            places = [(offset // rows, offset % rows) if operand == "B" else (offset % rows, offset // rows) for offset in offsets]
            for matrix in range(held.matrices):
                lane = (atom.thr_id(thread) if atom.thr_id is not None else thread) + 4 * matrix
                assert ours[lane].tolist() == [[matrix, *place] for place in places], (operand, lane)


@pytest.mark.parametrize("name", COPY)
def test_ldmatrix_and_stmatrix(name):
    atom = ATOMS[name]
    (held,) = find(MODELLED[name])[0].fragments()
    in_registers, in_rows = atom.dst_layout_bits, atom.src_layout_bits
    if MODELLED[name].startswith("st"):
        in_registers, in_rows = in_rows, in_registers
    assert [in_rows(lane, 0) for lane in range(8 * held.matrices)] == [128 * row for row in range(8 * held.matrices)]
    for cell in held.cells:
        number = 8 * (8 * cell.matrix + cell.row) + cell.column
        bits = [in_registers(cell.lane, 32 * cell.register + cell.low_bit + bit) for bit in range(16)]
        assert bits == (16 * number + np.arange(16)).tolist()
