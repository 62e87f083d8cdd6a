"""Recordings as files, and folders of them."""

from __future__ import annotations

import io
import json
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fasim.errors import FasimError, UsageError
from fasim.gpu.checked import check_types
from fasim.gpu.recording import RECORDING_SCHEMA, STORED, RecordedArgument, Recording, arrays_of, figures
from fasim.report.bits import sha256_of
from fasim.report.measured import Card, MachineInstruction, Output, Profile, Timing
from fasim.report.records import plain_json
from fasim.toolchain import CompiledModule

Array = np.ndarray[Any, Any]
#: zip archives hold dates; the same recording is the same bytes
_DATE = (1980, 1, 1, 0, 0, 0)
#: machine code that several recordings of a folder share is kept once, in this folder beside them, by its hash
CUBINS = "cubins"


def save(path: Path, recording: Recording, *, share_cubin: bool = False) -> None:
    """Write a recording; an older file stays whole until the new one is.

    share_cubin: keep the machine code in a folder `cubins` beside the file, where recordings of the same code find it.
    Raises: UsageError if the disk refuses.
    """
    members: dict[str, bytes] = {"run.json": (json.dumps(plain_json(figures(recording)), indent=1, allow_nan=False) + "\n").encode()}
    members["kernel.ptx"] = recording.module.ptx.encode("utf-8", "surrogateescape")
    if recording.module.source_text:
        members["source.cu"] = recording.module.source_text.encode("utf-8", "surrogateescape")
    if stored := arrays_of(recording.arguments):
        members["inputs.npz"] = _npz(stored)
    if kept := {f"o{i}": output.values for i, output in enumerate(recording.outputs) if output.values is not None}:
        members["outputs.npz"] = _npz(kept)
    if recording.profile is not None and recording.profile.instructions:
        members["instructions.json"] = _rows(recording.profile.instructions)
    try:
        if recording.module.cubin and share_cubin:
            folder = path.parent / CUBINS
            folder.mkdir(parents=True, exist_ok=True)
            shared = folder / f"{recording.cubin_sha256}.zip"
            if not shared.exists():
                _write(shared, {"kernel.cubin": recording.module.cubin})
        elif recording.module.cubin:
            members["kernel.cubin"] = recording.module.cubin
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, members)
    except OSError as error:
        raise UsageError(f"cannot save {path}: {error.strerror}") from error


