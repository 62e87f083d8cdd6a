"""The parts of the reference that are made from the program: each function returns Markdown."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import typer

import fasim.isa.rows
from fasim import errors, kernels
from fasim.arch.table import ARCHITECTURES, KB
from fasim.cli import main as cli_main
from fasim.cli.app import app
from fasim.isa.features import NOT_MODELLED
from fasim.isa.table import Arg, Row
from fasim.report.check import TITLES
from fasim.report.sarif import EXPLAINED
from fasim.trace.steps import step_mark
from fasim_docs.docstrings import one_line
from fasim_docs.markdown import code, prose, table
from fasim_docs.patterns import compress
from fasim_docs.schemas import schemas

PTX_ISA = "https://docs.nvidia.com/cuda/parallel-thread-execution/index.html"


# --- the command line ----------------------------------------------------------------------------------------------------------


def commands() -> str:
    """Every command with its arguments and options."""
    parts = [_command(words, command) for words, command in _walk(typer.main.get_command(app), ("fasim",))]
    return "\n".join(parts)


def _walk(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield words, command
    for name, child in getattr(command, "commands", {}).items():
        yield from _walk(child, (*words, name))


def _command(words: tuple[str, ...], command: Any) -> str:
    name = " ".join(words)
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join([name, "[OPTIONS]", *map(_metavar, arguments)])
    if hasattr(command, "commands"):
        usage += " COMMAND [ARGS]..."
    paragraphs = [prose(one_line(part)) for part in (command.help or "").split("\n\n")]
    parts = [f"## {name}", f"```text\n{usage}\n```", *paragraphs]
    described = [(code(_metavar(p)), prose(p.help)) for p in arguments if p.help]
    if described:
        parts.append(table(("argument", "meaning"), described))
    options = [_option(p) for p in command.params if p.param_type_name == "option"]
    if options:
        parts.append(table(("option", "value", "meaning", "default"), options))
    if hasattr(command, "commands"):
        listed = [(f"[{name} {key}](#{'-'.join([*words, key])})", prose(_first(child.help))) for key, child in command.commands.items()]
        parts.append(table(("command", "does"), listed))
    if command.epilog:
        parts.append(prose(one_line(command.epilog)))
    return "\n\n".join(parts) + "\n"


def _metavar(argument: Any) -> str:
    return str(argument.metavar or f"[{argument.name.upper()}]")


def _first(text: str) -> str:
    """The first paragraph of a help text."""
    return one_line(text.split("\n\n")[0])


def _option(param: Any) -> tuple[str, str, str, str]:
    spelled = ", ".join(code(option) for option in (*param.opts, *param.secondary_opts))
    value = "" if param.is_flag else param.metavar or "N"  # what has no name of its own is a number
    default = ""
    if isinstance(param.show_default, str):
        default = param.show_default
    elif param.secondary_opts:
        default = (param.opts if param.default else param.secondary_opts)[0]
    elif param.default not in (None, False, "", ()) and not callable(param.default):
        default = str(param.default)
    return spelled, code(value) if value else "", prose(param.help or ""), prose(default)


def collection() -> str:
    """The kernels that come with fasim, with their options."""
    rows = []
    for name in kernels.names():
        spec = kernels.load(name)
        options = ", ".join(code("--" + option.name.replace("_", "-")) for option in spec.options)
        rows.append((code(name), prose(spec.title), options))
    return table(("kernel", "what it computes", "options"), rows)


def steps() -> str:
    """The steps of FlashAttention v2.1, as its source names them, with the lines that they begin on and the code there."""
    text = kernels.load("fa_v21").path.read_text()
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if step := step_mark(line):
            rows.append((code(step), str(number + 1)))
    return table(("step", "from line"), rows)


# --- instructions and architectures --------------------------------------------------------------------------------------------


def instructions() -> str:
    """The instruction table: by section of the PTX ISA and instruction."""
    sections: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in fasim.isa.rows.ROWS.values():
        section, instruction = _place(row.anchor)
        sections[section][instruction].append(row)
    total = len({row.mnemonic for row in fasim.isa.rows.ROWS.values()})
    parts = [f"{total:,} mnemonics in {len(fasim.isa.rows.ROWS):,} rows.\n"]
    for section, found in sections.items():
        parts.append(f"## {section[:1].upper()}{section[1:]}\n")
        for instruction, rows in found.items():
            parts.append(f"### {instruction}\n\n[PTX ISA]({PTX_ISA}#{rows[0].anchor})\n\n{instruction_table(rows)}")
    return "\n".join(parts)


def instruction_table(rows: list[Row]) -> str:
    """The rows of one instruction: what has the same operands, kind and least target stands together."""
    alike: dict[tuple[str, str, int], list[str]] = defaultdict(list)
    for row in rows:
        alike[_operands(row), row.kind, row.min_arch].append(row.name)
    lines = []
    for (operands, kind, least), names in alike.items():
        spelled = "<br>".join(code(pattern) for pattern in compress(names))
        lines.append((spelled, code(operands) if operands else "", kind, f"sm_{least}" if least else ""))
    return table(("mnemonic", "operands", "kind", "from"), lines)


def _place(anchor: str) -> tuple[str, str]:
    """Section and instruction of an anchor: `logic-and-shift-instructions-shl`."""
    section, _, name = anchor.partition("-instructions-")
    section = f"{section.replace('-', ' ')} instructions" if name else "other"
    return section, (name or anchor).replace("-", ", ")


def _operands(row: Row) -> str:
    def spelled(args: tuple[Arg, ...]) -> str:
        return ", ".join(f"{a.name}:{a.type_}" + (f"*{a.count}" if a.count else "") for a in args)

    dests, sources = spelled(row.written_dests), spelled(row.written_sources)
    return f"{dests} = {sources}" if dests else sources


def not_modelled() -> str:
    """What PTX has and fasim refuses, by feature."""
    found: dict[str, list[str]] = defaultdict(list)
    for start, feature in NOT_MODELLED:
        found[feature].append(start)
    return table(("feature", "mnemonics that begin with"), [(prose(f), ", ".join(map(code, starts))) for f, starts in found.items()])


def architectures() -> str:
    """The limits of each architecture."""
    head = ("target", "card", "SMs", "KB shared memory a CTA", "KB shared memory an SM", "warps an SM", "CTAs an SM")
    figures = [(a.sms, a.smem_opt_in_bytes // KB, a.smem_sm_bytes // KB, a.warps_per_sm, a.ctas_per_sm) for a in ARCHITECTURES.values()]
    return table(head, [(code(a.name), a.card, *map(str, row)) for a, row in zip(ARCHITECTURES.values(), figures)])


# --- errors --------------------------------------------------------------------------------------------------------------------


def exit_codes() -> str:
    """Exit codes with the exceptions that lead to them."""
    exceptions: dict[int, list[str]] = defaultdict(list)
    for each in _subclasses(errors.FasimError):
        exceptions[each.exit_code].append(each.__name__)
    meanings = re.findall(r"(\d+) ([^;.]+)[;.]", one_line(cli_main.__doc__ or ""))
    rows = [(number, prose(meaning), ", ".join(map(code, exceptions.get(int(number), ())))) for number, meaning in meanings]
    return table(("code", "meaning", "exceptions"), rows)


def exceptions() -> str:
    """The tree of exceptions, as fasim.errors draws it."""
    _, _, tree = (errors.__doc__ or "").partition("\n\n")
    return f"```text\n{tree.rstrip()}\n```\n"


def _subclasses(base: type[errors.FasimError]) -> Iterator[type[errors.FasimError]]:
    for each in base.__subclasses__():
        yield each
        yield from _subclasses(each)


def hazards() -> str:
    """The kinds of finding of `fasim check`."""
    return table(("kind", "finding", "meaning"), [(code(k), prose(title), prose(EXPLAINED.get(k, ""))) for k, title in TITLES.items()])


PARTS: dict[str, Callable[[], str]] = {
    part.__name__.replace("_", "-"): part
    for part in (commands, collection, steps, instructions, not_modelled, architectures, exit_codes, exceptions, hazards, schemas)
}
