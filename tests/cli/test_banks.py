"""`fasim banks`: kernels of the collection, a person's file, several layouts, pictures, errors."""

from __future__ import annotations

import re
import time

import pytest

from fasim.cli.target import split_values

TILE = """
#ifndef LAYOUT
#define LAYOUT 0
#endif
#define PITCH (LAYOUT == 1 ? 33 : 32)
__device__ int place(int row, int column) { return row * PITCH + (LAYOUT == 2 ? column ^ row : column); }
__global__ void turn(const int* in, int* out) {
  extern __shared__ volatile int tile[];
  //@ WRITE
  for (int row = 0; row < 32; row++) tile[place(row, threadIdx.x)] = in[row * 32 + threadIdx.x];
  __syncwarp();
  //@ READ
  for (int row = 0; row < 32; row++) out[row * 32 + threadIdx.x] = tile[place(threadIdx.x, row)];
}
__global__ void none(int* out) { out[threadIdx.x] = 1; }
__global__ void wild(int* out) { out[threadIdx.x + (1 << 20)] = 1; }
"""
LAUNCH = [
    "turn.cu",
    "--entry",
    "turn",
    "--grid",
    "2",
    "--block",
    "32",
    "--smem",
    "4224",
    "--arg",
    "i32[1024]:arange",
    "--arg",
    "out=i32[1024]:zeros",
]

