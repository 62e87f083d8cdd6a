"""Compiled handlers: rows to LLVM vector code to machine code, one object a handler, kept on disk."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.metadata
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir

import fasim
from fasim.isa.table import Arg, Row
from fasim.numerics.lanes import Lanes, width
from fasim.numerics.lanes.llvm_backend import I32, PTR, LlvmBackend, vector
from fasim.toolchain.cache import cached
from fasim.warp.build import build
from fasim.warp.handlers import HandlerKey, apply

# 32-lane vectors are the unit of work: without this LLVM halves them on processors that prefer 256-bit registers
_ATTRIBUTES = '"min-legal-vector-width"="512" "prefer-vector-width"="512" nounwind'


def handler_ir(row: Row, key: HandlerKey) -> str:
    """LLVM IR of `void symbol(ptr registers, ptr operands, i32 mask)`."""
    module = ir.Module(key.symbol)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [PTR, PTR, I32]), key.symbol)
    registers, operands, mask = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    backend = LlvmBackend(module, builder)
    active = builder.bitcast(mask, vector("pred"))

    def load(arg: Arg, number: int) -> Lanes:
        return Lanes(backend, read_row(builder, registers, operand_offset(builder, operands, number), arg.type_, negate=True), arg.type_)

    dest_args = [arg for arg in row.dests for _ in range(max(arg.count, 1))]
    results = apply(row, key.immediates, load, Lanes(backend, active, "pred"))
    for number, (arg, value) in enumerate(zip(dest_args, results, strict=True)):
        write_row(builder, registers, operand_offset(builder, operands, number), arg.type_, value.raw, mask, active)
    return finished(module, builder, key.symbol)


def operand_offset(builder: ir.IRBuilder, operands: Any, number: int) -> Any:
    """The offset of a register row, from the operands of the instruction."""
    return builder.load(builder.gep(operands, [I32(number)], source_etype=I32), typ=I32)


def read_row(builder: ir.IRBuilder, registers: Any, at: Any, type_: str, negate: bool = False) -> Any:
    """The 32 values of the register row at an offset. negate: whether bit 0 of a predicate's offset means "not"."""

    def address(at: Any) -> Any:
        return builder.gep(registers, [at], source_etype=ir.IntType(8))

    if type_ == "pred":
        word = builder.load(address(builder.and_(at, I32(-2))), typ=I32, align=4)
        if negate:
            word = builder.xor(word, builder.neg(builder.and_(at, I32(1))))
        return builder.bitcast(word, vector("pred"))
    stored = vector("u64" if width(type_) == 64 else "u32")
    raw = builder.load(address(at), typ=stored, align=64)
    if width(type_) < 32:
        return builder.trunc(raw, vector(type_))
    return builder.bitcast(raw, vector(type_)) if type_[0] == "f" else raw


def write_row(builder: ir.IRBuilder, registers: Any, at: Any, type_: str, raw: Any, mask: Any, active: Any) -> None:
    """Change the register row at an offset in the lanes of the mask; what is narrower than the register is extended by zeros."""
    at = builder.gep(registers, [at], source_etype=ir.IntType(8))
    if type_ == "pred":
        old = builder.load(at, typ=I32, align=4)
        new = builder.bitcast(raw, I32)
        builder.store(builder.xor(old, builder.and_(builder.xor(old, new), mask)), at, align=4)
        return
    stored = vector("u64" if width(type_) == 64 else "u32")
    if width(type_) < 32:
        raw = builder.zext(raw, stored)
    elif raw.type != stored:
        raw = builder.bitcast(raw, stored)
    old = builder.load(at, typ=stored, align=64)
    builder.store(builder.select(active, raw, old), at, align=64)


def finished(module: ir.Module, builder: ir.IRBuilder, symbol: str) -> str:
    """The module's text, its handler closed and with the attributes of all handlers."""
    builder.ret_void()
    head = f'define void @"{symbol}"'
    text = str(module)
    start = text.index(head)
    brace = text.index("\n{", start)
    return text[:brace] + " " + _ATTRIBUTES + text[brace:]


def _ir(row: Row, key: HandlerKey) -> str:
    if not key.shadow:
        return handler_ir(row, key)
    from fasim.warp.shadow import shadow_ir

    return shadow_ir(row, key)


