"""Programs of a module, lowered once and kept on disk: the cache is keyed by what they are made of and by our own sources."""

from __future__ import annotations

import functools
import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fasim.isa.program import ModuleVariable, Program
from fasim.toolchain import plain_name
from fasim.toolchain.cache import cached

if TYPE_CHECKING:
    from fasim.ptx.names import RegisterNames


def parse_index(ptx: str, path: str) -> tuple[list[str], dict[str, str]]:
    """Entry names, and the names of variables by their plain ones."""
    from fasim.ptx.parser import parse

    module = parse(ptx, path)
    variables = {plain_name(v.name): v.name for v in module.variables.values() if v.state_space in ("global", "const")}
    return list(module.entries), variables


def ptx_program(ptx: str, path: str, entry: str, arch: int) -> Program:
    """A kernel lowered from PTX."""

    def make() -> Program:
        from fasim.ptx.lower import lower
        from fasim.ptx.parser import parse

        return lower(parse(ptx, path), entry, arch)

    return load(ptx, f"{path} {entry} {arch}", make)  # type: ignore[no-any-return]


def sass_program(cubin: bytes, ptx: str, path: str, entry: str, arch: int, *, skeleton: bool = False) -> Program:
    """A kernel lowered from machine code; skeleton: only what decides its path and its addresses."""

    def make() -> Program:
        from fasim.ptx.parser import parse
        from fasim.sass.lower import lower

        return lower(cubin, parse(ptx, path), entry, arch, skeleton=skeleton)

    what = " skeleton" if skeleton else ""
    return load(ptx, f"{path} {entry} {arch} {hashlib.sha256(cubin).hexdigest()}{what}", make)  # type: ignore[no-any-return]


def ptx_register_names(ptx: str, path: str, entry: str, arch: int) -> RegisterNames:
    """Which register of the PTX stands in which row."""

    def make() -> RegisterNames:
        from fasim.ptx.names import register_names
        from fasim.ptx.parser import parse

        return register_names(parse(ptx, path), entry, arch)

    return load(ptx, f"{path} {entry} {arch} names", make)  # type: ignore[no-any-return]


def sass_register_names(cubin: bytes, ptx: str, path: str, entry: str, arch: int) -> RegisterNames:
    """Which register of the machine code stands in which row."""

    def make() -> RegisterNames:
        from fasim.ptx.parser import parse
        from fasim.sass.names import register_names

        return register_names(cubin, parse(ptx, path), entry, arch)

    return load(ptx, f"{path} {entry} {arch} {hashlib.sha256(cubin).hexdigest()} names", make)  # type: ignore[no-any-return]


def ptx_variables(ptx: str, path: str, arch: int) -> list[ModuleVariable]:
    """The variables of a module."""

    def make() -> list[ModuleVariable]:
        from fasim.ptx.lower import module_variables
        from fasim.ptx.parser import parse

        return module_variables(parse(ptx, path), arch)

    return load(ptx, f"{path} variables", make)  # type: ignore[no-any-return]


def load(ptx: str, what: str, make: Callable[[], Any]) -> Any:
    """A pickled result from the cache, keyed by the PTX and by our own sources."""
    key = hashlib.sha256(f"{lowering_digest()} {what} {len(ptx)} {ptx}".encode("utf-8", "surrogateescape")).hexdigest()
    return pickle.loads(cached(key, ".pickle", lambda: pickle.dumps(make(), protocol=5)))


@functools.cache
def lowering_digest() -> str:
    """Hash of the sources that parse and lower PTX."""
    import fasim

    digest, root = hashlib.sha256(), Path(fasim.__file__).parent
    for package in ("numerics", "isa", "ptx", "sass"):
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