COLUMN_PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry column(.param .u64 p) {
  .reg .b32 %r<4>; .reg .b64 %d<2>;
  .shared .align 128 .b8 tile[4096];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  shl.b32 %r3, %r1, 7;
  add.u32 %r2, %r2, %r3;
  st.shared.u32 [%r2], %r1;
  ret;
}
"""


@pytest.fixture
def banks(fasim_command, tmp_path):
    """Returns a function that runs `fasim banks` beside some files."""
    (tmp_path / "turn.cu").write_text(TILE)
    (tmp_path / "column.ptx").write_text(COLUMN_PTX)
    return lambda *words: fasim_command("banks", *words)


def sums(variant, *kinds) -> tuple[int, int]:
    """Wavefronts and conflicts of the rows of some kinds."""
    rows = [row for row in variant["rows"] if row["kind"] in kinds]
    return sum(row["wavefronts"] for row in rows), sum(row["conflicts"] for row in rows)


# what an H200 counted with one CTA an SM
V21 = [
    (["--n", "128", "--heads", "1"], {"linear": (9216, 8064), "padded": (1152, 0), "swizzled": (1152, 0)}, 128),
    (["--n", "128", "--heads", "1", "--bc", "64"], {"linear": (9216, 8064), "padded": (1152, 0), "swizzled": (1152, 0)}, 128),
    (["--n", "1024", "--heads", "1"], {"linear": (532480, 465920), "swizzled": (66560, 0)}, 1024),
    (["--n", "1024", "--heads", "1", "--causal"], {"linear": (303104, 265216), "padded": (37888, 0)}, 1024),
]


@pytest.mark.parametrize(("words", "loads", "stores"), V21, ids=[" ".join(words) for words, _, _ in V21])
def test_v21_in_all_layouts_as_the_h200_counts(banks, words, loads, stores):
    done = banks("fa_v21", *words, "--layout", ",".join(loads), "--json")
    assert done.code == 0, done.err
    record = done.record
    assert (record["schema"], record["kernel"], record["source"]) == ("fasim.banks/1", "fa_v21", "10_fa_v21.cu")
    assert [each["label"] for each in record["variants"]] == [f"layout={name}" for name in loads]
    assert {each["options"]["layout"]: sums(each, "ldmatrix", "ld") for each in record["variants"]} == loads
    assert all(sums(each, "st") == (stores, 0) for each in record["variants"])


def test_v21_by_step(banks):
    (variant,) = banks("fa_v21", "--n", "128", "--heads", "1", "--layout", "linear", "--json").record["variants"]
    steps = {
        (row["step"], row["kind"]): (row["executions"], row["wavefronts"], row["conflicts"], row["source_ideal"]) for row in variant["rows"]
    }
    assert steps[("Q_FRAGMENTS", "ldmatrix")] == (32, 1024, 896, 128)
    assert steps[("K_FRAGMENTS", "ldmatrix")] == steps[("V_FRAGMENTS", "ldmatrix")] == (128, 4096, 3584, 512)
    assert steps[("LOAD_Q", "st")] == (32, 128, 0, 128)
    assert {step for step, kind in steps if kind == "cp.async"} == {"PROLOGUE", "PREFETCH"}
    assert [row["conflicts"] for row in variant["rows"]] == sorted((row["conflicts"] for row in variant["rows"]), reverse=True)
    (detail,) = variant["details"]
    assert detail["row"] == 0 and detail["cost"]["conflicts"] == 28
    assert detail["advice"]["pitch"]["pitch_bytes"] == 128
    assert (detail["advice"]["padding"]["padding_bytes"], detail["advice"]["padding"]["harm"]) == (16, [])
    assert (detail["advice"]["swizzle"]["swizzle"], detail["advice"]["swizzle"]["harm"]) == ("Swizzle<3,4,3>", [])


def test_v21_as_a_table(banks):
    done = banks("fa_v21", "--n", "128", "--heads", "1", "--layout", "linear,padded,swizzled")
    assert done.code == 0, done.err
    lines = [line.rstrip() for line in done.out.splitlines()]
    assert lines[0] == "kernel         fa_v21 n=128 batch=1 heads=1 head_dim=64 bc=32 causal=false"
    assert lines[3].split() == ["layout=linear", "layout=padded", "layout=swizzled"]
    row = next(line for line in lines if line.startswith("K_FRAGMENTS"))
    assert re.fullmatch(r"K_FRAGMENTS +\d+ > \d+ +LDSM\.x4 +4,096 +3,584 +4,096 +512 +0 +512 +512 +0 +512", row)
    assert "padding        16 bytes a row (pitch 128 -> 144 bytes): 4 wavefronts, 0 conflicts" in lines
    assert "swizzle        Swizzle<3,4,3> of byte offsets, offset ^ (offset >> 3 & 0x70): 4 wavefronts, 0 conflicts" in lines
    assert sum("worst execution" in line for line in lines) == 1


def test_without_words_it_is_v21_without_conflicts(banks):
    done = banks()
    assert done.code == 0, done.err
    assert done.out.startswith("kernel         fa_v21 ") and done.out.endswith("\nNo bank conflicts.\n")


def test_a_transposition(banks):
    linear, padded = banks("transpose", "--layout", "linear,padded", "--rows", "64", "--columns", "64", "--json").record["variants"]
    assert [(row["step"], row["kind"], row["wavefronts"], row["conflicts"]) for row in linear["rows"]] == [
        ("LOAD_COLUMN", "ld", 128 * 32, 128 * 31),
        ("STORE_ROW", "st", 128, 0),
    ]
    assert sums(padded, "ld", "st") == (256, 0)
    advice = linear["details"][0]["advice"]
    assert (advice["padding"]["padding_bytes"], advice["padding"]["extra_bytes"], advice["swizzle"]["swizzle"]) == (
        4,
        128,
        "Swizzle<5,2,5>",
    )
    assert advice["padding"]["others"] == 1 and advice["padding"]["harm"] == [] == advice["swizzle"]["harm"]


def test_a_file_with_several_values_of_a_macro(banks):
    done = banks(*LAUNCH, "-D", "LAYOUT=0,1,2", "--json")
    assert done.code == 0, done.err
    variants = done.record["variants"]
    assert [(each["label"], each["defines"]) for each in variants] == [(f"LAYOUT={i}", {"LAYOUT": str(i)}) for i in range(3)]
    assert [sums(each, "ld", "st") for each in variants] == [(64 + 64 * 32, 64 * 31), (128, 0), (128, 0)]
    assert [row["code"].split(")")[0] for row in variants[0]["rows"]] == ["for (int row = 0; row < 32; row++"] * 2
    assert [row["step"] for row in variants[0]["rows"]] == ["READ", "WRITE"]


def test_a_line_inside_a_function_and_one_in_the_kernel(banks):
    both = banks(*LAUNCH, "--line", "13")
    assert both.code == 0 and both.out.count("worst execution") == 1 and "READ, line 13" in both.out
    ideal = banks(*LAUNCH, "--line", "10").out
    assert "WRITE, line 10" in ideal and "note           nothing to cure: this access is at its ideal" in ideal
    wrong = banks(*LAUNCH, "--line", "3")
    assert wrong.code == 2 and "no access to shared memory on line 3; there are on: 10, 13" in wrong.err


def test_ptx_has_no_lines(banks):
    done = banks("column.ptx", "--grid", "1", "--block", "32", "--arg", "p=null")
    assert done.code == 0, done.err
    assert re.search(r"^PTX 11 +STS\.32 +1 +32 +31 +32 +1 +st\.shared\.u32 \[%r2\], %r1;", done.out, re.MULTILINE)
    assert "PTX 11: STS.32, 32 wavefronts, 31 conflicts (worst execution: CTA 0,0,0, warp 0)" in done.out


def test_pictures(banks, tmp_path):
    done = banks(*LAUNCH, "-D", "LAYOUT=0,1", "--out", "banks.svg", "--json")
    assert done.code == 0 and done.record["saved"] == "banks.svg"
    text = (tmp_path / "banks.svg").read_text()
    assert "LAYOUT=0: READ, line 13: LDS.32, 32 wavefronts, 31 conflicts" in text
    assert "LAYOUT=1: READ, line 13: LDS.32, 1 wavefront, 0 conflicts" in text
    assert banks("fa_v21", "--out", "banks.png").out.endswith("saved          banks.png\n")
    assert (tmp_path / "banks.png").read_bytes().startswith(b"\x89PNG")


def test_no_shared_memory(banks):
    done = banks("turn.cu", "--entry", "none", "--grid", "1", "--block", "32", "--arg", "out=i32[32]:zeros")
    assert done.code == 0 and done.out.endswith("\nThe kernel does not access shared memory.\n")


REFUSED = [
    (["fa_v21", "--layot", "linear"], 2, "no option --layot; did you mean --layout?"),
    (["fa_v21", "--layout", "linear,skewed"], 2, "option layout='skewed': choose one of linear, padded, swizzled"),
    (["fa_v21", "--out", "banks.pdf"], 2, "pictures are .png or .svg"),
    (["fa_v21", "--grid", "3"], 2, "--grid is for files"),
    (["fa_v21", "--line", "1"], 2, "no access to shared memory on line 1"),
    (["turn.cu", "--entry", "turn"], 2, "fasim banks turn.cu --entry turn --grid"),
    (["turn.cu", "--lin", "3"], 2, "fasim banks FILE has no option --lin; did you mean --line?"),
    (["nowhere.cu"], 2, "nowhere.cu"),
    (["turn.cu", "--entry", "wild", "--grid", "1", "--block", "32", "--arg", "out=i32[32]:zeros"], 1, "out of bounds"),
]


@pytest.mark.parametrize(("words", "code", "message"), REFUSED, ids=[" ".join(words[:3]) for words, _, _ in REFUSED])
def test_what_ends_with_an_error(banks, words, code, message):
    done = banks(*words)
    assert (done.code, done.out) == (code, "") and message in done.err
    as_json = banks(*words, "--json")
    assert as_json.code == code and as_json.record["exit_code"] == code


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0,1,2", ["0", "1", "2"]),
        ("1, 1", ["1"]),
        ("{1,2},{3,4}", ["{1,2}", "{3,4}"]),
        ("f(1,2)", ["f(1,2)"]),
        ("pair<int,float>,int", ["pair<int,float>", "int"]),
        ("1<<2,1<<3", ["1<<2", "1<<3"]),
        ('"a,b",c', ['"a,b"', "c"]),
        ("',',x", ["','", "x"]),
        ("", [""]),
    ],
)
def test_values_of_a_macro(text, values):
    assert split_values(text) == values


def test_it_answers_at_once(banks):
    banks("fa_v21")
    start = time.process_time()
    banks("fa_v21")
    assert time.process_time() - start < 1.5
