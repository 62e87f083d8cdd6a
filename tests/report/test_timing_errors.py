"""recordings/predict.py: groups, errors, ratios, the lines for a card's data file, and a run over some recordings."""

from __future__ import annotations

import importlib.util
import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "recordings" / "predict.py"
if not SCRIPT.is_file():
    pytest.skip("there are no recordings here", allow_module_level=True)


@pytest.fixture(scope="module")
def script():
    specification = importlib.util.spec_from_file_location("predict_recordings", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    sys.modules["predict_recordings"] = module  # where its dataclasses look their types up
    specification.loader.exec_module(module)
    yield module
    del sys.modules["predict_recordings"]


@pytest.fixture
def row(script):
    """Returns a function that makes a row."""

    def make(group: str, measured: float, predicted: float, **options: Any):
        name = " ".join(f"{key}={value}" for key, value in options.items())
        return script.Row(name, group, options, measured, predicted, 100 * (predicted / measured - 1), 0.0)

    return make


def test_summary_by_group(script, row):
    times = [(script.FLASH, 100, 110), (script.FLASH, 100, 94), (script.SMALL, 10, 10.5), (script.OTHERS, 10, 7.9), (script.CASES, 4, 8)]
    rows = [row(*each, n=number) for number, each in enumerate(times, 1)]
    groups = script.summary(rows)
    found = {group.name: (group.launches, group.mean_percent, group.bias_percent, group.worst_percent, group.worst) for group in groups}
    assert list(found) == [script.FLASH, script.SMALL, script.OTHERS, script.CASES, "all kernels"]
    assert found[script.FLASH] == pytest.approx((2, 8.0, 2.0, 10.0, "n=1"))
    # without the cases
    assert found["all kernels"] == pytest.approx((4, 10.5, -3.0, -21.0, "n=4"))
    values = tomllib.loads("\n".join(script.accuracy_lines(groups)))["accuracy"]
    assert values == {
        "mean_percent": 10.5, "worst_percent": 21.0, "launches": 4, "fa_v21_mean_percent": 8.0, "fa_v21_worst_percent": 10.0,
        "fa_v21_launches": 2, "small_mean_percent": 5.0, "small_worst_percent": 5.0, "small_launches": 1,
        "others_mean_percent": 21.0, "others_worst_percent": 21.0, "others_launches": 1,
    }  # fmt: skip


def test_ratios_of_launches_that_differ_in_one_option(script, row):
    rows = [
        row(script.FLASH, 100, 90, n=8192, bc=32, layout="padded", causal=False),
        row(script.FLASH, 80, 81, n=8192, bc=64, layout="padded", causal=False),
        row(script.FLASH, 250, 270, n=8192, bc=32, layout="linear", causal=False),
        row(script.FLASH, 10, 10, n=8192, bc=64, layout="linear", causal=True),
        row(script.FLASH, 10, 10, n=2048, bc=32, layout="padded", causal=True),
        row(script.FLASH, 10, 10, n=2048, bc=64, layout="padded", causal=True),
    ]
    found = [(ratio.what, ratio.measured, ratio.predicted) for ratio in script.ratios(rows)]
    assert found == [("bc 64 over 32", 0.8, 0.9), ("layout linear over padded", 2.5, 3.0)]


GROUPS = [
    ("cases", "fa_v21", [1, 1, 1], {}, "CASES"),
    ("axpy", "axpy", [1, 1, 1], {}, "OTHERS"),
    ("fa_v21", "fa_v21", [8, 1, 1], {"bc": 128}, "SMALL"),
    ("fa_v21", "fa_v21", [8, 32, 1], {"bc": 128}, "TALL"),
    ("fa_v21", "fa_v21", [8, 32, 1], {"bc": 64}, "FLASH"),
]


@pytest.mark.parametrize(("folder", "kernel", "grid", "options", "expected"), GROUPS)
def test_groups(script, folder, kernel, grid, options, expected):
    from types import SimpleNamespace

    launch = SimpleNamespace(kernel=kernel, grid=tuple(grid), options=options)
    assert script.group_of(launch, Path("recordings/h200") / folder / "x.zip") == getattr(script, expected)


def test_a_run(script, tmp_path, capsys):
    wanted = "axpy-n1000|transpose-rows256-columns256-layoutpadded|votes"
    script.main([str(SCRIPT.parent / "h200"), "--only", wanted, "--json", str(tmp_path / "a.json"), "--workers", "1"])
    out = capsys.readouterr().out
    found = json.loads((tmp_path / "a.json").read_text())
    assert (found["cards"], found["cold"], found["problems"]) == (["NVIDIA H200"], False, [])
    names = [each["name"] for each in found["rows"]]
    assert names == ["axpy-n1000", "votes", "transpose-rows256-columns256-layoutpadded"]
    assert all(name in out for name in names) and "mean_percent = " in out
    for each in found["rows"]:
        assert each["error_percent"] == pytest.approx(100 * (each["predicted_us"] / each["measured_us"] - 1))
    assert [group["name"] for group in found["groups"]] == [script.OTHERS, script.CASES, "all kernels"]
