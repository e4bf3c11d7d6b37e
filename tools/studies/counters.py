"""Compare the counts of the CPU device's instrument with a GPU's own counters.

python -m tools.studies counters cpu COUNTS.json        on any machine: every block traced, no GPU
python -m tools.studies counters cuda COUNTS.json       on a machine with a GPU, PyCUDA and ncu
python -m tools.studies counters sass CODE.json         there as well: the instructions behind them
    followed by names of labs, or of variants such as reduce/sequential: only these are run, and
    added to the file
python -m tools.studies counters compare CPU.json CUDA.json CODE.json
    prints the deviations and stores them, with their causes, under docs/results/counters/

One process computes all variants of the labs, at two sizes; ncu watches it and reads a few
counters of each launch. Kernels are compiled before, by many processes.
"""

import csv
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from cudalab import labs, runner
from cudalab.backends import host_features, open_device
from cudalab.backends.trace import LaunchTrace
from cudalab.bench.results import commit
from cudalab.errors import CudalabError
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case, Size
from cudalab.labs.sizes import in_words
from cudalab.language import source
from cudalab.microscope import ncu, profile, subject
from tools import results
from tools.studies import causes

Counts = dict[str, Any]

# One size that tiles and blocks cover exactly, and one that they do not.
SIZES: dict[str, tuple[Size, Size]] = {
    "matmul": (128, 200),
    "reduce": (1 << 16, 100_003),
    "scan": (1 << 16, 100_003),
    "histogram": (1 << 16, 100_003),
    "transpose": (256, (300, 200)),
}
MATRIX = (256, (300, 200))  # of reduce --rows and --cols
SEED = 1
# The counts that are judged, in words; the others only say more about these.
JUDGED = {
    "global_load_sectors": "sectors, loads",
    "global_store_sectors": "sectors, stores",
    "shared_wavefronts": "wavefronts",
    "bank_conflicts": "bank conflicts",
    "divergent_branches": "divergent branches",
}
CHILD = [sys.executable, "-m", "tools.studies", "counters", "child"]  # what ncu watches
EXPLAINED = 0.02  # a larger deviation needs a cause

# Our quantity -> the counters whose sum it is. Those that a GPU does not have are left out.
COUNTERS = {
    "global_load_requests": ["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"],
    "global_store_requests": ["l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"],
    "global_load_sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"],
    "global_store_sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"],
    "shared_load_requests": ["smsp__inst_executed_op_shared_ld.sum"],
    "shared_store_requests": ["smsp__inst_executed_op_shared_st.sum"],
    "shared_load_wavefronts": ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"],
    "shared_store_wavefronts": ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"],
    "shared_atomic_wavefronts": ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"],
    "shared_wavefronts": [
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",
    ],
    "bank_conflicts": [
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    ],
    "divergent_branches": ["smsp__sass_branch_targets_threads_divergent.sum"],
    "branches": ["smsp__sass_branch_targets.sum"],
}


def main(command: str = "", *paths: str) -> None:
    """One of the commands above, or `child`, which ncu runs."""
    if command == "cpu":
        results.write(Path(paths[0]), {"device": "cpu", "counts": cpu_counts()})
    elif command == "cuda":
        add(Path(paths[0]), cuda_counts(Path(paths[0]), paths[1:]), "counts")
    elif command == "sass":
        add(Path(paths[0]), executed_code(Path(paths[0]), paths[1:]), "code")
    elif command == "child":
        launches_on_gpu(Path(paths[0]), paths[1:])
    elif command == "compare":
        compare(*(results.read(Path(path)) for path in paths))
    else:
        sys.exit(__doc__)


def add(path: Path, counted: Counts, what: str) -> None:
    """Write JSON; runs of the file that are not counted again stay as they are."""
    if path.exists():
        known = results.read(path)
        counted = {**counted, what: {**known[what], **counted[what]}}
    results.write(path, counted)


# What is run -------------------------------------------------------------------------------------


def work(names: Sequence[str] = ()) -> Iterator[tuple[Lab, Variant, Case, Size]]:
    """Every variant that both devices run, in the first case it computes, at both sizes.

    `names`: only these labs and variants.
    """
    for name, sizes in SIZES.items():
        lab = labs.get(name)
        for variant in registry.variants(lab):
            chosen = not names or name in names or f"{name}/{variant.name}" in names
            if not chosen or variant.missing(host_features()):
                continue
            case = first_case(lab, variant)
            shaped = MATRIX if case.get("along", "all") != "all" else sizes
            for size in shaped:
                yield lab, variant, case, size


