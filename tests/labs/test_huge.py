"""Arrays of more than 2^31 bytes: where 32-bit byte offsets and signed indices end.

Every variant on a GPU; on the CPU device the default alone, the others would take minutes. Cases
share the bytes that they read: it takes seconds to draw them, and to get memory for them.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from lab_inputs import POISON, drawn_through_a_pipe

from cudalab import labs, runner
from cudalab.backends import emulated
from cudalab.backends.cpu.device import CpuBuffer
from cudalab.formats import InputStream
from cudalab.labs import registry
from cudalab.labs.compare import compare_exact
from cudalab.labs.inputs import HostInputs
from cudalab.system.machine import available_memory

WORDS = 2**29 + 3  # of 4 bytes
NEEDED_BYTES = 12 << 30  # the input, copies on the device, the reference's

# One at a time: two of them may be more than the machine has.
pytestmark = [
    pytest.mark.xdist_group("huge"),
    pytest.mark.skipif(
        available_memory() < NEEDED_BYTES, reason="needs 12 GiB of free memory on the host"
    ),
]
DRAWN = {  # by labs, for themselves and for others
    "floats": ("transpose", {}, (23_171, 23_173), "uniform"),
    "classes": ("histogram", {"dtype": "uint32"}, WORDS, "uniform"),
    "top bytes": ("radixsort", {}, WORDS, "top-byte"),
}
CASES = [
    ("reduce", {}, WORDS, "floats"),
    ("reduce", {"along": "rows", "op": "max"}, (3, WORDS // 3), "floats"),
    ("reduce", {"along": "cols", "op": "max"}, (WORDS // 3, 3), "floats"),
    ("scan", {"dtype": "int32"}, WORDS, "floats"),
    ("histogram", {}, 2**31 - 1, "floats"),
    ("transpose", {}, (WORDS // 5, 5), "floats"),
    ("transpose", {}, (23_171, 23_173), "floats"),
    ("matmul", {"shape": True}, (23_171, 23_173, 1), "floats"),
    pytest.param("radixsort", {}, WORDS, "floats", marks=pytest.mark.cuda),
    ("histogram", {"dtype": "uint32"}, WORDS, "classes"),
    ("radixsort", {}, WORDS, "top bytes"),
]


@pytest.fixture(scope="module")
def drawn():
    """A function that returns the bytes of what is DRAWN; it keeps the last of them only."""
    kept = {}

    def data(kind):
        if kind not in kept:
            kept.clear()
            name, given, size, dist = DRAWN[kind]
            lab = labs.get(name)
            inputs = drawn_through_a_pipe(lab, lab.complete(given), size, dist)
            (array,) = inputs.arrays.values()
            kept[kind] = array.reshape(-1).view(np.uint8)
        return kept[kind]

    return data


@pytest.mark.parametrize(
    ("name", "given", "size", "kind"), CASES, ids=lambda value: str(value).replace(" ", "")
)
def test_more_than_two_gigabytes(device, monkeypatch, drawn, name, given, size, kind):
    lab = labs.get(name)
    case = lab.complete(given)
    inputs = inputs_of(lab, case, size, drawn(kind))
    if emulated(device.name):  # in the host's memory: nothing is copied
        monkeypatch.setattr(device, "to_device", CpuBuffer)
    for variant in chosen(lab, case, inputs, device):
        step = runner.prepare(lab, variant, device, inputs, case, watch=runner.Stopwatch())
        poison(device, step.out)
        step()
        answer = step.out.array if emulated(device.name) else device.to_host(step.out)
        if kind == "top bytes":
            found = compare_exact(answer, sorted_by_top_byte(inputs.arrays["keys"]))
        else:
            found = lab.compare_at(variant.precision, answer, inputs, case)
        assert found is None, f"{variant.name}: {found}"
        del step, answer


def inputs_of(lab, case, size, data):
    """The inputs that a stream of this size announces; each array is the beginning of `data`."""
    reading, writing = os.pipe()
    header = next(iter(lab.generate(case, size, lab.distributions[0], seed=1)))
    os.write(writing, header)
    os.close(writing)
    with os.fdopen(reading, "rb"):
        announced = lab.read(InputStream(reading), case)
    arrays = {
        name: data[: payload.nbytes].view(payload.dtype).reshape(payload.shape)
        for name, payload in announced.arrays.items()
    }
    return HostInputs(arrays, announced.params)


def sorted_by_top_byte(keys):
    """The keys in their order if all other bits are 0, without NumPy's sort of many seconds."""
    counts = sum(np.bincount(piece >> 24, minlength=256) for piece in np.array_split(keys, 256))
    return np.repeat(np.arange(256, dtype=np.uint32) << 24, counts)


def poison(device, buffer):
    if emulated(device.name):
        buffer.array.reshape(-1).view(np.uint8).fill(POISON)
    else:
        device.copy(np.full(buffer.nbytes, POISON, np.uint8), buffer)


def chosen(lab, case, inputs, device):
    if device.name == "cpu":
        name = lab.choose(inputs, case, device)
        return [registry.find(lab, name) if name else registry.default(lab, case, "cpu")]
    return [
        variant
        for variant in registry.variants(lab)
        if variant.computes(case) and not variant.missing(device.features)
    ]
