"""What these pages take from the program: parts of the reference, docstrings, and commands that are run again."""
