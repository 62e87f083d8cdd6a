"""What a session does: moves, breakpoints, choices, and what it says when something cannot be done."""

from __future__ import annotations

import pytest

from fasim.errors import UsageError
from fasim.trace.breaks import ConflictBreak, HazardBreak, LineBreak, MemoryBreak, NanBreak, ReadBreak, RegisterBreak, StepBreak
from fasim.tui import matrices
from fasim.tui.breakpoints import parse_breakpoint

PARSED = {
    "line 290": LineBreak(290),
    "line 290 k.cu": LineBreak(290, "k.cu"),
    "step S_QK": StepBreak("S_QK"),
    "conflict": ConflictBreak(1),
    "conflict 4": ConflictBreak(4),
    "hazard": HazardBreak(""),
    "hazard race": HazardBreak("race"),
    "nan": NanBreak(),
    "nan any": NanBreak(new=False),
    "reg %f12": RegisterBreak("%f12"),
    "reg %f12 = 1.5": RegisterBreak("%f12", 1.5),
    "reg %r3=0x10 lane 3": RegisterBreak("%r3", 16, 3),
    "reg %f12 any": RegisterBreak("%f12", all_warps=True),
    "reg %f12 = 1.5 lane 3 warp 2": RegisterBreak("%f12", 1.5, 3, 2),
    "read shared 64": ReadBreak("shared", 64),
    "read o 7192": ReadBreak("o", 7192),
    "mem shared 0x100": MemoryBreak("shared", 256),
    "mem o 64 = 0x3c00": MemoryBreak("o", 64, 2, b"\x00\x3c"),
    "mem o 64 = 1.0": MemoryBreak("o", 64, 4, b"\x00\x00\x80\x3f"),
}


@pytest.mark.parametrize("text", PARSED)
def test_breakpoints(text):
    assert parse_breakpoint(text) == PARSED[text]


@pytest.mark.parametrize(
    "text",
    ["", "line", "line x", "lines 3", "step", "conflict x", "reg", "reg = 1", "mem", "mem shared", "mem shared x", "mem o[", "read o"],
)
def test_what_is_no_breakpoint(text):
    with pytest.raises(UsageError, match=r"is no breakpoint; they are: line N"):
        parse_breakpoint(text)


def test_every_move_and_back(fa_v21):
    stepper = fa_v21.stepper
    start = stepper.digest()
    for what in ("instruction", "line", "step", "tile", "barrier"):
        before = stepper.position
        fa_v21.move(what)
        assert stepper.position > before and not fa_v21.message
    while stepper.position:
        fa_v21.move("step", back=True)
    assert stepper.digest() == start
    fa_v21.move("instruction", back=True)
    assert fa_v21.message == "this is the beginning"
    fa_v21.go_to("end")
    end = stepper.digest()
    fa_v21.move("tile")
    assert fa_v21.message == "no further tile: the end"
    fa_v21.go_to("0")
    fa_v21.go_to("end")
    assert stepper.digest() == end and stepper.position == stepper.end


def test_one_warp_is_watched(fa_v21):
    fa_v21.choose_warp("2")
    for _ in range(5):
        fa_v21.move("instruction")
        assert fa_v21.event.warp == 2 and fa_v21.shown_warp == 2
    fa_v21.choose_warp("9")
    assert fa_v21.message == "'9' is no warp: there are 0 to 3, and all"
    fa_v21.choose_warp("all")
    assert fa_v21.follow


def test_run_to_breakpoints_and_back(session):
    linear = session("fa_v21", "--n", "128", "--heads", "1", "--layout", "linear")
    linear.move("run")
    assert linear.message.startswith("no breakpoint is set")
    linear.break_at("conflict 4")
    linear.move("run")
    first = linear.stepper.position
    assert linear.message == "breakpoint: conflict 4" and linear.event.access.wavefronts.conflicts > 0
    linear.move("run")
    assert linear.stepper.position > first
    linear.move("run", back=True)
    assert linear.stepper.position == first
    linear.break_at("conflict 4")
    assert linear.breakpoints == {} and linear.message == "breakpoint gone: conflict 4"
    for text, part in (
        ("line 1", "no instruction comes from it"),
        ("step NONE", "there are: "),
        ("reg %x1", "%x1"),
        ("reg f12", "nothing in kernel fa_v21 writes a register f12; the PTX names them"),
        ("reg %f12 warp 9", "warp 9: the CTA has warps 0 to 3"),
        ("mem o[0,0,200,0]", "o[0,0,200,0]: o has "),
        ("mem o[0,200,0]", "o[0,200,0] is outside of o, whose shape is ["),
        ("read shared[3]", "shared memory has no elements by name"),
        ("read q 0xfffffff", "byte 268435455 is not in q"),
        ("hazard data", "no hazard is of kind 'data'; there are: RAW, "),
        ("mem p 0", ", k, o, q, shared, v"),
        ("mem shared 0xfffffff", "byte 268435455 is not in shared, which has "),
        ("mem o 0 = 1e300", "is no breakpoint"),
        ("nan new", "is no breakpoint"),
    ):
        linear.break_at(text)
        assert part in linear.message and linear.breakpoints == {}


def test_a_long_walk_stops_and_goes_on(fa_v21, monkeypatch):
    monkeypatch.setattr("fasim.tui.session.PATIENCE_SECONDS", -1.0)
    fa_v21.go_to("end")
    first = fa_v21.stepper.position
    assert fa_v21.message == f"stopped at {first:,} after a while; end goes on" and fa_v21.stepper.state.next is not None
    fa_v21.break_at("mem o 0")
    fa_v21.move("run")
    assert fa_v21.stepper.position > first and "the same key goes on" in fa_v21.message
    fa_v21.go_to("+9000")
    assert fa_v21.message == f"stopped at {fa_v21.stepper.position:,} after a while; g end goes on" and 0 < fa_v21.stepper.position < 9000


