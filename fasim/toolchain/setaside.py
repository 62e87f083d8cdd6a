"""Setting host code aside: what to blank next, led by the compiler's own messages."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from fasim.toolchain.cpplex import Lexed, lex
from fasim.toolchain.declarations import UnbalancedBraces, Unit, declarations, flatten
from fasim.toolchain.diagnostics import Diagnostic
from fasim.toolchain.hostcode import blank, device_function_names, obvious_host_code
from fasim.toolchain.names import plain_name

# fragments of NVRTC's messages about entities that nvcc would compile for the host
_HOST_FUNCTION = "is considered a host function"
_EXPLICIT_HOST = "explicitly marked as a __host__ function"
_HOST_VARIABLE = "namespace scope variable without memory space annotations"
_HOST_MEMBER = "class static data member"
_HOST_LAMBDA = "execution space for the lambda closure"
_UNMARKED = "it has neither __device__ nor __global__, so kernels cannot call it"
_HOST_MARKS = (_HOST_FUNCTION, _HOST_VARIABLE, _HOST_MEMBER, _HOST_LAMBDA)


def is_host_mark(error: Diagnostic) -> bool:
    """Whether a message only says that code without a device mark is not allowed."""
    return any(mark in error.text for mark in _HOST_MARKS)


class SourceFile:
    """One of the user's files and the declarations of it that are set aside."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.lexed: Lexed = lex(text)
        self.units: list[Unit] = []
        self.unbalanced_line = 0
        self.whole: list[Unit] = []
        self.bodies: list[Unit] = []
        self.reasons: dict[int, Diagnostic] = {}
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def parse(self, macros: Mapping[str, str]) -> None:
        """Find the declarations; without them (braces that do not match) nothing of the file can be set aside."""
        try:
            self.units = declarations(self.text, macros, self.lexed)
        except UnbalancedBraces as error:
            self.unbalanced_line = self.line_of(error.offset)

    @property
    def blanked(self) -> str:
        """The text with host code replaced by spaces."""
        return blank(self.text, self.whole, self.bodies, self.lexed) if self.whole or self.bodies else self.text

    def line_of(self, offset: int) -> int:
        """The line, from 1, of an offset."""
        return bisect_right(self._line_starts, offset)

    def set_obvious_aside(self, device_names: frozenset[str]) -> None:
        """Set all functions without a device mark aside."""
        self.whole.extend(obvious_host_code(self.units, device_names))

    def chain(self, line: int, column: int) -> list[Unit]:
        """The declarations around a place, outermost first."""
        if not 1 <= line <= len(self._line_starts):
            return []
        start = self._line_starts[line - 1]
        end = self._line_starts[line] if line < len(self._line_starts) else len(self.text) + 1
        found = self._around(self.units, start + column, start + column + 1) if column >= 0 else []
        return found or self._around(self.units, start, end)

    def _around(self, units: list[Unit], start: int, end: int) -> list[Unit]:
        for unit in units:
            if unit.start < end and start < unit.end and not any(unit is other for other in self.whole):
                return [unit, *self._around(unit.children, start, end)]
        return []

    def set_aside(self, unit: Unit, reason: Diagnostic) -> None:
        """Blank a declaration; a member function first loses its body alone, so that the class keeps its constructors."""
        self.reasons.setdefault(id(unit), reason)
        if unit.in_class and unit.body >= 0 and not any(unit is other for other in self.bodies) and _EXPLICIT_HOST not in reason.text:
            self.bodies.append(unit)
        else:
            self.bodies = [other for other in self.bodies if not unit.start <= other.start < unit.end]
            self.whole.append(unit)


