"""What a cubin says of a kernel besides its code: constant banks, where they point to, and how much stack a thread needs.

Source: "CUDA Binary Utilities" for the sections; attribute numbers of .nv.info as cuobjdump --dump-elf names them.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass, field

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import Section, Symbol, SymbolTableSection

from fasim.errors import FasimError

#: banks: 0 what the driver passes, 2 constants of a kernel's code, 3 __constant__ variables, 4 addresses of variables
PARAMETERS, OF_KERNEL, VARIABLES, ADDRESSES = 0, 2, 3, 4
#: attributes of .nv.info: number, and what it says
_FRAME_SIZE, _MIN_STACK_SIZE = 0x11, 0x12
#: the section of variables in global memory that have an initial value
_GLOBALS = ".nv.global.init"
#: stack of a thread for calls whose depth is not known
RECURSION_BYTES = 16384


@dataclass(frozen=True)
class Pointer:
    """An 8-byte address in a constant bank: of a variable or function, and how far behind its beginning."""

    symbol: str
    addend: int


@dataclass(frozen=True)
class CubinKernel:
    """banks: contents by number; pointers: by bank and offset; constants: __constant__ variables, byte offset in bank 3 and size.
    contents: initial bytes of variables, in which only addresses of functions are filled in.

    functions: byte offset of each function in the kernel's code. stack_bytes: least stack of a thread. shared_bytes: static, with what
    the system keeps at its beginning.
    """

    banks: dict[int, bytes]
    pointers: dict[tuple[int, int], Pointer] = field(default_factory=dict)
    constants: dict[str, tuple[int, int]] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    functions: dict[str, int] = field(default_factory=dict)
    stack_bytes: int = 0
    shared_bytes: int = 0

    @property
    def jump_table(self) -> set[int]:
        """What a BRX may read from bank 2 as an offset in the code; other constants stand there, too."""
        data = self.banks.get(OF_KERNEL, b"")
        return {word for (word,) in struct.iter_unpack("<I", data[: len(data) // 4 * 4])}


def read_kernel(cubin: bytes, entry: str) -> CubinKernel:
    """Read what belongs to a kernel.

    Raises: FasimError if this is no cubin.
    """
    try:
        elf = ELFFile(io.BytesIO(cubin))
        sections = {section.name: section for section in elf.iter_sections()}
    except ELFError as error:
        raise FasimError(f"this is no cubin: {error}") from error
    table = sections[".symtab"]
    assert isinstance(table, SymbolTableSection)
    symbols = list(table.iter_symbols())
    banks, pointers = {}, {}
    for bank in (OF_KERNEL, VARIABLES, ADDRESSES):
        name = f".nv.constant{bank}.{entry}" if bank == OF_KERNEL else f".nv.constant{bank}"
        if name in sections:
            banks[bank] = sections[name].data()
        for relocations in (sections.get(f".rela{name}"), sections.get(f".rel{name}")):
            if isinstance(relocations, RelocationSection):
                for relocation in relocations.iter_relocations():
                    symbol, at = symbols[relocation["r_info_sym"]].name, relocation["r_offset"]
                    # without an addend of its own (sm_80) it stands where the address goes
                    addend = relocation["r_addend"] if relocations.is_RELA() else struct.unpack_from("<q", banks[bank], at)[0]
                    pointers[bank, at] = Pointer(symbol, addend)
    numbers = {name: number for number, name in enumerate(section.name for section in elf.iter_sections())}
    of_bank3, of_code = numbers.get(f".nv.constant{VARIABLES}"), numbers.get(f".text.{entry}")
    objects = [symbol for symbol in symbols if symbol["st_info"]["type"] == "STT_OBJECT"]
    functions = [symbol for symbol in symbols if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_shndx"] == of_code]
    return CubinKernel(
        banks,
        pointers,
        {symbol.name: (symbol["st_value"], symbol["st_size"]) for symbol in objects if symbol["st_shndx"] == of_bank3},
        _contents(objects, {of_bank3: banks.get(VARIABLES, b""), numbers.get(_GLOBALS): _data(sections, _GLOBALS)}),
        {symbol.name: symbol["st_value"] for symbol in functions},
        _stack_bytes(_data(sections, ".nv.info"), [symbol.name for symbol in symbols], entry),
        sections[f".nv.shared.{entry}"].data_size if f".nv.shared.{entry}" in sections else 0,
    )


def _data(sections: dict[str, Section], name: str) -> bytes:
    """The bytes of a section that may be missing."""
    found: bytes = sections[name].data() if name in sections else b""
    return found


def _contents(objects: list[Symbol], data: dict[int | None, bytes]) -> dict[str, bytes]:
    """Initial bytes of the variables in some sections."""
    found = {}
    for symbol in objects:
        if symbol["st_shndx"] in data:
            start = symbol["st_value"]
            found[symbol.name] = data[symbol["st_shndx"]][start : start + symbol["st_size"]]
    return found


def _stack_bytes(info: bytes, symbols: list[str], entry: str) -> int:
    """The larger of a kernel's frame and its least stack, of records (format, attribute, size, payload)."""
    at, found = 0, 0
    while at + 4 <= len(info):
        kind, attribute, size = info[at], info[at + 1], struct.unpack_from("<H", info, at + 2)[0]
        payload = info[at + 4 : at + 4 + size] if kind == 4 else b""
        at += 4 + len(payload)
        if attribute in (_FRAME_SIZE, _MIN_STACK_SIZE) and len(payload) == 8:
            symbol, value = struct.unpack("<II", payload)
            if symbol < len(symbols) and symbols[symbol] == entry:
                found = max(found, RECURSION_BYTES if value == 0xFFFFFFFF else value)
    return found
