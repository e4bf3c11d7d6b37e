"""The whole class, twice: the grader killed in the middle, then a worker of the cluster killed.

    python tests/attacks/load.py FOLDER [LAB...]

prints what the documentation states: submissions, verdicts, attempts, faults. Exit status 1 when a
verdict is wrong or a result is lost.
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
from collections import Counter
from contextlib import suppress
from pathlib import Path

import generate

LABS = ("reduce", "histogram", "scan", "matmul", "transpose", "radixsort", "bitonic", "table")
OPTIONS = ("--quick", "--device", "cpu", "--kill-after", "5", "--memory", "600M",
           "--time-limit", "0.3", "--language", "any")  # fmt: skip


def command(folder: Path, lab: str, out: Path, *more: str) -> list[str]:
    """`cudalab grade`."""
    words = [sys.executable, "-m", "cudalab", "grade", folder, "--lab", lab, "--out", out]
    return [*map(str, words), *OPTIONS, *more]


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


def killed_grader(folder: Path, lab: str, out: Path, count: int) -> int:
    """End the grader without a word when about half is done; call it again."""
    with Path(f"{out}.log").open("w") as log:
        first = subprocess.Popen(command(folder, lab, out), stdout=log, stderr=log)
        while first.poll() is None and done(out) < count // 2:
            time.sleep(0.1)
        cut = 0
        if first.poll() is None:
            first.send_signal(signal.SIGKILL)
            cut = 1
        first.wait()
        subprocess.run(command(folder, lab, out), stdout=log, stderr=log, check=True)
    return cut


def killed_worker(folder: Path, lab: str, out: Path, count: int) -> int:
    """End a worker process of the cluster when about a third is done."""
    with Path(f"{out}.log").open("w") as log:
        running = subprocess.Popen(
            command(folder, lab, out, "--scheduler", "local:2"), stdout=log, stderr=log
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


def main() -> int:
    """Both runs for each lab."""
    folder, labs = Path(sys.argv[1]), sys.argv[2:] or LABS
    folder.mkdir(parents=True)
    totals: Counter[str] = Counter()
    for lab in labs:
        count = len(generate.hand_ins(lab, random.Random(1)))  # noqa: S311 - no secret
        wanted = generate.generate(lab, count, folder / lab)
        totals["submissions"] += count
        totals["right ones"] += sum(verdict == "pass" for verdict in wanted.values())
        for fault in (killed_grader, killed_worker):
            began, out = time.monotonic(), folder / f"{lab}-{fault.__name__}"
            faults = fault(folder / lab, lab, out, count)
            found = states(out)
            wrong = [
                name for name, verdict in wanted.items()
                if found.get(name, ("", 0, None))[2] is not (verdict == "pass")
            ]  # fmt: skip
            lost = sum(state != "done" for state, _, _ in found.values()) + count - len(found)
            again = sum(attempts - 1 for _, attempts, _ in found.values())
            seconds = time.monotonic() - began
            print(  # noqa: T201
                f"{lab:<10} {fault.__name__:<14} {count:>3} submissions, {faults} fault, "
                f"{len(wrong)} wrong, {lost} lost, {again} judged again, {seconds:.0f} s "
                + " ".join(wrong),
                flush=True,
            )
            totals["verdicts"] += count
            totals["faults"] += faults
            totals["wrong"] += len(wrong)
            totals["lost"] += lost
            totals["again"] += again
    print(dict(totals))  # noqa: T201
    return 1 if totals["wrong"] or totals["lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
