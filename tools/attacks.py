"""Judge attacks and mutants that others have written, and store what became of each.

python -m tools.attacks FOLDER [GROUP...]

FOLDER has kernels/, scripts/, programs/, free_sanitizer/ and mutants3/mutants.tsv; the group tells
is in tests/attacks/tells.toml. Each file is judged by `cudalab check` in the machine's sandbox, as
a student's file is. Files that make more of them (kernels/*.py) are run first. WANTED holds the
exit statuses that are right for each; whatever has another one, or shows one of the MARKS of code
that should not have run, is stored as open.

Stores docs/results/written/cpu.json, each verdict with its commit; tools/generate.py makes a table
of docs/checking.md of it.
"""

import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from cudalab import labs
from cudalab.labs import registry
from cudalab.language import source
from cudalab.system.machine import usable_cores
from tools import results

STORED = results.FOLDER / "written" / "cpu.json"
# A script may write to its input, for each run has a copy of its own: WRITTEN is no such mark.
# What a raw control character, or the words of an attack that has succeeded, look like.
MARKS = re.compile(
    "IFUNC-RAN|CTORS-RAN|BYTES-RAN|ASM-RAN|DAEMON FOUND|LEFT BY AN EARLIER RUN"
    "|Traceback|[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]"
)
WRONG, COMPILE, TIME = (3,), (5,), (6, 3)
WANTED: dict[str, dict[str, tuple[int, ...]]] = {
    "kernels": {
        "k01": COMPILE, "k02": COMPILE, "k03": COMPILE, "k04": COMPILE, "k05": (3, 5),
        "k06": WRONG, "k07": (0, 3), "k08": COMPILE, "k11": WRONG, "k12": WRONG,
        "header_hex": (0,), "header_under": (0,), "header": COMPILE, "enc": (0, 5), "": (0, 5),
    },
    "scripts": {
        "p01": WRONG, "p02": WRONG, "p03": (0,), "p04": (0,), "p05": WRONG, "p06": (0, 3),
        "p07": (0,), "p08": (0,), "p09": WRONG,
    },
    "programs": {"g01": WRONG, "g02": (0,), "g03": WRONG, "g04": WRONG},
    "free_sanitizer": {
        "a1": COMPILE, "a3": COMPILE, "h05": TIME, "r1": TIME, "s3": COMPILE, "t2": COMPILE,
        "stopper": (1, 3, 6), "": WRONG,
    },
    "mutants3": {"": (3, 6)},
    "tells": {},
}  # fmt: skip
# Attacks of our own: changes of a right kernel, with the statuses that are right for each.
TELLS = results.ROOT / "tests" / "attacks" / "tells.toml"
# Mutants whose answers are those of the original: never, or for no valid input, wrong.
EQUAL = ("m07", "m19", "m20", "m38")
HEADER = """// /// cudalab
// summary  = "Adds the second half of the items to the first"
// order    = 100
// dispatch = "halving"
// defines  = { THREADS_PER_BLOCK = 256 }
// applies  = { dtype = ["int32"], op = ["sum"], along = ["all"] }
// ///
"""
KERNEL = """extern "C" __global__ void combine_halves(const T* x, const T*, T* out, unsigned n, int,
                                          unsigned) {
const unsigned half = n - n / 2, i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
"""
RACE = """__shared__ int d;
if (threadIdx.x == 0) d = 0;
__syncthreads();
if (%s) atomicAdd(&d, 1); else d = d + 1;
__syncthreads();
if (d == -5) out[0] = d;
"""
PROGRAMS = ("s7", "s8", "s9", "g0")
FLOATS = ("k11", "k12")


class Attack(NamedTuple):
    """A file, and the words behind `cudalab check` that judge it."""

    group: str
    name: str
    words: list[str]
    statuses: tuple[int, ...] = ()

    def wanted(self) -> tuple[int, ...]:
        """The exit statuses that are right."""
        if self.statuses:
            return self.statuses
        of_group = WANTED[self.group]
        return next(statuses for key, statuses in of_group.items() if self.name.startswith(key))


def main() -> None:
    """Judge all groups, or the named ones, and store their verdicts."""
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    folder, chosen = Path(sys.argv[1]), sys.argv[2:] or list(WANTED)
    machine = results.machine("cpu")
    with tempfile.TemporaryDirectory(prefix="cudalab-attacks-") as scratch:
        attacks = list(found(folder, Path(scratch), chosen))
        with ThreadPoolExecutor(usable_cores()) as pool:
            rows = list(pool.map(judged, attacks))
    rows = [{**row, "commit": machine["commit"]} for row in rows]
    kept = [row for row in stored() if row["group"] not in chosen]
    results.write_rows(
        STORED, machine, sorted([*kept, *rows], key=lambda r: (r["group"], r["name"]))
    )


def stored() -> list[results.Json]:
    """The verdicts on all attacks."""
    rows: list[results.Json] = results.read(STORED)["rows"] if STORED.exists() else []
    return rows


