"""Atomic operations in shared memory: the profile beside the counts of a GPU."""

from __future__ import annotations

import json
from collections import Counter

import command
import pytest

from tools import results
from tools.studies import atomics

# The study's program counts what a GPU has counted; the rest depends on the numbers (64 bits), is
# done otherwise (16 bits), or is known only behind the call (+ 1 without a use of the result).
OTHERWISE = {"add1_int", "add1_u32", "cas_u16", "and_u64", "or_u64", "min_u64", "max_u64"}


@pytest.mark.parametrize("group", range(atomics.GROUPS))
def test_atomics_in_shared_memory_cost_what_a_gpu_has_counted(group, tmp_path):
    report = tmp_path / "profile.json"
    words = ["run", "--device", "cpu", "--profile", "--json", str(report), str(atomics.PROGRAM)]
    done = command.cudalab(*words, "--", group)
    assert done.returncode == 0, done.stderr.decode()
    lines = atomics.PROGRAM.read_text("utf-8").splitlines()
    of_line = {n: row[3:].partition(",")[0] for n, row in enumerate(lines, 1) if row[:3] == "OP("}
    found = Counter()
    for access in json.loads(report.read_text("utf-8"))["accesses"]:
        if access["access"] == "atomic":
            found[of_line[access["line"]]] += access["wavefronts"]
    (stored,) = results.read_all("atomics")
    counted = Counter()
    for row in stored["rows"]:
        counted[row["operation"]] += row["wavefronts"] + row["loads"]
    assert found.keys() - OTHERWISE
    for name in found.keys() - OTHERWISE:
        assert found[name] == counted[name], name
