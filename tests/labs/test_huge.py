"""Arrays of more than 2^31 bytes: where 32-bit byte offsets and signed indices end.

Every variant on a GPU; on the CPU device the default alone, the others would take minutes.
"""

from __future__ import annotations

import numpy as np
import pytest
from lab_inputs import POISON, drawn_through_a_pipe

from cudalab import labs, runner
from cudalab.backends import emulated
from cudalab.backends.cpu.device import CpuBuffer
from cudalab.labs import registry
from cudalab.system.machine import available_memory

WORDS = 2**29 + 3  # of 4 bytes
NEEDED_BYTES = 14 << 30  # input, copies on the device, the reference's

# One at a time: two of them may be more than the machine has.
pytestmark = [
    pytest.mark.xdist_group("huge"),
    pytest.mark.skipif(
        available_memory() < NEEDED_BYTES, reason="needs 14 GiB of free memory on the host"
    ),
]
CASES = [
    ("reduce", {}, WORDS, "uniform"),
    ("reduce", {"along": "rows", "op": "max"}, (3, WORDS // 3), "uniform"),
    ("reduce", {"along": "cols", "op": "max"}, (WORDS // 3, 3), "uniform"),
    ("scan", {"dtype": "int32"}, WORDS, "uniform"),
    ("histogram", {}, 2**31 - 1, "uniform"),
    ("histogram", {"dtype": "uint32"}, WORDS, "uniform"),
    ("radixsort", {}, WORDS, "top-byte"),  # NumPy sorts few values fast
    pytest.param("radixsort", {}, WORDS, "uniform", marks=pytest.mark.cuda),
    ("transpose", {}, (WORDS // 5, 5), "uniform"),
    ("transpose", {}, (23_171, 23_173), "uniform"),
    ("matmul", {"shape": True}, (23_171, 23_173, 1), "uniform"),
]


@pytest.mark.parametrize(
    ("name", "given", "size", "dist"), CASES, ids=lambda value: str(value).replace(" ", "")
)
def test_more_than_two_gigabytes(device, monkeypatch, name, given, size, dist):
    lab = labs.get(name)
    case = lab.complete(given)
    inputs = drawn_through_a_pipe(lab, case, size, dist)
    if emulated(device.name):  # in the host's memory, which takes seconds to get: nothing is copied
        monkeypatch.setattr(device, "to_device", CpuBuffer)
    for variant in chosen(lab, case, inputs, device):
        step = runner.prepare(lab, variant, device, inputs, case, watch=runner.Stopwatch())
        poison(device, step.out)
        step()
        answer = step.out.array if emulated(device.name) else device.to_host(step.out)
        found = lab.compare_at(variant.precision, answer, inputs, case)
        assert found is None, f"{variant.name}: {found}"
        del step, answer


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
