"""Where a right kernel stands on its lab's ladder, by what it does and not by a time.

A time on a CPU says nothing about a GPU. What can be counted without one is what the rungs differ
in: launches, blocks and threads, requests and sectors of global memory, wavefronts of shared
memory, split branches, barriers. A kernel stands at the rung whose counts its own are closest to.

The rungs are counted once on each machine, in a process of its own:

    python -m cudalab.watch.ladder LAB CASE KERNELS

prints the counts of each rung that the CPU device can run, as JSON; CASE is the case as JSON, and
KERNELS the folder of the kernels.
"""

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from cudalab import labs
from cudalab.backends.cpu.compiler.toolchain import cached
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case
from cudalab.language import source
from cudalab.microscope import subject
from cudalab.system.cache import put
from cudalab.watch.costs import BLOCKS, LAUNCHES, small_sizes

ALIKE = math.log(2) / 2  # the mean of |log(a/b)| over all counts, up to which two are alike
SMALL = 16.0  # added to both counts, so that few of them weigh little


@dataclass(frozen=True)
class Place:
    """A rung, and the next one."""

    rung: str
    number: int  # 1 is the lowest
    of: int
    _: KW_ONLY
    next_rung: str = ""
    idea: str = ""  # what the next rung adds
    exact: bool = True  # whether the counts are alike, not only the closest

    def words(self) -> list[str]:
        """The place and the next idea, as sentences."""
        closest = "it counts like" if self.exact else "of the ladder's rungs it is closest to"
        result = [f"{closest} `{self.rung}`, rung {self.number} of {self.of}"]
        if self.idea:
            result.append(f"next idea: {self.idea}")
        else:
            result.append("that is the top of this ladder")
        return result


def rungs_for(lab: Lab, case: Case) -> list[Variant]:
    """The rungs of the ladders that compute a case without loss, those of each ladder in order."""
    return [
        variant
        for variant in registry.variants(lab)
        if variant.computes(case) and not variant.precision
    ]


def distance(one: Mapping[str, float], two: Mapping[str, float]) -> float:
    """How far apart two kernels' counts are: 0 if they are equal."""
    names = one.keys() & two.keys()
    if not names:
        return math.inf
    return sum(abs(math.log((one[n] + SMALL) / (two[n] + SMALL))) for n in names) / len(names)


def place_of(
    counts: Mapping[str, float],
    rungs: Sequence[Variant],
    counted: Mapping[str, Mapping[str, float]],
) -> Place | None:
    """The place of a kernel among the rungs that could be counted; None if there is none."""
    known = [rung for rung in rungs if counted.get(rung.name)]
    if not known or not counts:
        return None
    best = min(known, key=lambda rung: distance(counts, counted[rung.name]))
    ladder = [rung for rung in rungs if rung.ladder == best.ladder]
    at = ladder.index(best)
    following = ladder[at + 1] if at + 1 < len(ladder) else None
    return Place(
        best.name,
        at + 1,
        len(ladder),
        next_rung=following.name if following else "",
        idea=(following.adds or following.summary) if following else "",
        exact=distance(counts, counted[best.name]) <= ALIKE,
    )


LIMIT_S = 600.0  # for all rungs of a lab, compiling included
KILL_AFTER_S = 60.0  # for one

Counts = dict[str, dict[str, float]]  # by rung


def counted(lab: Lab, case: Case) -> Counts:
    """The counts of all rungs; from the cache if they are there. None that failed is among them."""
    texts = [source.load(rung.path, rung.label).text for rung in rungs_for(lab, case)]
    words = json.dumps(case, sort_keys=True, default=str)
    counted_of = repr((small_sizes(lab, case), BLOCKS, LAUNCHES))
    stored = cached("watch", lab.name, lab.name, words, counted_of, *texts, suffix=".json")
    if not stored.exists():
        command = [sys.executable, "-m", __name__, lab.name, words, str(source.kernels_dir())]
        try:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                timeout=LIMIT_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {}
        if done.returncode != 0:
            return {}
        put(stored, done.stdout)
    result: Counts = json.loads(stored.read_bytes())
    return result


def main() -> int:
    """Count, and print."""
    from cudalab.watch.worker import count  # noqa: PLC0415 - for this process only

    name, words, kernels = sys.argv[1:]
    source.use_kernels_dir(Path(kernels))
    lab, case = labs.get(name), json.loads(words)
    result: Counts = {}
    with tempfile.TemporaryDirectory() as folder:
        size = small_sizes(lab, case)[-1]
        data = subject.generated(lab, case, size, lab.distributions[0], 0, Path(folder))
        for rung in rungs_for(lab, case):
            costs = count(lab, rung, case, data, KILL_AFTER_S)
            if not costs.failed:
                result[rung.name] = costs.counts
    sys.stdout.write(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