def found(folder: Path, scratch: Path, groups: Iterable[str]) -> Iterator[Attack]:
    """The attacks of some groups; what a file makes lies in the scratch folder."""
    for group in groups:
        if group == "mutants3":
            yield from by_hand(folder / group / "mutants.tsv", scratch)
            continue
        if group == "tells":
            yield from tells(scratch)
            continue
        for path in sorted((folder / group).iterdir()):
            if path.suffix == ".py" and group == "kernels":
                made = scratch / path.stem
                subprocess.run([sys.executable, str(path), str(made)], check=True)
                for one in sorted(made.iterdir()):
                    yield Attack(group, one.name, ["reduce", f"--kernel={one}"])
            elif path.suffix == ".py":
                sandbox = ["--sandbox", "none"] if path.stem == "stopper" else []
                words = ["reduce", *sandbox, "--", sys.executable, str(path)]
                yield Attack(group, path.name, words)
            elif path.suffix == ".cu":
                lab = "radixsort" if path.name.startswith("g04") else "reduce"
                text = path.read_text(encoding="utf-8")
                lab = "histogram" if "one_pass" in text else lab
                kind = "program" if path.name.startswith(PROGRAMS) else "kernel"
                floats = ["--dtype", "float32"] if path.name.startswith(FLOATS) else []
                yield Attack(group, path.name, [lab, f"--{kind}={path}", *floats])


def by_hand(table: Path, scratch: Path) -> Iterator[Attack]:
    """The mutants of a table: a text in a shipped variant, and what replaces it."""
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            lab = labs.get(row["lab"])
            text = source.whole(source.load(registry.find(lab, row["variant"]).path))
            if row["id"] in EQUAL or row["text"] not in text:
                continue
            path = scratch / row["id"] / f"{row['variant']}.cu"
            path.parent.mkdir()
            path.write_text(text.replace(row["text"], row["replacement"], 1), encoding="utf-8")
            yield Attack(
                "mutants3", row["id"], [lab.name, f"--kernel={path}", *row["options"].split()]
            )


def tells(scratch: Path) -> Iterator[Attack]:
    """Attacks of our own, as kernel files of reduce."""
    for one in tomllib.loads(TELLS.read_text(encoding="utf-8"))["attack"]:
        path = scratch / f"{one['name']}.cu"
        path.write_text(kernel(one), encoding="utf-8")
        words = ["reduce", f"--kernel={path}"]
        yield Attack("tells", one["name"], words, tuple(one["status"]))


def kernel(attack: Mapping[str, str]) -> str:
    """The text of an attack: a right kernel with its lines, and its race if it tells a build."""
    race = RACE % attack["tells"] if "tells" in attack else ""
    ends = attack.get("ends", "if (i < half) out[i] = x[i] + (i + half < n ? x[i + half] : 0);\n")
    above, begins = attack.get("above", ""), attack.get("begins", "")
    return f"{HEADER}{above}{KERNEL}{begins}{race}{ends}}}\n"


def judged(attack: Attack) -> results.Json:
    """What `cudalab check` says of an attack."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        timed = [] if attack.name.startswith("k06") else ["--no-time"]
        lab, *words = attack.words
        command = [sys.executable, "-m", "cudalab", "check", lab, "--device", "cpu", *timed]
        done = subprocess.run(
            [*command, "--json", str(report), *words],
            capture_output=True,
            env={**os.environ, "NO_COLOR": "1"},
            cwd=folder,
            check=False,
        )
        document = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    shown = (done.stdout + done.stderr).decode("utf-8", "replace")
    mark = MARKS.search(shown)
    row = {
        "group": attack.group,
        "name": attack.name.encode("ascii", "backslashreplace").decode()[:60],
        "status": done.returncode,
        "as wanted": done.returncode in attack.wanted() and mark is None,
        "mark": "" if mark is None else mark[0].encode("unicode_escape").decode(),
        "points": document.get("points"),
        "max_points": document.get("max_points"),
        "says": next(
            (
                f"{one['name']}: {one['says']}"
                for one in [*document.get("tests", []), *document.get("stages", [])]
                if one["status"] not in ("passed", "skipped")
            ),
            "",
        ).partition(tempfile.gettempdir())[0][:120],
    }
    print(*row.values(), flush=True)
    return row


def table() -> str:
    """The groups, and how many of each end as they must."""
    counts: dict[str, Counter[bool]] = {}
    for row in stored():
        counts.setdefault(row["group"], Counter())[row["as wanted"]] += 1
    open_ones = {
        group: [
            f"`{row['name']}` ({row['status']})"
            for row in stored()
            if row["group"] == group and not row["as wanted"]
        ]
        for group in counts
    }
    rows = [
        [group, str(of[True] + of[False]), str(of[True]), ", ".join(open_ones[group])]
        for group, of in counts.items()
    ]
    run = results.read(STORED)
    commits = Counter(row["commit"] for row in stored())
    words = ", ".join(f"{count} at commit `{commit}`" for commit, count in commits.items())
    note = f"Judged in bwrap on {run['device']}, the latest on {run['date']}: {words}.\n\n"
    return note + results.table(["group", "files", "as wanted", "open, and its exit status"], rows)


if __name__ == "__main__":
    main()
