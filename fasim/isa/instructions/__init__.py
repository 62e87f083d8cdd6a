"""The rows of the instruction table, by kind."""
