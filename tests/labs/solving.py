"""What the tests of the solve lab share: systems, and how they are solved."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from cudalab import labs, runner
from cudalab.labs import registry
from cudalab.labs.base import Job
from cudalab.labs.inputs import HostInputs
from cudalab.labs.solve import systems
from cudalab.labs.solve.tensor_factors import LookAheadFactors, TensorFactors
from cudalab.language import source

LAB = labs.get("solve")


DTYPES = LAB.axes["dtype"]


VARIANTS = registry.variants(LAB)


DIRECT = (
    "gauss_jordan", "lu_partial_pivot", "lu_substitution_chain", "lu_elected_panel",
    "lu_blocked_panel", "lu_graph", "complete_pivot",
)  # fmt: skip


LU_ON_TENSOR_CORES = {"lu_tensor_cores": TensorFactors, "lu_look_ahead": LookAheadFactors}


CHOLESKY_ON_TENSOR_CORES = ("cholesky_tensor_cores", "cholesky_narrow_strips")


ON_TENSOR_CORES = (*LU_ON_TENSOR_CORES, *CHOLESKY_ON_TENSOR_CORES)


ITERATIONS = (
    "richardson", "richardson_coalesced", "jacobi", "chebyshev", "conjugate_gradient",
    "conjugate_gradient_one_launch", "conjugate_gradient_scaled",
)  # fmt: skip


SOLVABLE = tuple(name for name in LAB.distributions if name not in systems.UNSOLVABLE)


COURSE = [[1, 2], [3, 4]]


def case(dtype="float32", **options):
    return LAB.complete({"dtype": dtype, **options})


def system(a, f, dtype="float32"):
    a, f = np.array(a, dtype), np.array(f, dtype)
    return HostInputs({"a": a, "f": f}, {"n": len(f)})


def make(n, dist="random", dtype="float32", seed=1):
    return system(*systems.draw(n, dist, seed, np.dtype(dtype)), dtype)


def compute(device, name, inputs, options):
    """Return x and what the run says. Without a name the policy chooses."""
    if name is None:
        chosen = LAB.choose(inputs, options, device)
        default = registry.default(LAB, options, device.name)
        variant = registry.find(LAB, chosen) if chosen else default
    else:
        variant = registry.find(LAB, name)
    watch = runner.Stopwatch()
    step = runner.prepare(LAB, variant, device, inputs, options, watch=watch)
    step()
    return device.to_host(step.out), step.notes


# Every variant: right, or a refusal with a reason -------------------------------------------------


def check_it_runs(device, name):
    """Skip the test if the device lacks what the variant requires."""
    if missing := registry.find(LAB, name).missing(device.features):
        pytest.skip(f"needs {', '.join(missing)}")


# Factors by panels --------------------------------------------------------------------------------


def factorize(device, name, method, inputs, options, **defines):
    """The method after its factorization."""
    ours = registry.find(LAB, name)
    variant = dataclasses.replace(ours, defines={**ours.defines, **defines})
    kernels = device.compile(
        source.load(variant.path, variant.label),
        {**LAB.kernel_defines(options), **variant.defines},
        arch=variant.architecture,
    )
    buffers = {key: device.to_device(array) for key, array in inputs.arrays.items()}
    found = method(
        Job(
            device=device,
            kernels=kernels,
            variant=variant,
            buffers=buffers,
            params=inputs.params,
            case=options,
        )
    )
    found.factorize()
    return found
