"""Tell host code from device code, and blank it without moving a line."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fasim.toolchain.cpplex import Lexed, Token
from fasim.toolchain.declarations import DEVICE_MARKS, Unit, flatten


def obvious_host_code(units: list[Unit], device_names: frozenset[str]) -> list[Unit]:
    """Functions outside classes that carry no device mark, which is host code by the rules of CUDA C++.

    Constexpr functions stay (constant expressions of device code may use them), and so do names that also have a device declaration.
    """
    return [
        unit
        for unit in flatten(units)
        if unit.kind == "function"
        and not unit.in_class
        and not unit.is_device
        and not unit.is_constant
        and unit.name not in device_names
        and (unit.is_definition or "const" not in unit.words)  # `const int n(3);` looks like a declaration of a function
    ]


def device_function_names(units: Iterable[Unit]) -> frozenset[str]:
    """Names of all functions that have a device mark on one of their declarations."""
    return frozenset(unit.name for unit in flatten(units) if unit.kind == "function" and unit.words & DEVICE_MARKS)


def blank(text: str, whole: Iterable[Unit], bodies: Iterable[Unit], lexed: Lexed) -> str:
    """Replace declarations by spaces, and the bodies of others by `;`; line ends and the preprocessor lines inside stay, pragmas go."""
    spans = sorted([(unit.start, unit.end, "") for unit in whole] + [(unit.body, unit.end, ";") for unit in bodies])
    kept = [(d.start, d.end) for d in lexed.directives if d.name != "pragma"]
    out: list[str] = []
    position = 0
    for start, end, instead in spans:
        if start < position:
            continue
        out += [text[position:start], instead]
        cursor = start + len(instead)
        for keep_start, keep_end in kept:
            if start <= keep_start < end:
                out += [_spaces(text[cursor:keep_start]), text[keep_start:keep_end]]
                cursor = keep_end
        out.append(_spaces(text[cursor:end]))
        position = end
    out.append(text[position:])
    return "".join(out)


def _spaces(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def launch_expressions(tokens: list[Token], text: str) -> list[str]:
    """The kernels that a file launches, as written before `<<<`: `axpy` or `gemm<128, 64>`."""
    found = []
    for i, token in enumerate(tokens):
        if token.text != "<<<" or i == 0:
            continue
        j = i - 1
        if tokens[j].text == ">":
            depth = 0
            while j >= 0:
                depth += {">": 1, "<": -1}.get(tokens[j].text, 0)
                if depth == 0:
                    break
                j -= 1
            j -= 1
        while j >= 2 and tokens[j - 1].text == "::":
            j -= 2
        if j >= 0 and tokens[j].kind == "word":
            found.append(text[tokens[j].start : tokens[i - 1].end])
    return list(dict.fromkeys(found))
