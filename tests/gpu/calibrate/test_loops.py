"""The loops: their machine code is what it says on each architecture, and they run."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest

import fasim
from fasim.gpu.calibrate import code, runs
from fasim.gpu.calibrate.code import look, timed, variants
from fasim.gpu.calibrate.loops import IN_BYTES, LOOPS, REPETITIONS, constants, entry, source
from fasim.gpu.calibrate.runs import RUNS
from fasim.toolchain import compile_cuda

ARCHS = ("sm_80", "sm_90", "sm_120")
#: chains that begin with an address, which only a GPU's own memory has
ADDRESSES = ("ldg", "ldc")


def compiled(name, arch, loop=None, chains=None):
    loop, chosen = loop or LOOPS[name], variants(name) if chains is None else [chains]
    return compile_cuda(constants() + "".join(source(loop, c, n) for c in chosen for n in loop.lengths), arch=arch, lineinfo=False).cubin


def bodies(name, cubin, chains, length):
    loop = LOOPS[name]
    return [x.text for x in timed(cubin, entry(name, chains, length)) if re.search(rf"(?<!\w)(?:{loop.sass})", x.text)]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", LOOPS)
def test_machine_code(name, arch):
    cubin = compiled(name, arch)
    for chains in variants(name):
        assert look(LOOPS[name], chains, cubin).reason == ""
        short, long = (len(bodies(name, cubin, chains, length)) for length in LOOPS[name].lengths)
        # beside the statements at most one more of the kind, of the loop itself
        assert long - short == LOOPS[name].lengths[1] - LOOPS[name].lengths[0]
        assert 0 <= short - LOOPS[name].lengths[0] <= 2


def test_every_loop_runs():
    assert {run.loop for run in RUNS.values()} == set(LOOPS)


@pytest.mark.parametrize("arch", ARCHS)
def test_a_chain_depends_and_chains_do_not(arch):
    """Each FADD of one chain reads what the one before wrote; of 16 chains none does."""
    for chains, follows in ((1, True), (16, False)):
        texts = bodies("fadd", compiled("fadd", arch), chains, 32)
        pairs = [re.findall(r"R\d+", text) for text in texts]
        assert all((before[0] == after[1]) is follows for before, after in pairwise(pairs))


def test_other_instructions_are_found_out():
    # of values that all lanes share ptxas makes some uniform instructions: UIMAD is no IMAD
    loop = replace(LOOPS["imad"], declare="unsigned v{v} = in[{v}];")
    looked = look(loop, 16, compiled("imad", "sm_90", loop, 16))
    assert re.fullmatch(r"the compiler makes \d+ instructions like IMAD of 64 statements", looked.reason)
    # a shuffle of such values is none at all
    loop = replace(LOOPS["shfl"], declare="unsigned v{v} = in[{v}];")
    assert look(loop, 8, compiled("shfl", "sm_90", loop, 8)).reason.startswith("the compiler makes 0 instructions")
    # a vector of which one word is used
    loop = replace(LOOPS["lds128"], statement=LOOPS["lds128"].statement.replace("volatile.", ""))
    assert look(loop, 1, compiled("lds128", "sm_90", loop, 1)).reason.startswith("the compiler makes 0 instructions")
    # instructions beside those that are named
    loop = replace(LOOPS["redux"], helpers="")
    assert look(loop, 1, compiled("redux", "sm_90", loop, 1)).reason == "with 64 instructions like REDUX\\.SUM\\.S32 come 64 others"


def test_helpers_stall():
    # REDUX, then a move from the uniform register, for which ptxas leaves 5 to 7 cycles
    assert 5 <= look(LOOPS["redux"], 1, compiled("redux", "sm_90")).helper_cycles <= 7
    assert look(LOOPS["fadd"], 1, compiled("fadd", "sm_90")).helper_cycles == 0


@pytest.mark.parametrize("name", [name for name in RUNS if RUNS[name].loop not in ADDRESSES])
def test_loops_run(name):
    """No access out of bounds, no hang; every warp notes both clocks of every repetition."""
    run = RUNS[name]
    loop = LOOPS[run.loop]
    module = fasim.compile(constants() + source(loop, run.chains, loop.lengths[0]), arch="sm_90")
    out, given = np.zeros(2 * REPETITIONS * run.warps, np.uint64), np.zeros(IN_BYTES // 4, np.uint32)
    given[48:56] = 1
    module.kernel(entry(run.loop, run.chains, loop.lengths[0])).launch(1, 32 * run.warps, [out, given, 1, run.parameter])
    clocks = out.reshape(REPETITIONS, run.warps, 2)
    assert (clocks[:, :, 1] > clocks[:, :, 0]).all()


def test_the_other_sources_compile():
    for arch in ARCHS:
        for name, kernels in (
            ("memory", "chase touch each_line write_l2 read_l2 read_l1 dram_read dram_write dram_copy"),
            ("launch", "empty place load_fma load_tensor"),
        ):
            text = (files("fasim.gpu.calibrate") / "sources" / f"{name}.cu").read_text()
            ptx = compile_cuda(text, arch=arch, lineinfo=False).ptx
            assert re.findall(r"\.entry fasim_(\w+)", ptx) == kernels.split()


def test_saved_code(monkeypatch, tmp_path):
    monkeypatch.setattr(code, "LOOPS", {"fadd": LOOPS["fadd"], "redux": LOOPS["redux"]})
    monkeypatch.setattr(code, "CACHE_LOOP", "fadd")
    monkeypatch.setattr(code, "CACHE_LENGTHS", (16,))
    made = code.compile_all("sm_90")
    assert sorted(made.cubins) == ["instruction_cache", "launch", "loop_fadd", "loop_redux", "memory"]
    made.save(tmp_path / "code")
    assert code.load(tmp_path / "code") == made
    with pytest.raises(fasim.errors.UsageError, match="holds no compiled measurements"):
        code.load(tmp_path)
    older = code.compile_all("sm_75")
    assert older.looked["redux/1"].reason == "sm_75 has no such instruction"
    assert "loop_redux" not in older.cubins


def test_values_ask_for_runs_that_there_are():
    class Known(dict):
        def __missing__(self, name):
            assert name.removesuffix("/helpers") in RUNS
            return 1.0

    assert all(value.of(Known()) is not None for value in runs.VALUES)
    assert len({value.key for value in runs.VALUES}) == len(runs.VALUES)
