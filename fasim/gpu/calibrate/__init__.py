"""Microbenchmarks of a GPU, and the data file of the timing model that they make.

`loops` declares statements of inline PTX, `runs` how they run and which key each slope is, `code` compiles them and looks at the machine
code, `measure` runs them, `values` turns raw results into keys, `datafile` writes them.
"""
