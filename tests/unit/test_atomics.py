"""tools/studies/atomics.py: what ncu and the program print, and the table made from it."""

from __future__ import annotations

import pytest

from tools import results
from tools.studies import atomics

HEAD = '"ID","Kernel Name",' + ",".join(
    f'"{atomics.COUNTER.format(kind)}"' for kind in ("atom", "ld", "st")
)


@pytest.mark.parametrize("used", ["(bool)0", "0", "false"])
def test_loads_around_the_operation_do_not_count(monkeypatch, tmp_path, used):
    code = {("add_float", False): "ATOMS.CAST.SPIN"}
    monkeypatch.setattr(atomics, "instructions", code.items)
    kernel = f'"void shared_atomic<add_float, {used}>(const int *, const T1 *, T1 *)"'
    group = [
        "==PROF== Connected to process 7",
        HEAD,
        '"","",""',
        *(f'"{i}",{kernel},"{64 >> i}","{(32 >> i) + 32}","32"' for i in range(5)),
        "==PROF== Disconnected from process 7",
    ]
    names = [*atomics.SHOWN, "NVIDIA (R) Nsight Compute"]
    rows = list(atomics.rows("\n".join([*group, *group]), "\n".join(names)))
    assert [(row["wavefronts"], row["loads"]) for row in rows[:2]] == [(64, 32), (32, 16)]
    assert [row["pattern"] for row in rows] == list(atomics.SHOWN)
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    atomics.store(rows, {"device": "A GPU", "driver": "1.0", "date": "2026-01-31"})
    line = atomics.tables().splitlines()[-1]
    costs = " | ".join(["64 + 32 | 32 + 16 | 16 + 8 | 8 + 4 | 4 + 2"] * 2)
    assert line == f"| `add_float` (unused) | {costs} |"
