"""Cycles: the machine code of a kernel with its schedule, on a model of an SM and of the memory behind it."""
