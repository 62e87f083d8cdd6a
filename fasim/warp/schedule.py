"""How long a split, a warp, a CTA and a worker go on before something else gets its turn, in warp instructions.

Each length is a multiple of those above it, so that every longer turn ends at the same point of the shorter ones. A loop that never
ends then comes round to the same state at the end of a turn, and soon: the first length has all small numbers as divisors, so that turns
fit a short loop's period.
"""

from __future__ import annotations

#: a split, while others of its warp wait
FAIR_INSTRUCTIONS = 2520
#: a warp, while others of its CTA wait; also the least that the machine is called for
QUANTUM_INSTRUCTIONS = 2 * FAIR_INSTRUCTIONS
#: a CTA, while others wait; also what a worker begins with
TURN_INSTRUCTIONS = 64 * QUANTUM_INSTRUCTIONS
#: the most that the compiled machine is called for
LONGEST_SLICE_INSTRUCTIONS = 64 * TURN_INSTRUCTIONS
