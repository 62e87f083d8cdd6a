"""Ranked spaces as records, text and figures, from predictions whose times are set here."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from fasim.errors import UsageError
from fasim.report.figure_style import save_figure
from fasim.report.sweep import SweepReport, csv_text, sweep_report
from fasim.report.sweep_figure import MOST_BARS, bar_figure, best_by, check_over, map_figure, save_sweep
from fasim.report.sweep_text import print_sweep, title
from fasim.report.timing import Accuracy
from tests.report.figures import overlapping, svg_texts, texts_of
from tests.report.timed import launch

#: microseconds by a, b and c; None: not predicted
TIMES = {("1", "x", "p"): 8.0, ("1", "y", "p"): 4.0, ("2", "x", "p"): None, ("2", "y", "p"): 5.0,
         ("1", "x", "q"): 6.0, ("1", "y", "q"): 4.0, ("2", "x", "q"): None, ("2", "y", "q"): 7.0}  # fmt: skip


def report(**changes) -> SweepReport:
    row = replace(launch("multiply"), **changes)
    axes = {"a": ["1", "2"], "b": ["x", "y"], "c": ["p", "q"]}
    outcomes = []
    for chosen in product(*axes.values()):
        time_us = TIMES[chosen]
        values = dict(zip(axes, chosen))
        label = " ".join(f"{name}={value}" for name, value in values.items())
        outcomes.append((values, label, "too [large]" if time_us is None else replace(row, time_us=time_us)))
    return sweep_report(axes, outcomes, None, "1")


def test_ranks_and_ratios():
    found = report()
    ranked = [(row.rank, row.label, row.ratio) for row in found.launches]
    # equal times stay in the order of the space
    assert ranked == [
        (1, "a=1 b=y c=p", 1.0), (2, "a=1 b=y c=q", 1.0), (3, "a=2 b=y c=p", 1.25), (4, "a=1 b=x c=q", 1.5), (5, "a=2 b=y c=q", 1.75),
        (6, "a=1 b=x c=p", 2.0),
    ]  # fmt: skip
    assert [(each.label, each.reason) for each in found.not_predicted] == [("a=2 b=x c=p", "too [large]"), ("a=2 b=x c=q", "too [large]")]
    row, source = found.launches[0], launch("multiply")
    assert (row.ctas, row.warps, row.limited_by) == (source.held.ctas, source.held.warps, source.held.binding)
    assert row.bound == source.bound and row.busy_percent == next((r.percent for r in source.resources[:1] if r.name == row.bound), None)
    assert "selected" not in row.waits and set(row.waits) < set(source.stalls)


ERRORS = [
    (Accuracy(30.0, None, 5), "best    a=1 b=y c=p, 4.00 us; 2 others are within 30.0 % of it, the mean error of predictions"),
    (Accuracy(1.0, 2.0, 5), "best    a=1 b=y c=p, 4.00 us; 1 other is within 1.0 % of it, the mean error of predictions"),
    (None, "best    a=1 b=y c=p, 4.00 us"),
]


@pytest.mark.parametrize(("error", "line"), ERRORS, ids=["coarse", "fine", "unknown"])
def test_what_is_as_near_as_predictions_are(error, line, capsys):
    print_sweep(report(error=error), top=0, color=False)
    assert line in capsys.readouterr().out.splitlines()


def test_text(capsys):
    print_sweep(report(error=None), top=2, color=False)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert "swept   a (2), b (2), c (2)" in lines and "tried   6 predicted, 2 not" in lines and "and 4 slower ones (--top N)" in lines
    assert lines[-3:] == ["not predicted  reason", "a=2 b=x c=p    too [large]", "a=2 b=x c=q    too [large]"]


def test_the_title_has_what_is_the_same_everywhere():
    assert title(report(options={"a": 1, "n": 5})) == "multiply n=5"
    assert title(report(defines={"a": "1", "N": "5", "ON": None})) == "multiply -D N=5 -D ON"


def test_csv_has_columns_for_the_axes():
    lines = csv_text(report()).splitlines()
    assert lines[0].startswith("rank,a,b,c,time_us,ratio,") and len(lines) == 9
    assert lines[1].startswith("1,1,y,p,4.0,1.0,") and lines[-1].startswith(",2,x,q,,") and lines[-1].endswith(",too [large]")


def test_bars():
    found = report()
    figure = bar_figure(found)
    (axes,) = figure.axes
    ends = [patch.get_x() + patch.get_width() for patch in axes.patches]
    assert ends[6:] == pytest.approx([row.time_us for row in found.launches])
    written = texts_of(figure)
    assert {row.label for row in found.launches} <= set(written) and "4.00  1.00 x" in written
    assert overlapping(figure) == []
    assert len(bar_figure(found, 2).axes[0].patches) == 4 and "the fastest 2 of 6" in texts_of(bar_figure(found, 2))


def test_more_bars_than_can_be_seen():
    outcomes = [({"n": str(i)}, f"n={i}", launch("multiply")) for i in range(MOST_BARS + 1)]
    figure = bar_figure(sweep_report({"n": [str(i) for i in range(MOST_BARS + 1)]}, outcomes, None, "1"))
    assert f"the fastest {MOST_BARS} of {MOST_BARS + 1}" in texts_of(figure) and overlapping(figure) == []


def test_a_map_has_the_best_of_the_others():
    found = report()
    best = best_by(found, "a", "b")
    assert {pair: row.time_us for pair, row in best.items()} == {("1", "y"): 4.0, ("1", "x"): 6.0, ("2", "y"): 5.0}
    figure = map_figure(found, "a", "b")
    (axes,) = figure.axes
    cells = {patch.get_gid(): patch.get_xy() for patch in axes.patches if patch.get_gid()}
    assert cells == {"cell 1 x": (0, 0), "cell 1 y": (1, 0), "none 2 x": (0, 1), "cell 2 y": (1, 1)}
    (frame,) = [patch for patch in axes.patches if patch.get_gid() is None]
    assert frame.get_xy() == (1.03, 0.03)
    written = texts_of(figure)
    assert {"6.00", "1.50 x", "a", "b", "x", "y"} <= set(written) and any(text.endswith("the best over c") for text in written)
    assert overlapping(figure) == []


def test_two_axes_give_a_map_and_files_are_the_same(tmp_path):
    found = report()
    save_sweep(tmp_path / "bars.svg", found)
    save_sweep(tmp_path / "map.svg", found, ["c", "a"])
    save_figure(map_figure(found, "c", "a"), tmp_path / "again.svg")
    assert (tmp_path / "map.svg").read_bytes() == (tmp_path / "again.svg").read_bytes()
    assert "a=1 b=y c=p" in svg_texts(tmp_path / "bars.svg") and "a=1 b=y c=p" not in svg_texts(tmp_path / "map.svg")


@pytest.mark.parametrize("over", [["a"], ["a", "a"], ["a", "z"], ["a", "b", "c"], ["a", "long"]])
def test_maps_that_cannot_be(over):
    with pytest.raises(UsageError, match=r"two of what is swept|more than the 40"):
        check_over({"a": ["1", "2"], "b": ["x"], "c": ["p"], "long": list(map(str, range(41)))}, over)
