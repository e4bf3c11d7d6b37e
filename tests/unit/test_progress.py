"""Notes and progress on stderr: when there are any, and that --quiet silences them all."""

from __future__ import annotations

import io
import time

import click
import pytest

from cudalab.cli import failures
from cudalab.output import notes, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(progress, "LONG_S", 0.01)
    yield
    notes.silence(False)


def shown(monkeypatch, stream, *, once=False, seconds=0.3):
    monkeypatch.setattr("sys.stderr", stream)
    with progress.stage("sorting", once=once):
        time.sleep(seconds)
    return stream.getvalue()


def test_a_terminal_shows_a_long_stage_while_it_lasts(monkeypatch):
    text = shown(monkeypatch, Terminal(), seconds=1)
    assert "sorting ..." in text
    assert text.endswith("\x1b[2K")  # the line is removed


def test_a_stage_says_how_far_it_is(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    with progress.stage("sorting", once=True) as known:
        time.sleep(0.5)
        known.reach(3, 12, "parts")
        time.sleep(0.5)
    assert "sorting: 3 of 12 parts ..." in stream.getvalue()


def test_the_seconds_left_follow_from_what_is_done(monkeypatch):
    monkeypatch.setattr(progress, "LONG_S", 1.0)
    clock = iter([100.0, 100.5, 104.0, 110.0, 112.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    known = progress.Stage("compiling")
    told = []
    for done in (2, 3, 4, 7, 12):
        known.reach(done, 12, "parts")
        told.append(known.words)
    assert told == [
        "compiling: 2 of 12 parts",  # since when they were compiled nobody knows
        "compiling: 3 of 12 parts",  # nor does a moment tell
        "compiling: 4 of 12 parts, about 16 s left",
        "compiling: 7 of 12 parts, about 10 s left",
        "compiling: 12 of 12 parts",
    ]


def test_a_short_stage_is_not_shown(monkeypatch):
    monkeypatch.setattr(progress, "LONG_S", 10)
    assert shown(monkeypatch, Terminal(), once=True, seconds=0) == ""


@pytest.mark.parametrize(("once", "text"), [(True, "note: sorting\n"), (False, "")])
def test_a_file_has_a_note_of_what_is_done_once(monkeypatch, once, text):
    assert shown(monkeypatch, io.StringIO(), once=once) == text


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_quiet_silences_notes_and_stages(monkeypatch, stream):
    notes.silence(True)
    assert shown(monkeypatch, stream(), once=True) == ""
    notes.note("no GPU here")
    assert notes.sys.stderr.getvalue() == ""


def test_no_stage_is_shown_beside_another_display(monkeypatch):
    notes.occupy(True)
    try:
        assert shown(monkeypatch, Terminal()) == ""
    finally:
        notes.occupy(False)


def test_a_terminal_gets_an_error_s_sentences_between_words(monkeypatch):
    long = "Hint: " + "some words, " * 20 + "\n    a line of code " + "x" * 90
    monkeypatch.setenv("COLUMNS", "60")
    for stream, widest in ((Terminal(), 60), (io.StringIO(), len(long))):
        monkeypatch.setattr("sys.stderr", stream)
        prose, code = notes.fitted(long).split("\n    a line")
        assert max(map(len, prose.splitlines())) <= widest
        assert code == " of code " + "x" * 90


def test_notes_go_on_between_two_words(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    notes.note("no variant is named: these two have something to show")
    assert stream.getvalue() == ("note: no variant is named: these two\n  have something to show\n")


def test_a_wrong_command_line_is_told_between_two_words(monkeypatch):
    def wrong():
        raise click.UsageError("No such option '--kernels'. (Did you mean one of these others?)")

    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    assert failures.report_errors(wrong) == 2
    assert max(map(len, stream.getvalue().splitlines())) <= 40
