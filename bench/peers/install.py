"""Virtual environments for the peers, and figures from their scripts."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure


@dataclass(frozen=True)
class Peer:
    """A program that runs GPU kernels on the processor.

    packages: what pip installs. sizes: sequence length and repetitions of each measurement. expected: what others measured, by size.
    """

    name: str
    script: str
    packages: tuple[str, ...]
    sizes: tuple[tuple[int, int], ...]
    expected: dict[int, str]


PEERS = (
    Peer(
        "Triton's interpreter, fp16 tiles",
        "triton_attention.py",
        ("triton", "torch==2.13.0", "numpy"),
        ((256, 7), (1024, 3)),
        {256: "0.04 s on a quiet 2-core EPYC", 1024: "0.5 s on a quiet 2-core EPYC"},
    ),
    Peer(
        "numba's CUDA simulator, naive",
        "numba_attention.py",
        ("numba-cuda", "numpy"),
        ((256, 1),),
        {256: "about 3 s on a quiet 2-core EPYC"},
    ),
)


def environment(peer: Peer, folder: Path) -> Path:
    """The Python of the peer's virtual environment in `folder`, made if it is not there; raises RuntimeError if pip fails."""
    home = folder / Path(peer.script).stem
    python = home / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        pip = subprocess.run([python, "-m", "pip", "install", "-q", *peer.packages], capture_output=True, text=True)
        if pip.returncode:
            raise RuntimeError(f"pip install {' '.join(peer.packages)}: {(pip.stderr.strip().splitlines() or ['failed'])[-1]}")
    return python


def measure(peer: Peer, folder: Path) -> list[Figure]:
    """Figures of a peer at each of its sizes; if it does not install or run, figures without values that say why."""
    figures = []
    for n, repetitions in peer.sizes:
        name = f"{peer.name}, N={n} one head"
        try:
            script = Path(__file__).parent / peer.script
            command = [environment(peer, folder), script, str(n), str(repetitions)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
            if done.returncode:
                raise RuntimeError((done.stderr.strip().splitlines() or ["failed"])[-1])
            result = json.loads(done.stdout.splitlines()[-1])
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            figures.append(Figure(name, "s", (), f"skipped: {error}"))
            continue
        note = f"{result['version']}; {min(result['cpu_seconds']):.2f} s of processor time; elsewhere {peer.expected[n]}"
        figures.append(Figure(name, "s", tuple(result["seconds"]), note))
    return figures