LONG = """extern "C" __global__ void spin(float* x, int n) {
  float y = 1.0f;
  if (threadIdx.x >= 32)
    for (int i = 0; i < n; i++)
      y = y * 0.5f + x[i & 31];
  __syncthreads();
  x[threadIdx.x] = y;
}
"""


@pytest.mark.parametrize("what", ["instruction", "step", "tile", "barrier", "find"])
def test_every_long_move_stops_and_goes_on(what, session, tmp_path, monkeypatch):
    """And comes to where it would without stopping."""
    source = tmp_path / "spin.cu"
    source.write_text(LONG)

    def go(found):
        if what == "find":
            found.find("st.global")
        else:
            found.move(what)

    places = []
    for seconds in (60.0, -1.0):
        monkeypatch.setattr("fasim.tui.session.PATIENCE_SECONDS", seconds)
        found = session(str(source), grid="1", block="64", args=("x=f32[64]:ones", "n=2000"))
        found.choose_warp("0")
        found.move("line")
        while found.event is None or found.event.arrival is None:  # warp 0 waits at the barrier
            found.stepper.step()
        found.stepper.next_tile(1)
        go(found)
        stops = 0
        while "goes on" in found.message or "go on" in found.message:
            stops += 1
            go(found)
        places.append((found.stepper.position, found.message))
        assert (stops > 5) == (seconds < 0)
    assert places[0] == places[1]


def test_ctas(session):
    two = session("fa_v21", "--n", "128", "--heads", "2")
    two.move("step")
    two.choose_cta("0,1")
    assert two.stepper.ctaid == (0, 1, 0) and two.stepper.position == 0
    two.choose_cta("7")
    assert "7" in two.message and two.stepper.ctaid == (0, 1, 0)
    two.move("step")
    two.choose_cta("a,b")
    assert two.message == "CTA 'a,b': one to three numbers from 0 on are expected, for example 0,0,0 (x,y,z)"
    assert two.stepper.ctaid == (0, 1, 0) and two.stepper.position > 0


def test_ctas_that_communicate(session, tmp_path):
    """Those that have to run first do so once, whichever CTAs were chosen before."""
    source = tmp_path / "order.cu"
    source.write_text(
        'extern "C" __global__ void order(unsigned *slots) {\n'
        "  if (threadIdx.x == 0) slots[1 + atomicAdd(slots, 1u)] = blockIdx.x + 10;\n"
        "  if (blockIdx.x == 4 && threadIdx.x == 3) slots[1000] = 1;\n}\n"
    )
    found = session(str(source), grid="6", block="32", args=("slots=u32[7]:zeros",))
    slots = found.stepper.state.buffers["slots"]
    for cta, expected in (("2", [2, 10, 11]), ("3", [3, 10, 11, 12]), ("1", [1, 10]), ("0", [0]), ("4", [4, 10, 11, 12, 13])):
        found.choose_cta(cta)
        assert found.stepper.ctaid[0] == int(cta) and slots.tolist() == expected + [0] * (7 - len(expected))
        found.move("line")
        found.go_to("+8")
    position = found.stepper.position
    found.choose_cta("5")
    assert "out of bounds" in found.message and found.stepper.ctaid == (4, 0, 0) and found.stepper.position == position


def test_find(fa_v21):
    fa_v21.find("mma.sync")
    places = fa_v21.stepper.places
    assert places.source(fa_v21.stepper.state.next.pc).mnemonic.startswith("mma.sync")
    first = fa_v21.stepper.position
    fa_v21.find("")
    assert fa_v21.stepper.position > first
    fa_v21.stepper.go_to_end()
    fa_v21.find("mma.sync")
    assert fa_v21.message == "'mma.sync' is not executed after here" and fa_v21.stepper.position == fa_v21.stepper.end
    fa_v21.find("no such text")
    assert fa_v21.message.startswith("'no such text' is neither in the PTX nor")


def test_rows_are_those_of_the_online_softmax(fa_v21):
    """m is the largest scaled score of a row so far, l the sum of exp2 of scores less m."""
    import numpy as np

    from fasim.kernels import fa_v21 as kernel

    fa_v21.choose_warp("0")
    fa_v21.go_to("end")
    m, _, total = (np.array(matrices._values(fa_v21, watched)) for watched in kernel.SPEC.watched)
    buffers = fa_v21.stepper.state.buffers
    q, k = (buffers[name].reshape(-1).view(np.float16).reshape(128, 64).astype(np.float64) for name in ("q", "k"))
    scores = q[:32] @ k.T * float(kernel.SPEC.defines()["SCALE_LOG2"].rstrip("f"))
    assert np.allclose(m, scores.max(axis=1), atol=1e-4)
    assert np.allclose(total, np.exp2(scores - m[:, None]).sum(axis=1), rtol=1e-4)


def test_a_kernel_that_faults_stops_where_it_does(session, tmp_path):
    source = tmp_path / "fault.cu"
    source.write_text('extern "C" __global__ void fault(int* p) {\n  p[threadIdx.x] = 1;\n  p[1000000] = 2;\n}\n')
    found = session(str(source), grid="1", block="32", args=("p=i32[32]:zeros",))
    found.go_to("end")
    assert "out of bounds" in found.message and "fault.cu:3" in found.message
    position = found.stepper.position
    found.move("instruction", back=True)
    assert found.stepper.position == position - 1
