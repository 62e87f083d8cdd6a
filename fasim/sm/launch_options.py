"""The options of a launch, which stand here once: their types, what they are by themselves, and how they appear in signatures."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import numpy as np

from fasim.errors import UsageError

if TYPE_CHECKING:
    F = TypeVar("F", bound=Callable[..., Any])


class LaunchOptions(TypedDict, total=False):
    """What a launch takes beside grid, block and arguments.

    opt_in: allow more than 48 KB of shared memory, as kernels that set the attribute do. backend: "jit" or "reference". workers: threads
    (None: one a core). max_instructions: end a launch that needs more warp instructions. check: what to look for, "all" or some of
    "race,init,sync". names: names of the arguments, for messages.
    """

    dynamic_smem_bytes: int
    opt_in: bool
    backend: str
    workers: int | None
    max_instructions: int | None
    check: str
    names: Sequence[str]


DEFAULTS = LaunchOptions(
    dynamic_smem_bytes=0, opt_in=True, backend="jit", workers=None, max_instructions=None, check="", names=()
)  # fmt: skip


def completed(options: LaunchOptions) -> LaunchOptions:
    """Options with those that are left out.

    Raises: TypeError for one that there is not; UsageError for a value that cannot be.
    """
    for name in options:
        if name not in DEFAULTS:
            raise TypeError(f"a launch has no option {name!r}; there are: {', '.join(DEFAULTS)}")
    for name, number in (("max_instructions", options.get("max_instructions")), ("workers", options.get("workers"))):
        if number is not None and (not isinstance(number, (int, np.integer)) or number < 1):
            raise UsageError(f"{name} is a whole number from 1 on, got {number!r}")
    return DEFAULTS | options


def takes_launch_options(method: F) -> F:
    """Show the options one by one in the signature of a method that takes them as `**options`."""
    own = inspect.signature(method)
    parameters = [each for each in own.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    for name, type_ in LaunchOptions.__annotations__.items():
        annotation = getattr(type_, "__forward_arg__", type_)
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=DEFAULTS[name], annotation=annotation))  # type: ignore[literal-required]
    method.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return method
