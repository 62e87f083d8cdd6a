"""The data file that is written, and the command around it."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace

import pytest

import fasim.gpu.calibrate.datafile as datafile
from fasim.arch.cards import card
from fasim.cli import gpu_calibrate
from fasim.cli.gpu_calibrate import CalibrateOptions, calibrate, placement_lines, table
from fasim.errors import ToolMissing, UsageError
from fasim.gpu.calibrate.code import Code
from fasim.gpu.calibrate.datafile import DataFile, known, nearest, written

NEAR = """\
# words

[card]
name = "Card # 1"
arch = 90
source = "here"

[interval]                # of the pipes
fma = 1
alu = 2  # all
big = 62_914_560          # bytes

[accuracy]
mean_percent = 3.0
"""


def test_written():
    values = {"card.name": 'My "card"', "interval.fma": 1.5, "interval.big": 131_072, "interval.absent": 7}
    text = written(DataFile(NEAR), values)
    assert text.splitlines()[3:] == [
        "[card]",
        'name = "My \\"card\\""',
        "arch = 90  # not measured, as the Card # 1's",
        'source = "here"  # not measured, as the Card # 1\'s',
        "",
        "[interval]                # of the pipes",
        "fma = 1.5",
        "alu = 2  # not measured, as the Card # 1's; all",
        "big = 131_072  # bytes",
        "absent = 7",
    ]
    assert tomllib.loads(text)["card"]["name"] == 'My "card"'


def test_data_files_of_fasim(h200):
    near = nearest(h200.card)
    assert near.name == "NVIDIA H200"
    text = written(near, h200.keys)
    new, old = tomllib.loads(text), {name: keys for name, keys in near.tables.items() if name != "accuracy"}
    assert {section: set(keys) for section, keys in new.items()} == {section: set(keys) for section, keys in old.items()}
    # every measured key is one of the file's, but for names of no section
    assert all(key in {f"{s}.{k}" for s, keys in old.items() for k in keys} for key in h200.keys)
    lines = {line.split(" = ")[0]: line for line in text.splitlines() if " = " in line}
    assert "not measured, as the NVIDIA H200's" in lines["hmma_slots"]
    assert "not measured" not in lines["hmma_16816"] and new["interval"]["hmma_16816"] == 6
    assert new["latency"]["lds"] == 23 and new["card"]["sms"] == 132
    assert new["card"]["source"].startswith("fasim gpu calibrate ") and "580.159.04" in new["card"]["source"]


def test_the_timing_model_reads_it(h200, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(written(nearest(h200.card), h200.keys))
    mine = card(str(path))
    assert (mine.name, mine.sms, mine["latency.shfl"]) == ("NVIDIA H200", 132, 24)
    assert mine["clock.tensor_mhz"] == pytest.approx(1800, rel=0.02)


def files(*cards):
    return [DataFile(f'[card]\nname = "{name}"\narch = {arch}\n') for name, arch in cards]


@pytest.mark.parametrize(
    ("name", "capability", "expected"),
    [("B", "9.0", "B"), ("C", "9.0", "A"), ("C", "8.6", "E"), ("C", "8.9", "E"), ("C", "12.0", "A"), ("C", "7.5", "E"), ("E", "9.0", "E")],
)
def test_nearest(h200, monkeypatch, name, capability, expected):
    monkeypatch.setattr(datafile, "known", lambda: files(("A", 90), ("B", 90), ("E", 80)))
    assert nearest(replace(h200.card, name=name, compute_capability=capability)).name == expected
    monkeypatch.setattr(datafile, "known", lambda: [])
    with pytest.raises(UsageError, match="no data file"):
        nearest(h200.card)


def test_known():
    assert all(file.value("card.sms") == file.tables["card"]["sms"] for file in known())
    assert known()[0].value("card.name") is None and known()[0].value("no.such") is None


@pytest.fixture
def measured(gpu, h200, monkeypatch):
    """The command with a GPU that measures what the recording holds."""
    seen = []

    def measure(device, code, progress):
        seen.append(code)
        progress("loops")
        return h200.raw, h200.placed

    monkeypatch.setattr(gpu_calibrate, "measure", measure)
    monkeypatch.setattr(gpu_calibrate, "compile_all", lambda arch: Code(arch, "NVRTC 0", {}, {}))
    return seen


def test_command(measured, h200, tmp_path, capsys):
    out, results, placement = (tmp_path / name for name in ("mine.toml", "all.json", "p.npz"))
    assert calibrate(CalibrateOptions(out, results, placement), 0) == 0
    printed = capsys.readouterr()
    assert "measuring: loops" in printed.err
    assert f"written: {out}" in printed.out
    assert measured[0].arch == "sm_90"
    assert tomllib.loads(out.read_text())["interval"]["xu"] == 8
    found = json.loads(results.read_text())
    assert found["schema"] == "fasim.gpu.calibrate/1" and found["values"]["latency.xu"]["value"] == 17
    assert found["made"].startswith("NVRTC 0, 20") and found["raw"] == h200.raw
    assert placement.stat().st_size > 1000


def test_table(h200, without_imad):
    lines = table(without_imad.values, without_imad.skipped, nearest(h200.card)).splitlines()
    assert lines[0].split() == ["key", "measured", "unit", "spread", "NVIDIA", "H200", "difference"]
    by_key = {line.split()[0]: line.split() for line in lines}
    assert by_key["latency.lds"] == ["latency.lds", "23", "cycles", "0", "23", "+0.0", "%"]
    assert "interval.fma_heavy: not measured: the compiler makes 48 instructions like IMAD of 64 statements" in lines
    assert "later CTAs at the place free first 100.0 %" in "\n".join(placement_lines(h200))


def test_pack(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(gpu_calibrate, "compile_all", lambda arch: Code(arch, "NVRTC 0", {"launch": b"x"}, {}))
    assert gpu_calibrate.pack(tmp_path / "code", "sm_120") == 0
    assert capsys.readouterr().out == f"{tmp_path / 'code'}: 1 cubins for sm_120, made by NVRTC 0\n"
    assert (tmp_path / "code" / "launch.cubin").read_bytes() == b"x"


def test_without_a_gpu(gpu):
    gpu.names = ()
    with pytest.raises(ToolMissing):
        calibrate(CalibrateOptions(), 0)
