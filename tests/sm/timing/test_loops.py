"""Loops of machine code take as long on the model as they did on an H200: issue intervals, latencies, mixes, matrix instructions."""

from __future__ import annotations

import re

import pytest

from tests.sm.timing.loops import Loop, cycles, measured

#: within this a loop is as on the GPU
CLOSE = 0.08
#: what the model does not have, or what the data of the loop do not say; the first pattern that fits counts
KNOWN = {
    # one access pattern stands for all: all lanes at one word, which costs an atomic more and a load less
    r"issue/iss_(LDS64_bcast|LDS128_bcast|ATOMS_same)|latency/lat_ATOMS_same": "all lanes access one word",
    r"issue/iss_LDSM4_off|issue/iss_(LDGG|LDG128|LDG128G|LDGSTS|STG|STG64|STG128)$": "where the accesses go is not in the data",
    r"issue/iss_(SHFLI|S2UR|LDCR|ATOMSC|MATCH|REDUX)": "one interval for all of a unit",
    r"latency/lat_(LDCR|REDUX_IMADU|S2R_IADD3|S2UR_IADD3U)$": "one interval for all of a unit",
    r"issue/iss_FFMA_(reuse|chainlike)": "reuse over the end of the loop",
    r"issue/iss_HFMA2M_st4": "two of four warps fill a pipe in turn",
    r"mix/mix_LDSM4_STS": "the load-store unit turns from reading to writing",
    r"mix/mix_HFMA2M_HMMA": "two kinds of instruction on the tensor pipe",
    r"latency/lat_EX2_st1": "a scoreboard that is looked at too early",
    r"latency/lat_(STS128|STSM4)_readbar": "stores of four warps that begin together",
    r"hmma_mix/": "when math may follow a matrix instruction is known for some numbers of instructions only",
}


def known(name: str) -> str:
    """Why a loop need not agree."""
    return next((why for pattern, why in KNOWN.items() if re.match(pattern, name)), "")


@pytest.mark.parametrize("loop", [loop for loop in measured() if not known(loop.name)], ids=lambda loop: loop.name)
def test_as_on_the_gpu(loop: Loop):
    found = {key: (cycles(loop, key), value) for key, value in loop.cycles.items()}
    wrong = {key: pair for key, pair in found.items() if abs(pair[0] / pair[1] - 1) > CLOSE}
    assert not wrong, "cycles of the model and of the GPU"


def test_matrix_instructions_among_others_on_the_average():
    errors = [abs(cycles(loop, key) / value - 1) for loop in measured() if "hmma" in loop.name for key, value in loop.cycles.items()]
    assert len(errors) > 500
    assert sum(errors) / len(errors) < 0.08
    assert sum(error <= CLOSE for error in errors) / len(errors) > 0.6


def test_what_is_excused_is_needed():
    """A reason that no loop needs any more goes."""
    needed = set()
    for loop in measured():
        if (why := known(loop.name)) and any(abs(cycles(loop, key) / value - 1) > CLOSE for key, value in loop.cycles.items()):
            needed.add(why)
    assert needed == set(KNOWN.values())


def test_most_loops_need_no_excuse():
    assert sum(not known(loop.name) for loop in measured()) > 200