def _write(path: Path, members: Mapping[str, bytes]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_LZMA) as archive:
            for name, data in members.items():
                info = zipfile.ZipInfo(name, _DATE)
                info.compress_type = zipfile.ZIP_LZMA
                archive.writestr(info, data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _npz(arrays: Mapping[str, Array]) -> bytes:
    """Arrays as an uncompressed .npz with a fixed date (the archive around it compresses)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            data = io.BytesIO()
            np.lib.format.write_array(data, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _DATE), data.getvalue())
    return buffer.getvalue()


_COLUMNS = (
    "offset", "text", "ptx_line", "place", "executions", "threads", "threads_on", "wavefronts_shared", "wavefronts_shared_ideal", "samples",
    "stalls",
)  # fmt: skip


def _rows(instructions: Sequence[MachineInstruction]) -> bytes:
    # by column: what is alike lies together, and packs better
    columns = {name: [plain_json(getattr(i, name)) for i in instructions] for name in _COLUMNS}
    lines = (f"{json.dumps(name)}:{json.dumps(values, separators=(',', ':'))}" for name, values in columns.items())
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


#: what Python's readers say of files that are none or were changed
_DAMAGE = (
    zipfile.BadZipFile, lzma.LZMAError, zlib.error, struct.error, LookupError, ValueError, TypeError, AttributeError, EOFError,
    OverflowError, RuntimeError,
)  # fmt: skip


def load(path: Path, *, counters: bool = True) -> Recording:
    """Read a recording; counters: with those of each machine instruction, which are most of it.

    Raises: UsageError if it is none, or one that a newer fasim wrote.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            facts = json.loads(archive.read("run.json"))
            if facts.get("schema") != RECORDING_SCHEMA:
                raise UsageError(f"{path} has the form {facts.get('schema')!r}; this fasim reads {RECORDING_SCHEMA}")
            texts: dict[str, str] = {}
            for name in names & {"kernel.ptx", "source.cu"}:
                texts[name] = archive.read(name).decode("utf-8", "surrogateescape")
            arrays: dict[str, Mapping[str, Array]] = {}
            for name in names & {"inputs.npz", "outputs.npz"}:
                arrays[name] = dict(np.load(io.BytesIO(archive.read(name)), allow_pickle=False))
            rows = json.loads(archive.read("instructions.json")) if counters and "instructions.json" in names else None
            cubin = archive.read("kernel.cubin") if "kernel.cubin" in names else _shared_cubin(path, facts["cubin_sha256"])
        hashes = facts["ptx_sha256"], facts["cubin_sha256"]
        recording = _recording(facts, texts, arrays, rows, cubin)
        check_types(recording, Recording)
        _check_hashes(recording, *hashes)
        return recording
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    except FasimError:
        raise
    except _DAMAGE as error:
        raise UsageError(f"{path} is not a recording, or is damaged ({_reason(error)})") from error


def _reason(error: Exception) -> str:
    said = str(error).strip("'\"") or type(error).__name__
    return f"no {said}" if isinstance(error, KeyError) and " " not in said else said


def read_facts(path: Path) -> dict[str, Any]:
    """What stands in a recording's run.json, unchecked but for its form.

    Raises: UsageError if it is no recording.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            facts = json.loads(archive.read("run.json"))
        if facts["schema"] == RECORDING_SCHEMA:
            return {"kernel": facts["kernel"], "options": facts["options"], "card": facts["card"]}
    except (OSError, *_DAMAGE):
        pass
    raise UsageError(f"{path} is not a recording, or is damaged")


def _check_hashes(recording: Recording, ptx_sha256: str, cubin_sha256: str) -> None:
    """Raises: ValueError where contents are not those that were recorded."""
    if recording.ptx_sha256 != ptx_sha256:
        raise ValueError("the PTX does not have the recorded hash")
    if recording.module.cubin and recording.cubin_sha256 != cubin_sha256:
        raise ValueError("the machine code does not have the recorded hash")
    for output in recording.outputs:
        if output.values is not None and sha256_of(output.values) != output.sha256:
            raise ValueError(f"output {output.name} does not have the recorded hash")


def _shared_cubin(path: Path, sha256: str) -> bytes:
    shared = path.parent / CUBINS / f"{sha256}.zip"
    if not (sha256.isalnum() and shared.is_file()):
        return b""
    with zipfile.ZipFile(shared) as archive:
        return archive.read("kernel.cubin")


def _recording(
    facts: dict[str, Any], texts: Mapping[str, str], arrays: Mapping[str, Mapping[str, Array]], rows: dict[str, Any] | None, cubin: bytes
) -> Recording:
    inputs, bits = arrays.get("inputs.npz", {}), arrays.get("outputs.npz", {})
    module = CompiledModule(ptx=texts["kernel.ptx"], cubin=cubin, source_text=texts.get("source.cu", ""), **facts.pop("module"))
    arguments = tuple(
        RecordedArgument(**{**a, "shape": None if a["shape"] is None else tuple(a["shape"])}, value=_stored(inputs, f"a{i}", a))
        for i, a in enumerate(facts.pop("arguments"))
    )
    outputs = tuple(Output(**{**o, "shape": tuple(o["shape"])}, values=bits.get(f"o{i}")) for i, o in enumerate(facts.pop("outputs")))
    timings = {kind: Timing(**{k: v for k, v in timing.items() if k != "tflops"}) for kind, timing in facts.pop("timings").items()}
    profile, card = facts.pop("profile"), facts.pop("card")
    for derived in ("schema", "arch", "compiler", "ptx_sha256", "cubin_sha256"):
        facts.pop(derived)
    return Recording(
        module=module,
        arguments=arguments,
        outputs=outputs,
        timings=timings,
        profile=Profile(**profile, instructions=_instructions(rows)) if profile else None,
        card=Card(**card) if card else None,
        variables={name: bytes.fromhex(content) for name, content in facts.pop("variables").items()},
        grid=tuple(facts.pop("grid")),
        block=tuple(facts.pop("block")),
        **facts,
    )


def _stored(inputs: Mapping[str, Array], name: str, argument: Mapping[str, Any]) -> Any:
    """The stored value of an argument; a null pointer has none."""
    if argument["made"] != STORED or (argument["shape"] is None and name not in inputs):
        return None
    array = inputs[name]
    return array if array.ndim else array[()]


def _instructions(rows: dict[str, Any] | None) -> tuple[MachineInstruction, ...]:
    if rows is None:
        return ()
    found = []
    if "rows" in rows:  # as it was written first: one row an instruction
        rows = dict(zip(rows["columns"], zip(*rows["rows"])))
    for row in zip(*rows.values(), strict=True):
        fields = dict(zip(rows, row))
        fields["place"] = tuple((file, line) for file, line in fields["place"])
        found.append(MachineInstruction(**fields))
    return tuple(found)


def find_recordings(paths: Iterable[Path]) -> list[Path]:
    """The recordings among files and below folders, in order of their names.

    Raises: UsageError for a path that is not there, or a folder without recordings.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(each for each in path.rglob("*.zip") if each.parent.name != CUBINS)
            if not inside:
                raise UsageError(f"there are no recordings (.zip) below {path}")
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            raise UsageError(f"there is no recording {path}")
    return list(dict.fromkeys(found))
