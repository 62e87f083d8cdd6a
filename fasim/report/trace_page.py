"""What the page of a trace is made of: facts of the program, and an event with all that it changed.

The facts are those of a trace's header (`fasim.report.trace_record`) and

    files, code       sources; of each pc: text, path [[file, line], ...] (file: index into files), step, inserted, line_key, step_key,
                      tile, barrier (whether it begins a tile, is a barrier), operands [name, type, bank, row, reads, writes],
                      fragments [operand, index into layouts, [register names]]
    registers         [name, type, bank, row, function, first pc, last pc]: where it holds its value
    functions         [name, first pc, last pc]
    layouts           fragments: type, element_bits, rows, columns, matrices, cells [matrix, row, column, lane, register, low bit]
    warp_words        words of a warp's registers; a row is a byte offset into them
    shared_bytes      of the CTA

An event has the fields of fasim.trace/1 but for those that `code` has, and

    changed           destinations: name, type, bank, row, lanes with another or a first value
    set, shared       words of registers (of the whole CTA) and of shared memory that hold something else than at the event before:
                      [first word, words in hexadecimal, ...]
    splits, groups    by warp, where they differ from the event before: parts of the warp [pc, lanes, state, detail], and copies on their
                      way [group, committed, bytes, ranges]
    barriers          [number, arrived, expected, warps] if they differ
    rows              [index into rows, index into its pcs, warp, row values] of results between the events
    access.groups     lanes that are served together: lanes, wavefronts, collides (byte offsets of words whose bank is asked repeatedly)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fasim.report.bank_access import Access as BankAccess
from fasim.report.bank_picture import bank_groups
from fasim.report.layout import Fragment
from fasim.report.matrices import held_fragments, row_values_of
from fasim.report.trace_record import EventRecords, mask_text
from fasim.report.trace_select import Selection
from fasim.smem.wavefronts import operation
from fasim.trace.event import Access, Event, RegisterChange
from fasim.trace.stepper import Stepper

Array = np.ndarray[Any, Any]
#: what an event's pc says already
_OF_CODE = ("pc", "kind", "text", "file", "line", "path", "step", "inserted", "registers")
_COPY_KINDS = ("cp_async", "cp_commit", "cp_wait")
#: what nobody has written
_UNWRITTEN = 0xFFFFFFFF


def page_facts(stepper: Stepper) -> dict[str, Any]:
    """What the views have to know of a program."""
    places, names = stepper.places, stepper.names
    paths = [places.path(pc) for pc in range(len(places.program))]
    files = list(dict.fromkeys(file for path in paths for file, _ in path))
    layouts: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}
    code = []
    for pc, path in enumerate(paths):
        source, fragments = places.source(pc), []
        for held in held_fragments(source):
            key = (source.mnemonic, held.operand)
            number, _ = layouts.setdefault(key, (len(layouts), _layout(held.fragment)))
            fragments.append([held.operand, number, list(held.registers)])
        entry = {
            "text": " ".join(source.text.split()),
            "path": [[files.index(file), line] for file, line in path],
            "step": places.steps[pc] or places.step(pc),
            "inserted": places.program.source[pc] is None,
            "line_key": int(places.line_keys[pc]),
            "step_key": int(places.step_keys[pc]),
            "tile": bool(places.tile_pcs[pc]),
            "barrier": bool(places.barrier_pcs[pc]),
            "operands": [[each.name, each.seen_as, each.bank, each.row, each.reads, each.writes] for each in names.operands[pc]],
            "fragments": fragments,
        }
        code.append(entry)
    return {
        "files": [{"path": file, "lines": places.sources.lines(file)} for file in files],
        "code": code,
        "registers": [[r.name, r.type_, r.bank, r.row, r.function, r.first_pc, r.last_pc] for r in names.registers],
        "functions": [list(each) for each in names.functions],
        "layouts": [layout for _, layout in layouts.values()],
        "warp_words": len(places.program.template) // 4,
        "shared_bytes": len(stepper.state.shared_memory),
        "has_tiles": places.tile_loop is not None,
    }


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

    def __init__(self, stepper: Stepper, selection: Selection, rows: Sequence[dict[str, Any]]) -> None:
        """rows: of the header."""
        self._stepper, self._records = stepper, EventRecords(stepper, selection)
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
        state = self._stepper.walker.state
        record = {name: value for name, value in self._records.record(event, tile).items() if name not in _OF_CODE}
        self._note_rows(event)
        if event.access is not None and event.access.wavefronts is not None:
            record["access"] |= _bank_groups(event.access)
        shared = self._stepper.state.shared_memory
        tail = np.full(-len(shared) % 4, 0xFF, np.uint8)
        further = {
            "changed": [_change(change) for change in event.registers] if event.executed else [],
            "set": self._registers.changes(np.ascontiguousarray(state.registers).view(np.uint8).view("<u4")),
            "shared": self._shared.changes(np.concatenate([shared, tail]).view("<u4") if tail.size else shared.view("<u4")),
            "rows": self._rows,
            **self._control_changes(event),
        }
        self._rows = []
        return record | {"pc": event.pc} | {name: value for name, value in further.items() if value or name == "barriers"}

    def _note_rows(self, event: Event) -> None:
        place = self._places.get(event.pc)
        if place is not None and event.executed and event.registers:
            row, result, total = place
            self._rows.append([row, result, event.warp, [f"{value:.6g}" for value in row_values_of(event.registers[0].new, total=total)]])

    def _control_changes(self, event: Event) -> dict[str, Any]:
        """Where warps are, what they copy and what waits, as far as it is not known."""
        view = self._stepper.state
        gap = event.position != self._next
        self._next = event.position + 1
        others = gap or event.arrival is not None  # only a barrier lets an instruction change other warps
        found: dict[str, Any] = {"splits": {}, "groups": {}}
        for warp in range(view.warps):
            if others or warp == event.warp:
                splits = [[each.pc, mask_text(each.lanes), each.state, each.detail] for each in view.splits(warp)]
                self._tell(found["splits"], warp, ("splits", warp), splits)
            if gap or (warp == event.warp and event.kind in _COPY_KINDS):
                groups = [[each.number, each.committed, each.size_bytes, each.ranges] for each in view.copy_groups(warp)]
                self._tell(found["groups"], warp, ("groups", warp), groups)
        if others:
            barriers = [[each.number, each.arrived, each.expected, sorted(each.waiting)] for each in view.barriers()]
            self._tell(found, "barriers", ("barriers", 0), barriers)
        return found

    def _tell(self, found: dict[Any, Any], name: Any, key: tuple[str, int], now: list[Any]) -> None:
        if self._control.get(key, []) != now:
            found[name] = self._control[key] = now


def _change(change: RegisterChange) -> list[Any]:
    operand = change.operand
    return [operand.name, operand.seen_as, operand.bank, operand.row, mask_text(_mask(change.changed))]


def _mask(lanes: Array) -> int:
    return int.from_bytes(np.packbits(lanes, bitorder="little").tobytes(), "little")


def _bank_groups(access: Access) -> dict[str, Any]:
    """Lanes that are served together, as the bank picture has them."""
    groups = bank_groups(BankAccess(access.op, access.addresses, access.lanes, access.arch, access.sources))
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
