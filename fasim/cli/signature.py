"""A kernel's parameters as the command line shows them, and a command line that would launch it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from fasim.numerics.dtypes import DTYPES
from fasim.sm.module import Kernel
from fasim.toolchain.names import parameter_types
from fasim.toolchain.signature import Declared, bits_name, refuses

#: elements of a buffer in an example
_EXAMPLE_ELEMENTS = 1024
#: dynamic shared memory in an example whose file does not say how much
_EXAMPLE_SMEM_BYTES = 16384


@dataclass(frozen=True)
class Parameter:
    """A kernel parameter: type as written in C++ (PTX where only that is known), and how the compiled kernel takes it."""

    name: str
    type_: str
    dtype: str
    is_pointer: bool
    is_const: bool
    size_bytes: int
    is_structure: bool

    @property
    def example(self) -> str:
        """An --arg for it."""
        if self.is_pointer:
            dtype = self.dtype or "f32"
            random = "normal" if dtype in ("f16", "bf16", "f32", "f64") else "randint(0,2)" if dtype == "bool" else "randint(0,100)"
            return f"{self.name}={dtype}[{_EXAMPLE_ELEMENTS}]:{random if self.is_const else 'zeros'}"
        if self.is_structure:
            return f"{self.name}=u8[{self.size_bytes}]:zeros"
        if self.dtype:
            most = min(_EXAMPLE_ELEMENTS, 100 if self.dtype.endswith("8") else _EXAMPLE_ELEMENTS)
            return f"{self.name}={self.dtype}:{'true' if self.dtype == 'bool' else '1.0' if 'f' in self.dtype else most}"
        return f"{self.name}={_EXAMPLE_ELEMENTS}"


def parameters(kernel: Kernel) -> list[Parameter]:
    """The parameters of a kernel, from its C++ source or mangled name if they tell, else from PTX."""
    known = kernel.signature
    found = []
    for i, param in enumerate(kernel.program.parameters):
        declared = known[i] if known else None
        name = (declared.name if declared else "") or (f"arg{i}" if "_param_" in param.name else param.name)
        size, structure = param.size_bytes, param.type_.startswith("b8[")
        if declared is not None:
            by_value = structure and not declared.is_pointer
            dtype = "" if by_value else declared.dtype
            found.append(Parameter(name, declared.type_, dtype, declared.is_pointer, declared.is_const, size, by_value))
        elif structure:
            found.append(Parameter(name, f"{size} bytes by value", "", False, False, size, True))
        elif size == 8 and param.type_[0] != "f":
            found.append(Parameter(name, f"{param.type_}, a pointer or a 64-bit integer", "", True, False, size, False))
        else:
            kind = "f" if param.type_[0] == "f" else "i" if param.type_[0] == "s" else "u"
            dtype = f"{kind}{8 * size}"
            found.append(Parameter(name, param.type_, dtype if dtype in DTYPES else "", False, False, size, False))
    return found


def describe(parameters: Sequence[Parameter]) -> str:
    """One line a parameter."""
    return "\n".join(f"  {p.name}: {p.type_}" for p in parameters) or "  (none)"


def example_command(
    source: str, kernel: Kernel, parameters: Sequence[Parameter], smem_bytes: int = 0, options: Sequence[str] = (), command: str = "run"
) -> str:
    """A complete command line that launches the kernel: on the grid that the file itself launches, if it says so, and on small arrays.

    options: words to keep, -D and -I.
    """
    grid, block, smem = launch_sizes(kernel)
    if kernel.program.required_block:
        block = "x".join(map(str, kernel.program.required_block))
    block = block or str(min(kernel.program.max_threads or 128, 128))
    words = ["fasim", command, source, *options, "--entry", _entry_name(kernel), "--grid", grid or "8", "--block", block]
    if smem_bytes or uses_dynamic_smem(kernel):
        words += ["--smem", str(smem_bytes or smem or _EXAMPLE_SMEM_BYTES)]
    for parameter in parameters:
        words += ["--arg", parameter.example]
    return shlex.join(words)


def _entry_name(kernel: Kernel) -> str:
    """The kernel's name, for overloads with the types of its parameters."""
    types = parameter_types(kernel.program.name)
    ambiguous = kernel.module.kernel_names.count(kernel.name) > 1 and types is not None
    return f"{kernel.name}({', '.join(types or ())})" if ambiguous else kernel.name


def uses_dynamic_smem(kernel: Kernel) -> bool:
    """Whether the kernel has an `extern __shared__` array."""
    names = re.findall(r"^\s*\.extern\s+\.shared\s[^;]*?([\w$]+)(?:\[\d*\])?\s*;", kernel.module.ptx, re.MULTILINE)
    text = " ".join(source.text for source in kernel.program.source if source is not None)
    return any(re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", text) for name in names)


def launch_sizes(kernel: Kernel) -> tuple[str, str, int]:
    """Grid, block and dynamic shared memory of the first `<<<...>>>` in the file that writes the sizes as numbers; "" and 0 without."""
    compiled = kernel.module.compiled
    if compiled is None:
        return "", "", 0
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", compiled.source_text, flags=re.DOTALL)
    base = kernel.name.split("<")[0].split("::")[-1]
    for match in re.finditer(rf"\b{re.escape(base)}\b\s*(?:<[^;{{}}]*?>)?\s*<<<(.*?)>>>", text, re.DOTALL):
        parts = _split(match[1])
        sizes = [_size(part) for part in parts[:2]]
        if len(sizes) == 2 and all(sizes):
            smem = parts[2].strip() if len(parts) > 2 else ""
            return sizes[0], sizes[1], int(smem) if smem.isdecimal() else 0
    return "", "", 0


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for i, character in enumerate(text):
        depth += (character in "({") - (character in ")}")
        if character == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def _size(text: str) -> str:
    """`8`, `dim3(8, 2)` or `{8, 2}` as a command line writes it, "" for anything else."""
    match = re.fullmatch(r"\s*(?:dim3)?\s*[({]?\s*(\d+\s*(?:,\s*\d+\s*){0,2})[)}]?\s*", text)
    return "x".join(part.strip() for part in match[1].split(",")) if match else ""


def check_names(given: Sequence[str], parameters: Sequence[Parameter]) -> str | None:
    """A complaint if the names given are the parameters' names in another order: arguments go by position."""
    declared = [p.name for p in parameters]
    if list(given) != declared and sorted(given) == sorted(declared):
        return f"arguments go by position, and the kernel's order is {', '.join(declared)}; these come as {', '.join(given)}"
    return None


def check_type(name: str, dtype: str, declared: Declared) -> str | None:
    """A complaint if a buffer of the short type `dtype` cannot be what the pointer points to."""
    if dtype not in DTYPES:
        return None
    given = DTYPES[dtype]
    if not refuses(declared, given.kind, given.itemsize):
        return None
    bits = bits_name(declared.dtype).replace("uint", "u")
    parameter = f"{declared.type_} {declared.name}".replace("* ", "*").strip()
    return (
        f"argument {name} is {dtype}, and the kernel declares `{parameter}`: give {declared.dtype}[...] "
        f"(a file is converted by {name}={declared.dtype}@FILE), or {bits}[...] to pass bits"
    )
