"""Every barrier, wait and commit of the attention kernel v2.1 taken away or moved, one at a time: each is found, at the right lines."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

import fasim
from fasim import kernels
from fasim.isa.program import SourceInstruction
from fasim.sm.result import Hazard

SPEC = kernels.load("fa_v21")
SOURCE = SPEC.path.read_text()

#: statements that are moved: each stands once in the source
STATEMENTS = {
    "barrier after Q": r"    __syncthreads\(\);\n(?=\n    //@ Q_FRAGMENTS)",
    "barrier after wait": r"        __syncthreads\(\);[^\n]*copies of the other threads[^\n]*\n",
    "barrier after tile": r"        __syncthreads\(\);[^\n]*next prefetch overwrites[^\n]*\n",
    "wait for all but one": r"            cp_async_wait_group<1>\(\);[^\n]*\n",
    "wait for all": r"            cp_async_wait_group<0>\(\);\n",
    "commit": r"    cp_async_commit_group\(\);\n(?=\}\n)",
}
#: places to which they are moved, the position before the match
PLACES = {
    "before Q is stored": r"    //@ LOAD_Q\n",
    "after Q is read": r"    //@ STATE\n",
    "before the prefetch": r"        //@ PREFETCH\n",
    "before the wait for all but one": r"            cp_async_wait_group<1>",
    "before the wait for all": r"            cp_async_wait_group<0>",
    "before the prefetch's copies": r"            copy_tile_async\(smem, \(j \+ 1\)",
    "after the waits": r"        __syncthreads\(\);[^\n]*copies of the other threads",
    "before K is read": r"        const u32 k_tile = smem \+ K_BYTES \+ \(j & 1\)",
    "after K is read": r"        //@ MASK\n",
    "before V is read": r"        //@ RESCALE_O\n",
    "after V is read": r"        //@ NEXT_TILE\n",
    "before the copies": r"#pragma unroll\n    for \(int i = 0; i < BC \* ROW_CHUNKS / THREADS",
    "between the copies of K and V": r"        cp_async_16_bytes\(v_tile",
    "after the prologue": r"\n#pragma unroll 1\n    for \(int j = 0; j < tiles",
}
#: the lines that access shared memory, and the calls through which copies are started
LINES = {
    "Q store": "store_shared_16_bytes(smem + Q_BYTES",
    "Q read": "ldmatrix_x4(q_frag",
    "K read": "ldmatrix_x4(b, k_tile",
    "V read": "ldmatrix_x4_trans(b, v_tile",
    "K copy": "cp_async_16_bytes(k_tile",
    "V copy": "cp_async_16_bytes(v_tile",
    "prologue": "copy_tile_async(smem, 0,",
    "prefetch": "copy_tile_async(smem, (j + 1)",
}

#: pairs of lines, in the order of the program
Q = {("Q store", "Q read")}
PROLOGUE_K, PROLOGUE_V = {("K copy, prologue", "K read")}, {("V copy, prologue", "V read")}
PREFETCH_K, PREFETCH_V = {("K copy, prefetch", "K read")}, {("V copy, prefetch", "V read")}
PREFETCH = PREFETCH_K | PREFETCH_V
PROLOGUE = PROLOGUE_K | PROLOGUE_V
COPIES = PROLOGUE | PREFETCH
OVERWRITE_K, OVERWRITE_V = {("K read", "K copy, prefetch")}, {("V read", "V copy, prefetch")}


@dataclass(frozen=True)
class Mutation:
    """A statement is taken away and, if `to` is not empty, put at places instead, as `text` if that is not empty.

    pairs: the lines that race, each access by its line and, if a copy, the call that started it. never_waited: copies are left over.
    """

    statement: str
    to: tuple[str, ...] = ()
    text: str = ""
    pairs: frozenset[tuple[str, str]] = frozenset()
    never_waited: bool = False

    @property
    def name(self) -> str:
        return f"{self.statement}: {'removed' if not self.to else 'to ' + ' and '.join(self.to)}"

    def source(self) -> str:
        match = single(STATEMENTS[self.statement], SOURCE)
        text = SOURCE[: match.start()] + SOURCE[match.end() :]
        for place in self.to:
            at = single(PLACES[place], text).start()
            text = text[:at] + (self.text or match[0]) + text[at:]
        return text


def single(pattern: str, text: str) -> re.Match[str]:
    """The only match."""
    (match,) = re.finditer(pattern, text)
    return match


def mutation(
    statement: str, to: str | tuple[str, ...], pairs: set[tuple[str, str]], text: str = "", never_waited: bool = False
) -> Mutation:
    return Mutation(statement, (to,) if isinstance(to, str) and to else tuple(to), text, frozenset(pairs), never_waited)


# With 4 tiles: tile 0 is copied in the prologue, tiles 1 to 3 in the prefetch of iterations 0 to 2.
MUTATIONS = [
    # Q is written row by row by all warps and read by the warp that owns the rows
    mutation("barrier after Q", "", Q),
    mutation("barrier after Q", "before Q is stored", Q),
    mutation("barrier after Q", "after Q is read", Q),
    # a thread has waited for its own copies only
    mutation("barrier after wait", "", COPIES),
    mutation("barrier after wait", "before the prefetch", COPIES),
    mutation("barrier after wait", ("before the wait for all but one", "before the wait for all"), COPIES),
    mutation("barrier after wait", "after K is read", PROLOGUE_K | PREFETCH_K),
    mutation("barrier after wait", "after V is read", COPIES),
    # the prefetch of tile j + 2 overwrites tile j
    mutation("barrier after tile", "", OVERWRITE_K | OVERWRITE_V),
    mutation("barrier after tile", "before V is read", OVERWRITE_V),
    mutation("barrier after tile", "before K is read", OVERWRITE_K | OVERWRITE_V),
    mutation("barrier after tile", ("before the wait for all but one", "before the wait for all"), OVERWRITE_K | OVERWRITE_V),
    # tiles 0 to 2 are read while on their way
    mutation("wait for all but one", "", COPIES),
    mutation("wait for all but one", "before the prefetch's copies", COPIES),
    mutation("wait for all but one", "before K is read", COPIES, "        if (j + 1 < tiles) cp_async_wait_group<1>();\n"),
    mutation("wait for all but one", "after K is read", COPIES, "        if (j + 1 < tiles) cp_async_wait_group<1>();\n"),
    mutation("wait for all but one", "after V is read", COPIES, "        if (j + 1 < tiles) cp_async_wait_group<1>();\n"),
    # tile 3 is
    mutation("wait for all", "", PREFETCH, never_waited=True),
    mutation("wait for all", "before K is read", PREFETCH, "        if (j + 1 == tiles) cp_async_wait_group<0>();\n"),
    mutation("wait for all", "after K is read", PREFETCH, "        if (j + 1 == tiles) cp_async_wait_group<0>();\n"),
    mutation("wait for all", "after V is read", PREFETCH, "        if (j + 1 == tiles) cp_async_wait_group<0>();\n"),
    # Harmless: in the iteration before the last, the last tile's copies are under way already, and the barrier at its end makes them
    # visible to all. (With a single tile there is no such iteration, and the wait would be missing.)
    mutation("wait for all", "before V is read", set(), "        if (j + 2 == tiles) cp_async_wait_group<0>();\n"),
    # no copy belongs to a group, so that no wait waits
    mutation("commit", "", COPIES, never_waited=True),
    # tile 0 and tile 1 become one group, the newest one when tile 0 is waited for
    mutation("commit", "before the wait for all but one", PROLOGUE, "            cp_async_commit_group();\n"),
    # tile 0 is the newest group all the time; tiles 1 to 3 belong to none
    mutation("commit", "after the prologue", COPIES, "    cp_async_commit_group();\n", never_waited=True),
    mutation("commit", "after the waits", COPIES, "        cp_async_commit_group();\n"),
    mutation("commit", "after K is read", COPIES, "        cp_async_commit_group();\n"),
    mutation("commit", "after V is read", COPIES, "        cp_async_commit_group();\n"),
    # every group begins one tile too early: a wait for all but the newest leaves the tile that is needed
    mutation("commit", "before the copies", COPIES, never_waited=True),
    # the second packet of V is in the next tile's first group; on the last tile there is none
    mutation("commit", "between the copies of K and V", PREFETCH_V, "        cp_async_commit_group();\n", never_waited=True),
]


def check(source: str, **options: object) -> tuple[Hazard, ...]:
    given = {"n": 128, "heads": 1, "bc": 32, **options}
    kernel = fasim.compile(source, defines=SPEC.defines(given)).kernel(SPEC.entry)
    launch, inputs = SPEC.launch(given), SPEC.inputs(given, 0)
    result = kernel.launch(
        launch.grid, launch.block, [a.value for a in inputs], dynamic_smem_bytes=launch.dynamic_smem_bytes, check="all", count=False
    )
    return tuple(result.hazards)


def access(source: SourceInstruction | None, text: str) -> str:
    """The access by the lines on which it stands and from which it was called."""
    lines = text.splitlines()
    numbers = [] if source is None else [source.line, *(line for _, line in source.inlined_at)]
    return ", ".join(name for number in numbers for name, part in LINES.items() if part in lines[number - 1])


def test_places_and_statements_are_named_once():
    for pattern in (*STATEMENTS.values(), *PLACES.values()):
        single(pattern, SOURCE)
    for part in LINES.values():
        assert sum(part in line for line in SOURCE.splitlines()) == 1, part
    barriers, waits = SOURCE.count("__syncthreads();"), len(re.findall(r"cp_async_wait_group<\d>\(\);", SOURCE))
    commits = len(re.findall(r"^ +cp_async_commit_group\(\);", SOURCE, re.MULTILINE))
    assert (barriers, waits, commits) == (3, 2, 1)
    assert {m.statement for m in MUTATIONS if not m.to} == set(STATEMENTS)


@pytest.mark.parametrize("mutated", MUTATIONS, ids=[m.name for m in MUTATIONS])
def test_mutation_is_found(mutated):
    text = mutated.source()
    found: set[tuple[str, str]] = set()
    for hazard in check(text):
        pair = access(hazard.first, text), access(hazard.second, text)
        if hazard.kind in ("RAW", "WAR"):
            assert hazard.severity != "note"
            # which of two accesses that nothing orders comes first is chance
            found.add(pair if pair in mutated.pairs else pair[::-1])
        elif hazard.kind == "WAW":
            # of a tile that is still on its way, and the one that follows it in the buffer
            assert pair in {
                (f"{t} copy, {a}", f"{t} copy, {b}") for t in "KV" for a in ("prologue", "prefetch") for b in ("prologue", "prefetch")
            }
            assert mutated.pairs
        else:
            assert hazard.kind == "copy_not_waited" and pair[0].split(",")[0] in ("K copy", "V copy"), hazard
            assert mutated.never_waited
    assert found == mutated.pairs


@pytest.mark.parametrize("layout", ["linear", "padded", "swizzled"])
@pytest.mark.parametrize("bc", [32, 64])
@pytest.mark.parametrize("head_dim", [64, 128])
@pytest.mark.parametrize("causal", [False, True])
def test_the_kernel_as_it_is_has_none(layout, bc, head_dim, causal):
    for n in (128, 200):
        assert not check(SOURCE, n=n, layout=layout, bc=bc, head_dim=head_dim, causal=causal)
