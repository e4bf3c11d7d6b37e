"""Run all variants and programs of this repository under cudalab's own sanitizer.

python -m tools.sanitize [NAME]...    all, or these: LAB, LAB/VARIANT, samples/NAME, tests/NAME

Stores docs/results/sanitize/variants.json and programs.json, from which tools/generate.py makes a
table of docs/profile.md. Each variant is run in all of its cases, the first of each variant first;
what is stored when the tool is stopped, counts.
"""

import hashlib
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import zip_longest
from pathlib import Path

from cudalab import labs
from cudalab.backends import host_features
from cudalab.backends.cpu.kernel_runtime import check_runtime_library, runtime_library
from cudalab.errors import CudalabError
from cudalab.labs import registry
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case, Size
from cudalab.language import source
from cudalab.microscope import findings, sanitize, supervised
from cudalab.microscope.subject import Subject
from cudalab.system.machine import usable_cores
from tools import results, sanitizers
from tools.measure import COMMAND
from tools.programs import OWN, SAMPLES

Defines = dict[str, int | str]
Kinds = list[tuple[str, bool]]  # of findings, and whether each is a note

FOLDER = results.FOLDER / "sanitize"
MACHINE = cache(partial(results.machine, "cpu"))
KILL_AFTER_S = 600.0
ABOUT_VARIANTS = (
    "each variant that the CPU device runs, in its first case and in some others, with the inputs "
    "of `cudalab sanitize`; the large buckets of radix sort are smaller there, and samples are "
    "taken of short arrays, too. compute-sanitizer has run them with [other inputs]"
    "(performance/README.md#under-nvidias-checkers)"
)
ABOUT_PROGRAMS = (
    "those of `samples/programs`, each with the samples of its lab, and of `tests/programs`; some "
    "of these do what is wrong or not observed, to show that it works all the same"
)
# As they are, these have a block for each of many buckets, however short the array.
SMALL_BUCKETS: Defines = {"BUCKET_THREADS": 64, "BUCKET_KEYS_PER_THREAD": 4}
SMALLER: Mapping[str, Defines] = {
    "most_significant_first": SMALL_BUCKETS,
    "sampled_buckets": SMALL_BUCKETS,
    "most_significant_first_stable": SMALL_BUCKETS,
}
MANY_PASSES = {"split_1bit": 5001}  # the largest array that is worth its time
SAMPLED: Defines = {"MIN_SAMPLED": 1, "SAMPLE_BLOCKS": 16}
# What a variant does with long arrays or with some distributions only.
BESIDES: Mapping[str, tuple[Defines, tuple[str, ...]]] = {
    "one_block": ({}, ("equal", "half-equal", "bounded")),
    "bucket_slots": ({}, ("equal", "half-equal")),  # slots without room for their keys
    "most_significant_first": ({}, ("few", "half-equal")),
    "sampled_buckets": ({}, ("half-equal", "bounded", "top-byte")),
    "most_significant_first_heavy": (SAMPLED, ("half-equal", "entropy-0.544", "top-byte")),
}
ONE_INPUT = {"radixsort_report": "course"}  # each of its launches has a million threads
# Programs of tests/programs that are reported, and why that is right.
REPORTED = {
    "alike": "threads sum up in the same element, each as if it were alone",
    "arrays": "a surface is written beyond its border, which ends the kernel",
    "atomics": "blocks meet in atomic operations of block scope",
    "background": "kernels wait for the host, which goes on when they have ended",
    "edges": "integers are divided by zero",
    "launches": "a kernel writes through a null pointer",
    "lockstep": "the lanes of a warp count on moving in step",
    "partings": "threads wait at different barriers",
    "room": "an array in shared memory is overrun into the next one",
    "streams": "a kernel reads memory of a pool that nobody has written",
    "thrust": "a kernel writes to address 16",
    "tricky": "lanes count on moving in step; a shuffle reads from lanes that have left",
    "waits": "locks and tokens are handed on without fences",
}


