"""The machine code of all measurements: compiled, and its loops looked at, so that what is measured is what is named."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

from fasim.errors import FasimError, UsageError
from fasim.gpu.calibrate.loops import LOOPS, Loop, constants, entry, source
from fasim.gpu.calibrate.runs import RUNS
from fasim.sass.control import control
from fasim.sass.listing import SassLine, listing
from fasim.toolchain import compile_cuda

#: statements of the loops that do not fit into the instruction caches, and their chains
CACHE_LENGTHS, CACHE_CHAINS = (1024, 2048, 3072, 4096, 6144, 8192, 12288), 8
CACHE_LOOP = "fmul"
_SOURCES = ("memory", "launch")
_CACHE = "instruction_cache"
_INDEX = "index.json"
#: instructions that a longer loop may have besides its statements; against a slope over 64 of them this is nothing
_MORE = 2


@dataclass(frozen=True)
class Looked:
    """What the machine code of a loop is; reason: why it does not measure what it is named after, empty if it does.

    helper_cycles: stall counts of the instructions that come with one statement.
    """

    reason: str
    helper_cycles: float = 0.0


@dataclass(frozen=True)
class Code:
    """Cubins by name (`loop_NAME`, `memory`, `launch`, `instruction_cache`), and what was found in the loops, by loop and chains."""

    arch: str
    compiler: str
    cubins: dict[str, bytes]
    looked: dict[str, Looked]

    def save(self, folder: Path) -> None:
        """Write a folder that `load` reads on a machine without a compiler."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, cubin in self.cubins.items():
            (folder / f"{name}.cubin").write_bytes(cubin)
        index = {"arch": self.arch, "compiler": self.compiler, "looked": {name: asdict(each) for name, each in self.looked.items()}}
        (folder / _INDEX).write_text(json.dumps(index, indent=1) + "\n")


def load(folder: Path) -> Code:
    """Read what `Code.save` wrote.

    Raises: UsageError if it is not there.
    """
    path = folder / _INDEX
    if not path.is_file():
        raise UsageError(f"{folder} holds no compiled measurements: make them with fasim gpu calibrate --pack {folder} --arch sm_90")
    index = json.loads(path.read_text())
    cubins = {path.stem: path.read_bytes() for path in sorted(folder.glob("*.cubin"))}
    return Code(index["arch"], index["compiler"], cubins, {name: Looked(**each) for name, each in index["looked"].items()})


def variants(loop: str) -> list[int]:
    """The numbers of chains that the runs of a loop have."""
    return sorted({run.chains for run in RUNS.values() if run.loop == loop})


def compile_all(arch: str) -> Code:
    """Compile all measurements for a target.

    Raises: CompileError, ToolMissing.
    """
    number = int(re.sub(r"\D", "", arch))
    cubins: dict[str, bytes] = {}
    looked: dict[str, Looked] = {}
    compiler = ""
    for name, loop in LOOPS.items():
        if number < loop.min_arch:
            looked |= {f"{name}/{chains}": Looked(f"{arch} has no such instruction") for chains in variants(name)}
            continue
        text = constants() + "".join(source(loop, chains, length) for chains in variants(name) for length in loop.lengths)
        compiled = compile_cuda(text, arch=arch, lineinfo=False)
        cubins[f"loop_{name}"], compiler = compiled.cubin, compiled.compiler
        looked |= {f"{name}/{chains}": look(loop, chains, compiled.cubin) for chains in variants(name)}
    for name in _SOURCES:
        cubins[name] = compile_cuda((files(__package__) / "sources" / f"{name}.cu").read_text(), arch=arch, lineinfo=False).cubin
    loop = LOOPS[CACHE_LOOP]
    text = constants() + "".join(source(loop, CACHE_CHAINS, length) for length in CACHE_LENGTHS)
    cubins[_CACHE] = compile_cuda(text, arch=arch, lineinfo=False).cubin
    return Code(arch, compiler, cubins, looked)


def timed(cubin: bytes, kernel: str) -> list[SassLine]:
    """The instructions between the first and the last reading of the clock."""
    lines = listing(cubin, kernel)
    clocks = [i for i, line in enumerate(lines) if "CLOCK" in line.text]
    if len(clocks) < 2:
        raise FasimError(f"{kernel} does not read the clock twice")
    return list(lines[clocks[0] : clocks[-1] + 1])


def look(loop: Loop, chains: int, cubin: bytes) -> Looked:
    """Compare the two loops: what the longer one has more must be as many of the instruction as it has more statements."""
    counts, others, stalls = [], [], []
    for length in loop.lengths:
        lines = timed(cubin, entry(loop.name, chains, length))
        # IMAD is no UIMAD
        rest = [line for line in lines if not re.search(rf"(?<!\w)(?:{loop.sass})", line.text)]
        helpers = [line for line in rest if loop.helpers and re.search(loop.helpers, line.text)]
        counts.append(len(lines) - len(rest))
        others.append(len(rest) - len(helpers))
        stalls.append(sum(control(line.encoding).stall_cycles for line in helpers))
    more = loop.lengths[1] - loop.lengths[0]
    found, beside = counts[1] - counts[0], others[1] - others[0]
    if found != more:
        return Looked(f"the compiler makes {found} instructions like {loop.sass.strip()} of {more} statements")
    if abs(beside) > _MORE:
        return Looked(f"with {more} instructions like {loop.sass.strip()} come {beside} others")
    return Looked("", (stalls[1] - stalls[0]) / more)
