"""The variants that labs take for some inputs are those that `list` says."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from cudalab import labs
from cudalab.backends import DEVICES, facts
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.inputs import HostInputs

SIDES = (100, 512, 777, 1024, 1280, 1500, 4096, 8192)


def products(lab):
    for kind in ("ab", "aat", "abt"):
        for m in SIDES:
            for k in SIDES:
                case = lab.complete({"product": kind, "shape": True})
                yield HostInputs({}, {"m": m, "k": k, "n": m}), case


def matrices(lab):
    for cols in (1, 2, 4, 63, 64):
        yield HostInputs({}, {"rows": 64, "cols": cols}), lab.complete({"dtype": "float32"})


def systems(lab):
    random = np.random.default_rng(1)
    for n in (50, 600, 3072):
        a = random.random((n, n), dtype=np.float32)
        rows = np.diag(np.full(n, n, np.float32))  # twice the sum of a row of a
        symmetric = a + a.T
        few = [a] if n > 600 else [a, a + 4 * rows, symmetric, symmetric + rows + rows / 4]
        for matrix, alpha in product(few, (None, 0.5)):
            arrays = {"a": matrix, "f": np.ones(n, np.float32)}
            yield HostInputs(arrays, {"n": n}), lab.complete({"alpha": alpha})
    n = 7168
    row = random.random(n, dtype=np.float32)  # all rows are alike, in the memory of one
    arrays = {"a": np.broadcast_to(row, (n, n)), "f": np.ones(n, np.float32)}
    yield HostInputs(arrays, {"n": n}), lab.complete({})
    ones = {"a": np.broadcast_to(np.float32(1), (n, n)), "f": np.ones(n, np.float32)}
    yield HostInputs(ones, {"n": n}), lab.complete({})


def arrays(lab):
    for exponent in (10, 21, 24, 29):
        for case in lab.cases():
            yield HostInputs({}, {"n": 1 << exponent}), case


# Inputs of many sizes, with the cases that decide; there are arrays only where they are looked at.
INPUTS = {"matmul": products, "transpose": matrices, "solve": systems}


@pytest.mark.parametrize("name", labs.names())
def test_what_is_taken_is_listed_and_what_is_listed_is_taken(name):
    lab = labs.get(name)
    if type(lab).choose is Lab.choose:
        assert not lab.taken
        return
    seen = set()
    for device_name in DEVICES:
        features = DEVICES[device_name].load().possible_features
        device = SimpleNamespace(
            name=device_name, facts=facts(device_name), features=features, multiprocessors=132
        )
        for inputs, case in INPUTS.get(name, arrays)(lab):
            usual = registry.default(lab, case, device_name, features).name
            seen |= {registry.choose(lab, inputs, case, device).name} - {usual}
    assert seen == set(lab.taken)
