"""Run every variant under NVIDIA's compute-sanitizer, on a GPU.

python -m tools.sanitizers run [LAB[/VARIANT]...]    all, or these
python -m tools.sanitizers compute LAB VARIANT...    the watched process: compares answers

The first stores docs/results/sanitizers; tools/generate.py makes the table of
docs/performance/README.md from it.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

from cudalab import labs, runner
from cudalab.backends import open_device
from cudalab.backends.base import Device
from cudalab.bench.candidates import Data, make_data
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case, Size
from cudalab.labs.sizes import in_words
from cudalab.labs.solve.spectrum import RefusalError
from tools import results
from tools.results import ROOT
from tools.studies import counters

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
LENGTHS: tuple[Size, ...] = (1, 1000, 65_537, 1_000_003)
SIZES: dict[str, tuple[Size, ...]] = {
    "matmul": (33, 300, 520),
    "radixsort": (1, 1000, 65_537, 2_200_003),  # the last in two splits, or four sweeps
    "solve": (33, 300),  # more than a strip of 256 columns
    "transpose": (33, (300, 1000), 1025),
}
SLOW = {"split_1bit": 65_537}  # at most this many items: its 32 passes take minutes under racecheck
OF_MATRICES: tuple[Size, ...] = (33, (300, 1000), 1025)  # summed along rows or columns
ALSO: dict[str, tuple[dict[str, str], ...]] = {  # cases besides the default one
    "histogram": ({"dtype": "uint32"},),
    "radixsort": ({"layout": "pairs"}, {"dtype": "float32"}),
    "reduce": ({"dtype": "float32"},),
}
DISTS = {"solve": ("dominant", "spd", "random")}  # systems that iterations are made for, and others
# What a variant does with some distributions only: defines, a size, these distributions.
BESIDES: dict[str, tuple[tuple[dict[str, int | str], Size, tuple[str, ...]], ...]] = {
    "bucket_slots": (({}, 65_537, ("equal", "half-equal")),),  # slots without room for their keys
    "most_significant_first": (({}, 2_200_003, ("few", "half-equal")),),
    "sampled_buckets": (({}, 2_200_003, ("half-equal", "bounded", "top-byte")),),
    "most_significant_first_heavy": (
        ({}, 65_537, ("equal", "half-equal")),  # slots without room for their keys
        ({"MIN_SAMPLED": 1}, 2_200_003, ("half-equal", "entropy-0.544", "bounded", "top-byte")),
    ),
}
LIMIT_S = 150  # for one process
CHUNK = 2  # variants in a process
COMPUTE = [sys.executable, "-m", "tools.sanitizers", "compute"]
MACHINE = cache(partial(results.machine, "cuda"))
REPORT = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) ")
SHOWN_LINES = 30


def cases(lab: Lab, variant: Variant) -> list[Case]:
    """The lab's default case and those of ALSO that the variant computes, or its own first one."""
    usual = [lab.complete(options) for options in ({}, *ALSO.get(lab.name, ()))]
    computed = [case for case in usual if variant.computes(case)]
    return computed or [counters.first_case(lab, variant)]


def sizes_of(lab_name: str, case: Case) -> tuple[Size, ...]:
    if case.get("along", "all") != "all":
        return OF_MATRICES
    return SIZES.get(lab_name, LENGTHS)


def compute(lab_name: str, *names: str) -> None:
    """Compute all sizes of all cases of these variants; a wrong answer ends the process."""
    lab = labs.get(lab_name)
    dists = DISTS.get(lab_name, lab.distributions[:1])
    variants = {name: registry.find(lab, name) for name in names}
    by_name = {name: cases(lab, variant) for name, variant in variants.items()}
    with open_device("cuda") as device, tempfile.TemporaryDirectory() as folder:
        for case in {json.dumps(case): case for of in by_name.values() for case in of}.values():
            sizes = sizes_of(lab_name, case)
            for size, dist in product(sizes, dists):
                data = make_data(lab, case, size, dist, 1, device, Path(folder))
                for name in (name for name in names if case in by_name[name]):
                    if not isinstance(size, int) or size <= SLOW.get(name, size):
                        compute_one(lab, variants[name], device, data, case)
            for name in (name for name in names if case in by_name[name]):
                for defines, size, also in BESIDES.get(name, ()):
                    variant = replace(variants[name], defines=variants[name].defines | defines)
                    for dist in also:
                        data = make_data(lab, case, size, dist, 1, device, Path(folder))
                        compute_one(lab, variant, device, data, case)


