"""Shared memory: banks and wavefronts, layouts, asynchronous copies, and the shadow state from which hazards are found."""
