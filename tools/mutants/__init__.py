"""Mutants of the shipped kernels: how many of them the checker's public tests reject."""

import os

# Each worker has one core. NumPy, which reads this once, would have a thread for each core in all.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
