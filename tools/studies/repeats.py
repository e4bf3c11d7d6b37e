"""How often `cudalab bench --compare` sees a difference between a kernel and itself.

python -m tools.studies repeats run [DEVICE [SECONDS]]    measure, each run so long, and store

Variants are measured RUNS + 1 times, and each run is compared with the next: 200 comparisons, all
of equal kernels. tools/generate.py makes a table of docs/bench.md from the stored counts.
"""

import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from cudalab import labs
from cudalab.backends import choose_device, facts, open_device
from cudalab.backends.meter import open_meter
from cudalab.bench import measure, measured
from cudalab.bench.candidates import make_data, variant_candidate
from cudalab.bench.comparison import FASTER, SAME, SLOWER, UNDECIDED, judged
from cudalab.labs import registry
from tools import results

RUNS = 50
LAB, VARIANTS = "reduce", ("sequential", "warp_shuffle", "vectorized", "single_pass")
THRESHOLDS = (0.05, 0.02, 0.01)
VERDICTS = (SAME, UNDECIDED, FASTER, SLOWER)
COLUMNS = ["device", "threshold", *VERDICTS, "run"]


def run(name: str = "auto", seconds: str = "0.3") -> None:
    """Measure, compare, and store how many comparisons have each verdict."""
    device, lab = choose_device(name), labs.get(LAB)
    case = lab.complete({})
    size = lab.teaching.bench_size(case, device)
    runs: list[list[measured.Row]] = []
    with open_device(device) as opened, TemporaryDirectory() as folder:
        sampler = measure.Sampler(opened, open_meter(opened))
        dist = lab.distribution(None)
        data = make_data(lab, case, size, dist, 0, opened, Path(folder))
        judge = measure.Judge(lab, data.inputs, case, opened, data.buffers)
        candidates = [
            variant_candidate(lab, registry.find(lab, one), sampler, data, case) for one in VARIANTS
        ]
        for _ in range(RUNS + 1):
            rows = [
                measured.Row(one.name, device=device, emulated=not facts(device).gpu_times)
                for one in candidates
            ]
            entries = [measure.Entry(*pair) for pair in zip(rows, candidates, strict=True)]
            measure.measure(entries, sampler, judge, measured.Plan(float(seconds), True))
            runs.append(rows)
    counts = [{"threshold": each, **counted(runs, each)} for each in THRESHOLDS]
    machine = results.machine(device)
    path = results.FOLDER / "repeats" / f"{results.slug(machine['device'])}.json"
    about = {"lab": LAB, "n": size, "variants": list(VARIANTS), "seconds": float(seconds)}
    results.write_rows(path, {**machine, **about}, counts, key="comparisons")


def counted(runs: list[list[measured.Row]], threshold: float) -> dict[str, int]:
    """How many comparisons of a run with the next one have each verdict."""
    verdicts = Counter(
        judged(samples_of(before), samples_of(after), threshold)[0]
        for old, new in pairwise(runs)
        for before, after in zip(old, new, strict=True)
    )
    return {verdict: verdicts[verdict] for verdict in VERDICTS}


def samples_of(row: measured.Row) -> list[float]:
    return list(row.valid_samples().values())


def lines() -> list[list[str]]:
    """A row for each device and threshold."""
    return [
        [
            stored["device"],
            f"{100 * counts['threshold']:g} %",
            *(str(counts[verdict]) for verdict in VERDICTS),
            f"{stored['date']}, `{stored['commit']}`",
        ]
        for stored in results.read_all("repeats")
        for counts in stored["comparisons"]
    ]


def main(command: str = "", *words: str) -> None:
    """Measure and store, or say how."""
    run(*words) if command == "run" else sys.exit(__doc__)