@functools.cache
def _target() -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=3, jit=True, codemodel="jitdefault")


def compile_ir(text: str, keep: str = "") -> bytes:
    """LLVM IR to an object file for this processor; if `keep` is given, with nothing but that function and what it needs."""
    target = _target()
    module = llvm.parse_assembly(text)
    for function in module.functions if keep else ():
        if not function.is_declaration and function.name != keep:
            function.linkage = "internal"
    module.triple, module.data_layout = target.triple, str(target.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(target, options)
    builder.getModulePassManager().run(module, builder)
    return bytes(target.emit_object(module))


#: sources that decide what a handler's code is, and those that are compiled by numba
_HANDLER_SOURCES = (
    "numerics",
    "isa/machine.py",
    "isa/table.py",
    "isa/instructions",
    "isa/sass",
    "warp/handlers.py",
    "warp/jit.py",
    "warp/shadow.py",
    "warp/shadow_rules.py",
    "warp/shadow_values.py",
)
_MACHINE_SOURCES = ("numerics/native.py", "numerics/native_numba.py", "isa/machine.py", "isa/operands.py", "smem", "warp", "sm/cta.py")


@functools.cache
def source_digest(sources: tuple[str, ...]) -> str:
    """Hash of some of our sources, of the processor and of LLVM."""
    digest = hashlib.sha256()
    root = Path(fasim.__file__).parent
    for name in sources:
        paths = sorted((root / name).rglob("*.py")) if (root / name).is_dir() else [root / name]
        for path in paths:
            digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    versions = f"{llvmlite.__version__} {importlib.metadata.version('numba')}"
    digest.update(f"{versions} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}".encode())
    return digest.hexdigest()[:32]


def compile_machine(function: Callable[..., Any]) -> Callable[[int, int], int]:
    """The compiled form of a machine function of two numbers; calls release the interpreter lock. Kept on disk like the handlers."""
    name, data = pickle.loads(cached(machine_key(), ".machine", lambda: build(function)))
    address = engine().add(data, name)
    compiled = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address)

    def call(context: int, entry_pc: int) -> int:
        result, exception = ctypes.c_int64(), ctypes.c_void_p()
        compiled(ctypes.addressof(result), ctypes.addressof(exception), context, entry_pc)
        return result.value

    return call


def machine_key() -> str:
    """The cache key of the compiled machine."""
    return _hash(f"{source_digest(_MACHINE_SOURCES)} machine")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Engine:
    """Loaded handlers of this process: `address(key)` of the compiled function."""

    def __init__(self) -> None:
        backing = llvm.parse_assembly("")
        self._engine = llvm.create_mcjit_compiler(backing, _target())
        self._addresses: dict[HandlerKey, int] = {}

    def load(self, keys: Iterable[HandlerKey]) -> int:
        """Make the handlers of `keys` callable; returns how many had to be compiled."""
        missing = [key for key in dict.fromkeys(keys) if key not in self._addresses]
        compiled = 0
        for key in missing:

            def make(key: HandlerKey = key) -> bytes:
                from fasim.isa.rows import row_of  # a quarter of a second: only who compiles pays

                # most changes of our sources leave most handlers as they were: those are found again by their IR
                text = _ir(row_of(key.name), key)

                def build() -> bytes:
                    nonlocal compiled
                    compiled += 1
                    return compile_ir(text)

                return cached(_hash(f"{source_digest(())} {text}"), ".o", build)

            data = cached(_hash(f"{source_digest(_HANDLER_SOURCES)} {key.symbol}"), ".o", make)
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(data))
        if missing:
            self._engine.finalize_object()
        for key in missing:
            self._addresses[key] = self._engine.get_function_address(key.symbol)
        return compiled

    def add(self, data: bytes, name: str) -> int:
        """Load an object file; returns the address of a function in it."""
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(data))
        self._engine.finalize_object()
        return int(self._engine.get_function_address(name))

    def address(self, key: HandlerKey) -> int:
        """Address of the loaded handler."""
        return self._addresses[key]


@functools.cache
def engine() -> Engine:
    """The one engine of this process."""
    return Engine()
