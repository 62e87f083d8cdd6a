"""The last step: register rows get their places, labels their pcs, and everything becomes arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from fasim.isa import machine as m
from fasim.isa.operands import SavedRows
from fasim.isa.program import HandlerUse, Program, SourceInstruction
from fasim.ptx.context import Context
from fasim.ptx.ir import Block, FrameRef, LoweredFunction, Op, PoolItem, Ref, RegionRef, VReg
from fasim.ptx.layout import kernel_parameters
from fasim.toolchain.names import plain_name

#: local memory of a thread for the frames of a recursion, besides those of the longest chain of calls
STACK_BYTES = 16384


class Emitter:
    """Collects a kernel's lowered functions into one program."""

    def __init__(self, context: Context, functions: list[LoweredFunction], calls: dict[str, set[str]]) -> None:
        self.context, self.functions, self.calls = context, functions, calls
        self.fixed = [*context.constants.values(), *context.specials.values(), *context.trash.values()]
        self.first: dict[tuple[str, int], int] = {}
        self.used: dict[str, dict[int, int]] = {f.name: f.slots for f in functions}
        self.frames = {f.name: f.frame_bytes for f in functions}
        self.pcs: dict[tuple[str, str], int] = {}
        self._place_rows()

    def _place_rows(self) -> None:
        """Rows bank by bank, the widest first; in each, the functions' own and then the fixed ones."""
        at = 0
        self.fixed_row: dict[VReg, int] = {}
        for bank, size in m.ROW_BYTES.items():
            for function in self.functions:
                self.first[function.name, bank] = at
                at += size * function.slots.get(bank, 0)
            for reg in self.fixed:
                if reg.bank == bank:
                    self.fixed_row[reg] = at
                    at += size
        self.register_bytes = m.align_up(at, m.ROW64_BYTES)

    def row(self, reg: VReg) -> int:
        """Byte offset of a register's row."""
        if reg.fixed:
            return self.fixed_row[reg]
        return self.first[reg.function, reg.bank] + m.ROW_BYTES[reg.bank] * reg.slot

    def template(self) -> np.ndarray[Any, Any]:
        """The register file that a warp starts with: zeros and the fixed rows."""
        data = np.zeros(self.register_bytes, np.uint8)
        for reg in self.fixed:
            if reg.value is None:
                continue
            row = self.row(reg)
            words = data[row : row + m.ROW_BYTES[reg.bank]].view(np.uint64 if reg.bank == 64 else np.uint32)
            words[:] = reg.value[0] if reg.bank == 1 else reg.value
        return data

    def linear(self, function: LoweredFunction) -> list[tuple[Block | None, Op]]:
        """Operations in layout order, with jumps where a block does not fall into the next one."""
        result: list[tuple[Block | None, Op]] = []
        for i, block in enumerate(function.blocks):
            first: Block | None = block
            for op in block.ops:
                result.append((first, op))
                first = None
            if block.next >= 0 and block.next != i + 1:
                target = function.blocks[block.next]
                if not target.labels:
                    target.labels.append(f"~{block.next}")
                result.append((first, Op(m.BRA, target=target.labels[0])))
            elif first is not None and not block.ops:
                result.append((first, Op(m.NOP)))
        return result

    def _saves_rows(self, caller: str, callee: str) -> bool:
        """Whether a call can lead back into the caller."""
        if caller == self.context.kernel.name:
            return False
        if not callee:
            return True
        seen, stack = set(), [callee]
        while stack:
            name = stack.pop()
            if name == caller:
                return True
            if name not in seen:
                seen.add(name)
                stack.extend(self.calls.get(name, ()))
        return False

    def _resolve(self, function: str, item: PoolItem, pc: int) -> list[int]:
        if isinstance(item, int):
            return [item]
        if isinstance(item, Ref):
            return [self.row(item.reg) | int(item.negated)]
        if isinstance(item, FrameRef):
            return [
                self.frames[item.function]
                if item.function
                else max(size for name, size in self.frames.items() if name != self.context.kernel.name)
            ]
        if isinstance(item, RegionRef):
            if not self._saves_rows(item.caller, item.callee):
                return SavedRows[int](0, 0, 0, 0, 0, 0).items()
            first = {bank: self.first[item.caller, bank] for bank in (32, 64, 1)}
            count = self.used[item.caller]
            return SavedRows[int](
                first32=first[32],
                count32=count.get(32, 0),
                first64=first[64],
                count64=count.get(64, 0),
                first_predicate=first[1],
                predicates=count.get(1, 0),
            ).items()
        if item.is_function:
            return [self.pcs[item.label, ""]]
        return [self.pcs[function, item.label] if item.label else pc]

    def program(self) -> Program:
        """The finished program."""
        context, linear = self.context, [(f, self.linear(f)) for f in self.functions]
        pc = 0
        for function, ops in linear:
            self.pcs[function.name, ""] = pc
            for block, _ in ops:
                for label in block.labels if block is not None else ():
                    self.pcs[function.name, label] = pc
                pc += 1
        code = np.zeros((pc, m.CODE_WORDS), np.int32)
        pool: list[int] = []
        handlers: dict[int, HandlerUse] = {}
        services: dict[int, str] = {}
        source: list[SourceInstruction | None] = []
        pc = sites = 0
        for function, ops in linear:
            for _, op in ops:
                guard = -1 if op.guard is None else self.row(op.guard.reg) | int(op.guard.negated)
                aux = op.aux
                if op.kind == m.BRA:
                    aux = self.pcs[function.name, op.target]
                elif op.kind == m.SERVICE:
                    services[pc] = op.target
                elif op.kind in m.MEMORY_KINDS:
                    aux, sites = sites, sites + 1
                code[pc, :4] = (op.kind, guard, len(pool), aux)
                code[pc, m.AT_MEMBER // 4] = -1 if op.member is None else self.row(op.member)
                if op.handler is not None:
                    handlers[pc] = op.handler
                for item in op.pool:
                    pool.extend(self._resolve(function.name, item, pc))
                source.append(op.source)
                pc += 1
        _mark_runs(code, {self.pcs[key] for key in self.pcs})
        kernel = context.kernel
        has_calls = len(self.functions) > 1
        parameters = kernel_parameters(kernel)
        saved = [
            sum(m.LANE_BYTES[bank] * count for bank, count in slots.items())
            for name, slots in self.used.items()
            if self._saves_rows(name, name)
        ]
        maximum, required = kernel.directive("maxntid"), kernel.directive("reqntid")
        needed = (*required.values, 1, 1)[:3] if required else None
        return Program(
            name=kernel.name,
            title=plain_name(kernel.name),
            arch=context.arch,
            code=code,
            pool=np.array(pool or [0], np.int32),
            handlers=handlers,
            entry_pc=self.pcs[kernel.name, ""],
            template=self.template(),
            specials=[(reg.special, self.row(reg)) for reg in self.fixed if reg.special is not None],
            parameters=parameters,
            param_bytes=max((p.offset + p.size_bytes for p in parameters), default=0),
            static_smem_bytes=context.static_smem_bytes,
            local_bytes=self._stack_bytes(),
            variables=list(context.variables.values()),
            source=source,
            functions=self._function_table(),
            launch_rows={name: self.row(reg) for name, reg in context.launch_rows.items()},
            has_calls=has_calls,
            save_bytes=m.align_up(max(saved, default=0), 8),
            communicates=context.communicates,
            uses_copies=context.uses_copies,
            reads_clock=context.reads_clock,
            services=services,
            max_threads=int(np.prod(maximum.values)) if maximum else 0,
            required_block=(int(needed[0]), int(needed[1]), int(needed[2])) if needed else None,
        )

    def _stack_bytes(self) -> int:
        """Local memory of a thread: the frames of the longest chain of calls, and room for a recursion if there is one."""
        depth: dict[str, int] = {}
        entered: set[str] = set()
        recursion = False

        def visit(name: str) -> int:
            nonlocal recursion
            if name in entered:
                recursion = True
                return 0
            if name not in depth:
                entered.add(name)
                depth[name] = self.frames[name] + max((visit(callee) for callee in self.calls[name] if callee in self.frames), default=0)
                entered.discard(name)
            return depth[name]

        longest = visit(self.context.kernel.name)
        return longest + STACK_BYTES if recursion else longest

    def _function_table(self) -> list[int]:
        """Entry pc by function number, -1 for functions without a body here."""
        table = [-1] * len(self.context.function_ids)
        for name, index in self.context.function_ids.items():
            table[index] = self.pcs.get((name, ""), -1)
        return table


def _mark_runs(code: np.ndarray[Any, Any], starts: set[int]) -> None:
    """Fill in AT_RUN, from the last instruction to the first."""
    run = 0
    for pc in range(len(code) - 1, -1, -1):
        plain = code[pc, m.AT_KIND // 4] == m.LANES and code[pc, m.AT_GUARD // 4] < 0
        run = run + 1 if plain else 0
        code[pc, m.AT_RUN // 4] = run
        if pc in starts:
            run = 0
