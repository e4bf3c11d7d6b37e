"""The whole class, twice: the grader killed in the middle, then a worker of the cluster killed.

    python -m tests.attacks.load FOLDER SANDBOX [LAB...]

prints what the documentation states: submissions, verdicts, attempts, faults, escapes. It writes
that to FOLDER, too, as a file for docs/results/attacks. Exit status 1 when a verdict is wrong, a
result is lost, or something has escaped.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.attacks import generate
from tools import results
from tools.selftest import user

if TYPE_CHECKING:
    from collections.abc import Callable

LABS = ("reduce", "histogram", "scan", "matmul", "transpose", "radixsort", "bitonic", "table")
OPTIONS = ("--quick", "--device", "cpu", "--kill-after", "5", "--memory", "600M",
           "--time-limit", "0.3", "--language", "any")  # fmt: skip


def command(sandbox: str, folder: Path, lab: str, out: Path, *more: str) -> list[str]:
    """`cudalab grade`."""
    words = [sys.executable, "-m", "cudalab", "grade", folder, "--lab", lab, "--out", out]
    return [*map(str, words), *OPTIONS, "--sandbox", sandbox, *more]


def states(out: Path) -> dict[str, tuple[str, int, bool | None]]:
    """State, attempts and verdict of each submission."""
    with suppress(sqlite3.Error), sqlite3.connect(out / "results.sqlite") as db:
        rows = db.execute("SELECT name, state, attempts, report FROM submissions").fetchall()
        return {
            name: (state, attempts, json.loads(report)["passed"] if report else None)
            for name, state, attempts, report in rows
        }
    return {}


def done(out: Path) -> int:
    """How many have been judged."""
    return sum(state == "done" for state, _, _ in states(out).values())


def killed_grader(sandbox: str, folder: Path, lab: str, out: Path, count: int) -> int:
    """End the grader without a word when about half is done; call it again."""
    with Path(f"{out}.log").open("w") as log:
        first = subprocess.Popen(command(sandbox, folder, lab, out), stdout=log, stderr=log)
        while first.poll() is None and done(out) < count // 2:
            time.sleep(0.1)
        cut = 0
        if first.poll() is None:
            first.send_signal(signal.SIGKILL)
            cut = 1
        first.wait()
        subprocess.run(command(sandbox, folder, lab, out), stdout=log, stderr=log, check=True)
    return cut


def killed_worker(sandbox: str, folder: Path, lab: str, out: Path, count: int) -> int:
    """End a worker process of the cluster when about a third is done."""
    with Path(f"{out}.log").open("w") as log:
        running = subprocess.Popen(
            command(sandbox, folder, lab, out, "--scheduler", "local:2"), stdout=log, stderr=log
        )
        cut = 0
        while running.poll() is None:
            time.sleep(0.1)
            if not cut and done(out) >= max(count // 3, 1):
                for pid in workers(running.pid)[:1]:
                    os.kill(pid, signal.SIGKILL)
                    cut = 1
        if running.returncode:
            raise SystemExit(f"{lab}: see {out}.log")
    return cut


def workers(parent: int) -> list[int]:
    """The worker processes below a grader that has a local cluster."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            with suppress(OSError):
                fields = (path / "stat").read_text().rpartition(")")[2].split()
                words = (path / "cmdline").read_bytes()
                if int(fields[1]) == parent and b"spawn_main" in words:
                    found.append(int(path.name))
    return found


def still_running(boxes: Path) -> list[str]:
    """Processes that were started in a box, and are left over."""
    found = []
    for path in Path("/proc").iterdir():
        with suppress(OSError):
            if path.name.isdecimal() and (path / "cwd").readlink().is_relative_to(boxes):
                found.append((path / "cmdline").read_bytes().decode(errors="replace")[:80])
    return found


def judged(
    sandbox: str, folder: Path, lab: str, fault: Callable[..., int], wanted: dict[str, str]
) -> results.Json:
    """Grade a class with a fault in the middle, and compare the verdicts with the right ones.

    An attack that only bubblewrap keeps out is "open" elsewhere, as each report says there.
    """
    began, out = time.monotonic(), folder / f"{lab}-{fault.__name__}"
    faults = fault(sandbox, folder / lab, lab, out, len(wanted))
    found = states(out)
    passed = {name for name in wanted if found.get(name, ("", 0, None))[2]}
    right = {name for name, verdict in wanted.items() if verdict == "pass"}
    left_open = {name for name in passed if wanted[name] == "open" and sandbox != "bwrap"}
    return {
        "lab": lab,
        "fault": fault.__name__,
        "submissions": len(wanted),
        "faults": faults,
        "wrong": sorted((passed ^ right) - left_open),
        "lost": len(wanted) - sum(state == "done" for state, _, _ in found.values()),
        "again": sum(attempts - 1 for _, attempts, _ in found.values()),
        "escapes": still_running(folder / "boxes"),
        "open": sorted(left_open),
        "seconds": round(time.monotonic() - began),
    }


def main() -> int:
    """Both runs for each lab."""
    folder, sandbox, labs = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3:] or LABS
    (folder / "boxes").mkdir(parents=True)
    folder.chmod(0o755)
    (folder / "boxes").chmod(0o777)
    os.environ["TMPDIR"] = str(folder / "boxes")
    head = {**results.machine("cpu"), "sandbox": sandbox, "user": user()}
    name = results.slug(" ".join((head["device"], sandbox, user())))
    rows: list[results.Json] = []
    for lab in labs:
        count = len(generate.hand_ins(lab, random.Random(1)))  # noqa: S311 - no secret
        wanted = generate.generate(lab, count, folder / lab)
        for fault in (killed_grader, killed_worker):
            rows.append(judged(sandbox, folder, lab, fault, wanted))
            print(rows[-1], flush=True)  # noqa: T201
            results.write_rows(folder / f"{name}.json", head, rows)
    return 1 if any(row["wrong"] or row["lost"] or row["escapes"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