def first_case(lab: Lab, variant: Variant) -> Case:
    """The lab's default case where the variant computes it, else the first that it does."""
    return next(case for case in lab.cases() if variant.computes(case))


def key(lab: Lab, variant: Variant, size: Size) -> str:
    """The name of a run, such as reduce/sequential/65536."""
    return f"{lab.name}/{variant.name}/{in_words(size)}"


def inputs(lab: Lab, case: Case, size: Size) -> subject.Data:
    """The inputs of a run, the same bytes on both devices."""
    with tempfile.TemporaryDirectory() as folder:
        return subject.generated(lab, case, size, lab.distributions[0], SEED, Path(folder))


# The CPU device ----------------------------------------------------------------------------------


def cpu_counts() -> dict[str, dict[str, Counts]]:
    """The counts by run and kernel, with every block traced."""
    counts = {}
    for lab, variant, case, size in work():
        run = key(lab, variant, size)
        print(run, flush=True)
        counts[run] = cpu_run(lab, variant, case, size)
    return counts


def cpu_run(lab: Lab, variant: Variant, case: Case, size: Size) -> dict[str, Counts]:
    """The counts of each kernel of one run."""
    from cudalab.backends.cpu.check import CheckDevice  # noqa: PLC0415 - the GPU's side needs none

    with CheckDevice(detect=False, count=True) as device:
        data = inputs(lab, case, size)
        one = profile.profile_variant(lab, variant, device, lambda: device.traces, data, case)
    if one.failed:
        sys.exit(f"{variant.label}: {one.failed}")
    return {
        kernel.name: {**counted(kernel), "lines": lines(kernel.trace)} for kernel in one.kernels
    }


def lines(trace: LaunchTrace) -> Counts:
    """The accesses and branches at each line of the source."""
    return {
        "accesses": [
            [a.place.file, a.place.line, a.space, a.kind, a.bytes_per_lane, a.requests]
            for a in trace.accesses
        ],
        "branches": [
            [b.place.file, b.place.line, b.executions, b.divergent] for b in trace.branches
        ],
    }


def counted(kernel: profile.KernelProfile) -> Counts:
    """The kernel's totals; atomics have no counter of conflicts, so theirs are left out."""
    totals = kernel.totals()
    atomic = sum(
        access.wavefronts - access.ideal_wavefronts
        for access in kernel.trace.accesses
        if access.space == "shared" and access.kind == "atomic"
    )
    return {
        name: getattr(totals, name) - (atomic if name == "bank_conflicts" else 0)
        for name in COUNTERS
    }


# The GPU -----------------------------------------------------------------------------------------


def cuda_counts(path: Path, names: Sequence[str]) -> Counts:
    """Compile all variants, run them once under ncu, and give each launch's counters to its run.

    The output of ncu and the order of the launches stay in files beside `path`.
    """
    tool = ncu.find_ncu()
    compile_all(names)
    counters = available(tool, sorted({name for each in COUNTERS.values() for name in each}))
    log, launches = path.with_suffix(".csv"), path.with_suffix(".launches.json")
    words = [
        *(str(tool), "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"),
        *("--cache-control", "none", "--print-kernel-base", "function", "--log-file", str(log)),
        *("--metrics", ",".join(counters)),
        *(*CHILD, str(launches), *names),
    ]
    status = subprocess.run(words, check=False).returncode
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    if status:
        sys.exit(f"ncu ended with {status}:\n{text[-3000:]}")
    order = results.read(launches)
    counts = by_run(order["launches"], table(text))
    for run in order["wrong"]:
        print(f"left out: {run}", flush=True)
        counts.pop(run.partition(":")[0], None)
    return {"device": order["device"], "ncu": version(tool), "counters": counters, "counts": counts}


def by_run(
    launches: list[tuple[str, str]], rows: list[dict[str, str]]
) -> dict[str, dict[str, Counts]]:
    """The counts by run and kernel, given the launches in their order."""
    if len(rows) != len(launches):
        sys.exit(f"ncu saw {len(rows)} launches, the process made {len(launches)}")
    counts: dict[str, dict[str, Counts]] = {}
    for (run, kernel), row in zip(launches, rows, strict=True):
        if not row["Kernel Name"].startswith(kernel):
            sys.exit(f"{run}: launched {kernel}, ncu saw {row['Kernel Name']}")
        sums = counts.setdefault(run, {}).setdefault(kernel, {})
        for quantity, counters in COUNTERS.items():
            if all(name in row for name in counters):
                sums[quantity] = sums.get(quantity, 0) + sum(number(row[name]) for name in counters)
    return counts


