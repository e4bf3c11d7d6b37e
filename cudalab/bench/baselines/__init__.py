"""What the variants are compared with: NumPy, the vendor's libraries through CuPy, and CUB.

A baseline computes from the same buffers as the variants and is flushed, timed and checked by the
same code. Libraries are loaded when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.backends import emulated
from cudalab.errors import UsageError
from cudalab.labs.libraries import CUPY, NAMES, NUMPY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cudalab.backends.base import Buffer
    from cudalab.bench.measure import Candidate, Sampler
    from cudalab.labs.base import Lab
    from cudalab.labs.inputs import Case, HostInputs


def baselines(
    lab: Lab,
    sampler: Sampler,
    inputs: HostInputs,
    case: Case,
    buffers: dict[str, Buffer],
    names: Iterable[str],
) -> list[Candidate]:
    """The candidates of the libraries called `names`, on `inputs` (in memory) and on `buffers`.

    A library that has nothing for this case gives no candidate, and `why_not` says why.
    NoDeviceError for one that is not installed, UsageError for a name that is none.
    """
    found: list[Candidate] = []
    for name in names:
        if name not in NAMES:
            raise UsageError(f"no baseline is called {name}", hint=f"one of {', '.join(NAMES)}")
        if why_not(name, lab, case, sampler.device.name) is not None:
            continue
        if name == NUMPY:
            from cudalab.bench.baselines import on_host  # noqa: PLC0415 - only what is asked for

            found += on_host.candidates(lab, inputs, case)
        elif name == CUPY:
            from cudalab.bench.baselines import through_cupy  # noqa: PLC0415 - loads CuPy

            found += through_cupy.candidates(lab, sampler, inputs, case, buffers)
        else:
            from cudalab.bench.baselines import cub  # noqa: PLC0415 - may start nvcc

            found += cub.candidates(lab, sampler, inputs, case, buffers)
    return found


def why_not(name: str, lab: Lab, case: Case, device: str) -> str | None:
    """Why the library has nothing to compare with, in words; None where it has."""
    libraries = lab.teaching.libraries
    if name not in libraries.names:
        return f"{name} has no {lab.name}"
    if name == NUMPY:
        return None
    if emulated(device):
        return f"{name} runs on the CUDA device"
    return libraries.why_not(name, case)
