"""Plain names of kernels: reading Itanium-mangled names, and finding an entry by what a person calls it.

Source: the Itanium C++ ABI, section 5.1 (mangling).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from fasim.errors import UsageError

_BUILTIN_TYPES = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short", "t": "unsigned short",
    "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "x": "long long", "y": "unsigned long long", "n": "__int128",
    "o": "unsigned __int128", "f": "float", "d": "double", "e": "long double", "g": "__float128", "z": "...",
}  # fmt: skip
_LONG_TYPES = {"Dn": "std::nullptr_t", "Di": "char32_t", "Ds": "char16_t", "Du": "char8_t", "Da": "auto", "Dh": "_Float16"}
_STD_NAMES = {
    "St": "std",
    "Sa": "std::allocator",
    "Sb": "std::basic_string",
    "Ss": "std::string",
    "Si": "std::istream",
    "So": "std::ostream",
}
_LITERAL_SUFFIXES = {
    "int": "",
    "bool": "",
    "unsigned int": "u",
    "long": "l",
    "unsigned long": "ul",
    "long long": "ll",
    "unsigned long long": "ull",
}
_OPERATORS = {
    "cl": "operator()", "pl": "operator+", "mi": "operator-", "ml": "operator*", "dv": "operator/", "ix": "operator[]", "aS": "operator=",
    "eq": "operator==", "ne": "operator!=", "lt": "operator<", "gt": "operator>", "ls": "operator<<", "rs": "operator>>",
}  # fmt: skip


class _Unreadable(Exception):
    """The name uses a part of the mangling grammar that is not read here."""


class _Demangler:
    """Reads the name of a function and the types of its parameters."""

    def __init__(self, mangled: str) -> None:
        self.text = mangled
        self.position = 2
        self.substitutions: list[str] = []
        self.template_args: list[str] = []
        self.has_pack = False

    def peek(self, prefix: str) -> bool:
        return self.text.startswith(prefix, self.position)

    def take(self, prefix: str) -> bool:
        if self.peek(prefix):
            self.position += len(prefix)
            return True
        return False

    def remember(self, text: str) -> str:
        self.substitutions.append(text)
        return text

    def number(self) -> int:
        match = re.compile(r"\d+").match(self.text, self.position)
        if match is None:
            raise _Unreadable
        self.position = match.end()
        return int(match[0])

    def source_name(self) -> str:
        length = self.number()
        name = self.text[self.position : self.position + length]
        if len(name) != length:
            raise _Unreadable
        self.position += length
        if name.startswith(("_GLOBAL__N_", "_INTERNAL")):
            return "(anonymous)"
        return name

    def unqualified(self) -> str:
        self.take("L")
        if self.text[self.position : self.position + 1].isdigit():
            name = self.source_name()
        elif (code := self.text[self.position : self.position + 2]) in _OPERATORS:
            self.position += 2
            name = _OPERATORS[code]
        elif code in ("C1", "C2", "C3", "D0", "D1", "D2"):
            self.position += 2
            name = "~" if code[0] == "D" else ""
        else:
            raise _Unreadable
        while self.take("B"):
            self.source_name()
        return name

    def substitution(self) -> str:
        code = self.text[self.position : self.position + 2]
        if code in _STD_NAMES:
            self.position += 2
            return _STD_NAMES[code]
        match = re.compile(r"S([0-9A-Z]*)_").match(self.text, self.position)
        if match is None:
            raise _Unreadable
        self.position = match.end()
        index = int(match[1], 36) + 1 if match[1] else 0
        if index >= len(self.substitutions):
            raise _Unreadable
        return self.substitutions[index]

    def template_param(self) -> str:
        match = re.compile(r"T(\d*)_").match(self.text, self.position)
        if match is None:
            raise _Unreadable
        self.position = match.end()
        index = int(match[1]) + 1 if match[1] else 0
        return self.template_args[index] if index < len(self.template_args) else f"T{index}"

    def name(self) -> str:
        if self.take("N"):
            return self.nested()
        if self.take("Z"):
            raise _Unreadable
        if self.peek("S") and not self.peek("St"):
            base = self.substitution()
        else:
            prefix = "std::" if self.take("St") else ""
            base = prefix + self.unqualified()
            if self.peek("I"):
                self.remember(base)
        if self.peek("I"):
            base += self.arguments()
        return base

    def nested(self) -> str:
        while self.take("r") or self.take("V") or self.take("K"):
            pass
        _ = self.take("R") or self.take("O")
        path = ""
        while not self.take("E"):
            if self.peek("I"):
                path += self.arguments()
            elif self.peek("S"):
                path = self.substitution()
                continue
            elif self.peek("T"):
                path = self.template_param()
            else:
                name = self.unqualified()
                if name in ("", "~"):
                    # constructors and destructors carry the name of their class
                    name += _without_arguments(path).split("::")[-1]
                path = f"{path}::{name}" if path else name
            if not self.peek("E"):
                self.remember(path)
        return path

    def arguments(self) -> str:
        self.position += 1
        found: list[str] = []
        while not self.take("E"):
            found.extend(self.argument())
        self.template_args = found
        return f"<{', '.join(found)}>"

    def argument(self) -> list[str]:
        if self.take("J"):
            self.has_pack = True
            pack: list[str] = []
            while not self.take("E"):
                pack.extend(self.argument())
            return pack
        if self.take("L"):
            return [self.literal()]
        if self.take("X"):
            # of all expressions only a template parameter is read
            found = self.template_param()
            if not self.take("E"):
                raise _Unreadable
            return [found]
        return [self.type()]

    def literal(self) -> str:
        if self.take("_Z"):
            name = self.name()
            while not self.take("E"):
                self.type()
            return "&" + name
        kind = self.type()
        end = self.text.index("E", self.position)
        value = self.text[self.position : end].replace("n", "-")
        self.position = end + 1
        if kind == "bool":
            return "true" if value == "1" else "false"
        if kind in _LITERAL_SUFFIXES:
            return value + _LITERAL_SUFFIXES[kind]
        return f"({kind}){value}"

    def type(self) -> str:
        for code, suffix in (("P", "*"), ("R", "&"), ("O", "&&")):
            if self.take(code):
                return self.remember(self.type() + suffix)
        if self.peek("K") or self.peek("V") or self.peek("r"):
            words = [word for code, word in (("r", "__restrict__"), ("V", "volatile"), ("K", "const")) if self.take(code)]
            return self.remember(" ".join([*words, self.type()]))
        if self.take("F"):
            parts = []
            while not self.take("E"):
                parts.append(self.type())
            return self.remember(f"{parts[0]} ({', '.join(parts[1:])})")
        if self.take("A"):
            extent = self.number()
            if not self.take("_"):
                raise _Unreadable
            return self.remember(f"{self.type()}[{extent}]")
        if self.peek("T"):
            return self.remember(self.template_param())
        code = self.text[self.position : self.position + 2]
        if code in _LONG_TYPES:
            self.position += 2
            return _LONG_TYPES[code]
        if self.peek("S") and not self.peek("St"):
            base = self.substitution()
            return self.remember(base + self.arguments()) if self.peek("I") else base
        character = self.text[self.position : self.position + 1]
        if character in _BUILTIN_TYPES:
            self.position += 1
            return _BUILTIN_TYPES[character]
        # an enclosing function's arguments must survive the arguments of its parameters' types
        saved = self.template_args
        name = self.name()
        self.template_args = saved
        return self.remember(name)


def plain_name(mangled: str) -> str:
    """The name of a function as its author wrote it, with namespaces and template arguments, without parameter types.

    Returns: the mangled name itself where it is not a mangled name or uses a rare part of the grammar.
    """
    if not mangled.startswith("_Z"):
        return mangled
    try:
        return _Demangler(mangled).name()
    except (_Unreadable, ValueError, IndexError):
        return mangled


def parameter_types(mangled: str) -> list[str] | None:
    """The types of a function's parameters as its mangled name has them: `const float*`, template parameters and typedefs resolved.

    Returns: None where the name does not tell, as that of an extern "C" function.
    """
    if not mangled.startswith("_Z"):
        return None
    reader = _Demangler(mangled)
    try:
        name = reader.name()
        if reader.has_pack:
            return None
        types = []
        while reader.position < len(mangled) and not reader.peek("."):
            types.append(reader.type())
    except (_Unreadable, ValueError, IndexError):
        return None
    if name.endswith(">"):
        # templates, and they alone, begin with the type that they return
        types = types[1:]
    return [] if types == ["void"] else types


def _decimal(match: re.Match[str]) -> str:
    digits = match[1]
    octal = digits.startswith("0") and digits.isdigit() and digits != "0"
    return str(int(digits, 8 if octal else 0))


def _normalised(name: str) -> str:
    """A spelling that does not depend on spaces, on suffixes of integers and on the way a type's words are ordered."""
    name = re.sub(r"\(anonymous\)::|\(anonymous namespace\)::", "", name)
    name = re.sub(r"(?<![\w.])((?:0[xX][0-9a-fA-F]+|\d+))[uUlL]*(?![\w.])", _decimal, name)
    name = re.sub(r"\bunsigned\b(?!\s+(?:int|char|short|long|__int128))", "unsigned int", name)
    name = re.sub(r"\blong int\b", "long", name)
    return re.sub(r"\s*([<>,*&():])\s*", r"\1", " ".join(name.split())).lstrip(":")


