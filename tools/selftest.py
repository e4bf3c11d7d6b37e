"""Judge submissions of known quality on this machine, and store the verdicts.

python -m tools.selftest cpu|cuda [SANDBOX] [GROUP...]

does what `cudalab selftest` does, for all labs, or for the named groups alone (variants, mutants,
cheats), and stores docs/results/selftest. tools/generate.py makes two tables of docs/checking.md
from it: one of all runs, and one of published exploits, each of which is written anew as one of the
cheats. published.toml beside the results says who published what.
"""

import os
import sys
import tomllib
from collections.abc import Iterable, Sequence

from cudalab import labs
from cudalab.backends import facts, open_device
from cudalab.checker import selftest
from cudalab.checker.sandbox import sandbox as sandboxes
from cudalab.system.machine import usable_cores
from tools import results

FOLDER = results.FOLDER / "selftest"
GROUPS = ("variants", "mutants", "cheats")


def run(device: str, sandbox: str = "auto", *groups: str) -> None:
    """Judge and store the verdicts; on a GPU kernels alone, for no program uses it."""
    box = sandboxes.choose(sandbox)
    with open_device(device) as opened:
        features = opened.features
    jobs = [
        job
        for job in selftest.jobs(labs.names(), device, features)
        if job.group in (groups or GROUPS)
        and (job.path is None or not facts(device).nvcc or job.path.suffix == ".cu")
    ]
    findings = selftest.run(
        jobs, box, device, usable_cores(), lambda one, _: print(verdict(one), one.job.name, one.why)
    )
    machine = results.machine(device)
    rows = [
        {
            "group": one.job.group,
            "name": one.job.name,
            "verdict": verdict(one),
            "why": one.why.replace(sys.executable, "python"),
        }
        for one in sorted(findings, key=lambda one: (one.job.group, one.job.lab, one.job.name))
    ]
    counts = {group: count(findings, group) for group in GROUPS}
    head = {**machine, "sandbox": box.kind, "user": user(), "counts": counts}
    name = f"{results.slug(machine['device'])}-{results.slug(box.kind + ' ' + user())}.json"
    results.write_rows(FOLDER / name, head, rows, "verdicts")


def user() -> str:
    """Who judges here."""
    return "root" if os.getuid() == 0 else "ordinary"


def count(findings: Sequence[selftest.Finding], group: str) -> list[int]:
    """How many verdicts on a group were right, and how many there are."""
    judged = [one for one in findings if one.job.group == group]
    return [sum(one.right for one in judged), len(judged)]


def verdict(finding: selftest.Finding) -> str:
    """The verdict in a word; a cheat that only a better sandbox keeps out is "open"."""
    if finding.broken:
        return "not judged"
    if selftest.leaks([finding]):
        return "open"
    if finding.right:
        return "accepted" if finding.passed else "rejected"
    return "passed" if finding.passed else "refused"


def run_rows(stored: Sequence[results.Json]) -> Iterable[list[str]]:
    """The rows of the table of all runs."""
    for one in stored:
        rows = one["verdicts"]
        counts = [f"{right} of {of}" if of else "" for right, of in map(one["counts"].get, GROUPS)]
        left_open = one.get("open") or [row["name"] for row in rows if row["verdict"] == "open"]
        who = f"{one['sandbox']}, {one['user']}"
        made = [one["device"], who, one["date"], f"`{one['commit']}`"]
        yield [*made, *counts, ", ".join(f"`{name}`" for name in left_open)]


RUN_COLUMNS = [
    "machine",
    "sandbox, user",
    "date",
    "commit",
    "variants accepted",
    "mutants rejected",
    "cheats rejected",
    "open",
]


def exploit_rows(stored: Sequence[results.Json]) -> Iterable[list[str]]:
    """The rows of the table of exploits: a trick, its source, and each run's worst verdict."""
    published = tomllib.loads((FOLDER / "published.toml").read_text(encoding="utf-8"))
    for trick in published["trick"]:
        tried = trick.get("tried", [])
        how = ", ".join(f"`{name}`" for name in tried) or trick["instead"]
        verdicts = [worst(run["verdicts"], tried) for run in with_cheats(stored)]
        yield [published["sources"][trick["source"]], trick["name"], trick["what"], how, *verdicts]


def worst(rows: Sequence[results.Json], tried: Sequence[str]) -> str:
    """The verdict on those of the cheats that were tried; the first that is not "rejected"."""
    verdicts = {row["name"]: row["verdict"] for row in rows}
    known = [verdicts[name] for name in tried if name in verdicts]
    return next((each for each in known if each != "rejected"), "rejected" if known else "")


def exploit_columns(stored: Sequence[results.Json]) -> list[str]:
    """The heads of the table of exploits."""
    runs = [f"{run['device']}, {run['sandbox']}, {run['user']}" for run in with_cheats(stored)]
    return ["published by", "trick", "what it does", "tried here as", *runs]


def with_cheats(stored: Sequence[results.Json]) -> list[results.Json]:
    """The runs whose verdicts on cheats are stored one by one."""
    return [run for run in stored if run["verdicts"]]


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["cpu" | "cuda" as device, *rest]:
            run(device, *rest)
        case _:
            sys.exit(__doc__)
