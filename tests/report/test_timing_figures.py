"""Figures and traces of predictions: marks against the records, bars against the log, files."""

from __future__ import annotations

import io
import itertools
from dataclasses import replace

import pytest

from fasim.errors import UsageError
from fasim.report.measured import Timing
from fasim.report.timing import Accuracy, TimedLaunch, TimeReport
from fasim.report.timing_figures import measured_figure, roofline_figure, save_measured, save_roofline
from fasim.report.timing_gantt import MOST_CYCLES, WINDOW_CYCLES, chosen_spans, gantt_figure, save_gantt
from fasim.report.timing_perfetto import OUTSIDE, save_trace, write_trace
from fasim.report.timing_spans import ISSUE, LSU, pipe_spans, used_pipes
from fasim.report.timing_text import View, error_text, facts, microseconds, print_time, sampling_summary
from tests.report.figures import overlapping, svg_texts, texts_of
from tests.report.timed import launch, prediction
from tests.report.traces import Track, perfetto_tracks


def measured(name: str, median_us: float) -> TimedLaunch:
    return launch(name, label=name, measured=Timing(median_us, median_us - 0.5, median_us + 0.5, 1.0, 99.0, 5, 20, 1))


# --- roofline and measured times -------------------------------------------------------------------------------------------------


def test_roofline_has_a_mark_for_each_memory():
    rows = [launch("product", label="small", buffer_bytes=512), launch("multiply", label="plain", buffer_bytes=2048)]
    figure = roofline_figure([*rows, launch("chase")])
    (axes,) = figure.axes
    marks = sorted(tuple(map(float, xy)) for collection in axes.collections for xy in collection.get_offsets())
    intensities = [(row, x) for row in rows for x in (row.roofline.flops_a_dram_byte, row.roofline.flops_a_l2_byte)]
    expected = [(x, row.tflops) for row, x in intensities]
    assert [x for xy in marks for x in xy] == pytest.approx([x for xy in sorted(expected) for x in xy])
    written = texts_of(figure)
    assert {"small", "plain"} <= set(written) and not any(text == "chase" for text in written)
    roofs = rows[0].roofline.roofs
    assert f"tensor pipe {roofs[0].value:,.0f} TFLOPS" in written
    lines = {tuple(line.get_ydata()) for line in axes.lines}
    assert (roofs[0].value, roofs[0].value) in {tuple(float(y) for y in ys) for ys in lines}


def test_a_panel_a_card():
    one = launch("product", label="a h200", buffer_bytes=512)
    other = replace(one, label="a b", gpu="b", card="Card B")
    figure = roofline_figure([one, other])
    assert [axes.get_title(loc="left").split(" at ")[0] for axes in figure.axes] == ["NVIDIA H200", "Card B"]
    assert texts_of(figure).count("a") == 1


def test_predicted_against_measured():
    rows = [measured("product", 6.0), measured("multiply", 20.0), launch("chase")]
    figure = measured_figure(rows)
    above, below = figure.axes
    marks = {tuple(map(float, c.get_offsets()[0])) for c in above.collections if len(c.get_offsets()) == 1}
    assert {(6.0, rows[0].time_us), (20.0, rows[1].time_us)} <= marks
    errors = {round(float(c.get_offsets()[0][1]), 6) for c in below.collections}
    assert errors == {round(row.measured.error_percent, 6) for row in rows[:2]}
    mean = sum(abs(row.measured.error_percent) for row in rows[:2]) / 2
    assert any(f"2 launches: mean absolute error {mean:.1f} %" in text for text in texts_of(figure))


NOTHING = [
    (lambda path: save_roofline(path, [launch("chase")]), "no roofline to draw"),
    (lambda path: save_measured(path, [launch("chase")]), "no measured time to draw"),
    (lambda path: save_gantt(path, [(launch("chase"), prediction("chase"))] * 5), "5 launches do not fit"),
    (lambda path: save_gantt(path, [(launch("chase"), prediction("chase", 0))]), "no log"),
    (lambda path: save_gantt(path, [(launch("chase"), prediction("chase"))], (0, MOST_CYCLES + 1)), "too many to be seen"),
    (lambda path: save_gantt(path, [(launch("product"), prediction("product"))], (10**8, 10**8 + 9)), "there is nothing in cycles"),
    (lambda path: save_trace(path, [(launch("product"), prediction("product"))], (10**8, 10**8 + 9)), "there is nothing in cycles"),
]


