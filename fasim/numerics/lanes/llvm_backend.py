"""The lane language as LLVM vector code: every `Lanes` is a vector of 32, every operation one vector instruction or a few."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from fasim.numerics.lanes.core import FLOATS, LANES, width

I1, I8, I32, I64 = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)
PTR = ir.PointerType()


def element(type_: str) -> ir.Type:
    """The LLVM type of one lane."""
    if type_ in FLOATS:
        return {"f16": ir.HalfType, "f32": ir.FloatType, "f64": ir.DoubleType}[type_]()
    return ir.IntType(width(type_))


def vector(type_: str) -> ir.VectorType:
    """The LLVM type of a `Lanes`."""
    return ir.VectorType(element(type_), LANES)


class FloatBits(ir.Constant):
    """A float constant given by its bits, since decimal text loses NaN payloads and signed zeros."""

    def __init__(self, type_: ir.Type, value: float) -> None:
        super().__init__(type_, value)
        self._double = struct.unpack("<Q", struct.pack("<d", value))[0]

    def __str__(self) -> str:
        return f"{self.type} 0x{self._double:016x}"

    def get_reference(self) -> str:
        return f"0x{self._double:016x}"


_BINARY = {"add": "add", "sub": "sub", "mul": "mul", "and": "and_", "or": "or_", "xor": "xor"}
_INTRINSIC = {"sqrt": "llvm.sqrt", "floor": "llvm.floor", "ceil": "llvm.ceil", "trunc": "llvm.trunc", "rint": "llvm.nearbyint"}


class LlvmBackend:
    """Writes into one function of a module through `builder`."""

    def __init__(self, module: ir.Module, builder: ir.IRBuilder) -> None:
        self.module, self.builder = module, builder
        self._tables: dict[bytes, ir.GlobalVariable] = {}

    def const(self, value: Any, type_: str) -> Any:
        values = list(value) if isinstance(value, (range, list, tuple, np.ndarray)) else [value] * LANES
        one = element(type_)
        if type_ in FLOATS:
            return ir.Constant(vector(type_), [FloatBits(one, float(v)) for v in values])
        mask = (1 << width(type_)) - 1
        return ir.Constant(vector(type_), [ir.Constant(one, int(v) & mask) for v in values])

    def binary(self, op: str, type_: str, a: Any, b: Any) -> Any:
        build = self.builder
        if type_ in FLOATS and op != "fdiv":
            return getattr(build, "f" + op)(a, b)
        if op in _BINARY:
            return getattr(build, _BINARY[op])(a, b)
        if op == "fdiv":
            return build.fdiv(a, b)
        signed = type_[0] == "s"
        if op == "mulhi":
            n = width(type_)
            wide = ir.VectorType(ir.IntType(2 * n), LANES)
            extend = build.sext if signed else build.zext
            product = build.mul(extend(a, wide), extend(b, wide))
            shift = ir.Constant(wide, [ir.Constant(wide.element, n)] * LANES)
            return build.trunc(build.lshr(product, shift), a.type)
        if signed:  # -2^(n-1) / -1 traps on x86: divide magnitudes, then give the sign back
            zero = self.const(0, type_)
            negative_a, negative_b = build.icmp_signed("<", a, zero), build.icmp_signed("<", b, zero)
            magnitude_a = build.select(negative_a, build.sub(zero, a), a)
            magnitude_b = build.select(negative_b, build.sub(zero, b), b)
            if op == "idiv":
                q = build.udiv(magnitude_a, magnitude_b)
                return build.select(build.xor(negative_a, negative_b), build.sub(zero, q), q)
            r = build.urem(magnitude_a, magnitude_b)
            return build.select(negative_a, build.sub(zero, r), r)
        return build.udiv(a, b) if op == "idiv" else build.urem(a, b)

    def shift(self, op: str, type_: str, a: Any, amount: Any) -> Any:
        build, n = self.builder, width(type_)
        signed_right = op == "shr" and type_[0] == "s"
        operate = build.shl if op == "shl" else build.ashr if signed_right else build.lshr
        if isinstance(amount, int):
            return operate(a, self.const(amount, type_))
        inside = build.icmp_unsigned("<", amount, self.const(n, type_))
        if signed_right:
            return operate(a, build.select(inside, amount, self.const(n - 1, type_)))
        return build.select(inside, operate(a, amount), self.const(0, type_))

    def compare(self, op: str, type_: str, a: Any, b: Any) -> Any:
        if type_ in FLOATS:
            return (self.builder.fcmp_unordered if op == "!=" else self.builder.fcmp_ordered)(op, a, b)
        return (self.builder.icmp_signed if type_[0] == "s" else self.builder.icmp_unsigned)(op, a, b)

    def select(self, condition: Any, a: Any, b: Any, type_: str) -> Any:
        return self.builder.select(condition, a, b)

    def cast(self, raw: Any, source: str, target: str) -> Any:
        build, to = self.builder, vector(target)
        if source in FLOATS:
            if target in FLOATS:
                return (build.fpext if width(target) > width(source) else build.fptrunc)(raw, to)
            return (build.fptosi if target[0] == "s" else build.fptoui)(raw, to)
        if target in FLOATS:
            return (build.sitofp if source[0] == "s" else build.uitofp)(raw, to)
        if width(target) == width(source):
            return raw
        if width(target) < width(source):
            return build.trunc(raw, to)
        return (build.sext if source[0] == "s" else build.zext)(raw, to)

    def bits(self, raw: Any, source: str, target: str) -> Any:
        to = vector(target)
        return raw if raw.type == to else self.builder.bitcast(raw, to)

    def _call(self, name: str, type_: ir.Type, *args: Any) -> Any:
        suffix = f".v{LANES}{'f' if isinstance(type_.element, (ir.FloatType, ir.DoubleType)) else 'i'}"
        size = {"float": 32, "double": 64}.get(str(type_.element)) or type_.element.width
        full = f"{name}{suffix}{size}"
        function = self.module.globals.get(full)
        if function is None:
            function = ir.Function(self.module, ir.FunctionType(type_, [x.type for x in args]), full)
        return self.builder.call(function, args)

    def unary(self, op: str, type_: str, raw: Any) -> Any:
        if op in _INTRINSIC:
            return self._call(_INTRINSIC[op], raw.type, raw)
        if op == "clz":
            return self._call("llvm.ctlz", raw.type, raw, ir.Constant(I1, 0))
        return self._call({"popc": "llvm.ctpop", "brev": "llvm.bitreverse"}[op], raw.type, raw)

    def fma(self, type_: str, a: Any, b: Any, c: Any) -> Any:
        return self._call("llvm.fma", a.type, a, b, c)

    def permute(self, raw: Any, type_: str, source_lanes: Sequence[int]) -> Any:
        mask = ir.Constant(ir.VectorType(I32, LANES), [ir.Constant(I32, int(i)) for i in source_lanes])
        return self.builder.shuffle_vector(raw, ir.Constant(raw.type, ir.Undefined), mask)

    def gather(self, raw: Any, type_: str, index: Any) -> Any:
        build, result = self.builder, ir.Constant(raw.type, ir.Undefined)
        for i in range(LANES):
            lane = build.extract_element(index, ir.Constant(I32, i))
            value = build.extract_element(raw, build.and_(lane, ir.Constant(lane.type, LANES - 1)))
            result = build.insert_element(result, value, ir.Constant(I32, i))
        return result

    def ballot(self, raw: Any) -> Any:
        return self.splat(self.builder.bitcast(raw, I32))

    def splat(self, scalar: Any) -> Any:
        """A scalar in every lane."""
        one = self.builder.insert_element(ir.Constant(ir.VectorType(scalar.type, LANES), ir.Undefined), scalar, ir.Constant(I32, 0))
        return self.permute(one, "", [0] * LANES)

    def table(self, values: np.ndarray[Any, Any], type_: str, index: Any) -> Any:
        build, one = self.builder, element(type_)
        key = type_.encode() + values.tobytes()
        if key not in self._tables:
            if type_ in FLOATS:
                items = [FloatBits(one, float(v)) for v in values]
            else:
                items = [ir.Constant(one, int(v)) for v in values]
            array = ir.ArrayType(one, len(items))
            var = ir.GlobalVariable(self.module, array, f"table{len(self._tables)}")
            var.global_constant, var.linkage, var.initializer = True, "internal", ir.Constant(array, items)
            self._tables[key] = var
        base = self._tables[key]
        result = ir.Constant(vector(type_), ir.Undefined)
        for i in range(LANES):
            at = build.gep(base, [I64(0), build.zext(build.extract_element(index, I32(i)), I64)], source_etype=base.value_type)
            result = build.insert_element(result, build.load(at, typ=one), I32(i))
        return result

    def packed(self, op: str, type_: str, a: Any, b: Any) -> Any:
        build, halves = self.builder, ir.VectorType(ir.IntType(16), 2 * LANES)
        x, y = build.bitcast(a, halves), build.bitcast(b, halves)
        if op in _BINARY:
            return build.bitcast(getattr(build, _BINARY[op])(x, y), a.type)
        compare = build.icmp_signed if type_[0] == "s" else build.icmp_unsigned
        return build.bitcast(build.select(compare("<" if op == "min" else ">", x, y), x, y), a.type)

    def if_any(self, condition: Any, slow: Callable[[], Sequence[Any]], fast: Sequence[Any]) -> Sequence[Any]:
        build = self.builder
        before = build.block
        with build.if_then(build.icmp_unsigned("!=", build.bitcast(condition, I32), I32(0)), likely=False):
            slow_values = slow()
            inside = build.block
        results = []
        for value, slow_value in zip(fast, slow_values, strict=True):
            phi = build.phi(value.type)
            phi.add_incoming(value, before)
            phi.add_incoming(slow_value, inside)
            results.append(phi)
        return results
