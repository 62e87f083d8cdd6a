"""`fasim sweep` on a Dask cluster: the same as here, or a message that says what is wrong there."""

from __future__ import annotations

import contextlib
import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fasim.cli import sweep_cluster
from fasim.cli.sweep_cluster import Installed, carry_out_on, complaint_about, installed, setting_of
from fasim.cli.sweep_space import space
from fasim.cli.timing_job import timing_row
from fasim.errors import FasimError
from tests.cli.sweeps import ARGS, OWN, call_of


def test_without_dask(sweep, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = sweep("axpy", "--n", "64,65", "--scheduler", "tcp://127.0.0.1:1")
    assert done.code == 4 and "pip install 'dask[distributed]'" in done.err


def test_no_scheduler_at_the_address(sweep, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(sweep_cluster, "CONNECT_SECONDS", 0.3)
    done = sweep("axpy", "--n", "64,65", "--scheduler", "tcp://127.0.0.1:1")
    assert done.code == 4 and "no Dask scheduler answers at tcp://127.0.0.1:1: " in done.err


@contextlib.contextmanager
def dask_process(*words: str, ready: str):
    """A process of Dask's own command line, and the line in which it says that it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", *words], stderr=subprocess.PIPE, text=True, cwd="/", stdout=subprocess.DEVNULL
    )
    try:
        for line in process.stderr:
            if ready in line:
                break
        else:
            raise AssertionError(f"dask {' '.join(words)} ended")
        yield process, line
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def cluster():
    """The address of a scheduler with two workers, all of them processes as a person starts them, in another folder."""
    pytest.importorskip("distributed")
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(scheduler())
        for _ in range(2):
            stack.enter_context(worker(address))
        yield address


@contextlib.contextmanager
def scheduler():
    with dask_process("scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0", ready="Scheduler at:") as (
        _,
        line,
    ):
        yield line.split()[-1]


def worker(address: str):
    return dask_process("worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", ready="Registered to:")


def test_a_scheduler_with_two_workers_gives_the_same(sweep, cluster, monkeypatch):
    seen = []
    take = sweep_cluster._outcome
    monkeypatch.setattr(sweep_cluster, "_outcome", lambda *given: seen.append(given) or take(*given))
    words = (*ARGS, "-D", "REPEAT=8,bad(", "-D", "KBYTES=1,64", "--block", "64,128", "--grid", "1024/blockDim.x", "--json")
    there, here = sweep(*words, "--scheduler", cluster), sweep(*words)
    assert there.code == 0 and not there.err, there.err
    assert there.record == here.record
    assert len(here.record["launches"]) == 2 and len(here.record["not_predicted"]) == 6 and len(seen) == 8
    # what was changed since counts
    Path("own.cu").write_text(OWN.replace("x * x + 1", "x * x * x * x + 1"))
    changed, here = sweep(*words, "--scheduler", cluster), sweep(*words)
    assert changed.record == here.record and changed.record != there.record


def test_both_workers_take_part(cluster):
    distributed = pytest.importorskip("distributed")
    jobs = [point.job for point in space(call_of("axpy", "--n", ",".join(map(str, range(64, 80)))), []).points]
    assert carry_out_on(cluster, jobs, 1) == [timing_row(job) for job in jobs]
    with distributed.Client(cluster, set_as_default=False) as client:
        # both have compared what they have with what this process has
        sizes = client.run(lambda: __import__("fasim.cli.sweep_cluster").cli.sweep_cluster.complaint_about.cache_info().currsize)
    assert list(sizes.values()) == [1, 1]


def test_a_cluster_of_its_own(sweep):
    pytest.importorskip("distributed")
    words = ("axpy", "--n", "64,128,256,512", "--json")
    there = sweep(*words, "--scheduler", "local", "--workers", "2")
    assert there.code == 0, there.err
    assert there.record == sweep(*words).record
    assert logging.getLogger("distributed").level <= logging.WARNING


def test_workers_with_another_fasim_are_named(sweep, cluster, monkeypatch):
    monkeypatch.setattr(sweep_cluster, "installed", lambda: replace(installed(), fasim="9.9"))
    done = sweep("axpy", "--n", "64,65", "--scheduler", cluster)
    assert done.code == 2 and f"2 of 2 workers at {cluster} would not predict what this machine does:\n  tcp://" in done.err
    assert done.err.count(": fasim 0.1.0, here 9.9\n") == 2


def test_workers_without_fasim_are_named(sweep, cluster, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("def complaint_about(setting): return ''\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here

    monkeypatch.setattr(sweep_cluster, "complaint_about", only_here.complaint_about)
    done = sweep("axpy", "--n", "64,65", "--scheduler", cluster)
    assert done.code == 2 and done.err.count("fasim cannot be asked there (ModuleNotFoundError(\"No module named 'only_here'\"))") == 2


def test_differences():
    here = Installed("1.0", "a" * 64, "13.0")
    assert here.differences(here) == []
    assert here.differences(Installed("1.1", "b" * 64, "13.1")) == ["fasim 1.1, here 1.0", "NVRTC 13.1, here 13.0"]
    assert here.differences(replace(here, files="b" * 64)) == [
        "fasim 1.0 with other files in its package (digest bbbbbbbbbbbb, here aaaaaaaaaaaa)"
    ]


def test_files_have_to_be_the_same_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.cu").write_text("x")
    Path("x.npz").write_text("y")
    jobs = [point.job for point in space(call_of("a.cu", args=("p=f32@x.npz:p", "n=1"), defines=("T=1,2",)), []).points]
    setting = setting_of(jobs)
    assert [name for name, _ in setting.files] == ["a.cu", "x.npz"] and complaint_about(setting) == ""
    assert "no folder /nowhere: workers have to see" in complaint_about(replace(setting, folder="/nowhere"))
    Path("x.npz").write_text("z")
    complaint_about.cache_clear()
    assert complaint_about(setting) == f"{tmp_path}/x.npz has other contents than where the sweep was started"
    Path("x.npz").unlink()
    complaint_about.cache_clear()
    assert f"no file {tmp_path}/x.npz: workers have to see" in complaint_about(setting)


def test_a_scheduler_without_workers(sweep, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(sweep_cluster, "EMPTY_SECONDS", 0.3)
    with scheduler() as address:
        done = sweep("axpy", "--n", "64,65", "--scheduler", address)
    assert done.code == 2 and f"the Dask scheduler at {address} has no workers; start some: dask worker {address}" in done.err


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ("worker", "all workers of the Dask scheduler at {} are gone, {} of 300 launches"),
        ("scheduler", "the Dask scheduler at {} went away"),
    ],
)
def test_what_ends_during_a_sweep(ends, message, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(sweep_cluster, "EMPTY_SECONDS", 0.3)
    monkeypatch.setattr(sweep_cluster, "_CHECK_SECONDS", 0.1)
    jobs = [point.job for point in space(call_of("axpy", "--n", ",".join(map(str, range(64, 364)))), []).points]
    words = ("scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0")
    with dask_process(*words, ready="Scheduler at:") as (head, line):
        address = line.split()[-1]
        with worker(address) as (hand, _):
            counts = []

            def progress(done, total):
                counts.append(done)
                (hand if ends == "worker" else head).kill()

            with pytest.raises(FasimError) as caught:
                carry_out_on(address, jobs, 1, progress)
    assert message.format(address, counts[-1]) in str(caught.value) and 0 < counts[-1] < 300
