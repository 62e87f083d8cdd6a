"""Machine code: what ptxas made of the PTX."""
