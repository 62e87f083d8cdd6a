"""The machine code that a GPU gets: the compiler's own bytes, ptxas' or the driver's."""

from __future__ import annotations

import hashlib

import pytest

import fasim
from fasim.errors import CompileError, ToolMissing, UsageError
from fasim.gpu import code as code_module
from fasim.gpu.code import THE_DRIVER, MachineCode, machine_code
from fasim.report.measured import Card
from fasim.toolchain import ptxas

PTX = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{ ret; }\n"


def card(arch):
    return Card("NVIDIA Something", f"{arch[:-1]}.{arch[-1]}", "580.1", 132, 1, 1, 1, 1)


@pytest.fixture(scope="module")
def module():
    return fasim.compile("__global__ void k(int* p) { p[0] = 1; }", arch="sm_90")


def no_ptxas(monkeypatch):
    def missing(name):
        raise ToolMissing(f"{name} is not there")

    monkeypatch.setattr(ptxas, "find_tool", missing)


@pytest.fixture
def has_ptxas():
    try:
        ptxas.find_tool("ptxas")
    except ToolMissing:
        pytest.skip("no ptxas")


def test_the_very_bytes_of_the_compiler(module):
    code = machine_code(module, card("90"))
    assert code.code is module.compiled.cubin
    assert code == MachineCode(module.compiled.cubin, module.compiled.compiler, "sm_90")
    assert code.cubin.startswith(b"\x7fELF")
    assert code.sha256 == hashlib.sha256(module.compiled.cubin).hexdigest()


FITS = [
    ("sm_90", "90", True),
    ("sm_90", "80", False),
    ("sm_90", "100", False),
    ("sm_80", "86", True),
    ("sm_86", "80", False),
    ("sm_89", "86", False),
    ("sm_86", "89", True),
    ("sm_90a", "90", True),
    ("sm_100a", "103", False),
    ("sm_100f", "103", True),
    ("sm_100", "103", True),
    ("sm_100", "120", False),
    ("sm_120", "121", True),
]


@pytest.mark.parametrize(("arch", "gpu", "fits"), FITS)
def test_which_gpus_it_runs_on(arch, gpu, fits):
    if fits:
        return code_module._check_arch(arch, card(gpu))
    with pytest.raises(UsageError, match=rf"is for {arch}, and NVIDIA Something is sm_{gpu}: compile for sm_{gpu} "):
        code_module._check_arch(arch, card(gpu))
    return None


def test_for_another_gpu(module):
    with pytest.raises(UsageError, match="the machine code is for sm_90, and NVIDIA Something is sm_80"):
        machine_code(module, card("80"))


def test_ptx_goes_to_ptxas(has_ptxas):
    code = machine_code(fasim.compile(PTX), card("90"))
    assert code.cubin.startswith(b"\x7fELF")
    assert code.made_by.startswith("ptxas ")
    assert code.arch == "sm_90"


def test_ptx_that_ptxas_refuses(has_ptxas):
    with pytest.raises(CompileError):
        machine_code(fasim.compile(PTX.replace("ret;", "frobnicate;")), card("90"))


def test_ptx_goes_to_the_driver_without_ptxas(monkeypatch):
    no_ptxas(monkeypatch)
    code = machine_code(fasim.compile(PTX), card("90"))
    assert (code.code, code.made_by, code.arch, code.cubin) == (PTX, THE_DRIVER, "sm_90", b"")
    assert code.sha256 == hashlib.sha256(PTX.encode()).hexdigest()
