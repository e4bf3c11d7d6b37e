"""Every variant of every lab, for every case it computes, against the lab's reference.

Sizes are those at which tiles, warps and blocks end; each stands with the data that break most.
The inputs must come back unmodified, the output is poisoned before each run, and two runs must
give the same bytes unless the variant says that they do not. (An emulated device is slow: there,
the cases of a variant are compiled together, each distribution stands with a few blocks, not with
many, a second run is for two of these alone, the largest size is for the first case that a variant
computes, and the second largest for the first one of each element type.)
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from lab_inputs import POISON, drawn
from together import compile_together

from cudalab import labs
from cudalab.backends import facts
from cudalab.errors import InputError, KernelCompileError
from cudalab.formats import as_bytes
from cudalab.labs import registry
from cudalab.labs.base import Job
from cudalab.labs.solve.spectrum import RefusalError
from cudalab.language import source

MATRIX_LABS = {"matmul", "softmax", "solve", "transpose"}  # their size is an order, not a length
EDGES = (1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257)
ORDERS = (*EDGES[:-3], 100, 129)
LENGTHS = (*EDGES, 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 65_537)
SHORTER = 16_385  # in the place of the last one
LARGE = {"cpu": (2**20 + 1,), "cuda": (2**20 - 1, 2**20 + 1, 2**24 + 3)}
LARGE_ORDERS = {"cpu": (513,), "cuda": (513, 1023, 1025)}
# Orders on an emulated device: thousands of iterations; a whole matrix is searched for each pivot.
SMALLER_ORDERS = {
    **dict.fromkeys(
        ["richardson", "richardson_coalesced", "jacobi", "chebyshev"], ("tridiagonal", 33)
    ),
    "complete_pivot": ("dominant", 257),
}
# As it is, it has a block for each of many buckets, however short the array.
SMALLER = {"most_significant_first_stable": {"BUCKET_KEYS_PER_THREAD": 1}}


CASES = [
    (lab, variant, [case for case in lab.cases() if variant.computes(case)])
    for lab in map(labs.get, labs.names())
    for variant in registry.variants(lab)
]
COMPUTED = {variant.path: cases for _, variant, cases in CASES}


def each_case():
    """Lab, variant and each case that the variant computes."""
    for lab, variant, cases in CASES:
        group = pytest.mark.xdist_group(f"{lab.name}-{variant.name}")
        for case in cases:
            id_ = "-".join([lab.name, variant.name, *(str(case[axis]) for axis in lab.axes)])
            yield pytest.param(lab, variant, case, id=id_, marks=group)


@pytest.fixture(scope="session")
def kernels_of(device):
    """A function that returns the kernels of a variant for a case."""
    together = {}  # on an emulated device, all cases of a variant

    def kernels(lab, variant, case):
        if not facts(device.name).on_host:
            loaded = source.load(variant.path, variant.label)
            defines = lab.kernel_defines(case) | variant.defines
            return device.compile(loaded, defines, arch=variant.architecture)
        computed = COMPUTED[variant.path]
        if variant.path not in together:
            together[variant.path] = compile_together(device, lab, variant, computed)
        return together[variant.path][computed.index(case)]

    return kernels


@pytest.mark.parametrize(("lab", "variant", "case"), [*each_case()])
def test_a_variant_computes_its_lab(device, kernels_of, lab, variant, case):
    lacks = variant.missing(device.features)
    if lacks:
        pytest.skip(f"requires {', '.join(lacks)}, which this {device.name} device lacks")
    sizes, large = LENGTHS, LARGE
    if lab.name in MATRIX_LABS or case.get("along", "all") != "all":
        sizes, large = ORDERS, LARGE_ORDERS
    slow = facts(device.name).on_host
    if slow and variant.name in SMALLER:
        variant = replace(variant, defines=variant.defines | SMALLER[variant.name])
    kernels = kernels_of(lab, variant, case)
    dists = lab.distributions
    default = case["dtype"] == lab.complete({})["dtype"]
    edges = [(n, dists[number % len(dists)]) for number, n in enumerate(sizes)]
    several = sizes[-1 if default and not slow else -2]
    whole = [(several, dist) for dist in dists]
    largest = [(n, dists[0]) for n in large[device.name] if default]
    repeated = whole[:1]
    if slow:
        computed = COMPUTED[variant.path]
        of_type = [each for each in computed if each["dtype"] == case["dtype"]]
        largest = largest if case == computed[0] else []
        if sizes is LENGTHS:
            repeated = whole[:2]
            edges[-1] = (edges[-1][0] if case == of_type[0] else SHORTER, edges[-1][1])
    drawings = dict.fromkeys([*edges, *whole, *largest])
    if slow and variant.name in SMALLER_ORDERS:
        hard, largest_order = SMALLER_ORDERS[variant.name]
        drawings = dict.fromkeys(
            (min(n, largest_order) if dist == hard else n, dist) for n, dist in drawings
        )
    for n, dist in drawings:
        times = 2 if not slow or (n, dist) in repeated else 1
        check(device, kernels, lab, variant, case, n, dist, times=times)


@lru_cache(2000)
def inputs_of(lab, case, n, dist):
    """The same inputs for all variants of a lab."""
    inputs = drawn(labs.get(lab), dict(case), n, dist)
    for data in inputs.arrays.values():
        data.flags.writeable = False
    return inputs


def check(device, kernels, lab, variant, case, n, dist, *, times):
    where = f"n = {n}, {dist}"
    inputs = inputs_of(lab.name, tuple(case.items()), n, dist)
    if lab.empty_answer(inputs, case) is not None:
        return
    buffers = {name: device.to_device(data) for name, data in inputs.arrays.items()}
    step = lab.plan(variant.dispatch)(
        Job(
            device=device,
            kernels=kernels,
            variant=variant,
            buffers=buffers,
            params=inputs.params,
            case=case,
        )
    )
    answers = []
    for _ in range(times):
        device.copy(np.full(step.out.nbytes, POISON, np.uint8), step.out)
        try:
            step()
        except (InputError, RefusalError):  # what must not be refused: see test_solve_methods.py
            return
        answers.append(device.to_host(step.out))
    found = lab.compare_at(variant.precision, answers[0], inputs, case)
    assert found is None, f"{where}: {found}"
    if variant.deterministic:
        assert bytes(as_bytes(answers[0])) == bytes(as_bytes(answers[-1])), where
    elif times > 1:
        found = lab.compare_at(variant.precision, answers[-1], inputs, case)
        assert found is None, f"{where}, again: {found}"
    for name, data in inputs.arrays.items():
        after = device.to_host(buffers[name])
        assert bytes(as_bytes(after)) == bytes(as_bytes(data)), f"{where}: {name} modified"


@pytest.mark.parametrize("lab", [labs.get(name) for name in labs.names()], ids=lambda lab: lab.name)
def test_every_case_has_one_default_on_each_device(lab):
    for case in lab.cases():
        for device in registry.DEVICES:
            assert registry.default(lab, case, device)


# What the header's other defines do not fit, or a warp or a tree cannot be made of.
REFUSED = [
    ("reduce", "sequential", {"THREADS_PER_BLOCK": 64}, "a thread loads one item"),
    *(
        ("reduce", name, {"THREADS_PER_BLOCK": 96, "ITEMS_PER_BLOCK": items}, "a power of two")
        for name, items in (
            ("sequential", 96), ("interleaved_modulo", 96), ("interleaved_strided", 96),
            ("first_add_on_load", 192), ("unrolled_last_warp", 192), ("cols_shared", 8192),
        )
    ),
    ("reduce", "warp_shuffle", {"THREADS_PER_BLOCK": 48, "ITEMS_PER_BLOCK": 96}, "whole warps"),
    ("reduce", "rows_warp", {"THREADS_PER_BLOCK": 48}, "whole warps"),
    ("histogram", "warp_tagged", {"THREADS_PER_BLOCK": 48}, "whole warps"),
    ("histogram", "per_thread_64", {"THREADS_PER_BLOCK": 128}, "a slot of its own"),
    ("histogram", "per_thread_64_banks32", {"THREADS_PER_BLOCK": 256}, "a slot of its own"),
    ("transpose", "tiled_vectorized", {"THREADS_ACROSS": 12}, "swizzled by bits"),
    ("solve", "gauss_jordan", {"SEARCH_THREADS": 48}, "whole warps"),
    ("solve", "complete_pivot", {"SEARCH_THREADS": 48}, "whole warps"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("lab", "name", "defines", "says"), REFUSED, ids=[f"{lab}-{name}" for lab, name, *_ in REFUSED]
)
def test_a_block_that_a_kernel_cannot_take_does_not_compile(device, lab, name, defines, says):
    lab = labs.get(lab)
    variant = registry.find(lab, name)
    case = COMPUTED[variant.path][0]
    with pytest.raises(KernelCompileError, match=says):
        device.compile(
            source.load(variant.path, variant.label),
            lab.kernel_defines(case) | variant.defines | defines,
        )
