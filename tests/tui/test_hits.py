"""Breakpoints in a session: whose they are, what a hit says, and that a miss leaves one where one was."""

from __future__ import annotations

import numpy as np
import pytest

from fasim.trace.breaks import RegisterBreak

SOURCE = """extern "C" __global__ void mm(const int* B, int* C, int n) {
  __shared__ int t[64];
  int i = blockIdx.x * 64 + threadIdx.x;
  t[threadIdx.x] = B[i] * n - 3;
  __syncthreads();
  if (threadIdx.x > 33) C[i] = t[63 - threadIdx.x] - threadIdx.x;
}
"""
COPY = """extern "C" __global__ void copy(const int* in, int* out) {
  __shared__ int s[32];
  unsigned at = (unsigned)__cvta_generic_to_shared(s + threadIdx.x);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(at), "l"(in + threadIdx.x));
  asm volatile("cp.async.wait_all;");
  out[threadIdx.x] = s[threadIdx.x];
}
"""


@pytest.fixture
def mm(session, tmp_path):
    source = tmp_path / "mm.cu"
    source.write_text(SOURCE)
    return session(str(source), grid="2", block="64", args=("B=i32[8,16]:arange", "C=i32[8,16]:full(9)", "n=2"))


@pytest.fixture
def copy(session, tmp_path):
    source = tmp_path / "copy.cu"
    source.write_text(COPY)
    return session(str(source), grid="1", block="32", args=("in=i32[4,8]:arange", "out=i32[32]:zeros"))


# breakpoint: what its hit says
HITS = {
    "mem C[3,2]": "C[3, 2] (byte 200): lane 18 of warp 1 wrote -27, before 9",
    "mem C 200": "C[3, 2] (byte 200): lane 18 of warp 1 wrote -27, before 9",
    "mem C[2]": "C[2, 2] (byte 136): lane 2 of warp 1 wrote 21, before 9; 13 more lanes in the range",
    "mem C[3,2] = -27": "C[3, 2] (byte 200): lane 18 of warp 1 wrote -27, before 9",
    "read B[1,2]": "B[1, 2] (byte 72): lane 18 of warp 0 read 18",
    "mem shared 12": "shared byte 0xc: lane 3 of warp 0 wrote 3, before 4294967295",
    "read shared 12": "shared byte 0xc: lane 28 of warp 1 read 3",
}


@pytest.mark.parametrize("text", HITS)
def test_a_hit_says_who_did_what(text, mm):
    mm.break_at(text)
    mm.move("run")
    assert mm.message == f"breakpoint: {text}; {HITS[text]}"
    position = mm.stepper.position
    mm.go_to("end")
    mm.move("run", back=True)
    while mm.stepper.position > position:
        mm.move("run", back=True)
    assert mm.stepper.position == position and mm.message == f"breakpoint: {text}; {HITS[text]}"


def test_a_value_is_of_the_type_of_the_buffer(session, tmp_path):
    source = tmp_path / "h.cu"
    source.write_text(
        '#include <cuda_fp16.h>\nextern "C" __global__ void h(__half* x) { x[threadIdx.x] = __float2half(threadIdx.x * 0.5f); }\n'
    )
    found = session(str(source), grid="1", block="32", args=("x=f16[32]:zeros",))
    found.break_at("mem x[3] = 1.5")
    found.move("run")
    assert found.message == "breakpoint: mem x[3] = 1.5; x[3] (byte 6): lane 3 of warp 0 wrote 1.5, before 0"
    found.break_at("mem x[3] = 1.5")
    found.break_at("mem x[3] = 1")
    found.go_to("0")
    found.move("run")
    assert "no breakpoint is met" in found.message


def test_copies(copy):
    copy.break_at("mem shared 12")
    copy.break_at("read in[0,3]")
    copy.move("run")
    assert copy.message == "breakpoint: read in[0,3]; in[0, 3] (byte 12): lane 3 of warp 0 read 3 (a copy to shared memory)"
    copy.move("run")
    assert copy.message.startswith("breakpoint: mem shared 12; shared byte 0xc: lane 3 of warp 0 wrote 0x3 by cp.async, before ")


def test_another_warp_than_the_watched_one(mm):
    mm.choose_warp("0")
    mm.break_at("mem C[3,2]")
    assert mm.message == "breakpoint: mem C[3,2] (by any warp); c runs to it, C back"
    mm.move("run")
    assert mm.event.warp == 1 and mm.shown_warp == 0
    assert mm.message.endswith("wrote -27, before 9; warp 1 wrote it; w all, or w 1, follows it")
    mm.choose_warp("1")
    mm.go_to("0")
    mm.move("run")
    assert mm.message.endswith("wrote -27, before 9")
    mm.break_at("mem C[3,2]")
    mm.break_at("line 4")
    for warp in ("0", "1"):
        mm.go_to("0")
        mm.choose_warp(warp)
        mm.move("run")
        assert mm.stepper.state.next.warp == int(warp)


def test_a_register_is_that_of_the_warp_shown(mm):
    name = next(each.name for operands in mm.stepper.names.operands for each in operands if each.writes and each.name.startswith("%r"))
    shown = mm.shown_warp
    mm.break_at(f"reg {name}")
    assert mm.breakpoints == {f"reg {name}": RegisterBreak(name, warp=shown)}
    assert mm.message == f"breakpoint: reg {name} (of warp {shown}); c runs to it, C back"
    mm.break_at(f"reg {name} any")
    assert mm.message == f"breakpoint: reg {name} any (of any warp); c runs to it, C back"
    mm.break_at(f"reg {name}")
    mm.break_at(f"reg {name} any")
    assert mm.breakpoints == {}
    warps = {}
    for text in (f"reg {name}", f"reg {name} any", f"reg {name} warp 1"):
        mm.choose_warp("0")
        mm.break_at(text)
        mm.go_to("0")
        warps[text] = set()
        while True:
            mm.move("run")
            if not mm.message.startswith("breakpoint"):
                break
            warps[text].add(mm.event.warp)
        mm.break_at(text)
    assert list(warps.values()) == [{0}, {0, 1}, {1}]


