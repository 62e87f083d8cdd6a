"""The times of v2.1 in the README, from the recordings of a card.

python recordings/times.py [recordings/h200]
"""

from __future__ import annotations

import sys
from pathlib import Path

from fasim.gpu.recording_file import load
from fasim.kernels.attention import LAYOUTS

LENGTHS = (1024, 2048, 4096, 8192)


def main() -> None:
    """Print a line for each tile height and layout, B=4, H=8, D=64, warm L2."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "recordings/h200") / "fa_v21"
    found = {}
    for path in folder.glob("*batch4-heads8-head_dim64*.zip"):
        recording = load(path, counters=False)
        options = recording.options
        found[options["bc"], options["layout"], options["causal"], options["n"]] = recording.timings["warm"]
    print("| time, TFLOPS | " + " | ".join(f"N={n}" for n in LENGTHS) + " |")
    print("|---" * (1 + len(LENGTHS)) + "|")
    for bc in (32, 64):
        for layout in LAYOUTS:
            for causal in (False, True):
                times = [found[bc, layout, causal, n] for n in LENGTHS]
                cells = [f"{timing.median_us:,.1f} us, {timing.tflops:.0f}" for timing in times]
                print(f"| Bc={bc} {layout}{', causal' if causal else ''} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
