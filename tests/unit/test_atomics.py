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
    costs = [(64 >> m, (32 >> m) + 32, 32) for m in range(6)]
    log = "\n".join(
        [
            HEAD,
            '"","",""',
            *(f'"{i}",{kernel},"{a}","{b}","{c}"' for i, (a, b, c) in enumerate(costs)),
        ]
    )
    rows = list(atomics.rows(log, "\n".join([*atomics.SHOWN, "NVIDIA (R) Nsight Compute"])))
    assert [(row["wavefronts"], row["loads"]) for row in rows[:2]] == [(64, 32), (32, 16)]
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    atomics.store(rows, {"device": "A GPU", "driver": "1.0", "date": "2026-01-31"})
    line = atomics.tables().splitlines()[-1]
    costs = "64 + 32 | 32 + 16 | 16 + 8 | 8 + 4 | 4 + 2 | 2 + 1"
    assert line == f"| `add_float` | unused | ATOMS.CAST.SPIN | {costs} |"