@pytest.mark.parametrize(("draw", "message"), NOTHING, ids=[message for _, message in NOTHING])
def test_nothing_to_draw(draw, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        draw(tmp_path / "x.svg")
    assert list(tmp_path.iterdir()) == []


FILES = [
    ("roofline.svg", lambda path: save_roofline(path, [launch("product", buffer_bytes=9)])),
    ("measured.svg", lambda path: save_measured(path, [measured("product", 6.0)])),
    ("gantt.svg", lambda path: save_gantt(path, [(launch("product"), prediction("product"))])),
]


@pytest.mark.parametrize(("name", "draw"), FILES, ids=[name for name, _ in FILES])
def test_the_same_launches_give_the_same_file(name, draw, tmp_path):
    draw(tmp_path / name)
    first = (tmp_path / name).read_bytes()
    draw(tmp_path / name)
    assert (tmp_path / name).read_bytes() == first and svg_texts(tmp_path / name)


def test_texts_of_the_roofline_do_not_overlap():
    found = overlapping(roofline_figure([launch("product", label="small", buffer_bytes=512), launch("multiply", label="plain")]))
    # labels of ticks are among the texts where they are not drawn, too
    assert [pair for pair in found if not any(text.startswith("$") for text in pair)] == []


# --- Gantt chart -----------------------------------------------------------------------------------------------------------------


def test_gantt_bars_are_the_spans():
    found, row = prediction("product"), launch("product", label="a")
    window = (400, 700)
    figure = gantt_figure([(row, found)], window)
    (axes,) = figure.axes
    spans, cycles = chosen_spans(found, window)
    assert cycles == window and axes.get_xlim() == window
    boxes = [path.get_extents() for collection in axes.collections for path in collection.get_paths()]
    drawn = sorted((round(box.x0, 3), round(box.x1, 3)) for box in boxes if box.width <= 300)
    assert drawn == sorted((round(span.start, 3), round(span.end, 3)) for span in spans)
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels == 4 * [{LSU: "to lsu"}.get(pipe, pipe).replace("_", " ") for pipe in used_pipes(spans)]
    assert "tensor" in labels and ISSUE in labels


def test_gantt_in_the_middle_and_side_by_side():
    found = [(launch(name, label=name), prediction(name)) for name in ("product", "multiply")]
    figure = gantt_figure(found)
    for axes, (row, each) in zip(figure.axes, found, strict=True):
        low, high = axes.get_xlim()
        assert axes.get_label() == row.label and high - low == WINDOW_CYCLES
        assert abs((low + high) / 2 - each.sm.cycles / 2) <= 2


# --- trace -----------------------------------------------------------------------------------------------------------------------


def tracks_of(*names: str, window: tuple[int, int] | None = None) -> list[Track]:
    pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    file = io.BytesIO()
    write_trace(file, [(launch(name, label=name), prediction(name)) for name in names], window)
    return perfetto_tracks(file.getvalue())


def test_a_track_a_pipe_and_sub_partition():
    tracks = {track.name: track for track in tracks_of("product")}
    found = prediction("product")
    spans = list(pipe_spans(found))
    for sub in range(4):
        for pipe in used_pipes(spans):
            track = tracks[f"sub-partition {sub} {'issue slot' if pipe == ISSUE else pipe.replace('_', ' ')}"]
            own = [span for span in spans if (span.sub_partition, span.pipe) == (sub, pipe)]
            assert [(slice_.start, slice_.end) for slice_ in track.slices] == [(span.start, span.end) for span in own]
    matrix = tracks["sub-partition 1 tensor"].slices[0]
    assert matrix.name == "HMMA.16816.F32" and matrix.args["warp"] == 1 and matrix.args["code"].startswith("asm volatile(")
    (whole,) = tracks["launch"].slices
    assert whole.args["cycles"] == round(found.cycles) and "not real time" not in whole.args["time"]


def test_warps_as_cta_step_instruction():
    tracks = {track.name: track for track in tracks_of("multiply")}
    warps = [name for name in tracks if name.startswith("warp ")]
    assert len(warps) == 16
    for name in warps:
        (cta,) = tracks[name].slices
        assert cta.name == "CTA 0"
        steps = [step.name for step in cta.inside]
        assert set(steps) == {OUTSIDE, "LOOP", "STORE"}
        leaves = [leaf for step in cta.inside for leaf in step.inside]
        assert leaves[0].name and all(a.end <= b.start for a, b in itertools.pairwise(leaves))
    count = sum(len(step.inside) for name in warps for step in tracks[name].slices[0].inside)
    assert count == prediction("multiply").sm.instructions


def test_a_window_and_two_launches():
    tracks = tracks_of("product", "chase", window=(300, 350))
    processes = [track.name for track in tracks if track.parent == 0]
    assert processes == ["product on NVIDIA H200", "chase on NVIDIA H200"]
    slices = [slice_ for track in tracks for slice_ in track.slices]
    assert slices and all(300 <= slice_.start < slice_.end <= 350 for slice_ in slices)


def test_the_trace_as_a_file(tmp_path):
    save_trace(tmp_path / "a.pftrace", [(launch("product"), prediction("product"))])
    first = (tmp_path / "a.pftrace").read_bytes()
    save_trace(tmp_path / "a.pftrace", [(launch("product"), prediction("product"))])
    assert first and (tmp_path / "a.pftrace").read_bytes() == first


# --- text ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "text"), [(3.14159, "3.14"), (99.0, "99.00"), (123.45, "123.5"), (1234.5, "1,234")])
def test_microseconds(value, text):
    assert microseconds(value) == text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (None, "not measured"),
        (Accuracy(3.26, 7.5, 284), "± 3.3 % mean, worst 7.5 % over 284 measured launches"),
        (Accuracy(3.0, None, 0), "± 3.0 % mean"),
    ],
)
def test_error_text(error, text):
    assert error_text(error) == text


