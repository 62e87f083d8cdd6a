"""Predictions on a Dask cluster: what a worker does and has to have, and how results are collected."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import logging
import multiprocessing
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fasim
from fasim.cli.failures import warn
from fasim.cli.target import split_target
from fasim.cli.timing_job import TimingJob, timing_row
from fasim.errors import FasimError, ToolMissing, UsageError
from fasim.report.timing import TimedLaunch

#: a scheduler with one process a core on this machine, started for one command
LOCAL = "local"
#: how long a scheduler may take to answer, and how long it may be without workers
CONNECT_SECONDS, EMPTY_SECONDS = 10.0, 20.0
_POLL_SECONDS, _CHECK_SECONDS = 0.02, 1.0
_Progress = Callable[[int, int | None], None]

# --- on the workers --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Installed:
    """What predictions depend on besides the job: versions of fasim and of the compiler, and a digest of fasim's own files."""

    fasim: str
    files: str
    compiler: str

    def differences(self, other: Installed) -> list[str]:
        """What another one has that is not the same, `other` first."""
        found = [f"{name} {theirs}, here {ours}" for name, theirs, ours in (
            ("fasim", other.fasim, self.fasim), ("NVRTC", other.compiler, self.compiler),
        ) if theirs != ours]  # fmt: skip
        if other.fasim == self.fasim and other.files != self.files:
            found.append(f"fasim {other.fasim} with other files in its package (digest {other.files[:12]}, here {self.files[:12]})")
        return found


@dataclass(frozen=True)
class Setting:
    """What a sweep finds where it was started: what is installed, and the folder and digests of files that its jobs name."""

    installed: Installed
    folder: str
    files: tuple[tuple[str, str], ...]


class WorkerUnfit(FasimError):
    """A worker that would not predict the same."""


