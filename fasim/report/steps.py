"""Steps of an algorithm, as reports name them; the rules are in `fasim.trace.steps`."""

from fasim.trace.steps import SourceLines, call_path, steps_by_line

__all__ = ["SourceLines", "call_path", "steps_by_line"]
