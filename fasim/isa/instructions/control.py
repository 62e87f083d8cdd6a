"""Branches, calls, barriers, fences and what else the machine's loop does itself."""

from __future__ import annotations

from fasim.isa.machine import BAR_ARRIVE, BAR_RED_AND, BAR_RED_OR, BAR_RED_POPC, BAR_SYNC
from fasim.isa.table import op
from fasim.numerics.lanes import Lanes

CONTROL = "control-flow-instructions-"
SYNC = "parallel-synchronization-and-communication-instructions-"
BAR = SYNC + "bar"


def _machine() -> None:
    """Done by the machine."""


op(["bra", "bra.uni"], "target:label", kind="bra", doc=CONTROL + "bra")(_machine)
op(["brx.idx", "brx.idx.uni"], "index:b32, list:label", kind="brx", doc=CONTROL + "brx-idx")(_machine)
op(["call", "call.uni"], "", kind="call", doc=CONTROL + "call")(_machine)
op(["ret", "ret.uni"], "", kind="ret", doc=CONTROL + "ret")(_machine)
op("exit", "", kind="exit", doc=CONTROL + "exit")(_machine)
op(["trap", "brkpt"], "", kind="trap", doc="miscellaneous-instructions-trap")(_machine)
op("nanosleep.u32", "t:b32", kind="yield", doc="miscellaneous-instructions-nanosleep", min_arch=70)(_machine)
op("pmevent", "a:immediate", kind="nop", doc="miscellaneous-instructions-pmevent")(_machine)
op(
    ["setmaxnreg.inc.sync.aligned.u32", "setmaxnreg.dec.sync.aligned.u32"],
    "n:immediate",
    kind="nop",
    doc="miscellaneous-instructions-setmaxnreg",
    min_arch=90,
)(_machine)

_BARRIERS = [("bar", ""), ("bar.cta", ""), ("barrier", ""), ("barrier", ".aligned"), ("barrier.cta", ""), ("barrier.cta", ".aligned")]
for _name, _aligned in _BARRIERS:
    _all = _name.split(".")[0] == "bar" or bool(_aligned)
    op(f"{_name}.sync{_aligned}", "a:b32, b:b32", kind="bar", doc=BAR, operation=BAR_SYNC, aligned=_all)(_machine)
    op(f"{_name}.arrive{_aligned}", "a:b32, b:b32", kind="bar", doc=BAR, operation=BAR_ARRIVE, aligned=_all)(_machine)
    op(
        f"{_name}.red.popc{_aligned}.u32",
        "d:u32 = a:b32, b:b32, c:pred",
        kind="bar",
        doc=SYNC + "bar",
        operation=BAR_RED_POPC,
        aligned=_all,
    )(_machine)
    op(
        f"{_name}.red.and{_aligned}.pred",
        "d:pred = a:b32, b:b32, c:pred",
        kind="bar",
        doc=SYNC + "bar",
        operation=BAR_RED_AND,
        aligned=_all,
    )(_machine)
    op(f"{_name}.red.or{_aligned}.pred", "d:pred = a:b32, b:b32, c:pred", kind="bar", doc=BAR, operation=BAR_RED_OR, aligned=_all)(_machine)
op("bar.warp.sync", "mask:b32", kind="warp_sync", doc=SYNC + "bar-warp-sync", min_arch=30)(_machine)

_SCOPES = (".cta", ".cluster", ".gpu", ".sys")
_FENCES = [f"fence{sem}{scope}" for sem in ("", ".sc", ".acq_rel", ".acquire", ".release") for scope in _SCOPES]
op(["membar.cta", "membar.gl", "membar.sys", *_FENCES], "", kind="fence", doc=SYNC + "membar-fence")(_machine)
op("fence.proxy.alias", "", kind="nop", doc=SYNC + "membar-fence")(_machine)


@op(
    "createpolicy.fractional.L2::evict_last.b64", "d:b64 = f:f32", doc="data-movement-and-conversion-instructions-createpolicy", min_arch=80
)
def createpolicy(f: Lanes) -> Lanes:
    """Cache policies only steer the cache: any value will do."""
    from fasim.numerics.lanes import const

    return const(0, like=f, type_="u64")
