"""A class in which every name, byte and kind of file occurs: each is judged or refused by name."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from checking import ROOT
from command import cudalab

from cudalab.checker.grading import grading, unpack
from cudalab.checker.grading.grading import _file_name
from cudalab.checker.grading.store import Store
from cudalab.checker.grading.unpack import Entry
from cudalab.errors import CudalabError

FORMATS = {"zip": "zip", "tar.xz": "xztar", "tar.gz": "gztar"}
SUM = b"""
import struct, sys
data = sys.stdin.buffer.read()
(n,) = struct.unpack_from("<i", data)
sys.stdout.buffer.write(struct.pack("<I", sum(struct.unpack_from(f"<{n}i", data, 4)) % 2**32))
"""
KERNEL = (ROOT / "kernels" / "reduce" / "sequential.cu").read_text()
STRAY = KERNEL.encode().replace(b"__syncthreads();", b"__syncthreads(); \xe8", 1)


def test_any_name_and_any_bytes(tmp_path):
    folder = tmp_path / "class"
    folder.mkdir()
    for name, data in {
        b"-rf.py": SUM,
        b"sou\xe8et.py": SUM,
        b"CAPITALS.PY": SUM,
        b"latin\xe9/main.py": b"import beside\n" + SUM,
        b"latin\xe9/beside.py": b"",
        b"utf16.cu": KERNEL.encode("utf-16"),
        b"stray.cu": STRAY,
        b"program\xff.cu": b"int main() { return \xff; }",
        b"odd.py": b"import sys\nsys.stderr.buffer.write(b'\\xe9\\x1b[2J')\nsys.exit(3)\n",
        b"old.rar": b"Rar!\x1a\x07\x00",
        b"x" * 240 + b".py": b"",
    }.items():
        path = folder / os.fsdecode(name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    os.mkfifo(folder / "pipe.cu")
    with zipfile.ZipFile(folder / "zipped.zip", "w") as archive:
        archive.writestr("My.CU", "\ufeff" + KERNEL)
    done = cudalab(
        "grade", folder, "--lab", "reduce", "--out", tmp_path / "out", "--quick", "--no-time",
        "--no-sanitize", "--device", "cpu", "--language", "any", "--jobs", 2, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    with sqlite3.connect(tmp_path / "out" / "results.sqlite") as db:
        rows = db.execute("SELECT name, report FROM submissions").fetchall()
    reports = {name: json.loads(report) for name, report in rows}
    passed = {name for name, report in reports.items() if report["passed"]}
    assert passed == {"-rf", "sou\\xe8et", "CAPITALS", "latin\\xe9", "zipped"}
    assert len(reports) == 12
    said = {name: json.dumps(report) for name, report in reports.items()}
    assert "utf16.cu is in UTF-16" in said["utf16"]
    assert "old.rar: archives of this kind are not supported" in said["old.rar"]
    assert "pipe.cu is not a file" in said["pipe.cu"]
    assert reports["stray"]["exit_code"] == 5
    assert len(list((tmp_path / "out" / "reports").iterdir())) == 12


def test_two_submissions_never_share_a_report():
    names = ["a_b", "a b", "a/b", "x" * 300, "x" * 301, "é" * 150]
    files = [_file_name(name) for name in names]
    assert len(set(files)) == len(names)
    assert files[0] == "a_b"
    assert all(len(file.encode()) < 230 for file in files)


def test_a_file_gets_a_name_that_compilers_take(tmp_path):
    path = tmp_path / "a\nb.CU"
    path.write_text("no kernel")
    (tmp_path / "in").mkdir()
    folder = unpack.place(Entry("x", path), tmp_path / "in")
    assert [path.name for path in folder.iterdir()] == ["a_b.cu"]


def test_a_database_that_cannot_be_written_is_told_in_words(tmp_path):
    (tmp_path / "results.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(CudalabError, match="the results cannot be stored"):
        Store(tmp_path)
    (tmp_path / "results.sqlite").unlink()
    with Store(tmp_path) as store:
        store._db.execute("PRAGMA max_page_count = 1")  # as on a full disk
        with pytest.raises(CudalabError, match="full") as error:
            store.add([Entry(f"a{n}", tmp_path / "results.sqlite") for n in range(3000)])
    assert "what has been stored stays" in error.value.hint


def test_folders_that_cannot_be_read_or_made(tmp_path, monkeypatch):
    (tmp_path / "reports").write_text("")
    with pytest.raises(CudalabError, match="reports: cannot be made: File exists"):
        grading._folder(tmp_path / "reports")

    def denied(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", denied)  # root may read everything
    with pytest.raises(CudalabError, match="cannot be read: Permission denied"):
        unpack.entries(tmp_path)


@pytest.mark.parametrize("name", ["a.zip", "a.tar.xz", "a.tar.gz"])
def test_a_damaged_archive_is_refused(tmp_path, name):
    """Whatever byte is another one: it is unpacked, or it is refused."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "my.cu").write_bytes(bytes(range(32, 127)) * 20)
    words = shutil.make_archive(str(tmp_path / "a"), FORMATS[name[2:]], tmp_path / "in")
    data = Path(words).read_bytes()
    for at in range(0, len(data), 3):
        (tmp_path / name).write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        (tmp_path / "out").mkdir()
        with suppress(unpack.BadSubmissionError):
            unpack.place(Entry("a", tmp_path / name), tmp_path / "out")
        shutil.rmtree(tmp_path / "out")