def executed_code(path: Path, names: Sequence[str]) -> Counts:
    """Which instructions of the machine code each run executed, by line of the source.

    Each lab's report stays in a file beside `path`.
    """
    tool = ncu.find_ncu()
    reader = ncu.load_reader(tool)
    compile_all(names)
    code: dict[str, dict[str, list[list[Any]]]] = {}
    for lab in dict.fromkeys(lab.name for lab, *_ in work(names)):
        report, launches = path.with_suffix(f".{lab}.ncu-rep"), path.with_suffix(f".{lab}.json")
        chosen = [f"{lab}/{one.name}" for of, one, *_ in work(names) if of.name == lab]
        command = [*CHILD, str(launches), *chosen]
        ncu.run(tool, ncu.BY_INSTRUCTION, report, command)
        order = results.read(launches)["launches"]
        actions = list(ncu.actions(reader.load_report(str(report))))
        if len(actions) != len(order):
            sys.exit(f"ncu saw {len(actions)} launches, the process made {len(order)}")
        for (run, kernel), action in zip(order, actions, strict=True):
            add_code(code.setdefault(run, {}).setdefault(kernel, []), action, texts(run))
    return {"columns": ["file", "line", "opcode", "copies", *ncu.BY_INSTRUCTION], "code": code}


def texts(run: str) -> list[str]:
    """The names of the files that a run's kernels come from."""
    lab, variant, _ = run.split("/")
    one = registry.find(labs.get(lab), variant)
    return list(subject.texts_of(source.load(one.path, one.label)))


def add_code(rows: list[list[Any]], action: Any, labels: list[str]) -> None:
    """Add the memory accesses and branches of a launch to those of the launches before it.

    Instructions that differ in their registers alone are one row with their number; an
    `@` marks those with a predicate.
    """
    known = {tuple(row[:3]): row for row in rows}
    copies: dict[tuple[Any, ...], int] = {}
    for one in ncu.instructions(action, labels):
        if not (ncu.memory_access(one.sass) or ncu.is_branch(one.sass)):
            continue
        predicate = "@" if one.sass.strip().startswith("@") else ""
        place = (one.place.file, one.place.line, predicate + "".join(ncu.opcode(one.sass)))
        if place not in known:
            rows.append([*place, 0, *(0 for _ in ncu.BY_INSTRUCTION)])
            known[place] = rows[-1]
        row = known[place]
        copies[place] = copies.get(place, 0) + 1
        row[3] = max(row[3], copies[place])
        for column, counter in enumerate(ncu.BY_INSTRUCTION, start=4):
            row[column] += one.counts[counter]


def compile_all(names: Sequence[str]) -> None:
    """Fill the cache with the machine code of all variants, in several processes."""
    variants = sorted({(lab.name, variant.name) for lab, variant, _, _ in work(names)})
    with ProcessPoolExecutor(min(os.cpu_count() or 1, 12)) as pool:
        done = pool.map(compile_one, variants)
        print(f"{sum(done)} variants compiled", flush=True)


def compile_one(names: tuple[str, str]) -> int:
    """Fill the cache with one variant's machine code."""
    lab = labs.get(names[0])
    variant = registry.find(lab, names[1])
    with open_device("cuda") as device:
        lab.compiled(variant, device, first_case(lab, variant))
    return 1


def available(tool: Path, names: list[str]) -> list[str]:
    """The counters that this GPU has; all of `names` where ncu does not say."""
    done = subprocess.run(
        [str(tool), "--query-metrics"], capture_output=True, text=True, check=False
    )
    known = {line.split()[0] for line in done.stdout.splitlines() if line and "__" in line}
    missing = [name for name in names if known and name.partition(".")[0] not in known]
    if missing:
        print(f"no such counter here: {', '.join(missing)}", flush=True)
    return [name for name in names if name not in missing]


def launches_on_gpu(path: Path, names: Sequence[str]) -> None:
    """The process that ncu watches: every run once, and which launches belong to it."""
    launches: list[tuple[str, str]] = []
    wrong: list[str] = []
    with open_device("cuda") as device:
        launch = device.launch
        current = ""

        def noted(kernel: Any, grid: Any, *args: Any, **options: Any) -> None:
            dims = (grid,) if isinstance(grid, int) else tuple(grid)
            if 0 not in dims:
                launches.append((current, kernel.name))
            launch(kernel, grid, *args, **options)

        device.launch = noted  # type: ignore[method-assign] # this process does nothing else
        for lab, variant, case, size in work(names):
            current = key(lab, variant, size)
            data = inputs(lab, case, size)
            try:
                step = runner.prepare(lab, variant, device, data.inputs, case)
                step()
                if mismatches := lab.compare(device.to_host(step.out), data.inputs, case):
                    wrong.append(f"{current}: {mismatches}")
            except CudalabError as error:
                wrong.append(f"{current}: {error.message}")
        name = device.info().name
    results.write(path, {"device": name, "launches": launches, "wrong": wrong})


