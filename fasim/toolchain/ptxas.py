"""Assemble PTX text to a cubin with ptxas, NVIDIA's assembler, with a cache on disk.

Source: the manual "CUDA Compiler Driver NVCC" (options of ptxas).
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
import signal
import subprocess
import tempfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from fasim.errors import CompileError, PtxError, ToolMissing, UsageError
from fasim.toolchain.cache import cached
from fasim.toolchain.diagnostics import ptxas_lines, registers
from fasim.toolchain.tools import find_tool, how_to_install

# fixed names, by which messages are known; the cubin holds the options, but no file name
_INPUT, _OUTPUT = "kernel.ptx", "kernel.cubin"
_MESSAGE = re.compile(rf"^ptxas {re.escape(_INPUT)}, line (?P<line>\d+); (?P<severity>\w+)\s*: (?P<text>.*)$", re.MULTILINE)
_TRAILER = "ptxas fatal   : Ptx assembly aborted due to errors"
_TOO_NEW = re.compile(r"Unsupported \.version (\S+); current version is '([^']+)'")
_UNKNOWN_TARGET = re.compile(r"Value '([^']+)' is not defined for option 'gpu-name'|Unsupported \.target '([^']+)'")
_ADVICE = f"Get another: {how_to_install('ptxas')}"
_TARGET_ABOVE = "SM version specified by .target is higher"
_ARCH = re.compile(r"sm_\d+[af]?")
_RELEASE = re.compile(r"\bV(\d+(?:\.\d+)+)")


@dataclass(frozen=True)
class Assembled:
    """A cubin that ptxas made.

    log: warnings, with the PTX's path and line, and the lines of ptxas -v. assembler: the program's version.
    registers: registers a thread, by entry name. from_cache: it was assembled before.
    """

    cubin: bytes
    arch: str
    log: str
    assembler: str
    registers: dict[str, int] = field(default_factory=dict)
    from_cache: bool = field(default=False, compare=False)


def assemble(ptx: str, path: str, arch: str) -> Assembled:
    """Assemble PTX, with line information: the cubin tells the PTX line of each instruction, and the source line where there is a `.loc`.

    path: what messages call the text; the cubin does not depend on it. arch: for example `sm_90`.
    Raises: PtxError with ptxas' messages, each as `path:line: ...`; UsageError for a target that ptxas does not know; ToolMissing if
    there is no ptxas, or one that is older than the PTX; CompileError for any other failure of ptxas.
    """
    if not _ARCH.fullmatch(arch):
        raise UsageError(f"{arch!r} is no target for a cubin; targets are sm_90, sm_90a and so on.")
    tool = find_tool("ptxas")
    version = _version(tool, _stamp(tool))
    fresh: list[Assembled] = []

    def make() -> bytes:
        fresh.append(_assemble(ptx, path, arch, tool, version))
        return json.dumps({**asdict(fresh[0]), "cubin": base64.b64encode(fresh[0].cubin).decode()}).encode()

    fields = json.loads(cached(_key(ptx, arch, tool, version), ".assembled", make))
    found = Assembled(**{**fields, "cubin": base64.b64decode(fields["cubin"])})
    return replace(found, log=_with_path(found.log, path), from_cache=not fresh)


def _key(ptx: str, arch: str, tool: str, version: str) -> str:
    digest = hashlib.sha256()
    for part in (Path(__file__).read_text(), ptx, arch, tool, _stamp(tool), version):
        data = part.encode("utf-8", "surrogateescape")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def _stamp(tool: str) -> str:
    status = Path(tool).stat()
    return f"{status.st_size}:{status.st_mtime_ns}"


@functools.cache
def _version(tool: str, _stamp: str) -> str:
    """`ptxas 13.0.88`; asked of the program itself, because the file may be a script that calls another."""
    done = _run([tool, "--version"])
    match = _RELEASE.search(done.stdout)
    if done.returncode or not match:
        raise ToolMissing(f"{tool} is no ptxas that runs: {_output(done) or f'exit code {done.returncode}'}. {_ADVICE}")
    return f"ptxas {match[1]}"


def _run(command: list[str], folder: str | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", errors="replace", check=False)
    except OSError as error:
        raise ToolMissing(f"{command[0]} cannot be run: {error.strerror}. {_ADVICE}") from error


def _output(done: subprocess.CompletedProcess[str]) -> str:
    return "\n".join(filter(None, (done.stderr.strip(), done.stdout.strip())))


def _assemble(ptx: str, path: str, arch: str, tool: str, version: str) -> Assembled:
    with tempfile.TemporaryDirectory(prefix="fasim-") as folder:
        (Path(folder) / _INPUT).write_bytes(ptx.encode("utf-8", "surrogateescape"))
        done = _run([tool, "-v", "-lineinfo", f"-arch={arch}", "-o", _OUTPUT, _INPUT], folder)
        output = Path(folder) / _OUTPUT
        cubin = output.read_bytes() if done.returncode == 0 and output.is_file() else b""
    log = _output(done)
    if not cubin:
        raise _failure(log, done.returncode, path, arch, f"{version} ({tool})")
    lines = ptxas_lines(log)
    return Assembled(cubin, arch, "\n".join(lines), version, registers(lines))


def _failure(log: str, code: int, path: str, arch: str, tool: str) -> CompileError | UsageError | ToolMissing:
    if code < 0:
        return CompileError(f"{path}: {tool} crashed ({signal.Signals(-code).name}) while it assembled for {arch}.")
    if match := _TOO_NEW.search(log):
        return ToolMissing(
            f"{path} is PTX of version {match[1]}, and {tool} knows versions up to {match[2]}. "
            f"Get a newer one: pip install --upgrade nvidia-cuda-nvcc"
        )
    messages = _with_path("\n".join(line for line in log.splitlines() if line != _TRAILER and not line.startswith("ptxas info")), path)
    if match := _UNKNOWN_TARGET.search(log):
        return UsageError(f"{path}: {tool} does not know the target {match[1] or match[2]!r}: {messages}")
    if _TARGET_ABOVE in log:
        return UsageError(f"{path}: its .target is newer than {arch}, for which it is to be assembled; choose that target.\n{messages}")
    if _MESSAGE.search(log):
        return PtxError(messages)
    return CompileError(f"{path}: {tool} failed with exit code {code}:\n{messages or '(no message)'}")


def _with_path(log: str, path: str) -> str:
    return _MESSAGE.sub(lambda match: f"{path}:{match['line']}: {match['severity']}: {match['text']}", log)
