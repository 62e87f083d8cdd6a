"""Pictures from the command line: wavefronts by line of several variants, and buffers over time."""

from __future__ import annotations

from pathlib import Path

import pytest

from fasim import kernels
from tests.report.figures import svg_texts

STREAM = """
#ifndef STAGES
#define STAGES 2
#endif
extern "C" __global__ void stream(const float* in, float* out, int tiles) {
  __shared__ float buf[STAGES][256];
  unsigned t = threadIdx.x, base = (unsigned)__cvta_generic_to_shared(buf);
  auto copy = [&](int i) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(base + 1024 * (i % STAGES) + 16 * t), "l"(in + i * 256 + 4 * t));
    asm volatile("cp.async.commit_group;");
  };
  float sum = 0;
  if (STAGES > 1) copy(0);
#pragma unroll 1
  for (int i = 0; i < tiles; i++) {
    if (STAGES == 1) copy(i);
    else if (i + 1 < tiles) copy(i + 1);
    if (STAGES > 1 && i + 1 < tiles) asm volatile("cp.async.wait_group 1;"); else asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    for (int k = 0; k < 8; k++) sum += buf[i % STAGES][(t * 4 + k) % 256];
    __syncthreads();
  }
  out[t] = sum;
}
extern "C" __global__ void none(float* out) { out[threadIdx.x] = 1; }
"""
DOCS = Path(__file__).parents[2] / "docs"
LAUNCH = [
    "stream.cu",
    "--entry",
    "stream",
    "--grid",
    "1",
    "--block",
    "64",
    "--arg",
    "in=f32[1024]:arange",
    "--arg",
    "out=f32[64]:zeros",
    "--arg",
    "tiles=4",
]


@pytest.fixture
def command(fasim_command, tmp_path):
    """Returns a function that runs fasim beside the file."""
    (tmp_path / "stream.cu").write_text(STREAM)
    return fasim_command


def without_tools(texts: list[str]) -> list[str]:
    """Without the line that names the compiler."""
    return [text for text in texts if "sm_90" not in text]


def test_lines_of_several_layouts(command, tmp_path):
    words = ["banks", "fa_v21", "--n", "128", "--heads", "1", "--layout", "linear,padded,swizzled"]
    done = command(*words, "--lines-out", "lines.svg", "--out", "banks.png")
    assert done.code == 0 and done.out.endswith("saved          banks.png\nsaved          lines.svg\n")
    texts = svg_texts(tmp_path / "lines.svg")
    assert without_tools(texts) == without_tools(svg_texts(DOCS / "lines.svg"))
    labels = ["layout=linear", "layout=padded", "layout=swizzled"]
    assert [text for text in texts if text.startswith("layout=")] == labels
    record = command(*words, "--lines-out", "lines.png", "--json").record
    assert record["saved_lines"] == "lines.png" and record["saved"] is None
    assert (tmp_path / "lines.png").read_bytes().startswith(b"\x89PNG")
    for variant in record["variants"]:
        for row in variant["rows"]:
            excess = row["source_wavefronts"] - row["source_ideal"]
            assert f"{row['source_wavefronts']:,}" + (f" (+{excess:,})" if excess else "") in texts


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["banks", "transpose", "--lines-out", "lines.pdf"], "--lines-out lines.pdf: pictures are .png or .svg; name the file lines.svg"),
        (["banks", "transpose", "--lines-out", "no/lines.svg"], "--lines-out no/lines.svg: there is no directory 'no'"),
        (["banks", "transpose", "--lines-out", "a.svg", "--out", "a.svg"], "--out and --lines-out both name a.svg"),
        (["run", "axpy", "--trace-out", "a.svg"], "kernel axpy has no shared memory, so there are no buffers to draw"),
        (
            ["run", *LAUNCH[:1], "--entry", "none", "--grid", "1", "--block", "32", "--arg", "f32[32]:zeros", "--trace-out", "a.png"],
            "none has no",
        ),
        (["run", "fa_v21", "--n", "128", "--trace-out", "a.svg", "--tile", "9"], "tile 9: the CTA goes through tiles 0 to 3"),
    ],
)
def test_what_cannot_be_drawn(command, tmp_path, words, message):
    done = command(*words)
    assert done.code == 2 and message in done.err and not list(tmp_path.glob("*a.svg*")) and not list(tmp_path.glob("*a.png*"))


def test_no_access_no_picture(command, tmp_path):
    done = command("banks", "axpy", "--lines-out", "lines.svg")
    assert done.code == 0 and "lines.svg was not written: there is no access to shared memory to draw" in done.err
    assert not (tmp_path / "lines.svg").exists()


def test_buffers_of_v21(command, tmp_path):
    done = command("run", "fa_v21", "--n", "128", "--heads", "1", "--trace-out", "buffers.svg")
    assert done.code == 0 and done.out.startswith("saved          buffers.svg: 10,140 events") and not done.err
    texts = svg_texts(tmp_path / "buffers.svg")
    assert [text for text in texts if text in ("K[0]", "K[1]", "V[0]", "V[1]", "Q")] == ["K[0]", "K[1]", "V[0]", "V[1]", "Q"]
    assert {"tile 0", "tile 3", "group 3", "cp.async.wait", "barrier 0", "fa_v21, CTA 0,0,0: buffers in shared memory over time"} <= set(
        texts
    )
    assert without_tools(texts) == without_tools(svg_texts(DOCS / "buffers.svg"))
    text = (tmp_path / "buffers.svg").read_text()
    for group, buffer in ((1, "[1]"), (2, "[0]"), (3, "[1]")):
        assert text.count(f'id="K{buffer} copy {group} on its way"') == text.count(f'id="V{buffer} copy {group} on its way"') == 1


def test_one_buffer_or_two_in_a_file(command, tmp_path):
    """The declared array is one row, or one for each half that is copied to."""
    for stages, rows in (("1", ["buf"]), ("2", ["buf+0x0", "buf+0x400"])):
        done = command("run", *LAUNCH, "-D", f"STAGES={stages}", "--trace-out", "buffers.svg")
        assert done.code == 0, done.err
        texts = svg_texts(tmp_path / "buffers.svg")
        assert [text for text in texts if text.startswith("buf") and "buffers" not in text] == rows
        assert any(text.startswith(f"STAGES={stages}, stream.cu") for text in texts) and "1,024 bytes, from in" in texts
    done = command("run", *LAUNCH, "--trace-out", "buffers.png", "--warp", "1")
    assert done.code == 0 and (tmp_path / "buffers.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", [name for name in kernels.names() if name not in ("axpy", "softmax_rows", "fa_v21", "fa_v20")])
def test_kernels_of_the_collection(command, tmp_path, name):
    done = command("run", name, "--trace-out", "buffers.svg")
    assert done.code == 0 and f"{name}, CTA 0,0,0: buffers in shared memory over time" in svg_texts(tmp_path / "buffers.svg")
