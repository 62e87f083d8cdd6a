"""A real GPU beside the simulated one: the identical kernel through pycuda, measured by events and ncu, and recorded."""
