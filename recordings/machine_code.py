"""Run the recorded machine code and compare with the GPU: output bits, and executions and shared wavefronts by instruction.

    python recordings/machine_code.py [FOLDER ...]

Launches that take long are left out. Prints how many agree, and each that does not.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fasim.cli.compare import is_large
from fasim.errors import FasimError
from fasim.gpu.recording import Recording, sha256_of, variable_name
from fasim.gpu.recording_file import find_recordings, load


def differences(recording: Recording) -> Iterator[tuple[str, str]]:
    """What differs, by kind: "outputs", "executions", "wavefronts"."""
    kernel = recording.load_kernel("sass")
    args = recording.make_arguments(kernel)
    values, smem = [arg.value for arg in args], recording.dynamic_smem_bytes
    result = kernel.launch(recording.grid, recording.block, values, dynamic_smem_bytes=smem, output=lambda text: None)
    found = {arg.name: arg.value for arg in args if arg.is_array}
    found |= {variable_name(variable.name): kernel.module.data(variable) for variable in kernel.program.variables}
    for output in recording.outputs:
        if sha256_of(np.ascontiguousarray(found[output.name])) != output.sha256:
            yield "outputs", output.name
    if recording.profile is None:
        return
    lines = recording.profile.instructions
    for line, count in zip(lines, result.counts):
        if line.executions != count.executions:
            yield "executions", f"{line.text}: {count.executions} for {line.executions}"
    ours, theirs = Counter[str](), Counter[str]()
    for access in result.shared_accesses:
        ours[access.source.text] += access.source_wavefronts
    for line in lines:
        theirs[line.text] += line.wavefronts_shared
    for text in ours:
        # ncu misreads the conditions of copies, see fasim.report.ncu_conditions
        if ours[text] != theirs[text] and "LDGSTS" not in text:
            yield "wavefronts", f"{text}: {ours[text]} for {theirs[text]}"


def main(folders: list[Path]) -> None:
    """Compare the recordings of some folders."""
    agree, compared = Counter[str](), 0
    for path in find_recordings(folders):
        recording = load(path)
        if is_large(recording) or not recording.module.cubin:
            continue
        compared += 1
        try:
            found = list(differences(recording))
        except FasimError as error:
            print(f"{path.stem}: {str(error).splitlines()[0]}")
            continue
        for kind in ("outputs", "executions", "wavefronts"):
            of_kind = [text for each, text in found if each == kind]
            agree[kind] += not of_kind
            if of_kind:
                print(f"{path.stem}: {kind}: {'; '.join(of_kind[:2])}{f' and {len(of_kind) - 2} more' if len(of_kind) > 2 else ''}")
    print(f"{compared} launches:", ", ".join(f"{kind} equal in {count}" for kind, count in agree.items()))


if __name__ == "__main__":
    main([Path(word) for word in sys.argv[1:]] or [Path(__file__).parent])
