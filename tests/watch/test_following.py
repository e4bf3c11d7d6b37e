"""Which states of a file on disk are versions: overwritten, renamed over, removed, half written."""

from __future__ import annotations

import os
from contextlib import suppress

import pytest

from cudalab.watch.following import LOOK_S, PATIENCE_S, Follower, is_complete


class Editor:
    """A clock that runs only while the follower sleeps, and what happens to the file meanwhile."""

    def __init__(self, path):
        self.path, self.now, self.events, self.inode = path, 0.0, [], 0

    def at(self, seconds, event):
        self.events.append((seconds, event))
        self.events.sort(key=lambda one: one[0])

    def sleep(self, seconds):
        self.now += seconds
        while self.events and self.events[0][0] <= self.now:
            self.events.pop(0)[1]()

    def write(self, text):
        self.path.write_text(text)
        self.touch()

    def replace(self, text):
        """As vim does: another file is written, then takes the name."""
        other = self.path.with_suffix(".swap")
        other.write_text(text)
        other.replace(self.path)
        self.touch()

    def touch(self):
        """A time of its own for each save: they may be closer than the file system's clock."""
        self.inode += 1
        os.utime(self.path, ns=(self.inode * 10**9, self.inode * 10**9))


@pytest.fixture
def editor(tmp_path):
    return Editor(tmp_path / "my.cu")


def follow(editor, until):
    """The versions with the time at which each was seen."""

    def meanwhile():
        if editor.now > until:
            raise TimeoutError

    follower = Follower(editor.path, clock=lambda: editor.now, sleep=editor.sleep)
    seen = []
    with suppress(TimeoutError):
        seen.extend((round(editor.now, 3), text) for text in follower.versions(meanwhile))
    return seen


def test_saves_of_every_kind(editor):
    editor.write("int a;\n")
    editor.at(3, lambda: editor.write("int b;\n"))
    editor.at(5, lambda: editor.replace("int c;\n"))
    editor.at(7, editor.path.unlink)
    editor.at(9, lambda: editor.write("int d;\n"))
    seen = follow(editor, 12)
    assert [text for _, text in seen] == ["int a;\n", "int b;\n", "int c;\n", "int d;\n"]
    for (at, _), saved in zip(seen, (0, 3, 5, 9), strict=True):
        assert saved <= at <= saved + 3 * LOOK_S


def test_a_file_that_is_not_there_is_waited_for(editor):
    editor.at(2, lambda: editor.write("int a;\n"))
    assert [text for _, text in follow(editor, 4)] == ["int a;\n"]


def test_a_half_written_file_waits(editor):
    editor.write("int a;\n")
    editor.at(3, lambda: editor.write("void f() {\n"))
    editor.at(3 + 0.5 * PATIENCE_S, lambda: editor.write("void f() {\n}\n"))
    assert [text for _, text in follow(editor, 6)] == ["int a;\n", "void f() {\n}\n"]


def test_a_text_that_stays_odd_is_judged_after_all(editor):
    editor.write("void f() {\n")
    ((at, text),) = follow(editor, 5)
    assert text == "void f() {\n"
    assert PATIENCE_S <= at <= PATIENCE_S + 3 * LOOK_S


def test_an_emptied_file_waits_for_its_text(editor):
    editor.write("int a;\n")
    editor.at(3, lambda: editor.write(""))
    editor.at(3.3, lambda: editor.write("int b;\n"))
    assert [text for _, text in follow(editor, 6)] == ["int a;\n", "int b;\n"]


def test_saving_the_same_text_is_no_version(editor):
    editor.write("int a;\n")
    editor.at(3, lambda: editor.write("int a;\n"))
    assert len(follow(editor, 6)) == 1


def test_a_header_that_changes_makes_a_version(editor, tmp_path):
    header = tmp_path / "mine.cuh"
    header.write_text("int a;\n")
    editor.write('#include "mine.cuh"\n')
    follower = Follower(editor.path, clock=lambda: editor.now, sleep=editor.sleep)
    versions = follower.versions()
    assert next(versions) == '#include "mine.cuh"\n'
    follower.include([header])

    def change():
        header.write_text("int b;\n")
        os.utime(header, ns=(1, 1))

    editor.at(editor.now + 1, change)
    assert next(versions) == '#include "mine.cuh"\n'


def test_what_may_be_all_of_a_file():
    assert is_complete("void f() { g(a[1]); }\n")
    assert not is_complete("void f() {\n")
    assert not is_complete("int a")
    assert not is_complete("f(a[1);\n")
