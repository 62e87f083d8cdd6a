"""The table of the README: simulation and GPU side by side, a line for each kernel.

    fasim compare recordings --quick --json | python recordings/table.py

simulated + what ptxas changed + noise = GPU, for the hardware's counters of shared loads and stores.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
HEAD = """\
| launches with counters | outputs equal | lines equal | ptxas | ncu | wavefronts: simulated | ptxas | noise | GPU | conflicts: simulated | ptxas | noise | GPU |
|---|---|---|---|---|---|---|---|---|---|---|---|---|"""  # noqa: E501


def group(launch: dict[str, Any]) -> str:
    """Which line of the table a launch belongs to."""
    options = launch["options"]
    if launch["kernel"] == "fa_v21":
        return f"v2.1, D={options['head_dim']}, {options['batch'] * options['heads']} heads".replace(" 1 heads", " one head")
    if options:
        return f"`{launch['kernel']}`"
    return "other programs" if any(FOLDER.rglob(f"programs/{launch['name']}.zip")) else "the cases"


def count(found: Counter[str], launch: dict[str, Any]) -> None:
    """Add a launch to its line."""
    found["launches"] += 1
    found["outputs"] += len(launch["outputs"])
    found["equal outputs"] += sum(output["equal"] for output in launch["outputs"])
    found["contracted"] += sum(output["contracted"] for output in launch["outputs"])
    for row in launch["accesses"]:
        if row["simulated"]["wavefronts"] or row["measured"]["wavefronts"]:
            found["lines"] += 1
            found[row["verdict"] if row["verdict"] in ("equal", "fills", "MISMATCH") else "ptxas"] += 1
    for total in launch["totals"]:
        if "_op_ld" in total["name"] or "_op_st" in total["name"]:
            what = "conflicts" if "conflicts" in total["name"] else "wavefronts"
            for name in ("simulated", "measured", "explained", "rest"):
                found[f"{what} {name}"] += total[name]


def line(name: str, found: Counter[str]) -> str:
    """One line of the table."""
    cells = [
        f"{name}: {found['launches']}",
        f"{found['equal outputs']} of {found['outputs']}" + (f", {found['contracted']} contracted" if found["contracted"] else ""),
        f"{found['equal']} of {found['lines']}" if found["lines"] else "none",
        found["ptxas"] or "",
        found["fills"] or "",
    ]
    for what in ("wavefronts", "conflicts"):
        cells.append(f"{found[f'{what} simulated']:,}")
        cells += [f"{found[f'{what} {name}']:+,}" if found[f"{what} {name}"] else "" for name in ("explained", "rest")]
        cells.append(f"{found[f'{what} measured']:,}")
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """The comparison as JSON on standard input, the table on standard output."""
    groups: dict[str, Counter[str]] = {}
    for launch in json.load(sys.stdin)["launches"]:
        if launch["totals"]:
            count(groups.setdefault(group(launch), Counter()), launch)
    print(HEAD)
    for name in sorted(groups, key=lambda name: (not name.startswith("v2.1"), name != "the cases", name)):
        print(line(name, groups[name]))


if __name__ == "__main__":
    main()