def compute_one(lab: Lab, variant: Variant, device: Device, data: Data, case: Case) -> None:
    """Compute one answer; a method may refuse a system that it is not made for."""
    step = runner.prepare(lab, variant, device, data.inputs, case)
    try:
        step()
    except RefusalError:
        return
    wrong = lab.compare(device.to_host(step.out), data.inputs, case)
    if wrong is not None:
        sys.exit(f"{variant.name}: {data.inputs.params}, {case}: {wrong}")


def checked(tool: str, lab: str, *names: str) -> tuple[int | None, list[str]]:
    """The number of reports that a tool has of these variants, and its output.

    The number is None where the tool did not get to the end.
    """
    command = [
        "compute-sanitizer", "--tool", tool, "--print-limit", "5", "--target-processes",
        "application-only", *COMPUTE, lab, *names,
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=LIMIT_S, cwd=ROOT
        )
    except subprocess.TimeoutExpired:
        return None, [f"not ended after {LIMIT_S} s"]
    output = (done.stdout + done.stderr).splitlines()
    counts = [int(match[1]) for line in output if (match := REPORT.search(line))]
    if not counts or done.returncode != 0:
        return None, output[:SHOWN_LINES]
    return counts[-1], output[:SHOWN_LINES] if counts[-1] else []


def run(*chosen: str) -> None:
    """Run all tools on all variants whose features the GPU has, and store each report."""
    with open_device("cuda") as device:
        features = device.features
    runs = [
        (lab, variant.name)
        for lab in labs.names()
        for variant in registry.variants(labs.get(lab))
        if not variant.missing(features)
        and (not chosen or lab in chosen or f"{lab}/{variant.name}" in chosen)
    ]
    # Compiling is slow, and slower under a tool: what is cached before is compiled once.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda each: subprocess.run([*COMPUTE, *each], check=False, cwd=ROOT), runs))
        by_lab = {lab: [name for of, name in runs if of == lab] for lab, _ in runs}
        chunks = [
            (tool, lab, *names[at : at + CHUNK])
            for lab, names in by_lab.items()
            for tool in TOOLS
            for at in range(0, len(names), CHUNK)
        ]
        open_ones = {pool.submit(checked, *chunk): chunk for chunk in chunks}
        rows: list[dict[str, Any]] = []
        while open_ones:
            done, _ = wait(open_ones, return_when=FIRST_COMPLETED)
            for one in done:
                tool, lab, *names = open_ones.pop(one)
                reports, output = one.result()
                if reports == 0 or len(names) == 1:
                    report = {"tool": tool, "lab": lab, "reports": reports, "output": output}
                    rows += [{**report, "variant": name, **when()} for name in names]
                else:  # which of them?
                    open_ones |= {pool.submit(checked, tool, lab, n): (tool, lab, n) for n in names}
            store(rows, runs)
    for row in rows:
        if row["reports"] != 0:
            print(row["tool"], row["lab"], row["variant"], *row["output"], sep="\n  ")


def when() -> dict[str, str]:
    """The date and the commit of a report."""
    return {key: MACHINE()[key] for key in ("date", "commit")}


def store(rows: list[dict[str, Any]], running: Collection[tuple[str, str]]) -> None:
    """Store the reports so far, and keep those of variants that are not run now."""
    device = {key: MACHINE()[key] for key in ("device", "driver")}
    path = results.FOLDER / "sanitizers" / f"{results.slug(device['device'])}.json"
    before = results.read(path)["runs"] if path.exists() else []
    kept = [row for row in before if (row["lab"], row["variant"]) not in running]
    runs = sorted(kept + rows, key=lambda row: (row["lab"], row["variant"], row["tool"]))
    results.write(path, {**device, "runs": runs})


def lines(stored: dict[str, Any]) -> Iterable[list[str]]:
    """The rows of the table: a lab, and in how many of the variants that it examined each tool has
    nothing to report.
    """
    clean = Counter((row["lab"], row["tool"]) for row in stored["runs"] if row["reports"] == 0)
    examined = Counter((row["lab"], row["tool"]) for row in stored["runs"])
    for lab in dict.fromkeys(row["lab"] for row in stored["runs"]):
        sizes = ", ".join(in_words(size, ",") for size in SIZES.get(lab, LENGTHS))
        counts = [
            f"{clean[lab, tool]} of {examined[lab, tool]}" if examined[lab, tool] else "not run"
            for tool in TOOLS
        ]
        ran = {f"{row['date']}, `{row['commit']}`" for row in stored["runs"] if row["lab"] == lab}
        yield [f"`{lab}`", sizes, *counts, "; ".join(sorted(ran))]


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["run", *chosen]:
            run(*chosen)
        case ["compute", lab_name, *names]:
            compute(lab_name, *names)
        case _:
            sys.exit(__doc__)
