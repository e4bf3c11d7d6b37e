"""How a program learns what a run of it is for: its runtime reads a number of its environment.

Every run has one, so that a program that looks around sees no difference. include/cudalab/
judged_run.h reads it.
"""

import secrets
from enum import Enum

VARIABLE = "CUDALAB_RUN"
_FACTOR, _BITS = 0x9E3779B97F4A7C15, 64


class JudgedRun(Enum):
    """What a run is for, by the two highest bits of the mixed number."""

    AS_IT_IS = (0, 1)
    WITHOUT_KERNELS = (2,)
    WITH_OTHER_DATA = (3,)

    def environment(self) -> dict[str, str]:
        """The variable, with a new number."""
        while True:
            number = secrets.randbits(_BITS)
            if number * _FACTOR % (1 << _BITS) >> (_BITS - 2) in self.value:
                return {VARIABLE: f"{number:016x}"}
