"""The order of code: a weak topological order, whatever the control flow."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fasim.isa import machine as m
from fasim.ptx.ir import Op
from fasim.ptx.order import blocks_of, weak_topological_order

GRAPHS = st.integers(1, 14).flatmap(lambda n: st.lists(st.lists(st.integers(0, n - 1), max_size=3), min_size=n, max_size=n))


def reachable(graph, root=0, without=()):
    seen, stack = set(), [root] if root not in without else []
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(s for s in graph[node] if s not in without)
    return seen


@settings(max_examples=400, deadline=None)
@given(GRAPHS)
def test_every_reachable_node_once_and_cycles_have_their_head_first(graph):
    order = weak_topological_order(graph)
    assert sorted(order) == sorted(reachable(graph)) and order[0] == 0
    position = {node: i for i, node in enumerate(order)}
    for node in order:
        for successor in graph[node]:
            if position[successor] <= position[node]:
                # an edge backwards leads to the head of a cycle that the edge is part of
                assert node in reachable(graph, successor)


def test_textbook_example():
    # Bourdoncle 1993, figure 2
    graph = {1: [2], 2: [3, 8], 3: [4], 4: [5, 7], 5: [6], 6: [7, 5], 7: [8, 3], 8: []}
    order = weak_topological_order([[s - 1 for s in graph[i]] for i in range(1, 9)])
    assert [node + 1 for node in order] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_code_behind_a_loop_comes_after_the_whole_loop():
    # head 1 leaves to 2 in the middle; the body is 3, 4
    assert weak_topological_order([[1], [2, 3], [], [4], [1]]).index(2) == 4


def test_a_long_chain_needs_no_recursion():
    n = 50_000
    assert weak_topological_order([[i + 1] for i in range(n)] + [[]]) == list(range(n + 1))


def test_blocks():
    branch = Op(m.BRA, target="end", labels=["end"])
    leave = Op(m.EXIT, falls=False)
    blocks = blocks_of(["start", Op(m.NOP), branch, Op(m.NOP), "end", leave])
    assert [(b.labels, len(b.ops), b.successors, b.next) for b in blocks] == [
        (["start"], 2, [1, 2], 1),
        ([], 1, [2], 2),
        (["end"], 1, [], -1),
    ]