@functools.cache
def installed() -> Installed:
    """Of this process, as it was when first asked: what is loaded stays, whatever is installed later."""
    from fasim.toolchain.nvrtc import nvrtc_version

    folder = Path(fasim.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith("."):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return Installed(fasim.__version__, digest.hexdigest(), nvrtc_version())


#: a process predicts one launch at a time, in the folder of its sweep
_ONE_AT_A_TIME = threading.Lock()


def predict_there(job: TimingJob, setting: Setting) -> TimedLaunch | str:
    """Carry a job out on a worker.

    Returns: the record, or the message of the error that it ends in. Raises: WorkerUnfit.
    """
    with _ONE_AT_A_TIME:
        if complaint := complaint_about(setting):
            raise WorkerUnfit(complaint)
        with contextlib.chdir(setting.folder) if setting.files else contextlib.nullcontext():
            try:
                return timing_row(job)
            except FasimError as error:
                return str(error)


@functools.lru_cache(1)
def complaint_about(setting: Setting) -> str:
    """Why this process would not predict the same as the one that asks; empty if it does."""
    from fasim.arch.cards import card

    card.cache_clear()  # data files may have changed since the last sweep
    if found := setting.installed.differences(installed()):
        return "; ".join(found)
    if not setting.files:
        return ""
    if not Path(setting.folder).is_dir():
        return f"no folder {setting.folder}: workers have to see the files of a sweep under the same paths"
    for name, digest in setting.files:
        path = Path(setting.folder, name)
        if not path.is_file():
            return f"no file {path}: workers have to see the files of a sweep under the same paths"
        if _digest(path) != digest:
            return f"{path} has other contents than where the sweep was started"
    return ""


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# --- where the sweep was started -------------------------------------------------------------------------------------------------


def setting_of(jobs: Sequence[TimingJob]) -> Setting:
    """What the jobs find here."""
    names: dict[str, None] = {}
    for job in jobs:
        target = split_target(job.call.words)
        options = job.call.options
        texts = [match[1] for text in (*options.args, *options.symbols) if (match := re.search(r"@(.+)$", text))]
        files = [text if Path(text).is_file() else text.rpartition(":")[0] for text in texts]
        files += [] if target.of_collection else [target.name]
        files += [job.gpu] if job.gpu.endswith(".toml") else []
        names.update(dict.fromkeys(files))
    found = tuple((name, _digest(Path(name))) for name in sorted(names) if Path(name).is_file())
    return Setting(installed(), os.getcwd(), found)


def carry_out_on(scheduler: str, jobs: Sequence[TimingJob], workers: int, progress: _Progress | None = None) -> list[TimedLaunch | str]:
    """Carry jobs out on a Dask cluster.

    scheduler: its address, or LOCAL for one of `workers` processes that ends with the command. Returns: in the order of the jobs, the
    record of each or the message of the error that it ends in. Raises: ToolMissing without Dask or without a scheduler at that address;
    FasimError if a worker would not predict the same, or if the scheduler or all workers go away.
    """
    distributed = dask_distributed()
    setting = setting_of(jobs)
    with _quiet(), _client(distributed, scheduler, min(workers, len(jobs))) as client:
        address = client.scheduler.address
        try:
            _await_workers(client, address)
            _check_workers(client, address, setting)
        except OSError:
            raise _Watch(client, address).lost(0, len(jobs)) from None
        futures = client.map(predict_there, jobs, setting=setting, pure=False)
        try:
            return _collect(distributed, client, address, futures, progress)
        finally:
            with contextlib.suppress(Exception):  # whatever the cluster still says: what matters is what ended the sweep
                client.cancel(futures)


def dask_distributed() -> Any:
    """The package. Raises: ToolMissing."""
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        raise ToolMissing(
            f"--scheduler needs Dask ({error}): pip install 'dask[distributed]', here and where the workers are; "
            "without --scheduler a sweep runs on the cores of this machine"
        ) from None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without Dask's log: what goes wrong is said by an error."""
    names = ["distributed", *(name for name in logging.root.manager.loggerDict if name.startswith("distributed."))]
    levels = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


@contextlib.contextmanager
def _client(distributed: Any, scheduler: str, workers: int) -> Iterator[Any]:
    others = set(multiprocessing.active_children())
    with contextlib.ExitStack() as stack:
        where: Any = scheduler
        if scheduler == LOCAL:
            options = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
            where = stack.enter_context(distributed.LocalCluster(**options, silence_logs=logging.CRITICAL))
        try:
            client = distributed.Client(where, timeout=CONNECT_SECONDS, set_as_default=False)
        except ValueError as error:
            raise UsageError(f"--scheduler {scheduler!r}: {error}; write tcp://HOST:PORT, or {LOCAL}") from None
        except OSError as error:
            raise ToolMissing(
                f"no Dask scheduler answers at {scheduler}: {error}. `dask scheduler` starts one and says its address; "
                "without --scheduler a sweep runs on the cores of this machine"
            ) from None
        stack.enter_context(client)
        try:
            yield client
        except KeyboardInterrupt:
            # Dask would wait until its own processes have done what they are at
            for process in set(multiprocessing.active_children()) - others:
                process.kill()
            raise


def _advice(address: str) -> str:
    return f"start some: dask worker {address} --nworkers auto --nthreads 1"


def _await_workers(client: Any, address: str) -> None:
    end = time.monotonic() + EMPTY_SECONDS
    while not client.nthreads():
        if time.monotonic() > end:
            raise FasimError(f"the Dask scheduler at {address} has no workers; {_advice(address)}")
        time.sleep(_POLL_SECONDS)


def _check_workers(client: Any, address: str, setting: Setting) -> None:
    """Raises: FasimError if a worker would not predict the same."""
    answers = client.run(complaint_about, setting, on_error="return")
    # an exception: fasim is not there, or not this one
    words = {worker: f"fasim cannot be asked there ({each})" if isinstance(each, Exception) else each for worker, each in answers.items()}
    unfit = [f"{worker}: {each}" for worker, each in words.items() if each]
    if unfit:
        listed = "".join(f"\n  {each}" for each in unfit)
        raise FasimError(
            f"{len(unfit)} of {len(answers)} workers at {address} would not predict what this machine does:{listed}\n"
            "Install the same there and start these workers anew."
        )
    threads = {worker: count for worker, count in client.nthreads().items() if count > 1}
    if threads:
        example = next(iter(threads))
        warn(
            f"{len(threads)} workers have several threads ({example}: {threads[example]}), of which predictions use one at a time; "
            f"{_advice(address)}"
        )


def _collect(distributed: Any, client: Any, address: str, futures: Sequence[Any], progress: _Progress | None) -> list[TimedLaunch | str]:
    """The results as they come, in the order of the futures."""
    places = {future.key: place for place, future in enumerate(futures)}
    found: dict[int, TimedLaunch | str] = {}
    with client.as_current():
        # with results: one that was ready may be lost with its worker before it is fetched
        coming = distributed.as_completed(futures, with_results=True, raise_errors=False)
    watch = _Watch(client, address)
    while len(found) < len(futures):
        if not coming.has_ready():
            watch.look(len(found), len(futures))
            time.sleep(_POLL_SECONDS)
            continue
        future, result = next(coming)
        # a future's status may already tell of its worker's end, after its result came
        if not isinstance(result, (TimedLaunch, str, tuple)):
            raise watch.lost(len(found), len(futures))
        found[places[future.key]] = _outcome(distributed, result)
        future.release()
        if progress is not None:
            progress(len(found), len(futures))
    return [found[place] for place in range(len(futures))]


def _outcome(distributed: Any, result: TimedLaunch | str | tuple[Any, Exception, Any]) -> TimedLaunch | str:
    """A result; a tuple stands for an exception of the worker or of Dask: (type, exception, traceback)."""
    if not isinstance(result, tuple):
        return result
    error = result[1]
    if isinstance(error, distributed.KilledWorker):
        died = f"{error.allowed_failures + 1} workers ended while they predicted this, the last was {error.last_worker.address}"
        return f"{died}; they may need more memory (dask worker --memory-limit)"
    if isinstance(error, WorkerUnfit):
        raise FasimError(f"a worker that came later would not predict what this machine does: {error}")
    raise error


class _Watch:
    """Looks whether the scheduler and workers are still there while nothing comes."""

    def __init__(self, client: Any, address: str) -> None:
        self.client, self.address = client, address
        self.looked = self.populated = time.monotonic()

    def look(self, done: int, total: int) -> None:
        """Raises: FasimError."""
        if self.client.status not in ("running", "connecting"):
            raise self.lost(done, total)
        now = time.monotonic()
        if now - self.looked < _CHECK_SECONDS:
            return
        self.looked = now
        try:
            if self.client.nthreads():
                self.populated = now
        except OSError:
            raise self.lost(done, total) from None
        if now - self.populated > EMPTY_SECONDS:
            raise FasimError(
                f"all workers of the Dask scheduler at {self.address} are gone, {done:,} of {total:,} launches were predicted; "
                f"{_advice(self.address)}"
            )

    def lost(self, done: int, total: int) -> FasimError:
        """What to raise if the scheduler went away."""
        return FasimError(
            f"the Dask scheduler at {self.address} went away, {done:,} of {total:,} launches were predicted; start it again with "
            "`dask scheduler` and its workers, and repeat the command"
        )