@pytest.mark.parametrize("inside", ["my.cu", "my/one.cu", "my/deep/one.cu"])
def test_what_cannot_be_read_is_refused_in_words(tmp_path, monkeypatch, inside):
    """A file, one in a folder, a folder in a folder."""
    path = tmp_path / "class" / inside
    path.parent.mkdir(parents=True)
    path.write_text("int x;")
    (tmp_path / "out").mkdir()
    locked = path.parent if path.parent.name == "deep" else path
    monkeypatch.setattr(Path, "open", denied_for(Path.open, locked))  # root may read everything
    monkeypatch.setattr(os, "scandir", denied_for(os.scandir, locked))
    (entry,) = unpack.entries(tmp_path / "class")
    unpack.digest(entry.path)
    wanted = locked.relative_to(tmp_path / "class")
    with pytest.raises(unpack.BadSubmissionError, match=f"{wanted}: Permission denied"):
        unpack.place(entry, tmp_path / "out")


def denied_for(function, locked):
    """A function of paths that the system refuses one of."""

    def denied(path, *args, **kwargs):
        if Path(path) == locked:
            raise PermissionError(13, "Permission denied", str(path))
        return function(path, *args, **kwargs)

    return denied


def test_a_copy_that_cannot_be_written_is_the_graders_fault(tmp_path, monkeypatch):
    """A full disk costs nobody points: the submission has to be judged again."""
    (tmp_path / "out").mkdir()
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("my.cu", "int x;")
    full = Path("/dev/full")
    monkeypatch.setattr(unpack._Budget, "target", lambda *_: full)
    monkeypatch.setattr(Path, "exists", lambda _: False)
    with pytest.raises(CudalabError, match="No space left") as error:
        unpack.place(Entry("a", tmp_path / "a.zip"), tmp_path / "out")
    assert not isinstance(error.value, unpack.BadSubmissionError)


def test_a_result_that_is_stored_can_be_replaced(tmp_path):
    entries = [Entry(name, tmp_path / name) for name in ("a", "b")]
    for entry in entries:
        entry.path.write_bytes(SUM)
    with Store(tmp_path / "out") as store:
        store.add(entries)
        store._db.execute("UPDATE submissions SET state = 'done'")
        assert store.add(entries) == []
        assert store.waiting() == []
        assert store.add(entries, ["b"]) == []  # it has not changed
        assert store.waiting() == ["b"]
    done = cudalab("grade", tmp_path, "--lab", "reduce", "--out", "o", "--again", "c", text=True)
    assert done.returncode == 2
    assert "--again c: no such submission" in done.stderr
