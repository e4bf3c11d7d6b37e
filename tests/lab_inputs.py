"""Inputs of a lab, drawn and read as its commands do it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np

from cudalab.backends import facts
from cudalab.formats import InputStream

POISON = 0xA5  # every byte of an output before a run


def target(name, multiprocessors=132):
    """As much of a device as the choice of a variant needs."""
    return SimpleNamespace(name=name, facts=facts(name), multiprocessors=multiprocessors)


def drawn(lab, case, n, dist, seed=None):
    """The inputs that `cudalab gen` would write, in memory; each size has its seed by default."""
    seed = np.prod(n, dtype=int) + 1 if seed is None else seed
    with os.fdopen(os.memfd_create("inputs"), "w+b") as file:
        for piece in lab.generate(case, n, dist, seed):
            file.write(piece)
        file.flush()
        file.seek(0)
        return lab.read(InputStream(file.fileno()), case).load().copy()


def drawn_through_a_pipe(lab, case, n, dist):
    """The same inputs, which are in memory once and never in a file: fast for gigabytes."""
    reading, writing = os.pipe()

    def write():
        with os.fdopen(writing, "wb") as stream:
            stream.writelines(lab.generate(case, n, dist, seed=1))

    with ThreadPoolExecutor(1) as writer, os.fdopen(reading, "rb") as stream:
        written = writer.submit(write)
        inputs = lab.read(InputStream(stream.fileno()), case).load()
        written.result()
    return inputs