def table(log: str) -> list[dict[str, str]]:
    """The rows of ncu's table; the line below its head has the units."""
    lines = log.splitlines()
    head = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if head is None:
        sys.exit(f"ncu printed no table:\n{log[-3000:]}")
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[head:]))))
    return [row for row in rows if row["ID"]]


def number(text: str) -> int:
    """A count as ncu prints it."""
    return round(float(text.replace(",", ""))) if re.match(r"[\d.,]+$", text) else 0


def version(tool: Path) -> str:
    """The last line of ncu's output about its version."""
    done = subprocess.run([str(tool), "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip().rpartition("\n")[2]


# Comparing ---------------------------------------------------------------------------------------


def compare(cpu: Counts, cuda: Counts, executed: Counts) -> None:
    """Print each deviation that needs a cause, and store all counts."""
    rows = []
    for run, kernels in cuda["counts"].items():
        for kernel, there in kernels.items():
            here = cpu["counts"].get(run, {}).get(kernel)
            if here is None:
                sys.exit(f"{run}: the CPU's counts lack the kernel {kernel}")
            columns, code = executed["columns"], executed["code"][run][kernel]
            instructions = [dict(zip(columns, row, strict=True)) for row in code]
            rows += [
                row_of((run, kernel, quantity), here, there, instructions)
                for quantity in COUNTERS
                if quantity in there and (here[quantity] or there[quantity])
            ]
    judged = [row for row in rows if row["quantity"] in JUDGED]
    print(f"{'run':<44} {'kernel':<16} {'quantity':<20} {'cpu':>11} {'cuda':>11} {'':>8}  cause")
    for row in judged:
        if not within(row):
            off = "" if row["deviation"] is None else f"{100 * row['deviation']:+.1f} %"
            print(
                f"{row['run']:<44} {row['kernel']:<16} {row['quantity']:<20} "
                f"{row['cpu']:>11,} {row['cuda']:>11,} {off:>8}  "
                f"{row.get('cause') or 'UNKNOWN'}: {row.get('evidence', '')}"
            )
    for quantity in JUDGED:
        count, equal, near, caused = agreeing([r for r in judged if r["quantity"] == quantity])
        print(
            f"{quantity:<20} {count:>4} compared, {equal:>4} equal, {near:>4} within 2 %, "
            f"{caused:>4} with a cause, {count - near - caused:>4} without"
        )
    path = results.FOLDER / "counters" / f"{results.slug(cuda['device'])}.json"
    head = {
        "device": cuda["device"],
        "ncu": cuda["ncu"],
        "date": results.today(),
        "commit": commit(),
        "counters": COUNTERS,
        "causes": causes.CAUSES,
    }
    results.write_rows(path, head, rows)
    print(f"stored: {path.relative_to(results.ROOT).as_posix()}")


def agreeing(rows: list[Counts]) -> tuple[int, int, int, int]:
    """The number of all counts, of equal ones, of nearly equal ones, and of those with a cause."""
    equal, near = sum(row["deviation"] == 0 for row in rows), sum(map(within, rows))
    return len(rows), equal, near, sum("cause" in row for row in rows)


def within(row: Counts) -> bool:
    """Whether the two counts are close enough to need no cause."""
    return row["deviation"] is not None and abs(row["deviation"]) <= EXPLAINED


def row_of(what: tuple[str, str, str], here: Counts, there: Counts, code: list[Counts]) -> Counts:
    """One comparison of a run, kernel and quantity.

    The deviation is a fraction of the GPU's count. Where it is judged and too large, `cause` and
    `evidence` say why.
    """
    run, kernel, quantity = what
    expected = there[quantity]
    row = {
        "run": run,
        "kernel": kernel,
        "quantity": quantity,
        "cpu": here[quantity],
        "cuda": expected,
        "deviation": round(here[quantity] / expected - 1, 4) if expected else None,
    }
    if quantity not in JUDGED or within(row):
        return row
    cause, evidence = causes.cause(quantity, here, there, code)
    return {**row, "cause": cause, "evidence": evidence} if cause else row
