"""Every row's own cases, on both machines, under a full and a partial mask."""

import numpy as np
import pytest

from fasim.isa.rows import ROWS, SASS_ROWS, row_of
from tests.harness import BACKENDS, run_row

CASES = [(row.name, case) for row in (*ROWS.values(), *SASS_ROWS.values()) for case in row.cases]


def split(name: str, inputs: object) -> tuple[list[object], tuple[int, ...]]:
    """Inputs of a case as (register sources, immediates)."""
    row, flat = row_of(name), list(inputs) if isinstance(inputs, tuple) else [inputs]
    sources, immediates = [], []
    for arg in (a for a in row.sources if a.name != "active"):
        value = flat.pop(0)
        if arg.type_ == "imm":
            immediates.append(value)
        elif arg.count:
            sources.extend(value)
        else:
            sources.append(value)
    assert not flat, f"{name}: case {inputs!r} has more inputs than the row"
    return sources, tuple(immediates)


@pytest.mark.parametrize("backend", BACKENDS)
def test_cases(backend):
    wrong = []
    for name, (inputs, expected) in CASES:
        sources, immediates = split(name, inputs)
        got = run_row(name, sources, immediates=immediates, backend=backend)
        want = list(expected) if isinstance(expected, tuple) else [expected]
        for value, target in zip(got, want, strict=True):
            if value.dtype != bool and not isinstance(target, (list, np.ndarray)):
                target = int(target) & (2 ** (value.itemsize * 8) - 1)
            if not np.array_equal(value, np.broadcast_to(target, 32)):
                wrong.append(f"{name}{inputs}: {value[0]:#x} instead of {target:#x}" if value.dtype != bool else f"{name}{inputs}: {value}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("backend", BACKENDS)
def test_inactive_lanes_keep_their_value(backend):
    for name, (inputs, _) in CASES:
        sources, immediates = split(name, inputs)
        row = row_of(name)
        before = [1 if d.type_ == "pred" else 0x55 for d in row.dests for _ in range(max(d.count, 1))]
        got = run_row(name, sources, immediates=immediates, backend=backend, mask=0x0000FF01, dests=before)
        for value, old in zip(got, before):
            idle = [i for i in range(32) if not 0x0000FF01 >> i & 1]
            assert (value[idle] == old).all(), name
