"""Whole modules: declarations, scopes, source locations, debug sections."""

from __future__ import annotations

import dataclasses

import pytest

from fasim.ptx import body as body_parser
from fasim.ptx.parser import parse
from fasim.ptx.tree import (
    BranchTargets,
    Call,
    CallPrototype,
    CallTargets,
    Directive,
    Instruction,
    Label,
    Pragma,
    RegDecl,
    Register,
    SourceLoc,
    Symbol,
    Variable,
)

from .samples import DATA, SAMPLES, kernel, module


def test_module_head() -> None:
    found = parse(
        '.version 7.8\n.target sm_90a, texmode_independent , debug\n.address_size 64\n.file 1 "a // b.cu", 12, 34\n.file 2 "c/*d*/"\n'
        '.file 3 "d\\303\\251/\\351/C:\\x\\\\y"\n'
        '.pragma "nounroll", "x";\n.func f(){ ret; }\n.alias g, f;\n@@DWARF .section ignored\n# 1 "line marker"\n',
        "head.ptx",
    )
    assert (found.path, found.version, found.address_size) == ("head.ptx", (7, 8), 64)
    assert found.target == ("sm_90a", "texmode_independent", "debug")
    assert found.files == {1: "a // b.cu", 2: "c/*d*/", 3: "d\N{LATIN SMALL LETTER E WITH ACUTE}/\udce9/C:\\x\\y"}
    assert [pragma.texts for pragma in found.pragmas] == [("nounroll", "x")]
    assert found.aliases == {"g": "f"}
    assert found.entries == {}
    assert found.lines[1] == ".target sm_90a, texmode_independent , debug"


def test_address_size_defaults_to_32_and_a_trailing_nul_is_dropped() -> None:
    assert parse(".version 1.4\n.target sm_20\n\0").address_size == 32


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".global .u32 x;", {"state_space": "global", "type": "u32", "dims": (), "size_bytes": 4, "align_bytes": 4, "linkage": ""}),
        (".visible .global .align 16 .b8 x[24];", {"linkage": "visible", "align": 16, "dims": (24,), "size_bytes": 24, "align_bytes": 16}),
        (".extern .shared .align 8 .b8 x[];", {"linkage": "extern", "state_space": "shared", "dims": (None,), "size_bytes": 0}),
        (".common .global .f64 x;", {"linkage": "common", "size_bytes": 8}),
        (".weak .const .v4 .f32 x[2][3];", {"linkage": "weak", "vector": 4, "dims": (2, 3), "size_bytes": 96, "align_bytes": 16}),
        (".global .align 8 .v2 .u32 x[1<<2];", {"align": 8, "vector": 2, "dims": (4,), "size_bytes": 32, "element_bytes": 8}),
        (".global .attribute(.managed) .align 4 .u32 x;", {"attributes": ("managed",), "align": 4}),
        (".global .u32 x[][2] = {{1,2},{3,4},{5,6}};", {"dims": (3, 2), "size_bytes": 24}),
        (".global .texref x;", {"type": "texref", "size_bytes": 8}),
        (".global .u8 y[3], x[5];", {"type": "u8", "size_bytes": 5}),
    ],
)
def test_variable(text: str, expected: dict[str, object]) -> None:
    variable = module(text).variables["x"]
    assert {name: getattr(variable, name) for name in expected} == expected


