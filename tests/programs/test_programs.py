"""Whole programs that exercise what compiled CUDA does, each checked against numpy or plain Python, on both machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fasim import empty
from fasim.errors import UsageError
from tests.programs import faults, inline, integers, language, maths, warps
from tests.programs.harness import Case, check, execute, module

CASES = [*integers.CASES, *language.CASES, *warps.CASES, *inline.CASES, *maths.CASES, *faults.CASES]
#: compiled anew, these take other paths through the compiler; debug code keeps everything in local memory
OTHER_TARGETS = [("sm_80", ()), ("sm_120", ("-G",))]


def numbers(cases: list[Any]) -> list[str]:
    """Names for pytest, each used once."""
    return [f"{i}-{case.name}" for i, case in enumerate(cases)]


@pytest.mark.parametrize("case", CASES, ids=numbers(CASES))
def test_jit(case: Case) -> None:
    check(case, *execute(case, backend="jit", workers=1))


@pytest.mark.parametrize("case", [c for c in CASES if c.reference], ids=numbers([c for c in CASES if c.reference]))
def test_reference(case: Case) -> None:
    check(case, *execute(case, backend="reference"))


@pytest.mark.parametrize("case", [c for c in CASES if c.grid != 1], ids=numbers([c for c in CASES if c.grid != 1]))
def test_two_workers_give_the_same(case: Case) -> None:
    check(case, *execute(case, backend="jit", workers=2))


@pytest.mark.parametrize("target", OTHER_TARGETS, ids=lambda target: "".join((target[0], *target[1])))
@pytest.mark.parametrize("case", CASES, ids=numbers(CASES))
def test_other_targets(case: Case, target: tuple[str, tuple[str, ...]]) -> None:
    if case.kernel == "lambdas" and target[1]:
        pytest.skip("debug code does not contract products and sums")
    check(case, *execute(case, backend="jit", workers=1, arch=target[0], options=target[1]))


@pytest.mark.parametrize("fault", faults.FAULTS, ids=numbers(faults.FAULTS))
def test_fault(fault: faults.Fault) -> None:
    with pytest.raises(fault.error) as caught:
        kernel = module("faults").kernel(fault.kernel)
        kernel.launch(fault.grid, fault.block, list(fault.args), **{"workers": 1, "output": lambda text: None, **fault.keywords})
    for part in fault.says:
        assert part in str(caught.value)


def test_variables_last_over_launches() -> None:
    """Static variables, and a pointer to a function that one kernel leaves for another."""
    code = module("language")
    tally = code.symbol("tally")
    tally.write(np.uint32(5))
    out = empty(96, np.uint32)
    for before in (5, 5 + 4560):
        code.kernel("remember").launch(1, 96, [out], workers=1)
        assert out[0] == before
    assert tally.read(np.uint32)[0] == 5 + 2 * 4560
    assert code.symbol("grid_values").read(np.float32, (4, 3)).sum() == 96
    code = module("faults")
    code.kernel("keep_function").launch(1, 1)
    result, i = np.zeros(64, np.int32), np.arange(64)
    code.kernel("use_function").launch(1, 64, [result], workers=1)
    assert (result == (i - 7) * 1000 + np.where(i & 1, i + 1, i * 3)).all()


def test_variables_do_not_need_every_kernel() -> None:
    """A module whose kernels are not all modelled still has its variables."""
    assert module("faults").symbol("in_const").read(np.int32).tolist() == [4, 5, 6]
    for wrong in (lambda symbol: symbol.read(np.float64), lambda symbol: symbol.write(np.zeros(9)), lambda symbol: symbol.write([None])):
        with pytest.raises(UsageError, match="in_const"):
            wrong(module("faults").symbol("in_const"))


def test_views() -> None:
    """Views of one array keep their distance; strided arrays come back changed; a read-only alias sees what is written."""
    kernel = module("faults").kernel("load_at")
    whole = np.arange(8, dtype=np.int32)
    kernel.launch(1, 1, [whole, whole[2:], 3])
    assert whole[0] == 5
    strided = whole[::2]
    kernel.launch(1, 1, [strided, strided, 3])
    assert whole.tolist() == [6, 1, 2, 3, 4, 5, 6, 7]
    alias = whole.view()
    alias.flags.writeable = False
    for args in ([whole, alias, 7], [whole[1:], alias[1:], 4]):
        kernel.launch(1, 1, args)
    assert whole.tolist() == [7, 5, 2, 3, 4, 5, 6, 7]
    with pytest.raises(UsageError, match="sequence"):
        kernel.launch(1, 1, None)
