"""Libraries to compare variants with: NumPy, the vendor's libraries through CuPy, and CUB.

A baseline uses the same buffers as the variants, and the same code prepares the caches, times it
and checks its answer. A library is loaded only if it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.backends import facts
from cudalab.errors import UsageError, nearest
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
    """The candidates of the libraries `names`, on `inputs` (in memory) and on `buffers`.

    A library that does not support the case has no candidate, and `why_not` gives the reason.
    NoDeviceError for a library that is not installed, UsageError for an unknown name.
    """
    result: list[Candidate] = []
    for name in names:
        if name not in NAMES:
            raise UsageError(f"no baseline is called {name}", hint=nearest(name, NAMES))
        if why_not(name, lab, case, sampler.device.name) is not None:
            continue
        if name == NUMPY:
            from cudalab.bench.baselines import on_host  # noqa: PLC0415 - only if it is used

            result += on_host.candidates(lab, inputs, case)
        elif name == CUPY:
            from cudalab.bench.baselines import through_cupy  # noqa: PLC0415 - loads CuPy

            result += through_cupy.candidates(lab, sampler, inputs, case, buffers)
        else:
            from cudalab.bench.baselines import cub  # noqa: PLC0415 - may start nvcc

            result += cub.candidates(lab, sampler, inputs, case, buffers)
    return result


def why_not(name: str, lab: Lab, case: Case, device: str) -> str | None:
    """Why the library cannot be compared for this case; None if it can."""
    libraries = lab.teaching.libraries
    if name not in libraries.names:
        return f"{name} has no {lab.name}"
    if name == NUMPY:
        return None
    if not facts(device).nvcc:
        return f"{name} runs on the CUDA device"
    return libraries.why_not(name, case)
