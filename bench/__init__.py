"""Benchmarks: `python bench/table.py` prints one table with targets, `python -m pytest bench` records with pytest-benchmark."""