def test_kernel_parameters_and_directives() -> None:
    function = module(
        ".weak .entry k(.param .u64 .ptr .global .align 16 p, .param .u64 .ptr .align 1 q, .param .align 8 .b8 s[24], .param .u32 n)\n"
        '.maxntid 128, 2, 1\n.minnctapersm 2 .maxnreg 64 .noreturn .pragma "x"; .explicitcluster .reqnctapercluster 2, 1, 1\n{ ret; }'
    ).functions["k"]
    assert (function.kind, function.linkage) == ("entry", "weak")
    params = [param for param in function.params if isinstance(param, Variable)]
    assert [(p.name, p.type, p.size_bytes, p.pointer_space, p.pointer_align) for p in params] == [
        ("p", "u64", 8, "global", 16),
        ("q", "u64", 8, "", 1),
        ("s", "b8", 24, None, 0),
        ("n", "u32", 4, None, 0),
    ]
    assert function.directives == (
        Directive("maxntid", (128, 2, 1)),
        Directive("minnctapersm", (2,)),
        Directive("maxnreg", (64,)),
        Directive("noreturn"),
        Directive("pragma", (), "x"),
        Directive("explicitcluster"),
        Directive("reqnctapercluster", (2, 1, 1)),
    )
    assert function.directive("maxnreg") == Directive("maxnreg", (64,))
    assert function.directive("reqntid") is None


def test_function_forms() -> None:
    found = module(
        ".func (.reg .u32 r) f (.reg .u32 a, .reg .v2 .f32 b) { add.u32 r, a, 1; mov.f32 b.x, b.y; ret; }\n"
        ".extern .func (.param .b32 _r) g (.param .b64 _a);\n"
        ".func (.param .b32 o) h (.param .align 8 .b8 va[]);\n"
        ".visible .func (.param .b32 o) h (.param .align 8 .b8 va[]) { st.param.b32 [o], 1; ret; }\n"
        ".entry k .maxntid 32 { .reg .u32 q; .reg .v2 .f32 w; call (q), f, (q, w); ret; }\n"
    )
    f, g, h, k = (found.functions[name] for name in "fghk")
    assert f.returns == (RegDecl("r", "u32", text_name="r", line=4, column=18),)
    assert [param.name for param in f.params] == ["a", "b"]
    assert f.registers == {"r": "u32", "a": "u32", "b.x": "f32", "b.y": "f32"}
    assert g.body is None and g.linkage == "extern" and g.instructions == ()
    assert h.body is not None and h.linkage == "visible" and h.line == 7
    assert k.params == () and list(found.entries) == ["k"]


def test_extern_variable_can_be_defined_later() -> None:
    assert module(".extern .global .u32 x; .visible .global .u32 x = 5;").variables["x"].initializer is not None


def test_register_declarations() -> None:
    function = kernel(".reg .pred p, q; .reg .b32 x<3>, y; .reg .v4 .f32 u; .reg .b32 z1<2>; mov.b32 x2, z11;", declare=False)
    assert [(d.name, d.type, d.vector, d.count) for d in function.body or () if isinstance(d, RegDecl)] == [
        ("p", "pred", 1, None),
        ("q", "pred", 1, None),
        ("x", "b32", 1, 3),
        ("y", "b32", 1, None),
        ("u", "f32", 4, None),
        ("z1", "b32", 1, 2),
    ]
    assert function.registers == {"x2": "b32", "z11": "b32"}


def test_a_declared_register_hides_a_special_one() -> None:
    found = kernel("{ .reg .b16 %laneid; mov.b16 %laneid, 1; } mov.b32 a, %laneid;").instructions
    assert found[0].operands[0] == Register("%laneid~1", "b16")
    assert found[1].operands[1] == Register("%laneid", "u32", special=True)


def test_blocks_are_flattened_and_inner_names_become_unique() -> None:
    function = kernel(
        """
        .reg .u32 x; .reg .pred p;
        L: mov.u32 x, 1;
        { .reg .u64 x; .shared .u32 s; mov.u64 x, s; mov.u32 a, 2; @p bra L; bra M;
          { .reg .u16 x; mov.u16 x, 3; L: bra L; bra M; }
          M: mov.u64 x, 4; }
        { .reg .f32 x; M: mov.f32 x, 0f00000000; bra M; bra L; }
        mov.u32 x, 5;
        """
    )
    assert [i.operands[0].name for i in function.instructions if isinstance(i.operands[0], (Register, Symbol))] == [
        *("x", "x~1", "a", "L", "M~1"),
        *("x~2", "L~2", "M~1", "x~1"),
        *("x~3", "M~3", "L"),
        "x",
    ]
    assert [s.name for s in function.body or () if isinstance(s, Label)] == ["L", "L~2", "M~1", "M~3"]
    registers = {name: kind for name, kind in function.registers.items() if name[0] == "x"}
    assert registers == {"x": "u32", "x~1": "u64", "x~2": "u16", "x~3": "f32"}
    assert function.instructions[1].text == "mov.u64 x, s;"
    assert function.instructions[1].operands[1] == Symbol("s~1", 0, "variable")
    (shared,) = (s for s in function.body or () if isinstance(s, Variable) and s.text_name == "s")
    assert (shared.name, shared.state_space) == ("s~1", "shared")


