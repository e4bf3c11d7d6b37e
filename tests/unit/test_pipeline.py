"""The pipeline of programs and kernel files, with a compiler that does as it is told."""

from __future__ import annotations

import pytest

from cudalab.backends.cpu.compiler.pipeline import (
    RefusedError,
    Unit,
    Units,
    Written,
    build,
    compiled,
)
from cudalab.backends.cpu.compiler.toolchain import find_compiler
from cudalab.language.local_variables import EVERYWHERE

LINE = ("a.cu", 7)
ONLY_CHECKS = find_compiler().only_checks


class Scripted:
    """Units whose compiler answers as a function of the texts does; it keeps what it was given."""

    def __init__(self, answer, *, observed=False):
        self.answer, self.observed, self.seen = answer, observed, []

    def compile(self, texts, *more):
        self.seen.append((*texts, *more))
        return self.answer(*texts, *more)


def written(refused, of_loops):
    """A kernel as a loop unless it is refused, with an addition that is left out on demand."""
    added = "" if refused[LINE] else "+added"
    plain = [f"fibers{added}"]
    if "kernel" in of_loops:
        return Written(plain, plain)
    return Written(plain, [f"loops{added}"], {"kernel": frozenset({LINE})})


def observed(times):
    """What writes a text with zones, and an addition that so many refusals leave in."""

    def write(refused, _):
        zones = "" if EVERYWHERE in refused else "zones"
        added = "" if refused[LINE] > times else "+added"
        return Written([zones + added], [zones + added])

    return write


def test_a_compiler_that_has_failed_is_believed_whatever_it_says(tmp_path):
    command = ["sh", "-c", "echo 'a.cu:1:1: warning: I give up'; exit 1"]
    units = Units(folder=tmp_path, names=["0.cpp"], compiled=[Unit("a.cu", command)])
    assert "I give up" in units.compile([""])


def test_what_the_compiler_accepts_is_compiled_once():
    units = Scripted(lambda *_: "")
    assert compiled(written, units).texts == ["loops+added"]
    assert units.seen == [("loops+added",)]


def test_loops_that_the_compiler_refuses_become_fibers():
    units = Scripted(lambda text, *_: "a.cu:7:1: error: no" if text.startswith("loops") else "")
    assert compiled(written, units).texts == ["fibers+added"]
    assert units.seen == [
        ("loops+added",), ("fibers+added", *ONLY_CHECKS), ("fibers+added",),
    ]  # fmt: skip


def test_additions_that_the_compiler_refuses_are_left_out_and_the_loops_stay():
    units = Scripted(lambda text, *_: "a.cu:7:1: error: no" if "added" in text else "")
    assert compiled(written, units).texts == ["loops"]
    assert units.seen == [("loops+added",), ("fibers+added", *ONLY_CHECKS), ("loops",)]


def test_what_only_the_assembler_refuses_is_no_fault_of_the_loops():
    """As long as no code is made all is well; at last the text with fibers is to blame."""
    units = Scripted(lambda text, *more: "" if more or "added" not in text else "a.cu:7: Error: x")
    assert compiled(written, units).texts == ["fibers"]


@pytest.mark.parametrize("messages", ["b.cu:1:1: error: wrong", "Killed"])
def test_a_source_that_is_wrong_in_itself_is_refused_with_the_last_messages(messages):
    units = Scripted(lambda *_: messages)
    with pytest.raises(RefusedError) as caught:
        compiled(written, units)
    assert caught.value.messages == messages
    assert len(units.seen) == 2  # the loops, and then the text without them


@pytest.mark.parametrize("times", [1, 2])
def test_zones_go_before_additions(times):
    units = Scripted(
        lambda text, *_: "a.cu:7:1: error: no" if "zones" in text else "", observed=True
    )
    assert compiled(observed(times), units).texts == ["+added"]
    units = Scripted(lambda text, *_: "a.cu:7:1: error: no" if text else "", observed=True)
    assert compiled(observed(times), units).texts == [""]
    assert units.seen == [("zones+added",), ("+added",), ("",)]


def test_an_observed_source_that_is_wrong_in_itself_ends_too():
    units = Scripted(lambda *_: "b.cu:1:1: error: wrong", observed=True)
    with pytest.raises(RefusedError):
        compiled(observed(1), units)
    assert units.seen == [("zones+added",), ("+added",)]


def test_an_entry_is_stored_whole_or_not_at_all(tmp_path):
    place = tmp_path / "entry"

    def make(folder):
        made = folder / "made"
        made.write_text("whole")
        assert not place.exists()
        return made

    def fail(folder):
        (folder / "made").write_text("half")
        raise RefusedError("no")

    with pytest.raises(RefusedError):
        build(place, fail)
    assert list(tmp_path.iterdir()) == []
    assert build(place, make).read_text() == "whole"
    assert list(tmp_path.iterdir()) == [place]
