"""Inputs of a lab, drawn and read as its commands do it."""

from __future__ import annotations

import tempfile

import numpy as np

from cudalab.formats import InputStream
from cudalab.labs.base import Inputs
from cudalab.verify import in_memory

POISON = 0xA5  # every byte of an output before a run


def drawn(lab, case, n, dist, seed=None):
    """The inputs that `cudalab gen` would write, in memory; each size has its seed by default."""
    seed = np.prod(n, dtype=int) + 1 if seed is None else seed
    with tempfile.TemporaryFile() as file:
        for piece in lab.generate(case, n, dist, seed):
            file.write(piece)
        file.flush()
        file.seek(0)
        announced = lab.read(InputStream(file.fileno()), case)
        arrays = {name: np.array(in_memory(data)) for name, data in announced.arrays.items()}
    return Inputs(arrays, announced.params)
