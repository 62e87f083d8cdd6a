"""The machine code of kernels that are compiled here, and nvdisasm's annotations."""

from __future__ import annotations

import stat
from collections import Counter

import pytest

import fasim
from fasim.errors import FasimError, ToolMissing, UsageError
from fasim.kernels import load
from fasim.sass.listing import SassLine, listing, nvdisasm_version, parse
from fasim.toolchain import tools

SOURCE = """\
__device__ __forceinline__ float inner(const float *p) {
    return p[0] * 3.0f;                      // deep
}
__device__ __forceinline__ float outer(const float *p) {
    return inner(p) + 1.0f;                  // middle
}
__device__ __noinline__ float called(float x, int n) {
    for (int i = 0; i < n; i++) x = x * x + 1.5f;  // called
    return x;
}
extern "C" __global__ void first(float *p) {
    p[1] = outer(p);                         // call
}
template <int N, typename T> __global__ void scaled(T *p) {
    p[threadIdx.x] *= T(N);                  // template
}
template __global__ void scaled<3, int>(int *);
extern "C" __global__ void second(float *p, int n) {
    p[0] = called(p[1], n) / p[2];           // division
}
"""
TEMPLATE = "_Z6scaledILi3EiEvPT0_"


def line_of(marker: str) -> int:
    return next(number for number, text in enumerate(SOURCE.splitlines(), 1) if text.endswith(f"// {marker}"))


@pytest.fixture(scope="module")
def module(tmp_path_factory) -> fasim.Module:
    path = tmp_path_factory.mktemp("source") / "three.cu"
    path.write_text(SOURCE)
    return fasim.compile(path, arch="sm_90")


def lines(module: fasim.Module, entry: str) -> tuple[SassLine, ...]:
    assert module.compiled
    return listing(module.compiled.cubin, entry)


@pytest.mark.parametrize("entry", ["first", "second", TEMPLATE])
def test_offsets_have_no_gaps(module, entry):
    found = lines(module, entry)
    assert [line.offset for line in found] == [16 * index for index in range(len(found))]
    assert found[-1].text == "NOP" or found[-1].text.startswith("BRA")
    assert not any(";" in line.text or "  " in line.text or "(*" in line.text for line in found)


def test_kernels_of_one_file_are_kept_apart(module):
    opcodes = {entry: {line.text.split()[0] for line in lines(module, entry)} for entry in ("first", "second", TEMPLATE)}
    assert any(word.startswith("LDG") for word in opcodes["first"])
    assert any(word.startswith("CALL") for word in opcodes["second"])
    assert not any(word.startswith(("CALL", "MUFU")) for word in opcodes["first"] | opcodes[TEMPLATE])


def test_place_is_the_chain_of_inlined_calls(module):
    path = module.compiled.source_path
    load_, store = (next(line for line in lines(module, "first") if line.text.startswith(word)) for word in ("LDG", "STG"))
    assert load_.place == ((path, line_of("deep")), (path, line_of("middle")), (path, line_of("call")))
    assert store.place == ((path, line_of("call")),)


def test_ptx_lines_are_those_of_the_ptx_that_came_with_the_cubin(module):
    ptx = module.ptx.splitlines()
    wanted = {"LDG": "ld.global", "STG": "st.global", "EXIT": "ret", "MUFU": ("rcp", "div")}
    seen = Counter()
    for entry in ("first", "second", TEMPLATE):
        for line in lines(module, entry):
            opcode = line.text.split()[0].split(".")[0]
            if line.ptx_line and opcode in wanted:
                assert ptx[line.ptx_line - 1].strip().startswith(wanted[opcode]), (entry, line)
                seen[opcode] += 1
    assert seen["LDG"] >= 4 and seen["STG"] == 3 and seen["EXIT"] >= 3 and seen["MUFU"] == 1


def test_template(module):
    line = next(line for line in lines(module, TEMPLATE) if line.text.startswith("STG"))
    assert [number for _, number in line.place] == [line_of("template")]


def test_called_functions_follow_the_kernel(module):
    found = lines(module, "second")
    end = next(index for index, line in enumerate(found) if line.text.endswith("EXIT"))
    behind = [{number for _, number in line.place} for line in found[end + 1 :]]
    assert {line_of("called")} in behind
    # the subroutine of the division comes from no line, and does not take that of what stands before it
    assert any(line.text.split()[0].startswith("MUFU") and not line.place and not line.ptx_line for line in found[end + 1 :])


