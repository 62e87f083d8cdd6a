"""What the page of a trace is made of: facts of the program, and an event with all that it changed.

The facts are those of a trace's header (`fasim.report.trace_record`) and

    files, code       sources; of each pc: text (for a jump that is not in the PTX: what it does, in parentheses), path [[file, line],
                      ...] (file: index into files), step, inserted, line_key, step_key, tile, barrier (whether it begins a tile, is a
                      barrier), operands [name, type, bank, row, reads, writes],
                      fragments [operand, index into layouts, [register names], whether it is a result]
    registers         [name, type, bank, row, function, first pc, last pc]: where it holds its value
    functions         [name, first pc, last pc]
    layouts           fragments: type, element_bits, rows, columns, matrices, cells [matrix, row, column, lane, register, low bit]
    warp_words        words of a warp's registers; a row is a byte offset into them
    shared_bytes      of the CTA
    has_tiles         whether the kernel has a loop whose rounds are tiles
    hazard_groups     kinds of findings, by the check that finds them
    shared_cells      what words of shared memory are shown as: the type that most instructions take them for, or hex
    windows           of generic addresses: state space, first address, bytes

An event has the fields of fasim.trace/1 but for those that `code` has, and

    changed           destinations: name, type, bank, row, lanes with another or a first value
    set, shared       words of registers (of the whole CTA) and of shared memory that hold something else than at the event before:
                      [first word, words in hexadecimal, ...]
    splits, groups    by warp, where they differ from the event before: parts of the warp [pc, lanes, state, detail], and copies on their
                      way [group, committed, bytes, ranges]
    next              [warp, pc]: where the warp goes on that comes next, if it has parts at several places
    barriers          [number, arrived, expected, warps] if they differ
    rows              [index into rows, index into its pcs, warp, row values] of results between the events
    access.groups     lanes that are served together: lanes, wavefronts, collides (byte offsets of words whose bank is asked repeatedly)

Of a kernel that fails there is one event more, in the last line: the instruction that could not be executed (pc null: every warp waits),
with `failed` and what the CTA holds there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from fasim.isa import machine as m
from fasim.report.bank_picture import traced_bank_groups
from fasim.report.layout import Fragment
from fasim.report.matrices import fragments_at, row_values_of
from fasim.report.trace_record import EventRecords, fault_record, mask_text
from fasim.smem.wavefronts import operation
from fasim.trace.breaks import HAZARD_GROUPS
from fasim.trace.event import Access, Event, RegisterChange, active_lanes
from fasim.trace.places import Places
from fasim.trace.stepper import Stepper
from fasim.trace.view import mask_of

Array = np.ndarray[Any, Any]
#: what an event's pc says already
OF_CODE = ("pc", "kind", "text", "file", "line", "path", "step", "inserted", "registers")
#: how the page shows words of shared memory that are accessed as a type
_CELLS = {"f32": "f32", "f16": "f16", "f16x2": "f16", "bf16": "bf16", "bf16x2": "bf16", "u32": "unsigned", "s32": "signed"}
#: what nobody has written
_UNWRITTEN = 0xFFFFFFFF


def page_facts(stepper: Stepper) -> dict[str, Any]:
    """What the views have to know of a program."""
    places, names = stepper.places, stepper.names
    paths = [places.path(pc) for pc in range(len(places.program))]
    files = {file: number for number, file in enumerate(dict.fromkeys(file for path in paths for file, _ in path))}
    layouts: dict[tuple[str, str], dict[str, Any]] = {}
    code = []
    for pc, path in enumerate(paths):
        fragments = []
        for held in fragments_at(places, names, pc):
            key = places.source(pc).mnemonic, held.operand
            if key not in layouts:
                layouts[key] = _layout(held.fragment)
            fragments.append([held.operand, [*layouts].index(key), list(held.registers), held.result])
        code.append({**_place(places, pc), "path": [[files[file], line] for file, line in path], "fragments": fragments})
        code[-1]["operands"] = [[each.name, each.seen_as, each.bank, each.row, each.reads, each.writes] for each in names.operands[pc]]
    return {
        "files": [{"path": file, "lines": places.sources.lines(file)} for file in files],
        "code": code,
        "registers": [[r.name, r.type_, r.bank, r.row, r.function, r.first_pc, r.last_pc] for r in names.registers],
        "functions": [list(each) for each in names.functions],
        "layouts": list(layouts.values()),
        "warp_words": len(places.program.template) // 4,
        "shared_bytes": len(stepper.state.shared_memory),
        "has_tiles": places.tile_loop is not None,
        "hazard_groups": HAZARD_GROUPS,
        "shared_cells": _shared_cells(places),
        "windows": [["shared", m.SHARED_WINDOW, m.WINDOW_BYTES], ["local", m.LOCAL_WINDOW, m.WINDOW_BYTES]],
    }


def _place(places: Places, pc: int) -> dict[str, Any]:
    return {
        "text": places.text(pc),
        "step": places.step(pc),
        "inserted": places.inserted(pc),
        "line_key": int(places.line_keys[pc]),
        "step_key": int(places.step_keys[pc]),
        "tile": bool(places.tile_pcs[pc]),
        "barrier": bool(places.barrier_pcs[pc]),
    }


def _shared_cells(places: Places) -> str:
    """What most accesses to shared memory take its words for; what ldmatrix moves, the matrix instructions say."""
    words = [places.source(pc).mnemonic.split(".") for pc in range(len(places.program)) if not places.inserted(pc)]
    matrices = Counter(kind for opcode, *kinds in words if opcode == "mma" for kind in kinds if kind in ("f16", "bf16"))
    seen: Counter[str] = Counter()
    for opcode, *kinds in words:
        if opcode in ("ldmatrix", "stmatrix") and matrices:
            seen[matrices.most_common(1)[0][0]] += 1
        elif "shared" in kinds and kinds[-1] in _CELLS:
            seen[_CELLS[kinds[-1]]] += 1
    return seen.most_common(1)[0][0] if seen else "hex"


def _layout(fragment: Fragment) -> dict[str, Any]:
    return {
        "type": fragment.type,
        "element_bits": fragment.element_bits,
        "rows": fragment.rows,
        "columns": fragment.columns,
        "matrices": fragment.matrices,
        "cells": [[cell.matrix, cell.row, cell.column, cell.lane, cell.register, cell.low_bit] for cell in fragment.cells],
    }


class _Words:
    """Words as they were when last looked at."""

    def __init__(self, count: int, fill: int) -> None:
        self._known = np.full(count, fill, np.uint32)

    def changes(self, words: Array) -> list[int | str]:
        """Runs of words that differ from what is known, which they become: first word and words, alternately."""
        at = np.flatnonzero(words != self._known)
        if not at.size:
            return []
        self._known[at] = words[at]
        found: list[int | str] = []
        for run in np.split(at, np.flatnonzero(np.diff(at) > 1) + 1):
            found += [int(run[0]), words[run].astype(">u4").tobytes().hex()]
        return found


class PageEvents:
    """Makes the records of a page's events, in their order.

    row_pcs: instructions whose results are rows of `rows`; of those between the events `pass_by` has to be told.
    """

    def __init__(self, stepper: Stepper, rows: Sequence[dict[str, Any]]) -> None:
        """rows: of the header."""
        self._stepper, self._records = stepper, EventRecords(stepper)
        self._places = {pc: (i, k, bool(row["total"])) for i, row in enumerate(rows) for k, pc in enumerate(row["pcs"])}
        self.row_pcs: Array = np.zeros(len(stepper.places.program), bool)
        self.row_pcs[list(self._places)] = True
        self._registers = _Words(stepper.walker.state.registers.size // 4, 0)
        self._shared = _Words(-(-len(stepper.state.shared_memory) // 4), _UNWRITTEN)
        self._control: dict[tuple[str, int], list[Any]] = {}
        self._next = -1
        self._rows: list[list[Any]] = []

    def pass_by(self, event: Event) -> None:
        """Take note of an event that is not to be seen."""
        self._note_rows(event)

    def record(self, event: Event, tile: int) -> dict[str, Any]:
        """One event. Returns: what JSON takes."""
        record = {name: value for name, value in self._records.record(event, tile).items() if name not in OF_CODE}
        self._note_rows(event)
        if event.access is not None and event.access.wavefronts is not None:
            record["access"] |= _bank_groups(event.access)
        gap = event.position != self._next
        self._next = event.position + 1
        # only a barrier lets an instruction change other warps
        warp = None if gap or event.arrival is not None else event.warp
        further = {
            "changed": [_change(change) for change in event.registers] if event.executed else [],
            **self._changes(warp, copies=gap or bool(self._stepper.places.copy_pcs[event.pc])),
        }
        return record | {"pc": event.pc} | {name: value for name, value in further.items() if value or name == "barriers"}

    def failed(self, tile: int) -> dict[str, Any] | None:
        """The instruction that could not be executed, None if the kernel came to its end; the stepper stands there.

        tile: of the last event.
        """
        fault = fault_record(self._stepper)
        if fault is None:
            return None
        lanes = {number: mask_text(0) for number in ("lanes", "active")}
        if fault["warp"] is not None:
            walker, pc = self._stepper.walker, int(fault["pc"])
            active = active_lanes(walker.state, int(fault["warp"]), pc, int(fault["lanes"], 16))
            lanes = {"lanes": fault["lanes"], "active": mask_text(active)}
        place = {"position": fault["position"], "warp": fault["warp"], "pc": fault["pc"], "tile": tile if tile >= 0 else None}
        return {**place, **lanes, "executed": False, "failed": True, **self._changes(None, copies=True)}

    def _changes(self, warp: int | None, *, copies: bool) -> dict[str, Any]:
        """What the CTA holds now and did not at the event before: of the splits only those of a warp, None for all."""
        shared = self._stepper.state.shared_memory
        tail = np.full(-len(shared) % 4, 0xFF, np.uint8)
        registers = np.ascontiguousarray(self._stepper.walker.state.registers)
        rows, self._rows = self._rows, []
        return {
            "set": self._registers.changes(registers.view(np.uint8).view("<u4")),
            "shared": self._shared.changes(np.concatenate([shared, tail]).view("<u4") if tail.size else shared.view("<u4")),
            "rows": rows,
            "next": self._next_part(),
            **self._control_changes(warp, copies=copies),
        }

    def _note_rows(self, event: Event) -> None:
        place = self._places.get(event.pc)
        if place is not None and event.executed and event.registers:
            row, result, total = place
            self._rows.append([row, result, event.warp, [f"{value:.9g}" for value in row_values_of(event.registers[0].new, total=total)]])

    def _next_part(self) -> list[int]:
        following = self._stepper.state.next
        divided = following is not None and len(self._stepper.state.splits(following.warp)) > 1
        return [following.warp, following.pc] if following is not None and divided else []

    def _control_changes(self, only: int | None, *, copies: bool) -> dict[str, Any]:
        """Where warps are, what they copy and what waits, as far as it is not known. only: a warp, None for all."""
        view = self._stepper.state
        found: dict[str, Any] = {"splits": {}, "groups": {}}
        for warp in range(view.warps) if only is None else (only,):
            splits = [[each.pc, mask_text(each.lanes), each.state, each.detail] for each in view.splits(warp)]
            self._tell(found["splits"], warp, ("splits", warp), splits)
            if copies:
                groups = [[each.number, each.committed, each.size_bytes, each.ranges] for each in view.copy_groups(warp)]
                self._tell(found["groups"], warp, ("groups", warp), groups)
        if only is None:
            barriers = [[each.number, each.arrived, each.expected, sorted(each.waiting)] for each in view.barriers()]
            self._tell(found, "barriers", ("barriers", 0), barriers)
        return found

    def _tell(self, found: dict[Any, Any], name: Any, key: tuple[str, int], now: list[Any]) -> None:
        if self._control.get(key, []) != now:
            found[name] = self._control[key] = now


def _change(change: RegisterChange) -> list[Any]:
    operand = change.operand
    return [operand.name, operand.seen_as, operand.bank, operand.row, mask_text(mask_of(change.changed))]


def _bank_groups(access: Access) -> dict[str, Any]:
    """Lanes that are served together, as the bank picture has them."""
    groups = traced_bank_groups(access)
    return {
        "lane_bytes": operation(access.op).lane_bytes,
        "groups": [
            {
                "lanes": list(group.lanes),
                "wavefronts": group.wavefronts,
                "collides": [word.byte_offset for word in group.words if word.collides],
            }
            for group in groups
        ],
    }
