"""`fasim kernels`: the collection and its options."""

from __future__ import annotations

from typing import Any

from fasim import kernels
from fasim.cli.collection import flag_of
from fasim.kernels import KernelSpec, Option


def show(name: str | None, *, json: bool) -> int:
    """Print all kernels, or one with its source's path.

    Returns: the exit code. Raises: UsageError for an unknown name.
    """
    specs = [kernels.load(name)] if name else [kernels.load(each) for each in kernels.names()]
    if json:
        import json as library

        print(library.dumps([_record(spec) for spec in specs], indent=2))
        return 0
    width = max(len(flag_of(option)) for spec in specs for option in spec.options)
    for spec in specs:
        print(f"{spec.name}: {spec.title}")
        if name:
            print(f"  source: {spec.path}")
        for option in spec.options:
            print(f"  {flag_of(option):<{width}}  {option.help}{_limits(option)}")
    if not name:
        print("\nRun one with: fasim run NAME [OPTIONS]")
    return 0


def _limits(option: Option) -> str:
    facts = []
    if option.choices:
        facts.append("one of " + ", ".join(map(str, option.choices)))
    if option.multiple_of > 1:
        facts.append(f"a multiple of {option.multiple_of}")
    if option.kind is not bool:
        facts.append(f"default {option.default}")
    return f" ({'; '.join(facts)})" if facts else ""


def _record(spec: KernelSpec) -> dict[str, Any]:
    options = [
        {
            "flag": flag_of(option), "name": option.name, "type": option.kind.__name__, "default": option.default, "help": option.help,
            "choices": list(option.choices), "minimum": option.minimum, "maximum": option.maximum, "multiple_of": option.multiple_of,
        }
        for option in spec.options
    ]  # fmt: skip
    return {"name": spec.name, "title": spec.title, "source": str(spec.path), "entry": spec.entry, "options": options}
