"""The words and options that all commands with a launch share."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from fasim.cli.app import app
from fasim.cli.launching import Call, launch_command
from fasim.cli.run_options import RunOptions


@pytest.fixture
def command():
    """Runs a small application; returns what its command got."""
    small = typer.Typer()
    got: list[tuple[Call, int]] = []

    @small.callback()
    def options() -> None:
        """A program."""

    @launch_command(small, "the end", path="lab")
    def try_(call: Call, number: int = 3) -> int:
        """Try it."""
        got.append((call, number))
        return 7

    @launch_command(small, "the end", simulates=False)
    def plain(call: Call) -> int:
        """Do it."""
        got.append((call, 0))
        return 0

    def run(*words: str, name: str = "try-"):
        code = small(args=[name, *words], standalone_mode=False, obj=12.5)
        return (*got.pop(), code)

    return run


LINES = [
    ([], {}, []),
    (["axpy", "--n", "64"], {}, ["axpy", "--n", "64"]),
    (["--n", "64", "axpy", "--seed", "5"], {"seed": 5}, ["--n", "64", "axpy"]),
    (["k.cu", "--grid", "8,2", "--block", "128", "--smem", "1024"], {"grid": "8,2", "block": "128", "smem_bytes": 1024}, ["k.cu"]),
    (["k.cu", "--arg", "a=1", "--arg", "b=2", "-D", "X=1", "-D", "Y", "-I", "dir"],
     {"args": ("a=1", "b=2"), "defines": ("X=1", "Y"), "include_dirs": (Path("dir"),)}, ["k.cu"]),
    (["--symbol", "s=1", "--entry", "k<1>", "--arch", "sm_80", "--json"],
     {"symbols": ("s=1",), "entry": "k<1>", "arch": "sm_80", "json": True}, []),
    (["--backend", "reference", "--workers", "2", "--max-instructions", "9"],
     {"backend": "reference", "workers": 2, "max_instructions": 9}, []),
]  # fmt: skip


@pytest.mark.parametrize(("words", "options", "left"), LINES)
def test_options(command, words, options, left):
    call, number, code = command(*words)
    assert (number, code, call.started) == (3, 7, 12.5)
    assert call.options == RunOptions(check=False, command="lab try_", **options)
    assert list(call.words) == left


def test_own_options_and_spellings(command):
    call, number, _ = command("axpy", "--number", "8")
    assert (number, list(call.words)) == (8, ["axpy"])
    assert {"--number", "--arg", "--grid", "--seed", "-D", "--define", "-I", "--backend"} <= set(call.general)


def test_options_of_the_simulated_machine(command):
    call, _, code = command("--backend", "jit", name="plain")
    assert (code, list(call.words), call.options.command) == (0, ["--backend", "jit"], "plain")
    assert "--backend" not in call.general


def test_other_values_for_options():
    call = Call(["axpy"], RunOptions(seed=3), [], 0.0)
    changed = call.with_options(arch="sm_80", portable=True)
    assert (changed.options.seed, changed.options.arch, changed.options.portable, changed.words) == (3, "sm_80", True, ["axpy"])
    assert call.options == RunOptions(seed=3)


@pytest.mark.parametrize("words", [["--seed", "-1"], ["--smem", "-5"], ["--seed", "x"], ["--workers", "0"]])
def test_values_out_of_range(command, words):
    with pytest.raises(Exception, match=r"Invalid value|not a valid|Input should be"):
        command(*words)


def test_every_launching_command_has_the_shared_options():
    for typer_app in (app, *(group.typer_instance for group in app.registered_groups)):
        for each in typer_app.registered_commands:
            parameters = list(getattr(each.callback, "__signature__", type("", (), {"parameters": ()})).parameters)
            if "ctx" in parameters:
                assert {"words", "entry", "grid", "block", "smem", "arg", "symbol", "define", "include", "seed", "arch"} <= set(parameters)
