"""One compilation from request to module: options, headers, host code, template instantiations, messages."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fasim.errors import CompileError, UsageError
from fasim.toolchain import nvrtc
from fasim.toolchain.child import compile_in_child
from fasim.toolchain.compile import CompiledModule, Request
from fasim.toolchain.diagnostics import Diagnostic, ptxas_lines, read_log, registers, user_warnings
from fasim.toolchain.headers import INCLUDE_DIRECTORY, PRE_INCLUDE, host_library_headers, virtual_headers
from fasim.toolchain.hostcode import launch_expressions
from fasim.toolchain.names import did_you_mean, find_entry, plain_name, split_parameters
from fasim.toolchain.renamed import neutral_directories
from fasim.toolchain.setaside import HostCode, SourceFile, is_host_mark
from fasim.toolchain.wheels import cuda_include_directories

_MAX_ROUNDS = 60
_ARCH = re.compile(r"sm_(\d+)([af]?)")
_ENTRY = re.compile(r"^\s*(?:\.(?:visible|weak|extern)\s+)?\.entry\s+([\w$.]+)", re.MULTILINE)
_STD_NAME = re.compile(r"\bstd\s*::\s*(\w+)")
# members of std that need none of libcu++: pre-included, built into NVRTC, or names of host classes
_LIGHT_HEADERS = ("fasim_nvcc.h", "fasim_host_types.h")
_BUILT_IN_STD = frozenset({"move", "forward", "initializer_list", "numeric_limits", "cout", "cerr", "endl", "chrono", "to_string"})
# comments, and macros: what a macro names is needed only where it is used
_NOT_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|^[ \t]*#[ \t]*define(?:\\\n|[^\n])*", re.MULTILINE | re.DOTALL)
# NVIDIA's headers that want long long for int64_t
_FIXED_INT64 = re.compile(r"#\s*include\s*[<\"](cuda/|cub/|thrust/|cooperative_groups|cuda_pipeline|cuda_awbarrier|cutlass|cute)")
_NAME_MAP = re.compile(r"^__nv_name_map\(\d+\): error.*\n\s*#pragma nv_mangled_name (.*)$", re.MULTILINE)
# options of nvcc that have no meaning for NVRTC, which takes what they allow
_NVCC_ONLY = re.compile(
    r"-O[0-3]|--?(expt-)?(relaxed-constexpr|extended-lambda)|-m64|--?keep|--?(cudart|ccbin|Xcompiler|compiler-options|x|code)([= ].*)?|-g"
)
_STD_OPTION = re.compile(r"--?std(=.*)?")
# NVRTC 13.0 does not know it
_NEWER_OPTIONS = ("-fmax-errors=1000",)
_DEFAULT_DEVICE = frozenset({"-default-device", "--device-as-default-execution-space"})


def compile_request(request: Request) -> CompiledModule:
    """Compile with NVRTC, without looking at the cache.

    Raises: CompileError, UsageError, ToolMissing.
    """
    nvrtc.library()  # is it there?
    check_arch(request.arch)
    if not sys.executable:  # Python is embedded: there is no process to start
        return run_compilation(request)
    return compile_in_child(request)


def run_compilation(request: Request) -> CompiledModule:
    """Compile in this process."""
    toolkit = {"fasim": INCLUDE_DIRECTORY}
    for directory in cuda_include_directories():
        toolkit[directory.name if directory.name not in toolkit else f"{directory.name}{len(toolkit)}"] = directory
    own = tuple(toolkit.values())
    if request.directory is None:
        return _Compilation(request, own, own).run()
    with neutral_directories(toolkit) as names:
        return _Compilation(request, own, names).run()


def check_arch(arch: str) -> None:
    """Raises: UsageError, with the targets that the installed NVRTC knows, for any other."""
    match = _ARCH.fullmatch(arch)
    number = int(match[1]) if match else 0
    supported = nvrtc.supported_archs()
    least = {"": 0, "a": 90, "f": 100}[match[2]] if match else 0
    if number not in supported or number < least:
        known = ", ".join(f"sm_{known}" for known in supported)
        raise UsageError(f"NVRTC {nvrtc.nvrtc_version()} cannot compile for {arch!r}. Targets: {known}; sm_90 and later also as sm_90a.")


class _Compilation:
    """toolkit: the directories of NVIDIA's and fasim's headers; toolkit_names: what NVRTC is to call them."""

    def __init__(self, request: Request, toolkit: tuple[Path, ...], toolkit_names: tuple[Path, ...]) -> None:
        self.request = request
        main = SourceFile(request.name, request.text)
        self.host = HostCode(main, request.headers.texts, request.headers.by_name, dict(request.defines))
        self.user_default_device = bool(_DEFAULT_DEVICE & set(request.options))
        if not self.user_default_device:
            main.set_obvious_aside(self.host.device_names)
        self.uses_std: bool | None = None
        self.int64_is_long = not _FIXED_INT64.search("\n".join([request.text, *request.headers.texts.values()]))
        self.expressions: list[str] = []
        self.toolkit, self.toolkit_names = toolkit, toolkit_names

    def run(self) -> CompiledModule:
        request = self.request
        wanted = self.add_name_expressions()
        output = self.compile_setting_aside()
        lowered = dict(output.lowered_names or {})
        entries = _ENTRY.findall(output.ptx)
        if request.entry is not None:
            if wanted in lowered:
                lowered[request.entry] = lowered[wanted]
            else:
                lowered[request.entry] = self.find(entries, request.entry)
        elif not entries and self.host.kernel_templates():
            raise UsageError(self.template_advice(None))
        ptxas = ptxas_lines(output.log)
        own = tuple(str(path) for path in self.toolkit)
        warnings = [d.block for d in user_warnings(output.log, own, self.host.any_set_aside())]
        log = "\n".join([*warnings, *ptxas])
        version = f"NVRTC {nvrtc.nvrtc_version()}"
        return CompiledModule(
            output.ptx, output.cubin, request.arch, request.name, request.text, log, lowered, version, registers(ptxas)
        )  # fmt: skip

    # -- names ------------------------------------------------------------------------------------------------------------

    def add_name_expressions(self) -> str:
        """Ask for the instantiation the caller wants and for those that the file itself launches; returns the caller's."""
        templates = {unit.name: unit for unit in self.host.kernel_templates() if "(anonymous)" not in unit.scope}
        entry, _ = split_parameters(self.request.entry or "")
        wanted = ""
        if "<" in entry:
            base, arguments = entry.split("<", 1)
            unit = templates.get(base.strip())
            wanted = f"{unit.qualified_name if unit else base.strip()}<{arguments}"
            self.expressions.append(wanted)
        for launched in launch_expressions(self.host.main.lexed.tokens, self.request.text):
            base, _, arguments = launched.partition("<")
            if arguments and (unit := templates.get(base.split("::")[-1].strip())):
                self.expressions.append(f"{unit.qualified_name}<{arguments}")
        self.expressions = list(dict.fromkeys(self.expressions))
        return wanted

    def drop_failed_expressions(self, log: str, keep: str) -> bool:
        """Drop the launched instantiations that do not compile outside their function; the caller's own stays."""
        failed = {expression.strip() for expression in _NAME_MAP.findall(log)} & set(self.expressions) - {keep}
        self.expressions = [expression for expression in self.expressions if expression not in failed]
        return bool(failed)

    def find(self, entries: Sequence[str], wanted: str) -> str:
        try:
            return find_entry(entries, wanted)
        except UsageError:
            base = wanted.split("<")[0].split("::")[-1].strip()
            if any(unit.name == base for unit in self.host.kernel_templates()):
                instances = [name for name in entries if plain_name(name).split("<")[0].split("::")[-1] == base]
                if not instances:
                    raise UsageError(self.template_advice(base)) from None
            if not entries:
                raise UsageError(self.no_kernel(wanted)) from None
            raise

    def no_kernel(self, wanted: str) -> str:
        """What to say where nothing was compiled that could be meant by `wanted`."""
        templates = [unit.qualified_name for unit in self.host.kernel_templates()]
        if not templates:
            return f"{self.request.name} has no kernel {wanted!r}: no function in it is marked __global__."
        hint = did_you_mean(wanted, templates)
        return f"{self.request.name}: there is no kernel {wanted!r}{hint}. {self.template_advice(None)}"

    def template_advice(self, name: str | None) -> str:
        units = [unit for unit in self.host.kernel_templates() if name in (None, unit.name)]
        lines = []
        for unit in units:
            parameters = " ".join(unit.template_parameters.split())
            count = len(re.findall(r",", parameters)) + 1
            example = ", ".join(["..."] * min(count, 4))
            lines.append(f"{unit.qualified_name} (template {parameters}): instantiate it with the entry '{unit.qualified_name}<{example}>'")
        what = f"{name!r} is a template" if name else "All kernels of the file are templates"
        return f"{self.request.name}: {what} without an instance, so there is no code to run. " + "; ".join(lines) + "."

    # -- compiling --------------------------------------------------------------------------------------------------------

    def options(self) -> list[str]:
        request = self.request
        given = [option for option in request.options if not _NVCC_ONLY.fullmatch(option)]
        options = [
            f"--gpu-architecture={request.arch}",
            "--ptxas-options=-v",
            "--device-int128",
            f"-include={PRE_INCLUDE}",
        ]
        if not any(_STD_OPTION.fullmatch(option) for option in given):
            options.append("--std=c++17")
        if request.lineinfo and not {"-G", "--device-debug", "-lineinfo", "--generate-line-info"} & set(given):
            options.append("-lineinfo")
        if self.host.default_device and not self.user_default_device:
            options.append("-default-device")
        options += [f"-D{name}={value}" for name, value in request.defines]
        directories = [*request.include_dirs, *{path.parent: None for path in self.host.headers}, *self.toolkit_names]
        if request.directory is not None:
            # for what a renamed source includes under a name that only the preprocessor knows
            directories.append(request.directory)
        options += [f"-I{directory}" for directory in directories]
        return [*options, *given]

    def compile_once(self) -> nvrtc.NvrtcOutput:
        host = self.host
        texts = [host.main.blanked, *(host.headers[p].blanked if p in host.headers else text for p, text in host.header_texts.items())]
        joined = _NOT_CODE.sub("", "\n".join(texts))
        uses_std = self.uses_std if self.uses_std is not None else bool(set(_STD_NAME.findall(joined)) - _light_names())
        options = self.options()
        if uses_std:
            options.append("-DFASIM_USES_STD=1")
        if any("numeric_limits" in text for text in texts):
            options.append("-DFASIM_USES_LIMITS=1")
        if self.int64_is_long:
            options.append("-DFASIM_INT64_IS_LONG=1")
        aliases = self.request.headers.aliases
        theirs = host.by_name.keys() | aliases.keys()
        headers = {name: text for name, text in virtual_headers().items() if name not in theirs}
        for name in host_library_headers():
            if name not in theirs and not any((directory / name).is_file() for directory in self.toolkit if "thrust" not in name):
                headers[name] = ""
        if self.request.directory is not None:
            headers |= {name: f'#include "{path}"\n' for name, path in aliases.items()}
            headers |= {str(path): text for path, text in host.header_texts.items()}
        headers |= host.virtual_headers()
        output = nvrtc.compile_program(texts[0], self.request.name, options, self.expressions, headers, _NEWER_OPTIONS)
        return replace(output, log=self.with_real_paths(output.log))

    def with_real_paths(self, log: str) -> str:
        """Messages name the headers where they lie."""
        for name, path in zip(self.toolkit_names, self.toolkit, strict=True):
            log = log.replace(f"{name}/", f"{path}/")
        return log

    def compile_setting_aside(self) -> nvrtc.NvrtcOutput:
        """Compile; while it fails at host code, set that aside and compile again."""
        keep = self.expressions[0] if "<" in split_parameters(self.request.entry or "")[0] else ""
        output = self.compile_once()
        first_failure = None
        for _ in range(_MAX_ROUNDS):
            if output.ok:
                return output
            errors = [diagnostic for diagnostic in read_log(output.log) if diagnostic.is_error]
            changed = self.host.respond(errors)
            if not changed:
                changed = self.drop_failed_expressions(output.log, keep)
            if not changed and self.uses_std is None and self.lacks_std(errors):
                self.uses_std = changed = True
            if not changed and first_failure is None and "long" in output.log:
                # the other reading of int64_t; if that fails as well, the first reading's messages stand
                first_failure, self.int64_is_long, changed = output, not self.int64_is_long, True
            if not changed:
                break
            output = self.compile_once()
        if self.host.missing_marks(output.log):
            # the mark may come from a macro of a header that was not read
            with self.host.nothing_set_aside():
                as_written = self.compile_once()
            if as_written.ok:
                return as_written
        raise self.failure(first_failure or output)

    def lacks_std(self, errors: list[Diagnostic]) -> bool:
        """Whether errors may come from a part of the standard library that was left out."""
        texts = [self.request.text, *self.host.header_texts.values()]
        using = any(re.search(r"\busing\s+namespace\s+std\b", text) for text in texts)
        return any('namespace "std"' in error.text or (using and "is undefined" in error.text) for error in errors)

    def failure(self, output: nvrtc.NvrtcOutput) -> CompileError | UsageError:
        """The error to raise for a compilation that no setting aside can save."""
        host = self.host
        log = output.log.strip()
        own = tuple(str(path) for path in self.toolkit)
        errors = [d for d in read_log(log) if d.is_error]
        if any(file.unbalanced_line for file in host.files()):
            return self.unbalanced(errors, log)
        if hint := _missing_header(errors):
            return CompileError(f"{log}\n{hint}")
        if _NAME_MAP.search(log):
            base = (self.request.entry or "").split("<")[0].split("::")[-1].strip()
            templates = [unit.qualified_name for unit in host.kernel_templates()]
            texts = (self.request.text, *host.header_texts.values())
            if templates and not any(re.search(rf"\b{re.escape(base)}\b", text) for text in texts):
                hint = did_you_mean(base, templates)
                listed = ", ".join(f"{unit.qualified_name} (template {unit.template_parameters})" for unit in host.kernel_templates())
                return UsageError(f"{self.request.name}: there is no template {base!r}{hint}. Templates: {listed}.")
            return CompileError(f"{self.request.name}: the entry {self.request.entry!r} cannot be instantiated:\n{log}")
        blocks = [d.block for d in host.explanations("\n".join(d.block for d in errors))]
        blocks += [d.block for d in [*errors, *user_warnings(log, own, host.any_set_aside())]]
        blocks += host.missing_marks(log)
        if not errors:
            # a message of ptxas, which has no place in the source
            lines = log.replace("\0", "").splitlines()
            blocks.insert(0, "\n".join(line for line in lines if line.startswith(("ptxas error", "ptxas fatal"))) or log.replace("\0", ""))
        return CompileError("\n\n".join(dict.fromkeys(blocks)))

    def unbalanced(self, errors: list[Diagnostic], log: str) -> CompileError | UsageError:
        """The error for a file whose braces do not match: a mistake if the compiler says so too."""
        file = next(file for file in self.host.files() if file.unbalanced_line)
        if 'expected a "}"' in log or not any(is_host_mark(error) or "<<<" in error.block for error in errors):
            own = [error.block for error in errors if not is_host_mark(error)]
            return CompileError("\n\n".join(dict.fromkeys(own)) or log)
        return UsageError(
            f"{file.name}({file.unbalanced_line}): a brace has no partner here, "
            f"so the file's host code cannot be told from its device code. "
            f"Put the host code between `#ifndef __CUDACC_RTC__` and `#endif`.\n{log}"
        )


def _light_names() -> frozenset[str]:
    text = "".join((INCLUDE_DIRECTORY / name).read_text() for name in _LIGHT_HEADERS)
    host_types = re.findall(r"(?:class|struct|>) (\w+);|FASIM_HOST_TYPE\((\w+)", text)
    return _BUILT_IN_STD | frozenset(re.findall(r"using ::(\w+);", text)) | frozenset(name for pair in host_types for name in pair)


def _missing_header(errors: list[Diagnostic]) -> str:
    """Advice for a header that is not there."""
    for error in errors:
        if match := re.search(r'cannot open source file "([^"]+)"', error.text):
            name = match[1]
            if name.startswith("curand"):
                return f"note: {name} comes with the cuRAND wheel: pip install nvidia-curand"
            return f"note: {name} is in none of the include directories; name its directory in include_dirs"
    return ""
