"""What a kernel takes: its parameters as the source declares them, and a command line that would launch it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from fasim.report.dtypes import DTYPES
from fasim.sm.module import Kernel
from fasim.toolchain import plain_name

_DTYPE_OF = {
    "float": "f32", "double": "f64", "half": "f16", "__half": "f16", "__nv_bfloat16": "bf16", "nv_bfloat16": "bf16", "bool": "bool",
    "char": "i8", "signed char": "i8", "unsigned char": "u8", "short": "i16", "unsigned short": "u16", "int": "i32", "unsigned": "u32",
    "unsigned int": "u32", "long": "i64", "unsigned long": "u64", "long long": "i64", "unsigned long long": "u64", "size_t": "u64",
    "half2": "f16", "__half2": "f16", "__nv_bfloat162": "bf16", "uint": "u32", "uchar": "u8", "ushort": "u16", "ptrdiff_t": "i64",
}  # fmt: skip
_FIXED = re.compile(r"(u?)int(8|16|32|64)_t")
_VECTOR = re.compile(r"(u?)(char|short|int|long|longlong|float|double)([1-4])")
_WORDS_WITHOUT_TYPE = re.compile(r"\b(const|volatile|__restrict(__)?|restrict|__grid_constant__|struct|typename|std::|cuda::std::)\s*")
#: elements of a buffer in an example
_EXAMPLE_ELEMENTS = 1024


@dataclass(frozen=True)
class Parameter:
    """A kernel parameter: type as written in C++ (PTX where only that is known), and the element type if it is a plain one."""

    name: str
    type_: str
    dtype: str
    is_pointer: bool
    is_const: bool

    @property
    def example(self) -> str:
        """An --arg for it."""
        if self.is_pointer:
            dtype = self.dtype or "f32"
            random = "normal" if dtype in ("f16", "bf16", "f32", "f64") else "randint(0,2)" if dtype == "bool" else "randint(0,100)"
            return f"{self.name}={dtype}[{_EXAMPLE_ELEMENTS}]:{random if self.is_const else 'zeros'}"
        if self.dtype:
            return f"{self.name}={self.dtype}:{'true' if self.dtype == 'bool' else '1.0' if 'f' in self.dtype else _EXAMPLE_ELEMENTS}"
        return f"{self.name}={_EXAMPLE_ELEMENTS}"


def parameters(kernel: Kernel) -> list[Parameter]:
    """The parameters of a kernel, from its C++ source if they can be read there, else from PTX."""
    declared = _from_source(kernel)
    if declared is not None:
        return declared
    found = []
    for i, parameter in enumerate(kernel.program.parameters):
        name = f"arg{i}" if "_param_" in parameter.name else parameter.name
        size = parameter.size_bytes
        if parameter.type_.startswith("b8["):
            found.append(Parameter(name, f"{size} bytes by value", "", False, False))
        elif size == 8 and parameter.type_[0] != "f":
            found.append(Parameter(name, f"{parameter.type_}, a pointer or a 64-bit integer", "", True, False))
        else:
            kind = "f" if parameter.type_[0] == "f" else "i" if parameter.type_[0] == "s" else "u"
            found.append(Parameter(name, parameter.type_, f"{kind}{8 * size}" if f"{kind}{8 * size}" in DTYPES else "", False, False))
    return found


def _from_source(kernel: Kernel) -> list[Parameter] | None:
    compiled = kernel.module.compiled
    if compiled is None:
        return None
    from fasim.toolchain.declarations import UnbalancedBraces, declarations, flatten

    base = plain_name(kernel.program.name).split("<")[0].split("::")[-1]
    count = len(kernel.program.parameters)
    try:
        units = [unit for unit in flatten(declarations(compiled.source_text)) if unit.is_kernel and unit.name == base]
    except (UnbalancedBraces, IndexError):
        return None
    lists = {tuple(_declared(compiled.source_text[unit.start : unit.end], base)) for unit in units}
    lists = {found for found in lists if len(found) == count}
    # overloads with as many parameters cannot be told apart here
    return list(lists.pop()) if len(lists) == 1 else None


def _declared(text: str, name: str) -> list[Parameter]:
    """The parameters in the parenthesis after a function's name."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    match = re.search(rf"\b{re.escape(name)}\s*\(", text)
    if match is None:
        return []
    depth, parts, start = 0, [], match.end()
    for i in range(match.end(), len(text)):
        if text[i] in "([{<":
            depth += 1
        elif text[i] in ")]}>":
            depth -= 1
            if depth < 0:
                parts.append(text[start:i])
                break
        elif text[i] == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [_parameter(part, i) for i, part in enumerate(parts) if part.strip() not in ("", "void")]


def _parameter(text: str, position: int) -> Parameter:
    text = " ".join(text.split("=")[0].split())
    match = re.fullmatch(r"(?P<type>.*[\s*&>])(?P<name>[A-Za-z_]\w*)\s*(?P<extent>\[[^\]]*\])?", text)
    type_, name = (match["type"].strip(), match["name"]) if match else (text, f"arg{position}")
    if match and match["extent"]:
        type_ += " *"
    pointer = "*" in type_
    base = _WORDS_WITHOUT_TYPE.sub("", type_.replace("*", " ").replace("&", " ")).strip()
    return Parameter(name, type_, _dtype_of(" ".join(base.split())), pointer, pointer and "const" in type_.split("*")[0])


def _dtype_of(base: str) -> str:
    if match := _FIXED.fullmatch(base):
        return f"{'u' if match[1] else 'i'}{match[2]}"
    if match := _VECTOR.fullmatch(base):
        return _DTYPE_OF[("unsigned " if match[1] else "") + match[2].replace("longlong", "long long")]
    return _DTYPE_OF.get(base.removesuffix(" int") if base not in ("int", "unsigned int") else base, "")


def describe(parameters: Sequence[Parameter]) -> str:
    """One line a parameter."""
    return "\n".join(f"  {p.name}: {p.type_}" for p in parameters) or "  (none)"


def example_command(source: str, kernel: Kernel, parameters: Sequence[Parameter], smem_bytes: int = 0) -> str:
    """A complete command line that launches the kernel on small arrays."""
    block = min(kernel.program.max_threads or 128, 128)
    block_text = "x".join(map(str, kernel.program.required_block)) if kernel.program.required_block else str(block)
    words = ["fasim", "run", source, "--entry", kernel.name, "--grid", "8", "--block", block_text]
    if smem_bytes:
        words += ["--smem", str(smem_bytes)]
    for parameter in parameters:
        words += ["--arg", parameter.example]
    return shlex.join(words)


def check_names(given: Sequence[str], parameters: Sequence[Parameter]) -> str | None:
    """A complaint if the names given are the parameters' names in another order: arguments go by position."""
    declared = [p.name for p in parameters]
    if list(given) != declared and sorted(given) == sorted(declared):
        return f"arguments go by position, and the kernel's order is {', '.join(declared)}; these come as {', '.join(given)}"
    return None