@dataclass(frozen=True)
class Run:
    """A variant with inputs of each size and distribution."""

    variant: Variant
    case: Case
    sizes: tuple[Size, ...]
    dists: tuple[str, ...]


def runs(variant: Variant) -> Iterator[Run]:
    """The runs of a variant: a case, what it does with some inputs only, and the other cases."""
    lab = labs.get(variant.lab)
    variant = replace(variant, defines=variant.defines | SMALLER.get(variant.name, {}))
    most = MANY_PASSES.get(variant.name)
    for number, case in enumerate(case for case in lab.cases() if variant.computes(case)):
        sizes = lab.teaching.sizes(case).sanitized
        if most is not None:
            sizes = tuple(min(n, most) for n in sizes if isinstance(n, int))
        yield Run(variant, case, sizes, lab.distributions[:1])
        if number == 0 and variant.name in BESIDES:
            defines, dists = BESIDES[variant.name]
            yield Run(replace(variant, defines=variant.defines | defines), case, sizes[-1:], dists)


def judged(run: Run, orders: int = sanitize.ORDERS) -> Kinds:
    """The findings in a variant; an error is one, too."""
    lab, kinds = labs.get(run.variant.lab), list[tuple[str, bool]]()
    for dist in run.dists:
        subject = Subject(
            lab=lab, case=run.case, variants=[run.variant], dist=dist, seed=0, data=None
        )
        try:
            _, document = supervised.examine(
                subject, run.sizes, [orders] * len(run.sizes), KILL_AFTER_S
            )
        except CudalabError as error:
            kinds.append((f"{type(error).__name__}: {error.message}", False))
        else:
            kinds += [(found.kind, found.note) for found in document.findings]
    return kinds


# Programs ----------------------------------------------------------------------------------------


def programs() -> Iterator[tuple[str, list[Path], Path | None]]:
    """Each program: its name, its files and its input; those of the samples once an input."""
    described = tomllib.loads((SAMPLES / "programs" / "programs.toml").read_text("utf-8"))
    for name, each in described.items():
        files = [SAMPLES / "programs" / file for file in each["files"]]
        inputs = ONE_INPUT.get(name, "*")
        for answer in sorted((SAMPLES / each["lab"]).glob(f"{inputs}.{each['dtype']}.out.bin")):
            yield f"samples/{name}", files, answer.with_name(answer.name.replace(".out.", ".in."))
    for text in sorted(OWN.glob("*.txt")):
        yield f"tests/{text.stem}", [text.with_suffix(".cu")], None
    for name in ("grid_races", "ordered"):
        yield f"tests/{name}", [OWN / f"{name}.cu"], None


