"""Whether a kernel's threads do the same in the build of the tests and in the sanitizer's.

A kernel could tell the builds apart by addresses, which no layout hides, and leave its races out
where the sanitizer looks. But what it leaves out or adds then shows: in the same order of blocks
and threads, each build comes to as many barriers and makes as many atomic operations.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cudalab.checker.sandbox.running import Limits
from cudalab.checker.submit.kernel import Kernel
from cudalab.labs.inputs import Case

Tallies = dict[str, dict[str, int]]  # by kernel

WORDS = {
    "launches": "launches",
    "barriers": "arrivals of threads at __syncthreads()",
    "warp_barriers": "arrivals of threads at __syncwarp()",
    "updates": "atomic operations",
    "swaps": "exchanges and successful compare-and-swaps",
}
AS_IT_COMES = "asked"  # for the lanes that run together: which these are differs by build


def differences(
    kernel: Kernel,
    case: Case,
    path: Path | None,
    seed: int,
    observed: Sequence[Tallies],
    limits: Limits,
) -> list[str]:
    """What the threads do otherwise than under the sanitizer; empty if it is the same.

    `observed` has what they did there, on the input `path` or on those of the sanitizer's sizes.
    """
    with inputs(kernel, case, path, seed, len(observed)) as paths:
        outcome, tested = kernel.counted(case, paths, limits)
    if outcome.reason == "cancelled":
        return []
    if len(tested) < len(paths) or any(report.error for report in tested):
        return ["in the tests' build it does not end on the input of the sanitizer"]
    return [
        line
        for there, report in zip(observed, tested, strict=True)
        for line in _unlike(there, report.tallies)
    ][:3]


@contextmanager
def inputs(
    kernel: Kernel, case: Case, path: Path | None, seed: int, count: int
) -> Iterator[list[Path]]:
    """The first inputs that the sanitizer has looked at, as files (looking.py)."""
    if path is not None:
        yield [path]
        return
    with tempfile.TemporaryDirectory() as folder:
        lab = kernel.lab
        paths = [Path(folder, f"{number}.bin") for number in range(count)]
        for one, size in zip(paths, lab.teaching.sizes(case).sanitized, strict=False):
            lab.write_file(one, case, size, lab.distributions[0], seed)
        yield paths


def _unlike(there: Tallies, here: Tallies) -> Iterator[str]:
    for name in sorted({*there, *here}):
        one, other = there.get(name, {}), here.get(name, {})
        if one.get(AS_IT_COMES) or other.get(AS_IT_COMES):
            continue
        for what, words in WORDS.items():
            if one.get(what, 0) != other.get(what, 0):
                counts = f"{other.get(what, 0):,} in the tests, {one.get(what, 0):,} there"
                yield f"{name}: {words}: {counts}"
