"""The table of measurements in loops: which loops run with how many chains and warps, and what values their slopes are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

#: cycles a statement of one warp, by run; of one repetition
Slopes = Mapping[str, float]
#: warps of the runs that fill the four sub-partitions of an SM, and how many each then has
FULL = 16
_EACH = FULL // 4


@dataclass(frozen=True)
class Run:
    """A loop on one SM.

    chains: how many statements do not depend on one another. parameter: given to the kernel; in shared memory the ways of the conflicts.
    """

    loop: str
    chains: int = 1
    warps: int = 1
    parameter: int = 1


@dataclass(frozen=True)
class Value:
    """How slopes become a value. key: as in the data file, or a name of its own that only reports show. unit: for the report."""

    key: str
    of: Callable[[Slopes], float]
    unit: str = "cycles"


def _full(loop: str, chains: int) -> Run:
    return Run(loop, chains, FULL)


RUNS: dict[str, Run] = {
    "fadd": _full("fadd", 16),
    "fmul": _full("fmul", 16),
    "ffma": _full("ffma", 16),
    "imad": _full("imad", 16),
    "imad_wide": _full("imad_wide", 8),
    "lop3": _full("lop3", 16),
    "prmt": _full("prmt", 16),
    "hadd2": _full("hadd2", 16),
    "dadd": _full("dadd", 8),
    "ex2": _full("ex2", 8),
    "ldc": _full("ldc", 4),
    "match": _full("match", 4),
    "shfl": _full("shfl", 8),
    "hmma_16816": _full("hmma_16816", 8),
    "hmma_1688": _full("hmma_1688", 8),
    "dmma": _full("dmma", 8),
    "fadd.chain": Run("fadd"),
    "ffma.chain": Run("ffma"),
    "imad.chain": Run("imad"),
    "prmt.chain": Run("prmt"),
    "dadd.chain": Run("dadd"),
    "hmma_16816.chain": Run("hmma_16816"),
    "ex2.chain": Run("ex2"),
    "shfl.chain": Run("shfl"),
    "shfl_register.chain": Run("shfl_register"),
    "match.chain": Run("match"),
    "redux.chain": Run("redux"),
    "ldc.chain": Run("ldc"),
    "atoms.chain": Run("atoms"),
    "atoms_cas.chain": Run("atoms_cas"),
    **{f"{loop}.chain": Run(loop) for loop in ("lds", "lds64", "lds128", "ldsm1", "ldsm2", "ldsm4")},
    **{f"{loop}.chain_4way": Run(loop, parameter=4) for loop in ("lds", "ldsm4")},
    **{loop: _full(loop, 16) for loop in ("lds", "lds64", "lds128", "ldsm1", "ldsm2", "ldsm4")},
    **{loop: _full(loop, 1) for loop in ("sts", "sts64", "sts128")},
    **{f"{loop}.part": _full(f"{loop}_part", 16) for loop in ("lds", "lds128", "ldsm4")},
    **{f"{loop}.part": _full(f"{loop}_part", 1) for loop in ("sts", "sts128")},
    "bar.1": Run("bar"),
    "bar.4": Run("bar", warps=4),
    "bar.16": Run("bar", warps=16),
    "branch": Run("branch", 4),
    "diverge.none": Run("diverge", 4, parameter=0),
    "diverge.half": Run("diverge", 4, parameter=16),
    "ldg.chain": Run("ldg"),
    "ldgsts.chain": Run("ldgsts"),
}


def _interval(run: str) -> Callable[[Slopes], float]:
    return lambda s: s[run] / _EACH


def _itself(run: str) -> Callable[[Slopes], float]:
    return lambda s: s[run]


#: of a mover's stall count the run's raw result says how much it is: see `measure`
REDUX_MOVER = "redux.chain/helpers"

VALUES: tuple[Value, ...] = (
    Value("interval.fma", _interval("fmul")),
    Value("interval.fma_heavy", _interval("imad")),
    Value("interval.fp16", _interval("hadd2")),
    Value("interval.imad_wide", _interval("imad_wide")),
    Value("interval.alu", _interval("lop3")),
    Value("interval.fp64", _interval("dadd")),
    Value("interval.xu", _interval("ex2")),
    Value("interval.adu", _interval("ldc")),
    Value("interval.hmma_16816", _interval("hmma_16816")),
    Value("interval.hmma_1688", _interval("hmma_1688")),
    Value("interval.dmma", _interval("dmma")),
    Value("latency.xu", _itself("ex2.chain")),
    Value("latency.shfl", _itself("shfl.chain")),
    Value("latency.shfl_register", _itself("shfl_register.chain")),
    Value("latency.lds", _itself("lds.chain")),
    Value("latency.wavefront", lambda s: (s["lds.chain_4way"] - s["lds.chain"]) / 3),
    Value("latency.atoms", _itself("atoms.chain")),
    Value("latency.atoms_cas", _itself("atoms_cas.chain")),
    Value("latency.ldc", _itself("ldc.chain")),
    # a move from the uniform register is in the chain; the compiler's stall count says how long it takes
    Value("latency.redux", lambda s: s["redux.chain"] - s[REDUX_MOVER]),
    Value("latency.match", _itself("match.chain")),
    Value("mio.wavefronts_a_cycle", lambda s: FULL / s["lds"], "wavefronts"),
    Value("mio.subpartition_wavefront_cycles", _interval("lds.part")),
    Value("mio.store_register_cycles", lambda s: (s["sts.part"] - s["lds.part"]) / _EACH),
    Value("barrier.release", _itself("bar.1")),
    # back to back a warp costs a cycle when it arrives and one when it is let go
    Value("barrier.a_warp", lambda s: (s["bar.16"] - s["bar.4"]) / 12 / 2),
    Value("branch.taken", _itself("branch")),
    Value("branch.divergence", lambda s: s["diverge.half"] - s["diverge.none"]),
    Value("memory.l1_latency", _itself("ldg.chain")),
    # no keys of the data file: instructions of fixed latency as the compiler spaces them, and further widths
    Value("FADD interval", _interval("fadd")),
    Value("FFMA interval", _interval("ffma")),
    Value("PRMT interval", _interval("prmt")),
    Value("SHFL interval", _interval("shfl")),
    Value("MATCH interval", _interval("match")),
    Value("FADD distance", _itself("fadd.chain")),
    Value("FFMA distance", _itself("ffma.chain")),
    Value("IMAD distance", _itself("imad.chain")),
    Value("PRMT distance", _itself("prmt.chain")),
    Value("DADD distance", _itself("dadd.chain")),
    Value("HMMA.16816 distance", _itself("hmma_16816.chain")),
    Value("LDS.64 latency", _itself("lds64.chain")),
    Value("LDS.128 latency", _itself("lds128.chain")),
    Value("LDSM.x1 latency", _itself("ldsm1.chain")),
    Value("LDSM.x2 latency", _itself("ldsm2.chain")),
    Value("LDSM.x4 latency", _itself("ldsm4.chain")),
    Value("LDSM.x4 further wavefront", lambda s: (s["ldsm4.chain_4way"] - s["ldsm4.chain"]) / 12),
    Value("LDS interval", _interval("lds")),
    Value("LDS.64 interval", _interval("lds64")),
    Value("LDS.128 interval", _interval("lds128")),
    Value("LDSM.x1 interval", _interval("ldsm1")),
    Value("LDSM.x2 interval", _interval("ldsm2")),
    Value("LDSM.x4 interval", _interval("ldsm4")),
    Value("STS interval", _interval("sts")),
    Value("STS.64 interval", _interval("sts64")),
    Value("STS.128 interval", _interval("sts128")),
    Value("LDS.128 interval, one sub-partition", _interval("lds128.part")),
    Value("LDSM.x4 interval, one sub-partition", _interval("ldsm4.part")),
    Value("STS interval, one sub-partition", _interval("sts.part")),
    Value("STS.128 interval, one sub-partition", _interval("sts128.part")),
    Value("LDGSTS to wait", _itself("ldgsts.chain")),
    Value("BAR.SYNC, 16 warps", _itself("bar.16")),
)