def program_judged(files: list[Path], stdin: Path | None) -> Kinds:
    """The findings in a program; the end without a report is one, too."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "findings.json")
        words = ["run", "--device", "cpu", "--sanitize", "--json", str(path), *map(str, files)]
        data = stdin.read_bytes() if stdin else b""
        done = subprocess.run([*COMMAND, *words], input=data, capture_output=True, check=False)
        if not path.exists():
            return [(done.stderr.decode()[-300:], False)]
        return [(found.kind, found.note) for found in findings.read(path).findings]


# Storing -----------------------------------------------------------------------------------------


def digest(variant: Variant) -> str:
    """The kernel file of a variant and all that it includes, but for comments and spaces."""
    texts = [path.read_text("utf-8") for path in source.load(variant.path, variant.label).files]
    words = " ".join(word for text in texts for word in source.blank_comments(text).split())
    return hashlib.sha256(words.encode()).hexdigest()[:12]


def row(name: str, truth: str, found: Iterable[Kinds], **more: object) -> results.Json:
    """What is stored of a variant or a program, from the findings of each of its runs."""
    unique = list(dict.fromkeys(kind for kinds in found for kind in kinds))
    return {
        "name": name,
        "truth": truth,
        "found": ", ".join(kind for kind, note in unique if not note),
        "notes": ", ".join(kind for kind, note in unique if note),
        "commit": MACHINE()["commit"],
        "date": MACHINE()["date"],
        **more,
    }


def variant_row(variant: Variant, found: Sequence[Kinds], nvidia: str | None) -> results.Json:
    """What is stored of a variant; `nvidia` are the tools of compute-sanitizer that report it."""
    more = {"runs": len(found), "sha256": digest(variant), "compute_sanitizer": nvidia}
    return row(f"{variant.lab}/{variant.name}", "right", found, **more)


def program_row(name: str, found: Sequence[Kinds]) -> results.Json:
    """What is stored of a program."""
    why = REPORTED.get(name.partition("/")[2]) if name.startswith("tests/") else None
    more = {"runs": len(found), "compute_sanitizer": None} | ({"what": why} if why else {})
    return row(name, "wrong on purpose" if why else "right", found, **more)


def store(
    name: str, suite: str, about: str, rows: Collection[results.Json], possible: int = 0
) -> None:
    """Store what was judged so far, and keep the rows of what is not judged now.

    `possible` is the number of runs that there are, if not all of them need be stored.
    """
    path = FOLDER / f"{name}.json"
    every = kept(path) | {each["name"]: each for each in rows}
    head: results.Json = {"suite": suite, "source": about, "gpu": ""}
    head |= {"possible": possible} if possible else {}
    results.write_rows(path, head, [every[each] for each in sorted(every)], "programs")


def kept(path: Path) -> dict[str, results.Json]:
    """The rows of a suite that are stored, by the names of the programs."""
    return {each["name"]: each for each in results.read(path)["programs"]} if path.exists() else {}


def by_nvidia() -> dict[str, str]:
    """The tools of compute-sanitizer that report something, for each variant that all have run."""
    reports: dict[str, dict[str, bool]] = {}
    for stored in results.read_all("sanitizers"):
        for each in stored["runs"]:
            name = f"{each['lab']}/{each['variant']}"
            reports.setdefault(name, {})[each["tool"]] = each["reports"] != 0
    whole = {name: tools for name, tools in reports.items() if len(tools) == len(sanitizers.TOOLS)}
    return {name: ", ".join(tool for tool in tools if tools[tool]) for name, tools in whole.items()}


def main(*chosen: str) -> None:
    """Judge what was chosen, and store each verdict as it comes."""
    check_runtime_library()
    runtime_library()
    variants = {
        f"{lab.name}/{variant.name}": variant
        for lab in map(labs.get, labs.names())
        for variant in registry.variants(lab)
        if not variant.missing(host_features())
    }
    unknown = set(chosen) - {*variants, *labs.names(), *(name for name, *_ in programs())}
    if unknown:
        sys.exit(f"{', '.join(sorted(unknown))}: no lab, variant or program\n\n{__doc__}")
    possible = sum(1 for variant in variants.values() for _ in runs(variant))
    ready = by_nvidia()
    found: dict[str, list[Kinds]] = {}
    with ProcessPoolExecutor(usable_cores()) as pool:
        jobs = {
            pool.submit(program_judged, files, stdin): name
            for name, files, stdin in programs()
            if not chosen or name in chosen
        }
        wanted = [
            name for name in variants if not chosen or {name, name.partition("/")[0]} & set(chosen)
        ]
        for turn in zip_longest(*(runs(variants[name]) for name in wanted)):
            jobs |= {
                pool.submit(judged, run): name
                for name, run in zip(wanted, turn, strict=True)
                if run is not None
            }
        for job in as_completed(jobs):
            found.setdefault(jobs[job], []).append(job.result())
            rows = [
                variant_row(variants[name], kinds, ready.get(name))
                for name, kinds in found.items()
                if name in variants
            ]
            store("variants", "shipped variants", ABOUT_VARIANTS, rows, possible)
            rows = [
                program_row(name, kinds) for name, kinds in found.items() if name not in variants
            ]
            store("programs", "shipped programs", ABOUT_PROGRAMS, rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
