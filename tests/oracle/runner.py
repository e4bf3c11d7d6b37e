"""Runs programs in every way, and finds the kernels that differ from the reference."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from cudalab.bench.results import commit
from cudalab.system.machine import processor_name, usable_cores
from tests.oracle.draws import ENDLESS, VERSION
from tests.oracle.grammar import Kernel
from tests.oracle.programs import cuda_program, host_program

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

REPOSITORY = Path(__file__).parents[2]
RESULTS = REPOSITORY / "docs/results/oracle"
CLANG = f"{sys.executable} -m ziglang c++"
# Environments: how the threads of a block run, the compiler, and its optimization. Kernels from
# ENDLESS on may also be those of a lab.
WAYS = {
    "loops": {},
    "fibers": {"CUDALAB_LOOPS": "0"},
    "clang": {"CXX": CLANG},
    "clang-fibers": {"CXX": CLANG, "CUDALAB_LOOPS": "0"},
    "labs-loops": {},
    "labs-fibers": {},
    "O3": {"CUDALAB_CXXFLAGS": "-O3"},
    "O3-fibers": {"CUDALAB_CXXFLAGS": "-O3", "CUDALAB_LOOPS": "0"},
}
_PLACE = re.compile(r"^([^:]*): \S+:\d+: ")  # of a reason
_ERROR = re.compile(r"^.*?[Ee]rror: (\S+:\d+: )?")
SECONDS = 600  # at which a program hangs


@dataclass
class Difference:
    """A kernel that is not as the reference says, or that is refused, with the message."""

    way: str
    seed: int
    line: str

    @property
    def refused(self) -> bool:
        """Whether there is no answer, and a message says so."""
        return self.line.startswith("refused")

    @property
    def kind(self) -> str:
        """The way, and whether there is no answer."""
        return f"{self.way}, no answer" if self.refused else self.way

    @property
    def reason(self) -> str:
        """The line of a refusal that says why."""
        lines = [line for line in self.line.splitlines() if line.strip()]
        said = (line for line in lines if _ERROR.search(line) and not line.endswith("compile:"))
        return _ERROR.sub("", next(said, lines[-1]))[:300]


@dataclass(frozen=True)
class Package:
    """The package `cudalab`, or a copy of it that has a cache and a limit of its own."""

    folder: Path = REPOSITORY
    cache: Path | None = None
    seconds: int = 0  # of the processor, after which a process is ended

    def environment(self, way: str) -> dict[str, str]:
        """Give the environment for one of the ways."""
        cache = {"XDG_CACHE_HOME": str(self.cache)} if self.cache else {}
        return {**os.environ, **WAYS[way], **cache, "PYTHONPATH": str(self.folder)}

    def run(
        self, way: str, *options: str, module: Sequence[str] = ("cudalab", "run")
    ) -> subprocess.CompletedProcess[str]:
        """Run the command `run`, or another module's, with these options."""
        command = [sys.executable, "-m", *module, *options]
        if self.seconds:
            command = ["bash", "-c", f'ulimit -t {self.seconds}; exec "$@"', "bash", *command]
        return subprocess.run(command, env=self.environment(way), cwd=self.folder, check=False,
                              capture_output=True, text=True, timeout=SECONDS)  # fmt: skip


OWN = Package()


def _lines(ran: subprocess.CompletedProcess[str]) -> dict[int, str]:
    if ran.returncode:
        raise RuntimeError(ran.stderr or f"exit status {ran.returncode}")
    return {int(line.split()[0]): line for line in ran.stdout.splitlines()}


def reference(seeds: list[int], folder: Path) -> dict[int, str]:
    """Compute the lines of these seeds with plain C++ at -O0."""
    source, program = folder / "host.cpp", folder / "host"
    source.write_text(host_program(seeds))
    flags = ["-O0", "-w", "-fwrapv", "-ffp-contract=off", "-std=c++17"]
    subprocess.run(["g++", *flags, source, "-o", program], check=True)
    return _lines(subprocess.run([program], capture_output=True, text=True, check=False))


def answers(seeds: list[int], folder: Path, way: str, package: Package = OWN) -> dict[int, str]:
    """Compute the lines of these seeds with `cudalab run`; what is refused has its message."""
    source = folder / f"kernels_{seeds[0]}_{len(seeds)}.cu"
    source.write_text(cuda_program(seeds))
    try:
        if way.startswith("labs-"):
            words = [way.removeprefix("labs-"), *map(str, seeds)]
            return _lines(package.run(way, *words, module=["tests.oracle.labs"]))
        return _lines(package.run(way, "--device", "cpu", str(source)))
    except subprocess.TimeoutExpired:
        error = f"hangs: more than {SECONDS} s"
    except RuntimeError as failed:
        error = str(failed)
    if len(seeds) == 1:
        return {seeds[0]: f"refused: {error}"}
    middle = len(seeds) // 2
    return (answers(seeds[:middle], folder, way, package)
            | answers(seeds[middle:], folder, way, package))  # fmt: skip