def test_a_name_means_the_outer_one_until_the_block_declares_it() -> None:
    first, second = kernel("{ mov.b32 a, 1; .reg .b32 a; mov.b32 a, 2; }").instructions
    assert [i.operands[0] for i in (first, second)] == [Register("a", "b32"), Register("a~1", "b32")]


def test_a_label_hides_a_module_name_and_forward_names_get_their_kind() -> None:
    function = kernel("mov.b64 %rd1, g+4; mov.b64 %rd2, [g+4]; bra f; f: call h;", before=".global .u32 g; .func f(); .func h();")
    operands = [i.operands[-1] for i in function.instructions]
    assert operands[0] == Symbol("g", 4, "variable")
    assert operands[2] == Symbol("f", 0, "label")
    assert operands[3] == Call(Symbol("h", 0, "function"))


def test_branch_and_call_tables() -> None:
    function = kernel(
        "ts: .branchtargets A, B, A;\n@%p1 brx.idx.uni %r1, ts;\nA: B: ret;\n ct: .calltargets f, g;\n"
        "proto: .callprototype (.param .align 8 .b8 _[16]) _ (.param .b64 _, .reg .f32 _) .noreturn;\n"
        'bare : .callprototype _ ;\n.pragma "nounroll";',
        before=".func f(); .func g();",
    )
    kept = [s for s in function.body or () if isinstance(s, (BranchTargets, CallTargets, CallPrototype, Pragma))]
    branch, call, proto, bare, pragma = kept
    assert isinstance(branch, BranchTargets) and [t.name for t in branch.targets] == ["A", "B", "A"]
    assert {t.kind for t in branch.targets} == {"label"}
    assert isinstance(call, CallTargets) and [(t.name, t.kind) for t in call.targets] == [("f", "function"), ("g", "function")]
    assert isinstance(proto, CallPrototype) and isinstance(proto.returns[0], Variable)
    assert proto.returns[0].size_bytes == 16 and [p.type for p in proto.params] == ["b64", "f32"]
    assert proto.directives == (Directive("noreturn"),)
    assert isinstance(bare, CallPrototype) and (bare.returns, bare.params) == ((), ())
    assert isinstance(pragma, Pragma) and pragma.texts == ("nounroll",)


def test_line_column_and_text() -> None:
    function = parse(
        ".version 8.0\n.target sm_90\n.entry k() {\n\t.reg .b32 a; /* two\nlines */ mov.b32 a,\n  1; // end\n}\n", "x.ptx"
    ).functions["k"]
    (found,) = function.instructions
    assert (found.line, found.column, found.text) == (5, 10, "mov.b32 a, 1;")


def test_source_locations_keep_the_chain_of_call_sites() -> None:
    function = kernel(
        """
        mov.b32 a, 0;
        .loc 1 10 3
        mov.b32 a, 1;
        .loc 2 20 5, function_name $L__info_string0, inlined_at 1 10 3
        mov.b32 a, 2;
        .loc 3 30 7, function_name $L__info_string1+4, inlined_at 2 20 5
        mov.b32 a, 3;
        .loc 4 1 1, function_name F, inlined_at 9 9 9
        mov.b32 a, 4;
        .loc 1 11 0
        """
    )
    outer = SourceLoc(1, 10, 3)
    middle = SourceLoc(2, 20, 5, (outer,), "$L__info_string0")
    inner = SourceLoc(3, 30, 7, (middle, outer), "$L__info_string1", 4)
    lost = SourceLoc(4, 1, 1, (SourceLoc(9, 9, 9),), "F")
    assert [i.loc for i in function.instructions] == [None, outer, middle, inner, lost]