def _without_arguments(name: str) -> str:
    return name[: name.index("<")] if name.endswith(">") else name


def split_parameters(name: str) -> tuple[str, str | None]:
    """`over(float*)` as the name and the parameter types, None where it gives none."""
    name = name.strip()
    if not name.endswith(")"):
        return name, None
    depth = 0
    for i in range(len(name) - 1, -1, -1):
        depth += (name[i] == ")") - (name[i] == "(")
        if depth == 0:
            return name[:i].strip(), name[i + 1 : -1].strip()
    return name, None


def find_entry(names: Iterable[str], wanted: str | None) -> str:
    """The entry among mangled `names` that a person means by `wanted`: exact, plain, with parameter types, or the end of a qualified name.

    Raises: UsageError, with all entries by plain name, where none or several fit.
    """
    entries = list(dict.fromkeys(names))
    listing = ", ".join(sorted(_describe(entries))) or "none"
    if wanted is None:
        if len(entries) == 1:
            return entries[0]
        if not entries:
            raise UsageError("There is no kernel: no function is marked __global__ (in PTX: no .entry).")
        raise UsageError(f"The module has {len(entries)} kernels: name one of them with `entry`. Kernels: {listing}.")
    if wanted in entries:
        return wanted
    base, types = split_parameters(wanted)
    target = _normalised(base)
    plain = {entry: _normalised(plain_name(entry)) for entry in entries if types is None or _takes(entry, types)}
    rules = (
        lambda name: name == target,
        lambda name: name.endswith("::" + target),
        lambda name: _without_arguments(name) == target,
        lambda name: _without_arguments(name).endswith("::" + target),
    )
    for fits in rules:
        found = [entry for entry in plain if fits(plain[entry])]
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError(f"Several kernels are called {wanted!r}: {', '.join(sorted(_describe(found)))}. Give the full name.")
    raise UsageError(f"There is no kernel {wanted!r}{did_you_mean(wanted, _describe(entries))}. Kernels: {listing}.")


