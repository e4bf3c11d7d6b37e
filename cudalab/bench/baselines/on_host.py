"""NumPy on the host as a baseline."""

import numpy as np

from cudalab.bench.measure import POISON, Candidate
from cudalab.errors import CudalabError, DeviceMemoryError
from cudalab.labs.base import Lab
from cudalab.labs.inputs import Case, HostInputs
from cudalab.labs.libraries import Problem


def candidates(lab: Lab, inputs: HostInputs, case: Case) -> list[Candidate]:
    """The candidate of NumPy."""
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

    return [
        Candidate(
            name="numpy",
            kind="baseline",
            run=run,
            answer=out.copy,
            poison=lambda: out.reshape(-1).view(np.uint8).fill(POISON),
            device="cpu",
            notes=[f"NumPy {np.__version__} on the host's processor", *way.notes],
        )
    ]
