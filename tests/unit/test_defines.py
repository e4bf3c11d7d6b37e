"""Defines that a launch plan cannot use: an error that names them, never a traceback or a hang."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from lab_inputs import drawn

from cudalab import labs
from cudalab.backends.cpu.device import CpuDevice
from cudalab.errors import HeaderError
from cudalab.labs import registry
from cudalab.labs.base import Job, in_order
from cudalab.labs.header import product_of
from cudalab.language import source

VARIANTS = [
    pytest.param(labs.get(name), variant, id=f"{name}-{variant.name}")
    for name in labs.names()
    for variant in registry.variants(labs.get(name))
    if variant.defines and not variant.missing(CpuDevice.features)
]
WRONG = ["abc", 0, -1, 1, 100, 2**40]


load = cache(source.load)  # which reads all headers of a kernel file


class LaunchesNothing(CpuDevice):
    """Memory of the CPU device; its launches are counted, and not done."""

    launches = 0

    def launch(self, *_args, **_options):
        self.launches += 1
        assert self.launches < 10_000, "endless"

    def constant(self, _module, _name):
        return self.empty(1, "float32")


class Kernels:
    """Kernels that need not be compiled."""

    def __init__(self, source):
        self.source = source

    def __getitem__(self, name):
        return name


def planned(lab, variant, dtype=None):
    """The step for 1000 items, or a matrix of 40 rows, that the variant can compute."""
    given = {axis: values[0] for axis, values in variant.applies.items()}
    if dtype or given.get("classes") == "many":  # bytes have but 256
        given["dtype"] = dtype or "uint32"
    case = lab.complete(given)
    shaped = lab.name in ("softmax", "transpose") or case.get("along") in ("rows", "cols")
    n = (40, 25) if shaped else 40 if lab.name in ("matmul", "solve") else 1000
    inputs = inputs_of(lab.name, n, *sorted(case.items()))
    device = LaunchesNothing()
    buffers = {name: device.to_device(array) for name, array in inputs.arrays.items()}
    kernels = Kernels(load(variant.path, variant.label))
    job = Job(
        device=device,
        kernels=kernels,
        variant=variant,
        buffers=buffers,
        params=dict(inputs.params),
        case=case,
    )
    return lab.plan(variant.dispatch)(job)


@cache
def inputs_of(name, n, *case):
    lab = labs.get(name)
    return drawn(lab, dict(case), n, lab.distributions[0], seed=0)


def dtypes_of(lab, variant):
    """The first, and one of 8 bytes."""
    known = variant.applies.get("dtype", lab.axes.get("dtype", ()))
    return [None, *[name for name in known if "64" in name][:1]]


@pytest.mark.parametrize(("lab", "variant"), VARIANTS)
def test_a_define_that_a_plan_cannot_use_is_named(lab, variant):
    for dtype in dtypes_of(lab, variant):
        for name in variant.defines:
            missing = {other: value for other, value in variant.defines.items() if other != name}
            for defines in (missing, *({**variant.defines, name: value} for value in WRONG)):
                try:
                    step = planned(lab, replace(variant, defines=defines), dtype)
                    if not step.reads_back:
                        step.run()
                except HeaderError as error:
                    assert error.message.startswith(f"{variant.label}:")  # noqa: PT017 - may pass
                    assert "defines: " in error.message  # noqa: PT017


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "defines: ITEMS_PER_BLOCK = 0: the launch plan needs an integer, 2 or more"),
        (1, "defines: ITEMS_PER_BLOCK = 1: the launch plan needs an integer, 2 or more"),
        ("abc", "defines: ITEMS_PER_BLOCK = 'abc': the launch plan needs an integer, 2 or more"),
        (None, "defines: ITEMS_PER_BLOCK is missing"),
    ],
)
def test_the_message_says_what_the_plan_needs(value, said):
    lab = labs.get("reduce")
    variant = registry.find(lab, "sequential")
    others = {"THREADS_PER_BLOCK": 256} | ({"ITEMS_PER_BLOCK": value} if value is not None else {})
    with pytest.raises(HeaderError) as caught:
        planned(lab, replace(variant, defines=others))
    assert caught.value.message == f"kernels/reduce/sequential.cu:6: {said}"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        ("2 * MULTIPROCESSORS", 264),
        ("MULTIPROCESSORS", 132),
        ("2 * MULTIPROCESSORS / 3", 88),
        ("MULTIPROCESSORS / 5 * 2", 52),  # from the left, each quotient rounded down
        ("2*THREADS_PER_BLOCK", 512),
    ],
)
def test_a_product_of_numbers_and_defines(text, number):
    assert product_of(text, {"MULTIPROCESSORS": 132, "THREADS_PER_BLOCK": 256}) == number


@pytest.mark.parametrize("text", ["", "two * 3", "2 *", "3 / 0", "2 + 3", "OTHER * 2"])
def test_a_define_that_is_no_product_is_an_error_at_its_line(text):
    variant = registry.find(labs.get("radixsort"), "single_launch")
    text = f"MULTIPROCESSORS * {text}"
    broken = replace(variant, defines={**variant.defines, "MAX_BLOCKS": text, "OTHER": "text"})
    with pytest.raises(HeaderError, match=r"single_launch\.cu:\d+: defines: .* is no product"):
        broken.on(SimpleNamespace(multiprocessors=132))


@pytest.mark.parametrize(("lab", "variant"), VARIANTS)
def test_no_number_of_multiprocessors_is_written_into_a_header(lab, variant):
    """A number of blocks follows from the device's: on a fraction of them there are fewer.

    Those of reduce are the same on every device, and so are its sums of floats.
    """
    numbers = [each for each in variant.defines.values() if isinstance(each, int) and each]
    assert all(number % 132 for number in numbers) or lab.name == "reduce"
    half = variant.on(SimpleNamespace(multiprocessors=66)).defines
    for name, number in variant.on(SimpleNamespace(multiprocessors=132)).defines.items():
        assert half[name] == (number // 2 if "MULTIPROC" in str(variant.defines[name]) else number)


def test_launches_are_made_as_they_were_planned():
    """In order, integers as `unsigned`, with the shared memory asked for, and none before."""
    made = []

    def launch(*args, **options):
        made.append((args, options))

    job = Job(
        device=SimpleNamespace(launch=launch), kernels={"first": "f", "second": "s"},
        variant=None, buffers={}, params={}, case={},
    )  # fmt: skip
    one = job.launch("first", 3, (32, 2), "buffer", 7, np.int32(-1), shared_bytes=64)
    both = in_order(one, job.launch("second", 1, 256))
    assert made == []
    both()
    assert made == [
        (("f", 3, (32, 2), "buffer", 7, -1), {"shared_bytes": 64}),
        (("s", 1, 256), {}),
    ]
    assert [type(arg) for arg in made[0][0][4:]] == [np.uint32, np.int32]