def did_you_mean(wanted: str, known: Iterable[str]) -> str:
    """` (did you mean ...?)` with the nearest known name, "" if none is near."""
    short = {name.split("<")[0].split("(")[0].split("::")[-1]: name for name in known}
    near = difflib.get_close_matches(wanted.split("<")[0].split("(")[0].split("::")[-1].strip(), short, 1, 0.6)
    return f" (did you mean {short[near[0]]}?)" if near else ""


def _takes(entry: str, types: str) -> bool:
    known = parameter_types(entry)
    return known is not None and _compact(", ".join(known)) == _compact("" if types == "void" else types)


def _compact(types: str) -> str:
    """Parameter types without what does not tell overloads apart: spaces, the side that `const` stands on, __restrict__."""
    types = re.sub(r"\b__restrict(__)?\b", "", _normalised(types))
    parts = []
    for part in types.split(","):
        head, star, tail = part.partition("*")
        words = head.split()
        parts.append(" ".join(sorted(words, key=lambda word: word != "const")) + star + tail.replace(" ", ""))
    return ",".join(parts)


def _describe(entries: list[str]) -> list[str]:
    """Plain names; overloads, which share one, with their parameter types."""
    plain = [plain_name(entry) for entry in entries]
    types = [parameter_types(entry) for entry in entries]
    return [
        name if plain.count(name) == 1 else f"{name} ({entry})" if found is None else f"{name}({', '.join(found)})"
        for name, entry, found in zip(plain, entries, types)
    ]
