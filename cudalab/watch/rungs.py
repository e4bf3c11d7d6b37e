"""Counts the rungs of a ladder, once on each machine, in a process of its own.

    python -m cudalab.watch.rungs LAB CASE

prints the counts of each rung that the CPU device can run, as JSON; CASE is the case as JSON.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from cudalab import labs
from cudalab.backends.cpu.toolchain import cached
from cudalab.labs.base import Lab
from cudalab.labs.inputs import Case
from cudalab.language import source
from cudalab.microscope import subject
from cudalab.system.cache import put
from cudalab.watch.ladder import rungs_for
from cudalab.watch.sizes import BLOCKS, LAUNCHES, small_sizes

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
