"""Compile CUDA C++ to PTX and a cubin, with a cache on disk."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from fasim.errors import UsageError
from fasim.toolchain.cache import cached
from fasim.toolchain.includes import UserHeaders, find_headers, read_source
from fasim.toolchain.renamed import rename
from fasim.toolchain.wheels import installed_versions

_SOURCE_SUFFIXES = (".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp")
_TEXT_NAME = "source.cu"


@dataclass(frozen=True)
class CompiledModule:
    """A compiled source file.

    source_path: the name given to `compile_cuda`, else the source's own path. source_text: the source as it was given.
    log: warnings of the compiler and the lines of ptxas -v.
    lowered_names: what the caller calls an entry to its mangled name; template instantiations that the file launches are in it too.
    registers: registers a thread, by mangled entry name. from_cache: it was compiled before.
    """

    ptx: str
    cubin: bytes
    arch: str
    source_path: str
    source_text: str
    log: str
    lowered_names: dict[str, str]
    compiler: str
    registers: dict[str, int] = field(default_factory=dict)
    from_cache: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Request:
    """What is to be compiled, and how.

    directory: where the source lies if `name` does not tell.
    """

    text: str
    name: str
    arch: str
    defines: tuple[tuple[str, str], ...]
    include_dirs: tuple[Path, ...]
    entry: str | None
    options: tuple[str, ...]
    lineinfo: bool
    headers: UserHeaders
    directory: Path | None = None

    def key(self) -> str:
        """A hash of all that the result depends on, the place of the file among it: the PTX names it."""
        parts = [
            own_digest(), installed_versions(), os.path.abspath(self.name), self.arch, repr(self.defines), repr(self.entry),
            repr(self.options), repr(self.lineinfo), repr([str(path) for path in self.include_dirs]), self.text, str(self.directory),
        ]  # fmt: skip
        parts += [f"{name}={path}" for name, path in sorted(self.headers.by_name.items())]
        parts += [f"{name}>{path}" for name, path in sorted(self.headers.aliases.items())]
        parts += [f"{path}\0{text}" for path, text in sorted(self.headers.texts.items())]
        digest = hashlib.sha256()
        for part in parts:
            data = part.encode("utf-8", "surrogateescape")
            digest.update(len(data).to_bytes(8, "little") + data)
        return digest.hexdigest()


@functools.cache
def own_digest() -> str:
    """A hash of this package's code and headers, so that a new version does not take an old version's results."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            digest.update(path.read_bytes())
    return digest.hexdigest()


def compile_cuda(
    source: str | Path,
    *,
    arch: str = "sm_90",
    defines: Mapping[str, object] | None = None,
    include_dirs: Sequence[str | Path] = (),
    entry: str | None = None,
    options: Sequence[str] = (),
    lineinfo: bool = True,
    name: str | None = None,
) -> CompiledModule:
    """Compile a CUDA C++ file (or CUDA C++ text) with NVRTC; host code in it is set aside.

    arch: a target that NVRTC knows, for example `sm_90` or `sm_90a`.
    defines: macros; None or True as value defines the bare name, False leaves it undefined.
    entry: a kernel by its plain name; `gemm<128, 64>` instantiates a template.
    options: further options of NVRTC (or nvcc).
    name: an absolute path that messages and debug information give the source instead of its own, and its headers paths beside it, so
    that the result does not depend on where the files lie.
    Raises: CompileError with the compiler's log; UsageError; ToolMissing with the command that installs the compiler.
    """
    text, own_name = _read(source)
    directories = tuple(Path(directory) for directory in include_dirs)
    for directory in directories:
        if not directory.is_dir():
            raise UsageError(f"Include directory {str(directory)!r} does not exist.")
    macros = _defines(defines or {})
    folder = Path(own_name).parent
    headers = find_headers(text, folder, directories, dict(macros))
    request = Request(text, own_name, arch, macros, directories, entry, tuple(options), lineinfo, headers)
    if name is not None:
        new_text, new_headers = rename(text, headers, folder, directories, name)
        request = replace(request, text=new_text, name=name, headers=new_headers, directory=folder.absolute())
    fresh: list[CompiledModule] = []

    def make() -> bytes:
        fresh.append(_compile(request))
        return _pack(fresh[0])

    module = _unpack(cached(request.key(), ".module", make))
    return replace(module, source_text=text, from_cache=not fresh)


def _read(source: str | Path) -> tuple[str, str]:
    """The text and the name of the source; a string is a path if it has one line and ends like a source file."""
    if isinstance(source, str) and ("\n" in source or "{" in source or not source.endswith(_SOURCE_SUFFIXES)):
        return source.replace("\r\n", "\n"), _TEXT_NAME
    path = Path(source)
    if not path.is_file():
        raise UsageError(f"There is no source file {str(source)!r}.")
    return read_source(path), str(source)


def _defines(defines: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    found = []
    for name, value in defines.items():
        if not name.split("(")[0].isidentifier():
            raise UsageError(f"{name!r} cannot be the name of a macro.")
        if value is not False:
            found.append((name, "1" if value is None or value is True else str(value)))
    return tuple(found)


def _compile(request: Request) -> CompiledModule:
    # the driver of NVRTC is imported only when the cache has no answer
    from fasim.toolchain.driver import compile_request

    return compile_request(request)


def _pack(module: CompiledModule) -> bytes:
    return json.dumps({**asdict(module), "cubin": base64.b64encode(module.cubin).decode()}).encode()


def _unpack(data: bytes) -> CompiledModule:
    fields = json.loads(data)
    return CompiledModule(**{**fields, "cubin": base64.b64decode(fields["cubin"])})
