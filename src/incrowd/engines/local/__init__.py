"""The engine of this process: Arrow batches and NumPy, what it is made of."""
