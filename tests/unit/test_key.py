"""The names of cached binaries: whatever decides what is compiled changes them."""

import os
import shutil
from pathlib import Path

import pytest

import cudalab
from cudalab.backends.cpu.compiler import toolchain

PACKAGE = Path(cudalab.__file__).parent
DECIDING = ("language", "program", "backends/cpu")
LEFT_OUT = "__pycache__"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    for part in DECIDING:
        ignored = shutil.ignore_patterns(LEFT_OUT)
        shutil.copytree(PACKAGE / part, folder / part, ignore=ignored)
    return folder


def code(folder):
    return toolchain._code.__wrapped__(str(folder))


def test_each_file_that_decides_on_the_code_changes_the_key(copy):
    before = code(copy)
    assert before == code(PACKAGE)
    files = [path for path in copy.rglob("*") if path.is_file()]
    assert len(files) > 200
    seen = {before}
    for path in files:
        content = path.read_bytes()
        path.write_bytes(content + b"\n")
        seen.add(code(copy))
        path.write_bytes(content)
    assert len(seen) == len(files) + 1
    assert code(copy) == before


def test_a_new_file_and_a_new_name_change_the_key(copy):
    before = code(copy)
    new = copy / "backends/cpu/runtime/new.h"
    new.write_text("", encoding="utf-8")
    added = code(copy)
    new.rename(new.with_name("newer.h"))
    assert len({before, added, code(copy)}) == 3
    new.with_name("newer.h").unlink()


@pytest.mark.parametrize("name", ["processor", "__version__"])
def test_another_processor_or_version_has_other_names(name, monkeypatch):
    before = toolchain.key("text")
    monkeypatch.setattr(toolchain, name, "another" if name == "__version__" else lambda: "another")
    assert toolchain.key("text") != before


@pytest.mark.parametrize("letter", ["x", "\u00e4", "\U0001f600"])
def test_a_file_with_the_longest_name_has_a_place_in_the_cache(letter, tmp_path, monkeypatch):
    monkeypatch.setattr(toolchain, "cache_dir", lambda _: tmp_path)
    stem = letter * (250 // len(letter.encode()))
    (tmp_path / f"{stem}.cu").touch()
    place = toolchain.cached("programs", stem, "text")
    assert len(os.fsencode(place.name)) < 128  # what is made for it may have endings of its own
    place.touch()
    assert place != toolchain.cached("programs", stem, "another text")


def test_parts_do_not_run_into_each_other():
    assert toolchain.key("ab", "c") != toolchain.key("a", "bc")
