"""Options of a launch: one description, in signatures and in what is refused."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import fasim
from fasim.errors import LaunchError, UsageError
from fasim.sm.launch_options import DEFAULTS, LaunchOptions
from fasim.sm.module import Kernel

SOURCE = 'extern "C" __global__ void one(int *x) { x[threadIdx.x] = 1; }'


@pytest.mark.parametrize("method", [Kernel.launch, Kernel.prepare])
def test_a_signature_shows_every_option(method):
    shown = inspect.signature(method).parameters
    assert list(shown)[:4] == ["self", "grid", "block", "args"] and set(DEFAULTS) == set(LaunchOptions.__annotations__)
    for name, value in DEFAULTS.items():
        assert shown[name].default == value and shown[name].kind is inspect.Parameter.KEYWORD_ONLY
    assert shown["workers"].annotation == "int | None"


def test_what_is_refused():
    kernel = fasim.compile(SOURCE).kernel()
    for method in (kernel.launch, kernel.prepare):
        with pytest.raises(TypeError, match=r"a launch has no option 'wokers'; there are: dynamic_smem_bytes, "):
            method(1, 32, [np.zeros(32, np.int32)], wokers=1)
        with pytest.raises(UsageError, match="workers is a whole number from 1 on, got 0"):
            method(1, 32, [np.zeros(32, np.int32)], workers=0)


def test_they_reach_the_launch():
    x = np.zeros(32, np.int32)
    result = fasim.compile(SOURCE).kernel().launch(1, 32, [x], backend="reference", check="all", names=("y",))
    assert x.all() and result.hazards == []
    with pytest.raises(LaunchError, match="y"):
        fasim.compile(SOURCE).kernel().launch(1, 32, [1.5], names=("y",))
