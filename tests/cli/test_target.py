"""What a command line names, and the variants that lists of values ask for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasim.cli.run_options import RunOptions
from fasim.cli.target import Target, labels, prepare, split_target, split_values, variants
from fasim.errors import UsageError

TARGETS = [
    ([], Target("fa_v21", True, [])),
    (["--n", "64"], Target("fa_v21", True, ["--n", "64"])),
    (["axpy", "--n", "64"], Target("axpy", True, ["--n", "64"])),
    (["--n", "64", "axpy"], Target("axpy", True, ["--n", "64"])),
    (["k.cu"], Target("k.cu", False, [])),
    (["k.ptx", "more"], Target("k.ptx", False, ["more"])),
    (["dir/r.zip"], Target("dir/r.zip", False, [])),
    (["unknown", "x"], Target("unknown", True, ["x"])),
    (["--x=k.cu"], Target("fa_v21", True, ["--x=k.cu"])),
]


@pytest.mark.parametrize(("words", "target"), TARGETS)
def test_target(words, target):
    assert split_target(words) == target
    assert split_target(words).is_recording == target.name.endswith(".zip")


def test_a_file_that_nobody_reads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.txt").write_text("")
    (tmp_path / "folder").mkdir()
    for word in ("kernel.txt", "folder"):
        with pytest.raises(UsageError, match=rf"'{word}' is neither a kernel of the collection nor a file that ends in .*\.zip"):
            split_target([word])


VALUES = [
    ("", [""]),
    ("1", ["1"]),
    ("1,2, 3", ["1", "2", "3"]),
    ("1,2,1", ["1", "2"]),
    ("f(1,2),g", ["f(1,2)", "g"]),
    ("a<1,2>,b[3,4],{5,6}", ["a<1,2>", "b[3,4]", "{5,6}"]),
    ('"a,b",c', ['"a,b"', "c"]),
    (r'"a\",b",c', [r'"a\",b"', "c"]),
    ("',',x", ["','", "x"]),
    ("1<<2,1<<3", ["1<<2", "1<<3"]),
    ("(1<<2),4", ["(1<<2)", "4"]),
]


@pytest.mark.parametrize(("text", "values"), VALUES)
def test_values_of_a_macro(text, values):
    assert split_values(text) == values


@given(st.lists(st.from_regex(r"[a-z0-9_+*]{1,5}(\([a-z,]{0,4}\))?", fullmatch=True), min_size=1, max_size=5))
def test_lists_come_apart_again(parts):
    assert split_values(",".join(parts)) == list(dict.fromkeys(parts))


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        ([{"a": 1}], [""]),
        ([{"a": 1, "b": 2}, {"a": 1, "b": 3}], ["b=2", "b=3"]),
        ([{"a": True}, {"a": False}], ["a=true", "a=false"]),
        ([{"a": None, "b": "x"}, {"a": "1", "b": "y"}], ["a=None b=x", "a=1 b=y"]),
    ],
)
def test_labels(chosen, found):
    assert labels(chosen) == found


GRID = {"grid": "1", "block": "1"}


@pytest.mark.parametrize(
    ("words", "options", "found"),
    [
        (["axpy", "--n", "3,4"], {}, ["n=3", "n=4"]),
        (["transpose", "--rows=3,4", "--layout", "linear,padded"], {},
         [f"rows={r} layout={layout}" for r in (3, 4) for layout in ("linear", "padded")]),
        (["k.cu"], {"defines": ("A=1,2", "B=f(1,2)", "C")}, ["A=1", "A=2"]),
        (["r.zip"], {}, [""]),
    ],
)  # fmt: skip
def test_variants(words, options, found):
    assert [each.label for each in variants(words, RunOptions(**options), [])] == found


def test_variants_are_made_ready_one_by_one(tmp_path):
    (tmp_path / "k.cu").write_text("__global__ void k(int* p) { p[0] = A; }")
    options = RunOptions(**GRID, defines=("A=1,undeclared,3",), args=("p=i32[1]:zeros",))
    made = list(variants([str(tmp_path / "k.cu")], options, []))
    assert len(made) == 3
    assert made[2].prepare().defines == {"A": "3"}
    with pytest.raises(Exception, match="undeclared"):
        made[1].prepare()


def test_words_behind_a_recording():
    with pytest.raises(UsageError, match=r"unexpected argument '--n': recording r.zip brings all"):
        prepare(["r.zip", "--n"], RunOptions(), [])
    with pytest.raises(UsageError, match=r"unexpected argument"):
        next(variants(["r.zip", "x"], RunOptions(), [])).prepare()