AGAIN = """.version 8.0
.target sm_90
.address_size 64
.visible .entry again(.param .u64 p) {
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .f32 %f<2>;
  .reg .b64 %d<2>;
  ld.param.u64 %d1, [p];
  mov.u32 %r1, %tid.x;
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 4;
  @%p1 sub.s32 %r1, %r1, 9;
  mov.f32 %f1, 0f47F4BA80;
  st.global.u32 [%d1], %r1;
  ret;
}
"""
# breakpoint: the mnemonics after which it stops, and what it says of the last of them
WRITES = {
    "reg %r1": (["mov.u32", "sub.s32"], "%r1: lane 0 of warp 0 wrote -9, before 0; 3 more lanes wrote it, too"),
    "reg %r1 lane 25": (["mov.u32", "mov.u32"], "%r1: lane 25 of warp 0 wrote 25, before 25"),
    "reg %r1 lane 3": (["mov.u32", "mov.u32", "sub.s32"], "%r1: lane 3 of warp 0 wrote -6, before 3"),
    "reg %r1 = 25": (["mov.u32", "mov.u32"], "%r1: lane 25 of warp 0 wrote 25, before 25"),
    "reg %f1 lane 7": (["mov.f32"], "%f1: lane 7 of warp 0 wrote 125301, its first value"),
    "reg %d1 lane 0": (["ld.param.u64"], "%d1: lane 0 of warp 0 wrote p+0, its first value"),
    "reg %r1 = 31 lane 30": ([], ""),
}


@pytest.fixture
def again(session, tmp_path):
    source = tmp_path / "again.ptx"
    source.write_text(AGAIN)
    return session(str(source), grid="1", block="32", args=("p=u32[8]:zeros",))


@pytest.mark.parametrize("text", WRITES)
def test_a_register_stops_where_it_changes_and_a_lane_wherever_it_is_written(text, again):
    again.break_at(text)
    stops, said = [], []
    while again.move("run") or again.message.startswith("breakpoint"):
        stops.append(again.event.source.mnemonic)
        said.append(again.message)
    mnemonics, last = WRITES[text]
    assert stops == mnemonics and said[-1:] == [f"breakpoint: {text}; {last}"] * bool(last)


def test_registers_that_lowering_made_are_not_shown(session, drive):
    flash = session("fa_v21", "--n", "128", "--heads", "1", isa="sass")
    places, names = flash.stepper.places, flash.stepper.names
    made = {each.name for operands in names.operands for each in operands if each.name.startswith("~")}
    taking = np.array([any(each.name in made for each in names.operands[pc]) for pc in range(len(places.program))])
    assert made and taking.any()
    assert flash.stepper.next_of(taking, None)
    for _ in range(3):
        lines, _ = drive(flash, size=(120, 90))
        assert not any(line.startswith("~") for line in lines)
        flash.move("instruction")
    flash.pin(min(made))
    assert flash.pinned == [] and "is no register of this kernel" in flash.message


@pytest.mark.parametrize("back", [False, True])
def test_a_miss_leaves_one_where_one_was(back, mm, monkeypatch):
    mm.go_to("7")
    mm.break_at("mem C[7,0]")
    mm.move("run", back=back)
    assert mm.stepper.position == 7
    where = "the beginning" if back else "the end"
    assert mm.message == (
        f"no breakpoint is met from here to {where}, so this is still 7; perhaps another CTA than 0,0,0 writes it: k chooses one"
    )
    if not back:
        monkeypatch.setattr("fasim.tui.session.PATIENCE_SECONDS", -1.0)
        monkeypatch.setattr("fasim.trace.search.WATCH_INSTRUCTIONS", 8)
        for _ in range(100):
            mm.move("run")
            if "goes on" not in mm.message:
                break
        assert mm.stepper.position == 7 and mm.message.startswith("no breakpoint is met")
    mm.find("st.shared")
    found = mm.stepper.position
    mm.go_to("end")
    mm.find("st.shared")
    assert mm.stepper.position == mm.stepper.end > found and mm.message == "'st.shared' is not executed after here"


def test_the_essence_of_a_fault_comes_first(session, drive, tmp_path):
    source = tmp_path / "fault.cu"
    source.write_text('extern "C" __global__ void fault(int* p) {\n  p[threadIdx.x] = 1;\n  if (threadIdx.x == 3) p[1000000] = 2;\n}\n')
    found = session(str(source), grid="1", block="32", args=("p=i32[32]:zeros",))
    found.break_at("mem p[5] = 77")
    found.move("run")
    first, second = found.message.split("\n")
    assert first.startswith("out of bounds: 4-byte global write: address 0x") and first.endswith("bytes past the end of p (128 bytes)")
    assert second.startswith("kernel fault, ") and "lane 3" in second and "\t" not in found.message
    lines, _ = drive(found, "1")
    assert all(part in " ".join(" ".join(lines).split()) for part in ("past the end of p (128 bytes)", "first threadIdx (3, 0, 0)"))
