"""What a kernel takes: the names and C++ types of its parameters, read from the source text and from the mangled name.

The mangled name tells the types without typedefs and template parameters, the source text the names and the author's spelling.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from fasim.toolchain.names import parameter_types, plain_name

_DTYPE_OF = {
    "float": "f32", "double": "f64", "half": "f16", "__half": "f16", "__nv_bfloat16": "bf16", "nv_bfloat16": "bf16", "bool": "bool",
    "char": "i8", "signed char": "i8", "unsigned char": "u8", "short": "i16", "unsigned short": "u16", "int": "i32", "unsigned": "u32",
    "unsigned int": "u32", "long": "i64", "unsigned long": "u64", "long long": "i64", "unsigned long long": "u64", "size_t": "u64",
    "uint": "u32", "uchar": "u8", "ushort": "u16", "ulong": "u64", "ptrdiff_t": "i64", "byte": "u8",
}  # fmt: skip
_VECTORS_OF = {"half2": "f16", "__half2": "f16", "__nv_bfloat162": "bf16", "nv_bfloat162": "bf16"}
_FIXED = re.compile(r"(u?)int(8|16|32|64)_t")
_VECTOR = re.compile(r"(u?)(char|short|int|long|longlong|float|double)([1-4])")
#: what plain bytes are declared as: pointers to them take any buffer
_BYTES = frozenset({"char", "unsigned char", "uchar", "byte", "uint8_t", "void"})
#: types whose names the language fixes; a source may give the others a meaning of its own
_FUNDAMENTAL = {"float", "double", "bool", "void"} | {key for key in _DTYPE_OF if re.match(r"(un)?signed|char|short|int|long", key)}
_QUALIFIERS = re.compile(r"\b(const|volatile|__restrict(__)?|restrict|__grid_constant__|struct|typename)\b|\b(cuda::)?std::")
_STORAGE = re.compile(r"\b(__device__|__constant__|__managed__|static|extern|inline|constexpr|(alignas|__align__)\([^)]*\))")
_DROPPED = re.compile(r"\s*\b(__restrict(__)?|restrict|__grid_constant__)\b")


@dataclass(frozen=True)
class Declared:
    """A parameter: its name ("" if unknown) and type as C++ writes it.

    dtype: the short name of the plain type, or of a pointer's or vector's elements; "" where it is none (a structure, an unknown typedef).
    takes_bytes: a pointer to plain bytes, which any buffer may be given for.
    """

    name: str
    type_: str
    dtype: str = ""
    is_pointer: bool = False
    is_const: bool = False
    is_vector: bool = False
    takes_bytes: bool = False


def signature(entry: str, count: int, source_text: str | None) -> list[Declared] | None:
    """The `count` parameters of the kernel with the mangled name `entry`; source_text: the file that defines it, if there is one.

    Returns: None if neither tells.
    """
    mangled = parameter_types(entry)
    by_name = [declared(type_, "") for type_ in mangled] if mangled is not None and len(mangled) == count else None
    by_source = _from_source(entry, count, source_text, by_name) if source_text is not None else None
    if by_name is None or by_source is None:
        return by_source or by_name
    template = plain_name(entry).endswith(">")
    # a pointer stays const in the mangled name, a value does not
    return [
        replace(known, name=written.name, type_=known.type_ if template else written.type_) for known, written in zip(by_name, by_source)
    ]


def _from_source(entry: str, count: int, text: str, by_name: list[Declared] | None) -> list[Declared] | None:
    from fasim.toolchain.declarations import UnbalancedBraces, declarations, flatten

    base = plain_name(entry).split("<")[0].split("::")[-1]
    try:
        units = [unit for unit in flatten(declarations(text)) if unit.is_kernel and unit.name == base]
    except (UnbalancedBraces, IndexError):
        return None
    found: dict[tuple[Declared, ...], None] = {}
    for unit in units:
        own = _template_names(unit.template_parameters)
        parameters = tuple(_without_own_names(p, text, own) for p in _declared_list(text[unit.start : unit.end], base))
        if len(parameters) == count and (by_name is None or all(_may_be(p, known) for p, known in zip(parameters, by_name))):
            found[parameters] = None
    if len({tuple(p.name for p in parameters) for parameters in found}) > 1 and by_name is not None:
        # overloads: those whose known types are the mangled ones
        found = {ps: None for ps in found if all(p.dtype == known.dtype for p, known in zip(ps, by_name))}
    # declarations without names beside the definition
    named = [parameters for parameters in found if all(p.name for p in parameters)] or list(found)
    return list(named[-1]) if len({tuple(p.type_ for p in parameters) for parameters in named}) == 1 else None


def _may_be(written: Declared, known: Declared) -> bool:
    """Whether a parameter of the source can be the one of the mangled name; an unknown type can be any."""
    if written.is_pointer and not known.is_pointer:
        return False
    return not (written.dtype and known.dtype) or written.dtype == known.dtype


def _template_names(parameters: str) -> frozenset[str]:
    return frozenset(re.findall(r"(\w+)\s*(?:=[^,>]*)?(?=[,>])", parameters))


def _without_own_names(parameter: Declared, text: str, template_names: frozenset[str]) -> Declared:
    """The parameter without an element type if the source itself gives the type's name its meaning."""
    base = _base(parameter.type_)
    if base in _FUNDAMENTAL or not re.fullmatch(r"\w+", base):
        return parameter
    word = re.escape(base)
    aliases = re.findall(rf"\busing\s+{word}\s*=([^;]*);|\btypedef\b([^;]*?)\b{word}\s*;", text)
    if len(aliases) == 1 and base not in template_names and (alias := _base("".join(aliases[0]))) in _FUNDAMENTAL:
        return replace(declared(parameter.type_.replace(base, alias), parameter.name), type_=parameter.type_)
    own = rf"\busing\s+{word}\s*=|#\s*define\s+{word}\b|\btypedef\b[^;]*\b{word}\s*;|\b(struct|class|enum)\s+{word}\s*\{{"
    if base in template_names or re.search(own, text):
        return replace(parameter, dtype="", is_vector=False, takes_bytes=False)
    return parameter