def test_function_names_come_from_debug_str() -> None:
    found = module(
        ".entry k() { .loc 1 1 1, function_name A, inlined_at 1 2 2\n ret; .loc 1 1 1, function_name A+3, inlined_at 1 2 2\n ret; "
        ".loc 1 9 9\n ret; }\n.section .debug_str\n{\nZ: .b8 90, 0\nA:\n.b8 97,98,0,0x63 // c\n.b8 0\nB: .b8 100,0\n}\n"
    )
    locs = [i.loc for i in found.functions["k"].instructions]
    assert [found.function_name(loc) for loc in locs if loc] == ["ab", "c", ""]


def test_compiled_sample() -> None:
    found = parse((DATA / "features.ptx").read_text(), "features.ptx")
    assert found.version == (9, 0) and found.files[1] == "features.cu"
    assert {name for name, function in found.functions.items() if function.body} == {
        *("_Z5plus1i", "_Z5twicei", "_Z9factoriali", "_Z6change4Packi", "features")
    }
    function = found.functions["features"]
    assert function.directives == (Directive("maxntid", (128, 1, 1)), Directive("minnctapersm", (2,)))
    calls = [i.operands[0] for i in function.instructions if i.opcode == "call"]
    assert [call.target.name for call in calls if isinstance(call, Call)] == ["_Z9factoriali", "_Z6change4Packi", "%rd10"]
    fma = next(i for i in function.instructions if i.mnemonic == "fma.rn.f32")
    assert fma.loc is not None and fma.loc.line == 21
    assert [site.line for site in fma.loc.inlined_at] == [22, 39]
    assert [found.function_name(loc) for loc in (fma.loc, *fma.loc.inlined_at)] == ["_Z5innerf", "_Z5outerf", ""]
    assert [s.name for s in function.body or () if isinstance(s, Label) and s.text_name == "DONE"] == ["DONE~5", "DONE~6"]
    assert any(isinstance(s, BranchTargets) for s in function.body or ()) == ("brx.idx" in "\n".join(found.lines))


def test_llvm_sample() -> None:
    found = parse((DATA / "llvm.ptx").read_text())
    (table,) = (s for s in found.functions["k"].body or () if isinstance(s, BranchTargets))
    assert [t.name for t in table.targets] == ["$L__BB1_2", "$L__BB1_3", "$L__BB1_4", "$L__BB1_5", "$L__BB1_2"]


def test_triton_sample() -> None:
    function = parse((DATA / "triton_style.ptx").read_text()).functions["scale_kernel"]
    load = next(i for i in function.instructions if i.guard and i.opcode == "ld")
    assert load.text == "@%p1 ld.global.v4.b32 { %r5, %r6, %r7, %r8 }, [ %rd4 + 0 ];"
    assert {"P1~1": "pred", "state1~1": "b32"}.items() <= function.registers.items()
    assert function.directive("reqntid") == Directive("reqntid", (128, 1, 1))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_the_fast_path_gives_the_same_tree(path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    text = path.read_text()  # type: ignore[attr-defined]
    fast = parse(text)
    monkeypatch.setattr(body_parser, "simple_operand", lambda text, scope: None)
    assert parse(text) == fast


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_instructions_stand_where_they_say(path: object) -> None:
    found = parse(path.read_text())  # type: ignore[attr-defined]
    for function in found.functions.values():
        for instruction in function.instructions:
            start = found.lines[instruction.line - 1][instruction.column - 1 :]
            assert start.startswith(("@", instruction.mnemonic))
            assert instruction.mnemonic in instruction.text


def test_the_tree_is_frozen() -> None:
    found = kernel("mov.b32 a, 1;").instructions[0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.line = 3  # type: ignore[misc]
    assert isinstance(found, Instruction)
