"""Twenty kernels whose profile was worked out by hand, from the rules for sectors and banks."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import command

PROGRAM = Path(__file__).parents[1] / "programs" / "by_hand.cu"
ROW = re.compile(r"(?:global|shared) (?:load|store|atomic)(?: \d+){3}|branch \d+ \d+|\w+ \d+")


def test_every_row_is_what_was_worked_out_by_hand(tmp_path):
    report = tmp_path / "profile.json"
    words = ["run", "--device", "cpu", "--profile", "--json", str(report), str(PROGRAM)]
    done = command.cudalab(*words, text=True)
    assert (done.returncode, done.stdout) == (0, "no error\n"), done.stderr
    document = json.loads(report.read_text("utf-8"))
    assert len(document["kernels"]) == 20
    rows: Counter[tuple[int, str]] = Counter()
    for each in document["accesses"]:
        took = each["sectors" if each["space"] == "global" else "wavefronts"]
        row = f"{each['space']} {each['access']} {each['requests']} {each['lanes']} {took}"
        rows[each["line"], row] += 1
    for each in document["branches"]:
        rows[each["line"], f"branch {each['executions']} {each['divergent']}"] += 1
    for each in document["barriers"]:
        kind = {"block": "barrier", "warp": "warp"}[each["kind"]]
        rows[each["line"], f"{kind} {each['executions']}"] += 1
    wanted: Counter[tuple[int, str]] = Counter()
    for number, line in enumerate(PROGRAM.read_text("utf-8").splitlines(), start=1):
        code, _, comment = line.partition("//")
        if code.strip():
            wanted.update((number, row) for row in ROW.findall(comment))
    assert sum(wanted.values()) > 100
    assert rows == wanted
