"""Hunts for planted faults: random kernels until one differs in the package that has the fault.

The package without the fault is then asked about the same program: a kernel that differs there as
well has found a mistake of the package, not the planted one, and the hunt goes on.
"""

from __future__ import annotations

import json
import resource
import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from itertools import chain
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from tests.oracle.draws import ALONE, BY_WARPS, ENDLESS, FEW, LENT, SHARP, VERSION
from tests.oracle.runner import REPOSITORY, RESULTS, Package, batches, differences, measured

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.oracle.faults import Fault
    from tests.oracle.runner import Difference

SIZE = 20  # kernels in a program
SECONDS = 30  # of the processor, at which a process of the package with the fault hangs
STORED = RESULTS / "faults.json"


@dataclass
class Hunt:
    """What it took to find a fault, and where: no seed if it was not found."""

    name: str
    seconds: float = 0  # of the processor
    kernels: int = 0  # that were looked at
    seed: int | None = None  # the first that shows it
    shown: str = ""  # in which way, and how
    already: list[int] = field(default_factory=list)  # seeds that differ without the fault

    def text(self) -> str:
        """Say what became of it."""
        found = f"found by seed {self.seed} ({self.shown})" if self.seed else "not found"
        already = f"; {self.already} differ without it" if self.already else ""
        return f"{self.name}: {found}, {self.kernels} kernels, {self.seconds:.0f} s{already}"


def programs(ways: list[str]) -> Iterator[list[int]]:
    """Give the programs of a hunt: of the smallest kernels, of warps and of all forms in turn.

    Only the last ones are also kernels of a lab.
    """
    labs = all(way.startswith("labs-") for way in ways)
    starts = (ENDLESS,) if labs else (FEW, LENT, ALONE, SHARP, BY_WARPS, 0, ENDLESS)
    yield from chain.from_iterable(zip(*(batches(s, BY_WARPS, SIZE) for s in starts), strict=True))


def hunt(fault: Fault, ways: list[str], limit: float) -> Hunt:
    """Look for a planted fault, for so many of the processor's seconds.

    What the package with the fault compiles is kept nowhere, so that each hunt costs the same.
    """
    found, start = Hunt(fault.name), _seconds()
    with tempfile.TemporaryDirectory() as name:
        folder = copy_of_package(Path(name))
        fault.plant(folder)
        package = Package(folder, folder / "cache", SECONDS)
        for seeds in programs(ways):
            differ = differences(seeds, ways, package)
            found.seconds = round(_seconds() - start, 1)
            found.kernels += len(seeds)
            if differ:
                asked = _seconds()
                shown = _without(differ, differences(seeds, {each.way for each in differ}))
                found.already += sorted({each.seed for each in differ if each not in shown})
                start += _seconds() - asked
                if shown:
                    found.seed, found.shown = shown[0].seed, shown[0].kind
                    break
            if found.seconds > limit:
                break
    return found


def _without(differ: list[Difference], already: list[Difference]) -> list[Difference]:
    """Leave out what differs in the package without the fault, in whatever way."""
    seeds = {each.seed for each in already}
    return [each for each in differ if each.seed not in seeds]


def copy_of_package(to: Path) -> Path:
    """Copy the package, so that a fault can be planted in it."""
    shutil.copytree(REPOSITORY / "cudalab", to / "cudalab",
                    ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
    for name in ("kernels", "tests"):
        (to / name).symlink_to(REPOSITORY / name)
    return to


def _seconds() -> float:
    """Give the seconds that this process and those that it has waited for have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def hunts(
    faults: list[Fault], ways: list[str], limit: float, jobs: int, end: float = inf
) -> Iterator[Hunt]:
    """Look for faults, several at a time, each in a process that counts its own seconds.

    None is begun after so many seconds.
    """
    with ProcessPoolExecutor(jobs, max_tasks_per_child=1) as pool:
        waiting = [pool.submit(_hunt_before, monotonic() + end, each, ways, limit)
                   for each in faults]  # fmt: skip
        for done in as_completed(waiting):
            if found := done.result():
                yield found


def _hunt_before(end: float, fault: Fault, ways: list[str], limit: float) -> Hunt | None:
    return hunt(fault, ways, limit) if monotonic() < end else None


def store(found: Iterable[Hunt], ways: list[str], limit: float, path: Path) -> None:
    """Store what became of these faults, beside what is stored of others."""
    rows = {each["name"]: each for each in stored(path)}
    rows |= {each.name: {**asdict(each), **measured()} for each in found}
    document = {"version": VERSION, "ways": ways, "limit_s": limit, "faults": list(rows.values())}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def stored(path: Path = STORED) -> list[dict[str, object]]:
    """Read what is stored of faults."""
    return json.loads(path.read_text(encoding="utf-8"))["faults"] if path.exists() else []
