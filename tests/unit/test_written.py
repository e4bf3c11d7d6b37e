"""tools/attacks: which exit status is right for a file, and what of its words tells of a door."""

from __future__ import annotations

import pytest

from tools import attacks, results


@pytest.mark.parametrize(
    ("group", "name", "wanted"),
    [
        ("kernels", "k07_keeps_old_output.cu", (0, 3)),
        ("kernels", "header_hex.cu", (0,)),
        ("kernels", "header_neg.cu", (5,)),
        ("kernels", "two\nlines.cu", (0, 5)),
        ("free_sanitizer", "s0_control.cu", (3,)),
        ("mutants3", "m01", (3, 6)),
    ],
)
def test_the_wanted_status_of_a_file(group, name, wanted):
    assert attacks.Attack(group, name, []).wanted() == wanted


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        ("FAILED  correct  0 of 3 tests\n", False),
        ("a\ttab\nand a line", False),
        ("DAEMON FOUND 4", True),
        ("\x1b[31mred", True),
        ("\u202eright", True),
        ("Traceback (most recent call last):", True),
    ],
)
def test_what_tells_of_a_door(shown, told):
    assert bool(attacks.MARKS.search(shown)) is told


def test_what_is_open_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(attacks, "STORED", tmp_path / "cpu.json")
    rows = [
        {"group": "scripts", "name": name, "status": 0, "as wanted": wanted, "commit": "c"}
        for name, wanted in (("p01.py", True), ("p02.py", False))
    ]
    results.write_rows(attacks.STORED, {"device": "a machine", "date": "today"}, rows)
    assert "| scripts | 2 | 1 | `p02.py` (0) |" in attacks.table()
