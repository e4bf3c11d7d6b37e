"""What the threads of a kernel have done, counted alike in every build of it.

Barriers and atomic operations do not depend on how a kernel is compiled, nor, with few exceptions,
on the order in which its threads run. So two builds of a kernel must agree in them.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cudalab.backends.trace import Tallies

COUNTED = ("barriers", "warp_barriers", "updates", "swaps", "asked")


class TallyRow(ctypes.Structure):
    """cudalab::Tally of runtime.h."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in COUNTED)


def add_tally(tallies: Tallies, kernel: str, row: TallyRow) -> None:
    """Add the tally of one launch."""
    if kernel not in tallies:
        tallies[kernel] = dict.fromkeys(("launches", *COUNTED), 0)
    known = tallies[kernel]
    known["launches"] += 1
    for name in COUNTED:
        known[name] += getattr(row, name)
