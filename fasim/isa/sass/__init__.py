"""Rows of machine code: what its instructions do to registers."""