def _declared_list(text: str, name: str) -> list[Declared]:
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
    return [_parameter(part) for part in parts if part.strip() not in ("", "void")]


def _parameter(text: str) -> Declared:
    text = " ".join(text.split("=")[0].split())
    match = re.fullmatch(r"(?P<type>.*[\s*&>])(?P<name>[A-Za-z_]\w*)\s*(?P<extent>\[[^\]]*\])?", text)
    if match is None or match["name"] in _DTYPE_OF or _QUALIFIERS.sub("", match["type"]).strip() in ("", "unsigned"):
        # a declaration without names
        known = match is not None and match["name"] not in _DTYPE_OF and _QUALIFIERS.sub("", match["type"]).strip() == "unsigned"
        return declared(match["type"], match["name"]) if match and known else declared(text, "")
    return declared(match["type"].strip() + (" *" if match["extent"] else ""), match["name"])


def declared(type_: str, name: str) -> Declared:
    """A parameter of a type as C++ writes it."""
    pointer = "*" in type_
    shown = re.sub(r"\s*\*\s*", " *", _DROPPED.sub("", type_)).replace("* *", "**").strip()
    base = _base(type_)
    if type_.count("*") > 1 or "(" in type_:
        base = ""
    dtype, vector = _dtype_of(base)
    raw = pointer and (base in _BYTES or (vector and dtype in ("i8", "u8")))
    return Declared(name, shown, dtype, pointer, pointer and "const" in type_.split("*")[0], vector, raw)


def _base(type_: str) -> str:
    """A type without qualifiers, pointers and references."""
    return " ".join(_QUALIFIERS.sub(" ", type_.replace("*", " ").replace("&", " ")).split()).removeprefix("::")


def _dtype_of(base: str) -> tuple[str, bool]:
    """Short name of a plain or vector type, and whether it is a vector."""
    if match := _FIXED.fullmatch(base):
        return f"{'u' if match[1] else 'i'}{match[2]}", False
    if match := _VECTOR.fullmatch(base):
        return _DTYPE_OF[("unsigned " if match[1] else "") + match[2].replace("longlong", "long long")], True
    if base in _VECTORS_OF:
        return _VECTORS_OF[base], True
    return _DTYPE_OF.get(base.removesuffix(" int") if base not in ("int", "unsigned int") else base, ""), False


_SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "bool": 1, **{f"{kind}{8 * size}": size for kind in "iu" for size in (1, 2, 4, 8)}}
_NUMPY_NAMES = {"f16": "float16", "f32": "float32", "f64": "float64", "bool": "bool_"}


def refuses(parameter: Declared, kind: str, item_bytes: int) -> bool:
    """Whether a buffer of numpy kind `kind` cannot be what a pointer points to; unsigned integers of the right size pass as bits."""
    if not parameter.is_pointer or not parameter.dtype or parameter.takes_bytes or kind not in "biufc":
        return False
    size, wants_float = _SIZES[parameter.dtype], "f" in parameter.dtype
    if kind == "c":
        return not wants_float or item_bytes != 2 * size
    if parameter.dtype == "u32" and item_bytes == 2 and kind in "fu":
        # f16x2 and bf16x2 travel as unsigned words
        return False
    if item_bytes != size:
        return True
    if size == 2:
        # 16-bit integers hold the bits of half precision, and are held by it
        return kind == "f" and parameter.dtype == "bf16"
    return (kind == "i" and wants_float) or (kind == "f" and not wants_float)


def numpy_name(dtype: str) -> str:
    """The numpy type of a short name, "" for bf16, which numpy does not have."""
    if dtype == "bf16":
        return ""
    return _NUMPY_NAMES.get(dtype) or f"{'u' if dtype[0] == 'u' else ''}int{dtype[1:]}"


def bits_name(dtype: str) -> str:
    """The unsigned numpy type that holds the bits of a short name's elements."""
    return f"uint{8 * _SIZES[dtype]}"


def signed_range(parameter: Declared) -> tuple[int, int] | None:
    """The least and the largest value of a signed integer that is passed by value."""
    if parameter.is_pointer or parameter.is_vector or not re.fullmatch(r"i\d+", parameter.dtype):
        return None
    bits = 8 * _SIZES[parameter.dtype]
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def element(dtype: str) -> Declared:
    """What a variable with elements of a short type takes: the same as a pointer to it."""
    return Declared("", "", dtype, True, takes_bytes=dtype in ("i8", "u8"))


def variable_dtype(text: str, name: str) -> str:
    """Short name of the elements of a __device__ or __constant__ variable that the source declares, "" where it is no plain number."""
    from fasim.toolchain.declarations import DEVICE_MARKS, UnbalancedBraces, declarations, flatten

    try:
        units = [unit for unit in flatten(declarations(text)) if unit.kind == "other" and unit.name == name and unit.words & DEVICE_MARKS]
    except (UnbalancedBraces, IndexError):
        return ""
    for unit in units:
        head = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text[unit.start : unit.end], flags=re.DOTALL)
        if match := re.search(rf"^(.*?)\b{re.escape(name)}\s*[\[={{;]", head, re.DOTALL):
            type_ = " ".join(_STORAGE.sub(" ", match[1]).split())
            found = _without_own_names(declared(type_, name), text, frozenset())
            return "" if found.is_pointer else found.dtype
    return ""
