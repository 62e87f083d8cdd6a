"""The options of a launch, as a command line gives them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_ARCH = "sm_90"


@dataclass(frozen=True)
class RunOptions:
    """The options of `fasim run` as typer read them; command: which command they were given to.

    portable: compile so that the machine code is the same wherever the source lies; its messages then call the file by its name alone.
    """

    entry: str | None = None
    grid: str | None = None
    block: str | None = None
    smem_bytes: int | None = None
    args: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    include_dirs: tuple[Path, ...] = ()
    expect: tuple[str, ...] = ()
    rtol: float | None = None
    atol: float | None = None
    check: bool = True
    save: Path | None = None
    seed: int = 0
    arch: str = ""
    backend: str = "jit"
    isa: str = "ptx"
    workers: int | None = None
    max_instructions: int | None = None
    json: bool = False
    counts: bool = False
    symbols: tuple[str, ...] = ()
    prints: tuple[str, ...] = ()
    command: str = "run"
    portable: bool = False

    @property
    def target_arch(self) -> str:
        """The architecture to compile for."""
        return self.arch or DEFAULT_ARCH
