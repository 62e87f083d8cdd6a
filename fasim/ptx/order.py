"""Where code goes: blocks in an order in which every loop is contiguous and paths meet behind their parts.

The machine runs the lanes with the least pc first, so the order decides where diverged lanes come together.

Source: F. Bourdoncle, "Efficient chaotic iteration strategies with widenings", 1993 (weak topological order).
"""

from __future__ import annotations

from collections.abc import Sequence

from fasim.ptx.ir import Block, Op


def blocks_of(items: Sequence[str | Op]) -> list[Block]:
    """Split a list of labels (str) and operations into basic blocks with their successors."""
    blocks: list[Block] = [Block([], [])]
    for item in items:
        current = blocks[-1]
        if isinstance(item, str):
            if current.ops:
                current = Block([], [])
                blocks.append(current)
            current.labels.append(item)
            continue
        current.ops.append(item)
        if item.labels or not item.falls:
            blocks.append(Block([], []))
    if not blocks[-1].ops and not blocks[-1].labels and len(blocks) > 1:
        blocks.pop()
    at = {label: i for i, block in enumerate(blocks) for label in block.labels}
    for i, block in enumerate(blocks):
        last = block.ops[-1] if block.ops else None
        if last is None or last.falls:
            block.next = i + 1 if i + 1 < len(blocks) else -1
        targets = [at[label] for label in last.labels] if last else []
        block.successors = ([block.next] if block.next >= 0 else []) + [t for t in dict.fromkeys(targets) if t != block.next]
    return blocks


def weak_topological_order(successors: Sequence[Sequence[int]], root: int = 0) -> list[int]:
    """Node numbers, each loop's nodes together with its head first, everything that a loop leads to after it."""
    infinity = 1 << 60
    number = [0] * len(successors)
    counter = 0
    stack: list[int] = []

    def visit(start: int) -> list[int]:
        # explicit frames: PTX functions have thousands of blocks, more than Python's recursion allows
        nonlocal counter
        partition: list[int] = []
        frames: list[list[int]] = []  # node, next successor, head, is_loop

        def enter(node: int) -> None:
            nonlocal counter
            stack.append(node)
            counter += 1
            number[node] = counter
            frames.append([node, 0, counter, 0])

        enter(start)
        while frames:
            frame = frames[-1]
            node, position = frame[0], frame[1]
            if position < len(successors[node]):
                frame[1] += 1
                successor = successors[node][position]
                if number[successor] == 0:
                    enter(successor)
                elif number[successor] <= frame[2]:
                    frame[2], frame[3] = number[successor], 1
                continue
            frames.pop()
            head, is_loop = frame[2], frame[3]
            if head == number[node]:
                number[node] = infinity
                top = stack.pop()
                if is_loop:
                    while top != node:
                        number[top] = 0
                        top = stack.pop()
                    partition.extend(reversed(component(node)))
                partition.append(node)
            if frames and head <= frames[-1][2]:
                frames[-1][2], frames[-1][3] = head, 1
        partition.reverse()
        return partition

    def component(head: int) -> list[int]:
        parts: list[list[int]] = []
        for successor in successors[head]:
            if number[successor] == 0:
                parts.append(visit(successor))
        return [node for part in reversed(parts) for node in part]

    return visit(root)
