"""Libraries to compare variants with: NumPy, the vendor's libraries through CuPy, and CUB.

A baseline uses the same buffers as the variants, and the same code prepares the caches, times it
and checks its answer. A library is loaded only if it is used.
"""

from collections.abc import Iterable

import numpy as np

from cudalab.backends import facts
from cudalab.backends.base import Buffer
from cudalab.bench.measure import POISON, Candidate, Sampler
from cudalab.errors import CudalabError, DeviceMemoryError, UsageError, nearest
from cudalab.labs.base import Lab
from cudalab.labs.inputs import Case, HostInputs
from cudalab.labs.libraries import CUPY, NAMES, NUMPY, Problem


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
            result.append(_numpy(lab, inputs, case))
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


def _numpy(lab: Lab, inputs: HostInputs, case: Case) -> Candidate:
    """NumPy on the host."""
    libraries = lab.teaching.libraries
    out = np.empty(*lab.answer_form(inputs, case))
    way = libraries.numpy(Problem(xp=np, arrays=inputs.arrays, inputs=inputs, case=case, out=out))

    def run() -> None:
        with np.errstate(all="ignore"):  # infinities and NaNs are values like others
            try:
                way.compute()
            except np.linalg.LinAlgError as error:
                raise CudalabError(f"NumPy: {error}") from None
            except MemoryError as error:
                raise DeviceMemoryError(f"NumPy: out of host memory: {error}") from None

    return Candidate(
        name="numpy",
        kind="baseline",
        run=run,
        answer=out.copy,
        poison=lambda: out.reshape(-1).view(np.uint8).fill(POISON),
        device="cpu",
        notes=[f"NumPy {np.__version__} on the host's processor", *way.notes],
    )