def differences(
    seeds: list[int],
    ways: Iterable[str],
    package: Package = OWN,
    kinds: Counter[str] | None = None,
) -> list[Difference]:
    """Compare these seeds, and look again at each that differs, alone in a program.

    A failure of one kernel ends those that follow it in a program. `kinds` counts how the kernels
    have run where they may be loops. Kernels that race by themselves are left out.
    """
    seeds = [seed for seed in seeds if not Kernel(seed, "cuda").races]
    if not seeds:
        return []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            right = reference(seeds, folder)
        except subprocess.CalledProcessError:  # a kernel whose names hide each other
            if len(seeds) == 1:
                return [Difference("host", seeds[0], "refused: plain C++ does not compile")]
            middle = len(seeds) // 2
            halves = seeds[:middle], seeds[middle:]
            return [one for half in halves for one in differences(half, ways, package, kinds)]
        found = []
        for way in ways:
            if way.startswith("labs-") and seeds[0] < ENDLESS:
                continue
            lines = answers(seeds, folder, way, package)
            if kinds is not None and "fibers" not in way and "labs" not in way:
                kinds.update({f"{way}: {kind}": n for kind, n in tiers(seeds, folder, way).items()})
            failed = {seed for seed in seeds if lines.get(seed, "").split()[2:] != ["0"]}
            for seed in (seed for seed in seeds if lines.get(seed) != right[seed]):
                again = answers([seed], folder, way, package) if seed in failed else lines
                if again.get(seed) != right[seed]:
                    found.append(Difference(way, seed, again.get(seed, "no answer")))
        return found


def tiers(seeds: list[int], folder: Path, way: str) -> Counter[str]:
    """Count how the kernels of a program run that `answers` has run: loops, fibers and why."""
    source = folder / f"kernels_{seeds[0]}_{len(seeds)}.cu"
    ran = OWN.run(way, "--tier", str(source))
    if ran.returncode:
        return Counter({"in a program with a kernel that is refused": len(seeds)})
    ways = (line.partition(": ")[2] for line in ran.stdout.splitlines())
    return Counter(_PLACE.sub(r"\1: ", each) for each in ways)


def batches(first: int, count: int, size: int) -> list[list[int]]:
    """Cut seeds into programs."""
    seeds = range(first, first + count)
    return [list(seeds[i : i + size]) for i in range(0, count, size)]


def compare(
    work: Iterable[list[int]], ways: list[str], jobs: int, limit: float = inf
) -> Iterator[tuple[list[int], list[Difference], Counter[str]]]:
    """Compare many programs at a time; give what each has found, and how its kernels have run.

    None is begun after so many seconds.
    """
    end = monotonic() + limit

    def look(seeds: list[int]) -> tuple[list[int], list[Difference], Counter[str]] | None:
        kinds = Counter[str]()
        return (seeds, differences(seeds, ways, kinds=kinds), kinds) if monotonic() < end else None

    with ThreadPoolExecutor(jobs) as pool:
        yield from (found for found in pool.map(look, work) if found)


def measured() -> dict[str, str]:
    """Say when, of which commit and on what machine something is measured."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "machine": f"{processor_name()}, {usable_cores()} cores",
    }


@dataclass
class Comparison:
    """What became of many seeds: those that differ, and those that are refused."""

    ways: list[str]
    seeds: int = 0
    differ: list[Difference] = field(default_factory=list)
    refused: list[Difference] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)  # of kernels, by way and how they run

    def add(self, seeds: list[int], found: list[Difference], kinds: Counter[str]) -> None:
        """Count a program."""
        self.kinds += kinds
        self.seeds += len(seeds)
        self.differ += [each for each in found if not each.refused]
        self.refused += [each for each in found if each.refused]

    def store(self, name: str, first: int, size: int) -> Path:
        """Store it beside other comparisons."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        document = {
            **measured(),
            "version": VERSION,
            "first": first,
            "count": self.seeds,
            "ways": self.ways,
            "kernels in a program": size,
            "differ": [[each.way, each.seed] for each in self.differ],
            "refused": [[each.way, each.seed, each.reason] for each in self.refused],
            "kernels": dict(self.kinds.most_common()),
            "processor_s": round(used.ru_utime + used.ru_stime, 1),
        }
        path = RESULTS / f"host-{name}.json"
        path.write_text(json.dumps(document, indent=1) + "\n")
        return path
