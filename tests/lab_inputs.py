"""Inputs of a lab, drawn and read as its commands do it."""

from __future__ import annotations

import tempfile

import numpy as np

from cudalab.formats import InputStream

POISON = 0xA5  # every byte of an output before a run


def drawn(lab, case, n, dist, seed=None):
    """The inputs that `cudalab gen` would write, in memory; each size has its seed by default."""
    seed = np.prod(n, dtype=int) + 1 if seed is None else seed
    with tempfile.TemporaryFile() as file:
        for piece in lab.generate(case, n, dist, seed):
            file.write(piece)
        file.flush()
        file.seek(0)
        return lab.read(InputStream(file.fileno()), case).load().copy()
