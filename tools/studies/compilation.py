"""Compiles variants on many cores at once, so that a measurement does not wait for nvcc."""

from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from cudalab import labs
from cudalab.backends import open_device
from cudalab.labs import registry
from cudalab.labs.inputs import Case

PROCESSES = 12

Wanted = tuple[str, str, "Case"]  # lab, variant, and the options that choose the case


def fill_cache(device: str, wanted: Iterable[Wanted]) -> None:
    """Compile the variants that the device can run, each in a process, into the user's cache."""
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        list(pool.map(partial(_compile, device), wanted))


def _compile(device: str, wanted: Wanted) -> None:
    name, variant_name, options = wanted
    lab = labs.get(name)
    variant = registry.find(lab, variant_name)
    with open_device(device) as opened:
        if not variant.missing(opened.features):
            lab.compiled(variant, opened, lab.complete(options))
