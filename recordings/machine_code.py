"""Run the recorded machine code and compare with the GPU: output bits, and executions and shared wavefronts by instruction.

    python recordings/machine_code.py [--all | --large] [FOLDER ...]

Launches that take long are left out, but for --all, and the only ones with --large. Prints how many agree, and what does not;
`fasim compare --isa sass` shows one of them in full.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from fasim.cli.compare import compare_recording, is_large
from fasim.cli.launching import Call
from fasim.cli.run_options import RunOptions
from fasim.errors import FasimError
from fasim.gpu.recording_file import find_recordings, load
from fasim.report.match import EQUAL, MISMATCH
from fasim.report.side_by_side import ComparedLaunch

CALL = Call([], RunOptions(isa="sass"), [], 0.0)


def differences(launch: ComparedLaunch) -> Iterator[tuple[str, str, str]]:
    """What differs: the kind ("outputs", "executions", "wavefronts"), the verdict, and what it is."""
    for output in launch.outputs:
        if not output.equal:
            yield "outputs", MISMATCH, output.name
    for row in (*launch.accesses, *launch.instructions):
        if row.verdict != EQUAL:
            kind = "wavefronts" if row.simulated.executions == row.measured.executions else "executions"
            yield kind, row.verdict, f"{row.text}: {row.why}"


def main(folders: list[Path], sizes: set[bool]) -> None:
    """Compare the recordings of some folders; sizes: whether they are large, for which it is done."""
    compared, verdicts, equal = 0, Counter[str](), Counter[str]()
    for path in find_recordings(folders):
        recording = load(path)
        if is_large(recording) not in sizes or not recording.module.cubin:
            continue
        try:
            launch = compare_recording(recording, CALL, path)
        except FasimError as error:
            print(str(error).splitlines()[0], flush=True)
            continue
        compared += 1
        verdicts[launch.verdict] += 1
        found = list(differences(launch))
        for kind in ("outputs", "executions", "wavefronts"):
            wrong = [text for each, verdict, text in found if each == kind and verdict == MISMATCH]
            known = Counter(verdict for each, verdict, _ in found if each == kind and verdict != MISMATCH)
            equal[kind] += not wrong and not known
            if wrong:
                print(f"{path.stem}: {kind}: {'; '.join(wrong[:2])}{f' and {len(wrong) - 2} more' if len(wrong) > 2 else ''}")
            for verdict, count in known.items():
                print(f"{path.stem}: {kind}: {count} instructions {verdict}")
    print(f"{compared} launches:", ", ".join(f"{kind} equal in {count}" for kind, count in equal.items()))
    print("verdicts:", ", ".join(f"{verdict} {count}" for verdict, count in verdicts.most_common()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[Path(__file__).parent], metavar="FOLDER")
    parser.add_argument(
        "--all", action="store_const", const={False, True}, dest="sizes", default={False}, help="launches that take long, too"
    )
    parser.add_argument("--large", action="store_const", const={True}, dest="sizes", help="only these")
    given = parser.parse_args()
    main(given.folders, given.sizes)
