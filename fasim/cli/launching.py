"""Commands that launch a kernel: they all take the same words and options, which stand here once."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import typer

from fasim.cli import options as o
from fasim.cli.run_options import RunOptions

#: typer leaves a kernel's own options among the words
CONTEXT = {"ignore_unknown_options": True, "allow_extra_args": True}


@dataclass(frozen=True)
class Call:
    """A command line: its words (kernel and kernel options), the options that all launches have, and every option's spelling for hints.

    started: when the process began, by time.perf_counter().
    """

    words: Sequence[str]
    options: RunOptions
    general: Sequence[str]
    started: float

    def with_options(self, **changes: Any) -> Call:
        """The same with other values for some options."""
        return replace(self, options=replace(self.options, **changes))


def _launch_options(
    words: o.Words = None,
    entry: o.Entry = None,
    grid: o.Grid = None,
    block: o.Block = None,
    smem: o.Smem = None,
    arg: o.Arg = None,
    symbol: o.Symbol = None,
    define: o.Define = None,
    include: o.Include = None,
    seed: o.Seed = 0,
    arch: o.Arch = None,
    json: o.Json = False,
) -> RunOptions:
    """What is launched; shared by simulation and GPU."""
    return RunOptions(
        entry=entry, grid=grid, block=block, smem_bytes=smem, args=tuple(arg or ()), symbols=tuple(symbol or ()),
        defines=tuple(define or ()), include_dirs=tuple(include or ()), seed=seed, arch=arch or "", json=json, check=False,
    )  # fmt: skip


def _machine_options(
    isa: o.Isa = "ptx", backend: o.Backend = "jit", workers: o.Workers = None, max_instructions: o.MaxInstructions = None
) -> dict[str, Any]:
    """How it is simulated."""
    return {"isa": isa, "backend": backend, "workers": workers, "max_instructions": max_instructions}


def launch_command(
    app: typer.Typer, epilog: str, *, simulates: bool = True, path: str = ""
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Make a function a command of `app`: its first parameter gets the `Call`, its others are options beyond those of all launches.

    simulates: whether the options of the simulated machine are among them. path: what precedes its name on the command line.
    """

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        own = _parameters(function)[1:]
        launch, machine = _parameters(_launch_options), _parameters(_machine_options) if simulates else []
        context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        name = f"{path} {function.__name__}".strip()

        def command(**given: Any) -> int:
            ctx = given.pop("ctx")
            chosen = _launch_options(**{p.name: given.pop(p.name) for p in launch if p.name != "words"})
            chosen = replace(chosen, command=name, **_machine_options(**{p.name: given.pop(p.name) for p in machine}))
            words = given.pop("words") or []
            return function(Call(words, chosen, _spellings(ctx), ctx.obj), **given)

        parameters = [context, *launch, *own, *machine]
        command.__name__, command.__doc__ = function.__name__, function.__doc__
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in parameters}
        app.command(context_settings=CONTEXT, epilog=epilog)(command)
        return function

    return decorate


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """A function's parameters by keyword, with their annotations resolved."""
    hints = typing.get_type_hints(function, include_extras=True)
    found = inspect.signature(function).parameters.values()
    return [p.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[p.name]) for p in found]


def _spellings(ctx: typer.Context) -> list[str]:
    """The options of a command in every spelling."""
    return [opt for param in ctx.command.params if param.param_type_name == "option" for opt in (*param.opts, *param.secondary_opts)]
