"""A report shows the path of a file once, then its name."""

from __future__ import annotations

import pytest

from cudalab.program.files import File
from cudalab.program.observed.report import Names


@pytest.fixture
def names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels = ["/far/away/a.cu", f"{tmp_path}/lab/b.cu", "one/c.h", "two/c.h", "d.cu", "../d.cuh"]
    return Names([File(label, label, "") for label in labels])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/far/away/a.cu:3: x, at /far/away/a.cu:5", "/far/away/a.cu:3: x, at a.cu:5"),
        ("../d.cuh:1 and ../d.cuh:2", "../d.cuh:1 and d.cuh:2"),
        ("one/c.h:1, one/c.h:2, two/c.h:1", "one/c.h:1, one/c.h:2, two/c.h:1"),  # two of a name
        ("d.cu:1, d.cu:2, away/d.cu:4", "d.cu:1, d.cu:2, away/d.cu:4"),
    ],
)
def test_a_path_is_shown_once(names, text, shown):
    assert names.short(text) == shown


def test_a_path_below_this_folder_is_shown_from_here(names, tmp_path):
    path = f"{tmp_path}/lab/b.cu"
    assert names.short(f"at {path}:3, then at {path}:4") == "at lab/b.cu:3, then at b.cu:4"
    assert names.short(f"at {path}:3") == "at b.cu:3"


def test_only_places_are_shortened(names):
    assert names.short("see /far/away/a.cu, not x/far/away/a.cu:1") == (
        "see /far/away/a.cu, not x/far/away/a.cu:1"
    )
