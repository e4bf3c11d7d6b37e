"""Arrays of more than 2^31 bytes: where 32-bit byte offsets and signed indices end.

Every variant on a GPU; on the CPU device the default alone, the others would take minutes. Cases
share the bytes that they read and the memory that they write: it takes seconds to draw the bytes,
and to get the memory.
"""

from __future__ import annotations

import ctypes
import os

import numpy as np
import pytest
from lab_inputs import POISON, drawn_through_a_pipe

from cudalab import labs, runner
from cudalab.backends import facts
from cudalab.backends.cpu.device import CpuBuffer
from cudalab.formats import InputStream
from cudalab.labs import registry
from cudalab.labs.compare import compare_exact
from cudalab.labs.inputs import HostInputs
from cudalab.system.machine import available_memory

WORDS = 2**29 + 3  # of 4 bytes
NEEDED_BYTES = 12 << 30  # the input, copies on the device, the reference's

pytestmark = pytest.mark.skipif(
    available_memory() < NEEDED_BYTES, reason="needs 12 GiB of free memory on the host"
)
KINDS = ("floats", "classes", "top bytes")
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


M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8  # of malloc.h


@pytest.fixture(scope="module", autouse=True)
def freed_memory_is_kept():
    """Arrays take the memory of earlier ones: new memory has to be cleared by the system first."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt"):  # not the GNU C library
        yield
        return
    for option, value in ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, -1), (M_ARENA_MAX, 1)):
        libc.mallopt(option, value)
    yield
    for option, value in ((M_MMAP_MAX, 65_536), (M_TRIM_THRESHOLD, 128 << 10), (M_ARENA_MAX, 0)):
        libc.mallopt(option, value)
    libc.malloc_trim(0)


@pytest.fixture(scope="module")
def drawn():
    """A function that returns the bytes of a kind; it makes the later KINDS of floats, in place."""
    kept = {}

    def data(kind):
        if not kept or KINDS.index(kind) < KINDS.index(kept["kind"]):
            kept.clear()
            lab = labs.get("transpose")
            inputs = drawn_through_a_pipe(lab, lab.complete({}), (23_171, 23_173), "uniform")
            kept["words"] = inputs.arrays["matrix"].reshape(-1).view(np.uint32)
        words = kept["words"]
        if kind == "classes":
            words &= np.uint32(255)
        elif kind == "top bytes" and kept.get("kind") != kind:
            words <<= np.uint32(24)
        kept["kind"] = kind
        return words.view(np.uint8)

    return data


@pytest.mark.parametrize(
    ("name", "given", "size", "kind"), CASES, ids=lambda value: str(value).replace(" ", "")
)
def test_more_than_two_gigabytes(device, monkeypatch, drawn, name, given, size, kind):
    lab = labs.get(name)
    case = lab.complete(given)
    inputs = inputs_of(lab, case, size, drawn(kind))
    if facts(device.name).on_host:  # in the host's memory: nothing is copied
        monkeypatch.setattr(device, "to_device", CpuBuffer)
    for variant in chosen(lab, case, inputs, device):
        step = runner.prepare(lab, variant, device, inputs, case, watch=runner.Stopwatch())
        poison(device, step.out)
        step()
        answer = step.out.array if facts(device.name).on_host else device.to_host(step.out)
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
    if facts(device.name).on_host:
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
