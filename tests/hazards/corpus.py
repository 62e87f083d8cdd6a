"""The kernels in this directory: how to launch each, and what the checks have to say of it.

This module needs numpy alone, so that the same table can be launched on a GPU (sanitize.py). Lines are named by marks, comments
`// @NAME`, which hold inside their kernel. A kernel NAME_fixed is NAME without its mistake.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
RACES = ("RAW", "WAR", "WAW")
#: kinds of findings that are races, and the kind of expectation that any of them meets
ANY_RACE = "race"


@dataclass(frozen=True)
class Expected:
    """One finding; all races of two lines are one, of lanes and of warps.

    kind: alternatives are joined by `|`, `race` is any race; RAW and WAR are the same race seen in another order.
    first, second: marks, alternatives joined by `|`; second is "" where there is one line only, "?" where that is open.
    words, scope: None where the order in which warps run decides. note: it is benign.
    """

    kind: str
    first: str
    second: str = ""
    words: int | None = None
    scope: str | None = None
    note: bool = False


@dataclass(frozen=True)
class Row:
    """One launch. may: findings that are neither asked for nor wrong; more: further races are right, too.

    error: the exception that ends it, `error_marks` the lines at which it may say so. args: `in` (0, 1, 2, ...), `out` and
    `floats` (zeros), `fresh` (device memory that nobody wrote), or a number. hangs: on a GPU. open_: a mistake that need not be reported.
    """

    file: str
    entry: str
    expected: tuple[Expected, ...] = ()
    may: tuple[Expected, ...] = ()
    more: bool = False
    block: int | tuple[int, ...] = 64
    args: tuple[str, ...] = ("in", "out")
    error: str = ""
    error_kind: str = ""
    error_marks: str = ""
    hangs: bool = False
    open_: bool = False

    @property
    def wrong(self) -> bool:
        """Whether there is a mistake that is more than a note."""
        return bool(self.error) or self.open_ or any(not e.note for e in self.expected)


def race(kind: str, first: str, second: str, words: int | None, scope: str | None = "inter-warp", *, note: bool = False) -> Expected:
    """A race of two lines over a number of words."""
    return Expected(kind, first, second, words, scope, note)


def lanes(kind: str, first: str, second: str, words: int | None) -> Expected:
    """A race between lanes of a warp."""
    return Expected(kind, first, second, words, "intra-warp")


def copy(kind: str, first: str, second: str, words: int) -> Expected:
    """A race with a copy that is still on its way."""
    return Expected(kind, first, second, words, "async")


def unset(first: str, second: str, words: int | None, decides: str = "output", space: str = "shared") -> Expected:
    """Memory that nobody wrote, read on one line and used on another."""
    return Expected(f"uninit_{space}", first, second, words, decides)


def _races() -> list[Row]:
    f = "races"
    return [
        Row(f, "read_too_early", (race("RAW", "W", "R", 64),)),
        Row(f, "read_too_early_fixed"),
        Row(f, "overwritten_too_early", (race("WAR", "R", "W", 64),)),
        Row(f, "overwritten_too_early_fixed"),
        Row(f, "written_twice", (race("WAW", "W", "W", 32),)),
        Row(f, "written_twice_fixed"),
        Row(f, "same_value_twice", (race("WAW", "W", "W", 32, note=True),)),
        Row(f, "one_store_two_values", (lanes("WAW", "W", "W", 16),), block=32),
        Row(f, "one_store_two_values_fixed", block=32),
        Row(f, "one_store_same_value", may=(race("WAW", "W", "W", 16, "intra-warp", note=True),), block=32),
        Row(f, "bytes_of_a_word"),
        Row(f, "halves_of_a_word"),
        Row(f, "byte_inside_a_word", (race("WAW", "W", "B", 8),)),
        Row(f, "byte_inside_a_word_fixed"),
        Row(f, "atomics_only"),
        Row(f, "store_and_atomics", (race(ANY_RACE, "S", "A", 8),)),
        Row(f, "store_and_atomics_fixed"),
        Row(f, "read_beside_atomics", (race("RAW", "A", "R", 1),)),
        Row(f, "read_beside_atomics_fixed"),
        Row(f, "own_slots"),
        Row(f, "all_read"),
        Row(f, "loop_with_one_barrier", (race("WAR", "R", "W", 64),)),
        Row(f, "loop_with_one_barrier_fixed"),
        Row(f, "different_trip_counts"),
        Row(f, "different_trip_counts_no_barrier", (race("RAW", "W", "R", 32),)),
    ]


def _warp() -> list[Row]:
    f = "warp"
    return [
        Row(f, "exchange", (lanes("RAW", "W", "R", 32),), block=32),
        Row(f, "exchange_fixed", block=32),
        Row(f, "exchange_overwrite", (lanes("WAR", "R", "W", 32),), block=32),
        Row(f, "exchange_overwrite_fixed", block=32),
        Row(f, "halves_read_across", (lanes("RAW", "W", "R", 32),), block=32),
        Row(f, "halves_read_across_fixed", block=32),
        Row(f, "halves_in_branches", block=32),
        Row(f, "eights_read_across", (lanes("RAW", "W", "R", 32),), block=32),
        Row(f, "eights_read_across_fixed", block=32),
        Row(f, "tile_reads_across", (lanes("RAW", "W", "R", 64),)),
        Row(f, "tile_reads_across_fixed"),
        Row(f, "block_group"),
        # volatile accesses are no data race to the memory model, yet nothing says in which order they happen
        Row(f, "volatile_reduction", may=(lanes("RAW", "A", "A", 15),), block=32, open_=True),
        Row(f, "volatile_reduction_fixed", block=32),
        Row(f, "half_writes", (lanes("RAW", "W", "R", 16),), block=32),
        Row(f, "half_writes_fixed", block=32),
    ]


def _patterns() -> list[Row]:
    f = "patterns"
    either = (race("WAW", "I", "I", 32), race("WAW", "I", "I", 32, note=True))
    return [
        Row(f, "block_sum", (race("RAW", "W", "R", 7),), block=256),
        Row(f, "block_sum_fixed", block=256),
        # words 32-63 come from the other warp, 1-31 from lanes of the own one
        Row(f, "tree_sum", (race("RAW", "A", "A", 63),), block=128),
        Row(f, "tree_sum_fixed", block=128),
        Row(f, "double_buffer", (race("RAW", "W", "R", 128),)),
        Row(f, "double_buffer_fixed"),
        # all but the 32 words of the diagonal go to another thread
        Row(f, "transpose", (race("RAW", "W", "R", 992),), block=(32, 8)),
        Row(f, "transpose_fixed", block=(32, 8)),
        # the first two words keep their value, the last two are read by their own thread only
        Row(f, "scan", (race("RAW", "W", "R", 62),)),
        Row(f, "scan_fixed"),
        Row(f, "bitonic", (race("RAW", "LOW", "R", None), race("RAW", "HIGH", "R", None)), more=True),
        Row(f, "bitonic_fixed"),
        Row(f, "histogram", (race(ANY_RACE, "Z", "A", 256),), block=256),
        Row(f, "histogram_fixed", block=256),
        Row(f, "histogram_without_atomics", (race("RAW", "I", "I", 32),), either),
        # only two of the words cross the boundary between the warps
        Row(f, "stencil", (race("RAW", "W", "R", 64),)),
        Row(f, "stencil_fixed"),
    ]


def _order() -> list[Row]:
    f = "order"
    either = (race("WAW", "I", "I", 1), race("WAW", "I", "I", 1, note=True))
    return [
        Row(f, "producer_consumer"),
        Row(f, "producer_does_not_wait", (race("WAR", "R", "W", 32),)),
        Row(f, "consumer_does_not_wait", (race("RAW", "W", "R", 32),)),
        Row(f, "pairs_of_warps", block=128),
        Row(f, "pairs_read_across", (race("RAW", "W", "R", 128),), block=128),
        Row(f, "voting_barriers"),
        Row(f, "flag"),
        # all accesses are volatile: no data race, but nothing orders them for certain
        Row(f, "flag_without_fences"),
        Row(f, "plain_data_without_fences", (race("RAW", "W", "R", 32),)),
        Row(f, "atomic_flag"),
        Row(f, "lock"),
        Row(f, "lock_without_fences", (race("RAW", "I", "I", 1),), either),
        Row(f, "no_lock", (race("RAW", "I", "I", 1),), either),
        Row(f, "lock_of_lanes"),
        Row(f, "last_ticket", block=128),
        Row(f, "last_ticket_without_fences", (race("RAW", "W", "R", 3),), block=128),
    ]


def _copies() -> list[Row]:
    f = "copies"
    return [
        Row(f, "no_wait", (copy("RAW", "C", "R", 64),)),
        Row(f, "no_wait_fixed"),
        Row(f, "pipeline_no_wait", (copy("RAW", "C", "R", 64),)),
        Row(f, "pipeline_no_wait_fixed"),
        Row(f, "wait_without_barrier", (race("RAW", "C", "R", 64),)),
        Row(f, "wait_without_barrier_fixed"),
        # the other warp's copy may be on its way or there, as the warps happen to run
        Row(f, "barrier_before_wait", (race("RAW", "C", "R", 64, None),)),
        Row(f, "wait_without_syncwarp", (lanes("RAW", "C", "R", 64),)),
        Row(f, "wait_without_syncwarp_fixed"),
        Row(f, "own_copy"),
        Row(f, "one_group_too_few", (copy("RAW", "C", "R", 64),)),
        Row(f, "one_group_too_few_fixed"),
        Row(f, "pipeline_one_group_too_few", (copy("RAW", "C", "R", 64),)),
        Row(f, "pipeline_one_group_too_few_fixed"),
        Row(f, "commit_after_wait", (copy("RAW", "C", "R", 64),)),
        Row(f, "pipeline_commit_after_wait", (copy("RAW", "C", "R", 64),)),
        Row(f, "wait_all_without_commit"),
        Row(f, "copied_over", (race("WAR", "R", "C", 64),)),
        Row(f, "copied_over_fixed"),
        Row(f, "stored_under_a_copy", (copy("WAW", "C", "S", 16),)),
        Row(f, "stored_under_a_copy_fixed"),
        Row(f, "two_copies", (race("WAW", "C", "C", 32, None),)),
        Row(f, "never_waited", (Expected("copy_not_waited", "C", words=64),)),
        Row(f, "never_committed", (Expected("copy_not_waited", "C", words=64),)),
        Row(f, "zero_filled"),
        Row(f, "tail_not_copied", (unset("U", "U", 16),)),
        Row(f, "pipeline_zero_filled"),
    ]


def _uninit() -> list[Row]:
    f, buffers, count = "uninit", ("in", "fresh", "out"), ("in", "out", "6")
    return [
        Row(f, "to_output", (unset("U", "U", 16),)),
        Row(f, "to_output_fixed"),
        Row(f, "through_arithmetic", (unset("U", "O", 16),)),
        Row(f, "through_shared_memory", (unset("U", "O", 16),)),
        Row(f, "to_atomic_output", (unset("U", "O", 16),)),
        Row(f, "as_address", (unset("U", "A", 16, "address"),)),
        Row(f, "as_address_fixed"),
        Row(f, "as_branch", (unset("U", "B", 16, "branch"),)),
        Row(f, "as_branch_fixed"),
        Row(f, "as_matrix", (unset("U", "M", 32, "mma"),), block=32, args=("in", "floats")),
        Row(f, "as_matrix_fixed", block=32, args=("in", "floats")),
        Row(f, "counter_not_cleared", (unset("A|O", "O", 1),)),
        Row(f, "padding_copied"),
        Row(f, "padding_used", (unset("U", "O", 64),)),
        Row(f, "selected_away"),
        Row(f, "masked_away"),
        Row(f, "low_byte"),
        Row(f, "second_byte", (unset("U", "O", 64),)),
        Row(f, "byte_shifted_out"),
        Row(f, "low_half"),
        Row(f, "high_half", (unset("U", "O", 64),)),
        Row(f, "shuffled_away", block=32),
        Row(f, "shuffled_in", (unset("U", "O", 16),), block=32),
        Row(f, "read_and_dropped"),
        Row(f, "overwritten"),
        Row(f, "local_array", (unset("U", "O", None, space="local"),), args=count),
        Row(f, "local_array_fixed", args=count),
        Row(f, "fresh_buffer", (unset("U", "O", 16, space="global"),), args=buffers),
        Row(f, "fresh_buffer_fixed", args=buffers),
    ]


def _collectives() -> list[Row]:
    f, out = "collectives", ("out",)

    def barrier(marks: str) -> Expected:
        return Expected("divergent_barrier", marks, "?")

    def absent(marks: str = "S") -> Expected:
        return Expected("absent_lanes", marks, "?")

    def outside(second: str) -> Expected:
        return Expected("uninit_lane", "S", second, scope="output")

    spins = {"error": "DeadlockError", "error_kind": "livelock", "hangs": True}
    dead, stuck = {"error": "DeadlockError", "error_kind": "deadlock", "hangs": True}, {"error": "ExecutionError", "error_kind": "barrier"}
    return [
        Row(f, "half_a_warp", (barrier("B"),)),
        Row(f, "half_a_warp_fixed"),
        Row(f, "one_lane", (barrier("B"),)),
        # whether a warp has left before it would have come to a barrier cannot be told from its having gone past
        Row(f, "half_the_cta", may=(barrier("B"),)),
        Row(f, "two_places_in_a_warp", (barrier("A|B"),), hangs=True),
        Row(f, "two_places_of_warps", may=(barrier("A|B"),)),
        Row(f, "more_rounds_in_one_warp", may=(barrier("A"),)),
        Row(f, "exit_after_barrier"),
        Row(f, "warp_exits_before_barrier", may=(barrier("B"),), block=96),
        Row(f, "lanes_exit_before_barrier", may=(barrier("B"),)),
        Row(f, "tail_loop_barrier", may=(barrier("B"),)),
        Row(f, "different_barriers", error_marks="A|B", args=out, **dead),  # type: ignore[arg-type]
        Row(f, "different_barriers_fixed", args=out),
        Row(f, "different_counts", error_marks="A|B", args=out, block=96, **stuck),  # type: ignore[arg-type]
        Row(f, "count_too_high", error_marks="A", args=out, block=96, **dead),  # type: ignore[arg-type]
        Row(f, "count_too_high_fixed", args=out, block=96),
        # on a GPU half of a warp may count as the whole of it at a barrier
        Row(f, "shuffle_against_barrier", error_marks="S|B", args=out, block=32, error="DeadlockError", error_kind="deadlock"),
        Row(f, "flag_never_set", error_marks="L", args=out, **spins),  # type: ignore[arg-type]
        Row(f, "lock_never_released", error_marks="L", args=out, **spins),  # type: ignore[arg-type]
        Row(f, "shuffle_absent", (absent(),), block=32),
        Row(f, "shuffle_absent_fixed", block=32),
        Row(f, "vote_absent", (absent(),), block=32),
        Row(f, "vote_absent_fixed", block=32),
        Row(f, "match_absent", (absent(),), block=32),
        Row(f, "match_absent_fixed", block=32),
        Row(f, "reduce_absent", (absent(),), block=32),
        Row(f, "reduce_absent_fixed", block=32),
        Row(f, "both_branches", block=32),
        Row(f, "source_outside", (outside("O"),), block=32),
        Row(f, "source_outside_fixed", block=32),
        Row(f, "source_outside_unused", block=32),
        Row(f, "tail_warp", block=48),
        # lanes that the block does not have are named like lanes that have ended: allowed
        Row(f, "tail_warp_full_mask", block=48),
        Row(f, "tail_warp_reads_beyond", (outside("O"),), block=48),
        Row(f, "tail_warp_shared", block=48),
        Row(f, "negative_index", error="MemoryAccessError", error_kind="oob_shared", error_marks="X"),
        Row(f, "negative_index_fixed"),
    ]


ROWS = [*_races(), *_warp(), *_patterns(), *_order(), *_copies(), *_uninit(), *_collectives()]


@functools.cache
def marks(file: str) -> dict[str, dict[str, int]]:
    """Line numbers by kernel and mark."""
    found: dict[str, dict[str, int]] = {}
    kernel = ""
    for number, line in enumerate(path(file).read_text().splitlines(), 1):
        if match := re.search(r"__global__ void (\w+)\(", line):
            kernel = match[1]
            found[kernel] = {}
        for name in re.findall(r"// @(\w+)", line) if kernel else ():
            found[kernel][name] = number
    return found


def path(file: str) -> Path:
    """The source of a file of the table."""
    return HERE / f"{file}.cu"


def arguments(row: Row) -> list[tuple[str, Any]]:
    """The arguments by name: arrays of four-byte elements, a number, None for memory that nobody has written."""
    makers = {
        "in": lambda: np.arange(1024, dtype=np.int32),
        "out": lambda: np.zeros(1024, np.int32),
        "floats": lambda: np.zeros(1024, np.float32),
        "fresh": lambda: None,
    }
    return [(name, makers[name]() if name in makers else np.int32(name)) for name in row.args]