def test_facts_of_a_launch():
    row = replace(measured("product", 6.0), error=None)
    said = dict(facts(row))
    assert said["time"].startswith(f"{microseconds(row.time_us)} us predicted, ") and "operations of the machine code" in said["time"]
    assert said["time"].endswith("error of predictions: not measured")
    assert said["measured"].startswith("6.00 us (5.50 to 6.50); the prediction is ")
    assert said["occupancy"].startswith(f"{row.held.ctas} CTAs an SM, {row.held.warps} of 64 warps, limited by ")
    assert "the grid gives an SM 1 at once" in said["occupancy"]


SAMPLED = [
    ({}, "1 of its 1 CTAs", "no cycles extrapolated"),
    ({"ctas": 3, "sm_ctas": 10}, "3 of its 10 CTAs", "up to 75 % of the cycles extrapolated"),
    ({"work_error_percent": 2.345}, "work of CTAs inferred within 2.3 %", "work of CTAs inferred within 2.3 %"),
    ({"stagger_spread_percent": 1.2}, "1.2 % between orders in which its CTAs begin", "1.2 % between orders"),
]


@pytest.mark.parametrize(("changes", "alone", "together"), SAMPLED)
def test_how_much_was_simulated(changes, alone, together):
    row = launch("product")
    row = replace(row, cycles=4 * row.sampled.simulated_cycles, sampled=replace(row.sampled, **changes))
    assert alone in dict(facts(row))["simulated"]
    assert ("75 % of the cycles extrapolated" in dict(facts(row))["simulated"]) == (row.sampled.ctas < row.sampled.sm_ctas)
    assert together in sampling_summary([launch("product"), row])


def test_side_by_side(capsys):
    rows = [measured("product", 6.0), measured("multiply", 20.0)]
    print_time(TimeReport(rows, [], None, "0"), View(120, False, 5))
    out = capsys.readouterr().out
    head = next(line for line in out.splitlines() if line.startswith("launch "))
    assert head.split()[:4] == ["launch", "us", "TFLOPS", "measured"]
    for row in rows:
        line = next(line for line in out.splitlines() if line.startswith(f"{row.label} "))
        assert line.split()[1] == microseconds(row.time_us)
    assert "2 measured: mean absolute error " in out
