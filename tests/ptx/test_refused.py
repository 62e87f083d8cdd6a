"""What the parser refuses, with the place it names; where ptxas is installed, it has to refuse the same texts."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasim.errors import NotModelled, PtxError
from fasim.ptx.parser import parse

from .samples import DATA, HEAD

K = ".visible .entry k() {"
REFUSED = {
    "body_not_closed": (K + " ret;", "4:27", "found the end of the file, expected '}' to close the block of 'k' that begins on line 4"),
    "nested_block_not_closed": (K + "\n{ ret; \n}", "6:2", "begins on line 4"),
    "no_body": (".visible .entry k()", "4:20", "found the end of the file, expected '{' or ';'"),
    "comment_not_closed": (K + " /* ret; }", "4:23", "this comment does not end"),
    "string_not_closed": ('.file 1 "abc\n' + K + " ret; }", "4:9", "this string does not end"),
    "section_not_closed": (".section .debug_info {\n.b8 1\n", "4:1", "section .debug_info does not end"),
    "no_semicolon": (K + " .reg .u32 x;\n mov.u32 x, 1\n ret; }", "6:2", "found 'ret', expected ',' or ';'"),
    "no_semicolon_at_the_end": (K + " .reg .u32 x;\n mov.u32 x, 1", "5:14", "found the end of the file, expected ',' or ';'"),
    "no_semicolon_before_brace": (K + " ret }", "4:27", "found '}', expected an operand"),
    "lone_semicolon": (K + " ; ret; }", "4:23", "found ';', expected a statement"),
    "brace_too_many": (K + " ret; } }", "4:30", "found '}', expected a module directive"),
    "register_twice": (K + " .reg .u32 x;\n.reg .u64 x; ret; }", "5:11", "register 'x' is declared twice: first on line 4"),
    "range_twice": (K + " .reg .u32 x<4>;\n.reg .u64 x<2>; ret; }", "5:11", "registers 'x<...>' are declared twice"),
    "register_of_a_range": (K + " .reg .u32 x<4>; .reg .u32 x2; ret; }", "4:49", "register 'x2' is declared twice"),
    "range_over_a_register": (K + " .reg .u32 x2; .reg .u32 x<4>; ret; }", "4:47", "register 'x2' of 'x<4>' was declared before"),
    "label_twice": (K + " L: bra L; L: ret; }", "4:33", "label 'L' is declared twice"),
    "label_and_register": (K + " .reg .u32 L; L: ret; }", "4:36", "label 'L' is declared twice"),
    "variable_and_register": (K + " .reg .u32 x; .shared .u32 x; ret; }", "4:49", "variable 'x' is declared twice"),
    "parameter_and_register": (".visible .entry k(.param .u32 x) { .reg .u32 x; ret; }", "4:46", "register 'x' is declared twice"),
    "undeclared_register": (K + " .reg .u32 %r<2>;\n mov.u32 %r1, %r2; ret; }", "5:15", "'%r2' is neither a declared register"),
    "undeclared_name": (K + " .reg .u32 x; mov.u32 x, y; ret; }", "4:47", "'y' is not declared"),
    "declared_after_use": (K + " mov.u32 x, 1; .reg .u32 x; ret; }", "4:31", "'x' is not declared"),
    "register_of_a_closed_block": (K + " { .reg .u32 x; } mov.u32 x, 1; ret; }", "4:48", "'x' is not declared"),
    "no_such_label": (K + "\n bra L; }", "5:6", "'L' is not declared"),
    "label_of_another_block": (K + " { bra L; } { L: ret; } }", "4:29", "'L' is not declared"),
    "branch_to_a_variable": (".global .u32 g; " + K + " bra g; }", "4:39", "the target of bra is not a label"),
    "branch_to_a_register": (K + " .reg .b64 x; bra x; }", "4:36", "the target of bra is not a label"),
    "branch_without_target": (K + " bra; }", "4:23", "the target of bra is not a label"),
    "brx_without_table": (K + " .reg .u32 x; L: brx.idx x, L; }", "4:39", "for brx.idx one of .branchtargets"),
    "undeclared_guard": (K + " @p ret; }", "4:24", "'p' is not a declared register: expected a predicate"),
    "guard_of_another_type": (K + " .reg .u32 p; @p ret; }", "4:37", "'p' has type .u32: expected a .pred"),
    "guarded_block": (K + " .reg .pred p; @p { ret; } }", "4:37", "expected '@' or '@!', a predicate register and an instruction"),
    "function_declared_later": (K + " call f; ret; } .func f() { ret; }", "4:28", "'f' is not declared"),
    "entry_twice": (K + " ret; } .visible .entry k() { ret; }", "4:46", "'k' is declared twice"),
    "declared_after_definition": (".func f() { ret; } .func f();", "4:26", "'f' is declared twice"),
    "variable_twice": (".global .u32 x; .global .u32 x;", "4:30", "'x' is declared twice"),
    "bad_function_directive": (K[:-1] + " .maxtid 3 { ret; }", "4:22", "found '.maxtid', expected '{', ';' or a performance directive"),
    "bad_type": (".global .q32 x;", "4:9", "found '.q32', expected a type"),
    "bad_parameter": (".visible .entry k(.global .u32 x) { ret; }", "4:19", "expected a parameter: .param or .reg"),
    "bad_module_directive": (".entri k() { ret; }", "4:1", "'.entri' does not begin a module directive"),
    "not_a_directive": ("entry k() { ret; }", "4:1", "found 'entry', expected a module directive"),
    "bad_loc": (K + " .loc 1 2\n ret; }", "4:23", "expected .loc FILE LINE COLUMN"),
    "bad_body_directive": (K + " .lac 1 2 3 ret; }", "4:23", "found '.lac', expected a statement"),
    "bad_alignment": (".global .align 3 .u32 x;", "4:9", "the alignment 3 is not a power of two"),
    "unsized_inner_dimension": (".global .u32 x[2][];", "4:14", "only the first dimension of 'x'"),
    "negative_dimension": (".global .u32 x[-2];", "4:16", "dimension -2 of 'x' is negative"),
    "alias_of_nothing": (".alias a, b;", "4:11", "'b' is not a function declared before"),
    "dotted_name": (".visible .entry k.b() { ret; }", "4:18", "found '.b', expected '{'"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, place, message = REFUSED[name]
    with pytest.raises(PtxError) as caught:
        parse(HEAD + text + "\n", "t.ptx")
    first, shown, marker = str(caught.value).split("\n")
    assert first.startswith(f"t.ptx:{place}: ")
    assert message in first
    line, column = map(int, place.split(":"))
    assert shown[4:] == (HEAD + text + "\n").split("\n")[line - 1].rstrip()
    assert marker == " " * (3 + column) + "^"


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
@pytest.mark.parametrize("name", REFUSED)
def test_ptxas_refuses_it_too(name: str, tmp_path: Path) -> None:
    path = tmp_path / "t.ptx"
    path.write_text(HEAD + REFUSED[name][0] + "\n")
    assert subprocess.run(["ptxas", "-arch=sm_90", "-o", str(tmp_path / "t.cubin"), str(path)], capture_output=True).returncode != 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "this is not a PTX module"),
        ("int main() {}", "found 'int', expected a module directive"),
        (".target sm_90\n", "found '.target', expected .version"),
        (".version nine\n", "expected .version MAJOR.MINOR"),
        (".version 8.0\n.target\n\n{", "expected .target with a name"),
    ],
)
def test_not_a_module(text: str, message: str) -> None:
    with pytest.raises(PtxError) as caught:
        parse(text)
    assert message in str(caught.value) and str(caught.value).startswith("<ptx>:")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".const[2] .u32 x;", "banks and sub-spaces of .const"),
        (".section .debug_info\n.b8 1\n", "section .debug_info without braces"),
        (K + " .reg .u32 x; ts: .branchtargets L<3>; ret; }", "ranges of labels are not modelled"),
    ],
)
def test_valid_but_not_read(text: str, message: str) -> None:
    with pytest.raises(NotModelled, match=re.escape(message)):
        parse(HEAD + text)


def test_nesting_without_end_is_a_named_error() -> None:
    with pytest.raises(PtxError, match="nested too deeply"):
        parse(f"{HEAD}.global .u32 x = {'(' * 5000}1{')' * 5000};")


FEATURES = (DATA / "features.ptx").read_text()


def only_named_errors(text: str) -> None:
    try:
        parse(text)
    except (PtxError, NotModelled) as error:
        assert re.match(r"<ptx>:\d+:\d+: ", str(error))


def test_every_truncation_inside_a_function_is_refused() -> None:
    start, end = FEATURES.index("{", FEATURES.index(".entry features")), FEATURES.rindex("ret;")
    for cut in range(start, end, 97):
        with pytest.raises(PtxError, match=r"<ptx>:\d+:\d+: "):
            parse(FEATURES[:cut])


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, len(FEATURES) - 1),
    st.integers(0, 12),
    st.sampled_from(["", *'{}()[];,"%@.|+-x', "\n", "/*", "0f", "08", ".reg", "::"]),
)
def test_damaged_text_gives_named_errors_only(position: int, removed: int, inserted: str) -> None:
    only_named_errors(FEATURES[:position] + inserted + FEATURES[position + removed :])
