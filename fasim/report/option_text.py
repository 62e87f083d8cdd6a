"""Options of a kernel as a person reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping


def value_text(value: object) -> str:
    """A value as the command line takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def options_text(options: Mapping[str, object]) -> str:
    """All options, to stand after the kernel's name: ` n=128 causal=false`."""
    return "".join(f" {name}={value_text(value)}" for name, value in options.items())