class HostCode:
    """The user's files, what of them is set aside, and whether unmarked code that remains counts as device code."""

    def __init__(self, main: SourceFile, headers: Mapping[Path, str], by_name: Mapping[str, Path], macros: Mapping[str, str]) -> None:
        self.main = main
        self.header_texts = headers
        self.by_name = by_name
        self.macros = dict(macros)
        for text in headers.values():
            self.macros.update(_quick_macros(text))
        self.headers: dict[Path, SourceFile] = {}
        main.parse(self.macros)
        self.device_names = device_function_names(main.units)
        self.default_device = False

    def files(self) -> list[SourceFile]:
        """All files that have been read as declarations so far."""
        return [self.main, *self.headers.values()]

    def any_set_aside(self) -> bool:
        """Whether anything is blanked."""
        return any(file.whole or file.bodies for file in self.files())

    @contextmanager
    def nothing_set_aside(self) -> Iterator[None]:
        """Within this block all files are as their authors wrote them."""
        saved = [(file, file.whole, file.bodies) for file in self.files()]
        device, self.default_device = self.default_device, False
        for file, _, _ in saved:
            file.whole, file.bodies = [], []
        try:
            yield
        finally:
            self.default_device = device
            for file, whole, bodies in saved:
                file.whole, file.bodies = whole, bodies

    def virtual_headers(self) -> dict[str, str]:
        """Headers with host code set aside, by the name they are included under."""
        return {
            name: f'#line 1 "{path}"\n{self.headers[path].blanked}'
            for name, path in self.by_name.items()
            if path in self.headers and (self.headers[path].whole or self.headers[path].bodies)
        }

    def file_of(self, name: str) -> SourceFile | None:
        """The user's file that a message names; a header is read when a message first points into it."""
        if _same_path(name, self.main.name):
            return self.main
        for path in self.header_texts:
            if _same_path(name, str(path)):
                if path not in self.headers:
                    file = SourceFile(str(path), self.header_texts[path])
                    file.parse(self.macros)
                    self.device_names |= device_function_names(file.units)
                    file.set_obvious_aside(self.device_names)
                    self.headers[path] = file
                return self.headers[path]
        return None

    def respond(self, errors: list[Diagnostic]) -> bool:
        """Set aside the host code that errors point into.

        Returns: whether anything changed, so that another compilation is worth its time.
        """
        changed = False
        settled = {id(unit) for file in self.files() for unit in file.bodies}
        for error in errors:
            known = len(self.headers)
            if self.file_of(error.file) is None and is_host_mark(error):
                # a header of the toolkit that declares host functions, such as cuda.h
                changed |= self.treat_rest_as_device()
                continue
            places = [(file, line, column) for name, line, column in error.places() if (file := self.file_of(name))]
            changed |= len(self.headers) != known and any(file.whole for file in self.headers.values())
            for file, line, column in places:
                chain = file.chain(line, column)
                if chain and self._respond_at(file, chain, error, settled):
                    changed = True
                    break
        return changed

    def _respond_at(self, file: SourceFile, chain: list[Unit], error: Diagnostic, settled: set[int]) -> bool:
        innermost = chain[-1]
        marks_only = is_host_mark(error)
        constant = innermost.is_constant or (_HOST_LAMBDA in error.text and innermost.is_device)
        if marks_only and (innermost.in_class or constant or innermost.is_device):
            return self.treat_rest_as_device()
        for unit in reversed(chain):
            if unit.kind == "scope" or unit.is_device or unit.specialises:
                return False
            if id(unit) not in settled and any(unit is other for other in file.bodies):
                # its body went in this round, so the message is out of date
                return False
            if unit.is_data_member:
                # without it the class would have another layout
                continue
            file.set_aside(unit, error)
            return True
        return False

    def treat_rest_as_device(self) -> bool:
        """Let NVRTC take unmarked code, which constexpr functions and classes shared with the host are.

        Unmarked member functions lose their bodies: they are host code, so that a kernel which calls one must not compile.
        Returns: whether this is new.
        """
        changed = not self.default_device
        self.default_device = True
        for file in self.files():
            known = {id(unit) for unit in file.bodies + file.whole}
            for unit in flatten(file.units):
                if unit.in_class and unit.body >= 0 and not (unit.is_device or unit.is_constant or id(unit) in known):
                    file.bodies.append(unit)
                    changed = True
        return changed

    def explanations(self, log: str) -> list[Diagnostic]:
        """Messages because of which declarations were set aside that the log now misses."""
        found = []
        for file in self.files():
            for unit in file.whole + file.bodies:
                reason = file.reasons.get(id(unit))
                if reason and unit.name and re.search(rf'"[^"\n]*\b{re.escape(unit.name)}\b', log):
                    found.append(reason)
        return found

    def missing_marks(self, log: str) -> list[str]:
        """A sentence for every function without a device mark that the log says is missing."""
        missing = set(re.findall(r'identifier "(\w+)" is undefined', log))
        missing |= {plain_name(name).split("<")[0].split("::")[-1] for name in re.findall(r"Unresolved extern function '(\w+)'", log)}
        found = []
        for file in self.files():
            for unit in file.whole + file.bodies:
                if unit.kind == "function" and unit.name in missing:
                    place = f"{file.name}({file.line_of(unit.start)})"
                    found.append(f'{place}: note: "{unit.name}" is host code: {_UNMARKED}')
        return list(dict.fromkeys(found))

    def kernel_templates(self) -> list[Unit]:
        """Templates of kernels in the files read so far."""
        return [unit for file in self.files() for unit in flatten(file.units) if unit.is_kernel and unit.is_template]


def _same_path(name: str, other: str) -> bool:
    return name == other or Path(name).absolute() == Path(other).absolute()


def _quick_macros(text: str) -> dict[str, str]:
    pattern = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\([^)\n]*\))?((?:\\\n|[^\n])*)", re.MULTILINE)
    return {match[1]: match[2].replace("\\\n", " ").strip() for match in pattern.finditer(text)}
