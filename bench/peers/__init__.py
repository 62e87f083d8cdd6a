"""Peers on the same processor: each script runs in a virtual environment of its own and prints JSON on its last line."""
