"""Single mistakes in small programs, written for this comparison, and CuSan's pairs of programs.

The single mistakes lie in a folder `cases`, beside the clones, which is no repository.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from tools.suites.program import RIGHT, Program, Suite

WRONG = "wrong"
# How long a loop without an end may take; asked for with it, memory that is never freed is wrong.
OPTIONS = {"b32_infinite": ("--kill-after", "5"), "b17_leak": ("--leaks",)}
# Programs of CuSan that wait, and yet have a mistake.
SYNCHRONISED = {
    "16_cuda_hostalloc_implicit_sync": "race, if cudaMalloc does not wait",
    "16_cuda_malloc_implicit_sync": "race, if cudaMalloc does not wait",
    "31_tsan_cuda_event": "uninitialised memory",
    # Both end with cudaFree(d_data2), which is declared and never set.
    "15_cuda_memset_sync": "pointers that nobody has set",
    "15_cuda_memset_sync_nonblocking": "pointers that nobody has set",
}


def stated(folder: Path, part: str, table: str) -> Iterator[Program]:
    """The programs of a table of names and truths."""
    text = (folder / part / table).read_text("utf-8").splitlines()
    rows = csv.DictReader((line for line in text if not line.startswith("#")), delimiter="\t")
    for row in rows:
        if row.get("kind", "program") == "program":
            name = row["name"]
            truth = RIGHT if row["truth"] == "correct" else WRONG
            yield Program(
                name,
                truth,
                (f"{name}.cu",),
                folder=folder / part,
                options=OPTIONS.get(name, ()),
                what=row["what"],
            )


def single(folder: Path) -> Iterator[Program]:
    """Single mistakes, and right programs that look alike."""
    return stated(folder, "sanitize", "truth.tsv")


def hidden(folder: Path) -> Iterator[Program]:
    """Mistakes that need a thought, and right programs that look alike."""
    return stated(folder, "sanitize3", "TRUTH.tsv")


def blind(folder: Path) -> Iterator[Program]:
    """One mistake, written in as many ways as there are programs."""
    for path in sorted((folder / "blind").glob("*.cu")):
        yield Program(path.stem, WRONG, (path.name,), folder=path.parent)


def cusan(folder: Path) -> Iterator[Program]:
    """The pairs that need no MPI: without and with what they have to wait for."""
    for path in sorted((folder / "test/runtime").glob("*.c")):
        text = path.read_text("utf-8")
        if "CUSAN_SYNC" not in text or "MPI_" in text:
            continue
        kernel = path.with_suffix(".cu")
        kernel.write_text(text, "utf-8")
        truth = SYNCHRONISED.get(path.stem, RIGHT)
        yield Program(path.stem, "race", (kernel.name,), folder=path.parent)
        yield Program(
            f"{path.stem}-sync",
            truth,
            (kernel.name,),
            folder=path.parent,
            options=("-DCUSAN_SYNC",),
        )


SUITES = {
    "cases": Suite(
        "single mistakes",
        {"cases": "sanitize"},
        "small programs with one mistake each, and right ones that look alike, written for this "
        "comparison. An index beyond an array inside a structure is a note",
        programs=single,
    ),
    "hidden": Suite(
        "hidden mistakes",
        {"cases": "sanitize3"},
        "as above, with mistakes that are harder to see",
        programs=hidden,
    ),
    "blind": Suite(
        "statements",
        {"cases": "blind"},
        "one mistake, in statements that are written in different ways: conversions, compound "
        "assignments, shifts, members, templates, half precision",
        programs=blind,
    ),
    "cusan": Suite(
        "CuSan",
        {"tudasc/cusan": "test/runtime"},
        "the 25 pairs in `test/runtime` that need no MPI: without and with `-DCUSAN_SYNC`. A "
        "report by initcheck that the synchronised program does not have counts as found. In one "
        "pair both read memory that was never written; in two the program relies on `cudaMalloc` "
        "to wait; two free a pointer that they never set; nvcc does not compile "
        "`33_tsan_wait_event`",
        programs=cusan,
    ),
}