def test_without_line_information(module):
    bare = module.compiled.cubin
    for name in (b".debug_line", b".nv_debug_line_sass", b".nv_debug_ptx_txt"):
        assert name in bare
        bare = bare.replace(name, name.replace(b"debug", b"other"))
    found = listing(bare, "first")
    assert [(line.offset, line.text) for line in found] == [(line.offset, line.text) for line in lines(module, "first")]
    assert not any(line.place or line.ptx_line for line in found)


@pytest.mark.parametrize("layout", ["linear", "padded", "swizzled"])
def test_each_ldmatrix_is_one_ldsm(layout):
    spec = load("fa_v21")
    compiled = fasim.compile(spec.path, defines=spec.defines({"layout": layout}), arch="sm_90").compiled
    expected = {}
    for number, text in enumerate(compiled.ptx.splitlines(), 1):
        if text.strip().startswith("ldmatrix"):
            expected[number] = ["LDSM.16.MT88.4" if ".trans" in text else "LDSM.16.M88.4"]
    found: dict[int, list[str]] = {}
    for line in listing(compiled.cubin, spec.entry):
        if "LDSM" in line.text:
            found.setdefault(line.ptx_line, []).append(line.text.split()[0])
    assert len(expected) > 20
    assert found == expected


NVDISASM = """
	.target	sm_90
//--------------------- .text.k          --------------------------
	.section	.text.k,"ax",@progbits
        .type           k,@function
k:
.text.k:
        /*0000*/                   NOP ;
	//## File "/a b/x.cu", line 3 inlined at "y.h", line 4
	//## File "y.h", line 4 inlined at "y.h", line 5
	//## File "y.h", line 5
	//## File ".nv_debug_ptx_txt", line 9
        /*0010*/              @!P0 FADD  R1, R2.reuse,  R3 ;
	//## File ".nv_debug_ptx_txt", line 10
        /*0020*/                   BRX R6 -0x2c0       (*"BRANCH_TARGETS .L_x_79,.L_x_80"*);
.L_x_1:
	//## File "y.h", line 7
	//## File "y.h", line 8
        /*0030*/                   BRA `(.L_x_1);
        .type           $k$f,@function
$k$f:
        /*0040*/                   RET.REL.NODEC R2 `(k) ;
	//## File "y.h", line 1 inlined at "z.h", line 2
        /*0050*/                   EXIT ;
	.section	.nv.other,"a",@progbits
        /*0000*/                   NOP ;
"""


def test_annotations():
    deep = (("/a b/x.cu", 3), ("y.h", 4), ("y.h", 5))
    found = parse(NVDISASM.splitlines())
    assert found["k"].labels == {"k": 0, ".text.k": 0, ".L_x_1": 0x30, "$k$f": 0x40}
    assert {name: section.lines for name, section in found.items()} == {
        "k": [
            SassLine(0x00, "NOP"),
            SassLine(0x10, "@!P0 FADD R1, R2.reuse, R3", 9, deep),
            SassLine(0x20, "BRX R6 -0x2c0", 10, deep),
            SassLine(0x30, "BRA `(.L_x_1)", 10, (("y.h", 8),)),
            SassLine(0x40, "RET.REL.NODEC R2 `(k)"),
            SassLine(0x50, "EXIT", 0, (("y.h", 1), ("z.h", 2))),
        ]
    }


def test_a_line_that_is_not_understood_is_an_error():
    with pytest.raises(FasimError, match="not understood"):
        parse(["\t.section\t.text.k", "        /*0000*/    { FADD R1, R2, R3"])


def test_unknown_kernel(module):
    with pytest.raises(UsageError, match=r"no kernel 'third'; there are: .*first"):
        lines(module, "third")


def test_no_cubin():
    with pytest.raises(FasimError, match=r"nvdisasm refused the cubin \(exit code \d+\): .+"):
        listing(b"this is no ELF file", "k")


def test_no_nvdisasm(module, monkeypatch):
    monkeypatch.setattr(tools, "_in", lambda roots, file: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolMissing, match="pip install nvidia-cuda-nvdisasm"):
        lines(module, "first")


def test_results_are_kept(module, monkeypatch, tmp_path):
    before = lines(module, "first")
    monkeypatch.setattr("fasim.sass.listing._disassembled", lambda cubin: pytest.fail("disassembled again"))
    assert lines(module, "first") == before
    # another version of nvdisasm is another result
    tool = tmp_path / "nvdisasm"
    tool.write_text("#!/bin/sh\necho 'release 99.1, V99.1.2'\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr("fasim.sass.listing.find_tool", lambda name: str(tool))
    assert nvdisasm_version() == "V99.1.2"
    with pytest.raises(pytest.fail.Exception, match="disassembled again"):
        lines(module, "first")
