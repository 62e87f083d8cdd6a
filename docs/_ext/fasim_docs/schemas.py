"""The JSON reports: every dataclass with a `schema`, field by field, with the records inside it."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import typing
from collections.abc import Iterator
from typing import Any

import typer

import fasim.report
from fasim.cli.app import app
from fasim.cli.doctor import Finding
from fasim_docs.docstrings import describe, names_of, one_line
from fasim_docs.markdown import code, prose, table

#: what writes a report that is not `fasim NAME --json` for the schema `fasim.NAME/1`
WRITERS = {
    "fasim.error/1": "any command with `--json` that ends in an error",
    "fasim.traced/1": "`fasim run --trace-out FILE --json`",
    "fasim.layouts/1": "`fasim layout --json` without a name",
}

_DOCTOR = """## fasim.doctor/1

From `fasim doctor --json`: `schema`, `healthy` (whether the simulator has what it needs) and `findings`, a list with, for each:
"""


def reports() -> dict[str, type[Any]]:
    """The reports by the name of their schema."""
    modules = [f"fasim.report.{info.name}" for info in pkgutil.iter_modules(fasim.report.__path__)] + ["fasim.cli.gpu_list"]
    found = {}
    for name in modules:
        module = importlib.import_module(name)
        for item in vars(module).values():
            if isinstance(item, type) and item.__module__ == name and dataclasses.is_dataclass(item):
                for field in dataclasses.fields(item):
                    if field.name == "schema":
                        found[str(field.default)] = item
    return found


def schemas() -> str:
    """All reports and the records inside them."""
    found = reports()
    inside: dict[type[Any], None] = {}
    parts = []
    for schema in sorted(found, key=lambda name: (name.count("."), name)):
        origin = writer(schema)
        parts.append(f"## {schema}\n\n" + (f"From {origin}.\n" if origin else ""))
        parts.append(_record(found[schema]))
        inside.update(dict.fromkeys(_records_in(found[schema])))
    parts.append(f"{_DOCTOR}\n{_record(Finding)}")
    parts.append("## Records\n")
    for record in sorted(inside, key=lambda each: each.__name__):
        parts.append(f"### {record.__name__}\n\n{_record(record)}")
    return "\n".join(parts)


def writer(schema: str) -> str:
    """Which command writes a report, as Markdown; empty if none of that name does."""
    words = schema.split("/")[0].split(".")
    command: Any = typer.main.get_command(app)
    for word in words[1:]:
        command = getattr(command, "commands", {}).get(word)
    writes = command is not None and any("--json" in param.opts for param in command.params)
    return WRITERS.get(schema) or (code(" ".join([*words, "--json"])) if writes else "")


def _record(record: type[Any]) -> str:
    described = describe(record.__doc__ or "", names_of(record))
    rows = []
    for field in dataclasses.fields(record):
        if field.name != "schema":
            rows.append((code(field.name), code(_type(field)), prose(described.of(field.name))))
    return f"{prose(one_line(described.text))}\n\n{table(('field', 'type', 'meaning'), rows)}"


def _type(field: dataclasses.Field[Any]) -> str:
    return field.type if isinstance(field.type, str) else getattr(field.type, "__name__", str(field.type))


def _records_in(record: type[Any]) -> Iterator[type[Any]]:
    """Dataclasses that its fields hold, at any depth, in the order of the fields."""
    hints = typing.get_type_hints(record)
    for field in dataclasses.fields(record):
        for part in _parts(hints[field.name]):
            if dataclasses.is_dataclass(part) and isinstance(part, type):
                yield part
                yield from _records_in(part)


def _parts(hint: Any) -> Iterator[Any]:
    yield hint
    for argument in typing.get_args(hint):
        yield from _parts(argument)
