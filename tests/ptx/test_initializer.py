"""Initialisers to bytes; the bytes are those in cubins that ptxas 13.0 wrote for the same lines."""

from __future__ import annotations

import pytest

from fasim.errors import PtxError
from fasim.ptx.initializer import Relocation, initial_bytes
from fasim.ptx.parser import parse
from fasim.ptx.tree import AddressOf

from .samples import DATA, module


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".global .u32 x = -1;", "ffffffff"),
        (".global .u32 x;", "00000000"),
        (".global .u8 x[3] = {300, -129, 255};", "2c7fff"),
        (".global .s64 x[] = {-1, 2};", "ffffffffffffffff0200000000000000"),
        (".const .align 16 .b8 x[5] = {1, 2, 3};", "0102030000"),
        (".global .u32 x[2] = {};", "0000000000000000"),
        (".global .u64 x = (1 + 2) << 8;", "0003000000000000"),
        (".global .f32 x = 1.1;", "cdcc8c3f"),
        (".global .f32 x = 1e300;", "0000807f"),
        (".global .f32 x = 1e-42;", "ca020000"),
        (".global .f32 x = 0d3ff19999a0000000;", "cdcc8c3f"),
        (".global .f32 x = 0f7fa00001;", "0100a07f"),
        (".global .f32 x = 0d7ff4000000000001;", "0000e07f"),
        (".global .f64 x = -1.25e3;", "00000000008893c0"),
        (".global .f64 x = 0f3f8ccccd;", "cdcc8c3f00000000"),
        (".global .b32 x = 0f3f800000;", "0000803f"),
        (".global .b32 x = 1.5;", "0000c03f"),
        (".global .b64 x = 1.5;", "000000000000f83f"),
        (".global .b64 x = 0f3f800000;", "0000803f00000000"),
        (".global .v4 .f32 x = {1.0, 2.0, 3.0, 4.0};", "0000803f000000400000404000008040"),
        (".global .v2 .u8 x[3] = {{1, 2}};", "010200000000"),
        (".global .u8 x[2][2] = {{1, 2}, {3, 4}};", "01020304"),
        # A row that is too short is not filled up.
        (".global .u8 x[2][3] = {{1, 2}, {3}};", "010203000000"),
        (".global .u8 x[3][3] = {{1}, {2}, {3, 4}};", "010203040000000000"),
        (".global .u8 x[][2] = {{1}, {2}};", "01020000"),
        (".global .u8 x[2][2] = {{}, {2}};", "02000000"),
        (".global .v2 .u8 x[2][3] = {{{1, 2}}, {{3, 4}}};", "010203040000000000000000"),
    ],
)
def test_bytes(text: str, expected: str) -> None:
    data, relocations = initial_bytes(module(text).variables["x"])
    assert data.hex() == expected
    assert relocations == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = g;", Relocation(0, 8, AddressOf("g", 0, False, None))),
        ("x = g+8;", Relocation(0, 8, AddressOf("g", 8, False, None))),
        ("x = g+-4;", Relocation(0, 8, AddressOf("g", -4, False, None))),
        ("x = generic(g);", Relocation(0, 8, AddressOf("g", 0, True, None))),
        ("x = generic(g)+16;", Relocation(0, 8, AddressOf("g", 16, True, None))),
        ("x = f;", Relocation(0, 8, AddressOf("f", 0, False, None))),
        ("x[2] = {5, f};", Relocation(8, 8, AddressOf("f", 0, False, None))),
    ],
)
def test_addresses(text: str, expected: Relocation) -> None:
    variable = module(f".global .u32 g[8]; .func f(); .global .u64 {text}").variables["x"]
    data, relocations = initial_bytes(variable)
    assert relocations == [expected]
    assert len(data) == variable.size_bytes


def test_masked_addresses_give_one_byte_each() -> None:
    text = ".global .u32 g; .global .u8 x[8] = {0xff(g), 0xff00(generic(g)), 0xff0000(g+4), 7};"
    data, relocations = initial_bytes(module(text).variables["x"])
    assert relocations == [
        Relocation(0, 1, AddressOf("g", 0, False, 0xFF)),
        Relocation(1, 1, AddressOf("g", 0, True, 0xFF00)),
        Relocation(2, 1, AddressOf("g", 4, False, 0xFF0000)),
    ]
    assert data.hex() == "0000000700000000"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".global .u32 x[2] = {1, 2, 3};", "more than the 2 elements"),
        (".global .u32 x[2][2] = {1, 2};", "found '1', expected '{'"),
        (".global .u32 x = {1};", "found '{', expected an initial value of type .u32"),
        (".global .u32 x[2] = 1;", "found '1', expected '{'"),
        (".global .v4 .f32 x = {1.0, 2.0, 3.0};", "found 3 elements of a vector, expected 4"),
        (".global .f32 x = 1;", "an integer constant cannot initialise type .f32"),
        (".global .u32 x = 1.5;", "a floating-point constant cannot initialise type .u32"),
        (".global .f16 x = 1.5;", "type .f16 cannot have an initialiser"),
        (".shared .u32 x = 1;", "a variable in .shared cannot have an initialiser"),
        (".global .u64 x = y;", "'y' is not declared before"),
        (".global .u64 x = x;", "'x' is not declared before"),
        (".global .u32 g; .global .u16 x = g;", "an address does not fit type .u16"),
        (".global .u32 g; .global .u8 x[1] = {0xff0(g)};", "the mask 0xff0 is not valid"),
        (".global .u32 g; .global .u32 x = 0xff(g);", "the mask 0xff is not valid"),
        (".global .u32 g; .global .u64 x = generic(g+8);", "found '+', expected ')'"),
        ('.global .b8 x[4] = "abc";', "expected '{'"),
        (".global .u32 x[2] = {1, 2;", "found ';', expected ',' or '}'"),
        (".global .u32 x[2] = {1,", "found the end of the file"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(PtxError) as caught:
        module(text)
    assert message in str(caught.value)


def test_compiled_tables_and_pointers() -> None:
    variables = parse((DATA / "features.ptx").read_text()).variables
    table, _ = initial_bytes(variables["table"])
    assert table.hex() == "0000803f00002040000040c0000000006042a20d" + "00" * 12
    _, pointers = initial_bytes(variables["pointers"])
    assert pointers == [Relocation(0, 8, AddressOf("grid", 24, True, None)), Relocation(16, 8, AddressOf("counter", 0, True, None))]
    _, functions = initial_bytes(variables["functions"])
    assert [item.address.symbol for item in functions] == ["_Z5plus1i", "_Z5twicei"]
    assert variables["dynamic"].dims == (None,) and variables["dynamic"].size_bytes == 0 and variables["dynamic"].align_bytes == 16
