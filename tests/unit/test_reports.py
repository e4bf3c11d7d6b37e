"""The verdict on a program, from what was observed of it."""

from __future__ import annotations

from cudalab.backends.trace import Place
from cudalab.program.observed import report
from cudalab.program.observed.run import Launch, Observed
from cudalab.program.observed.verdict import judge

FAILED = "p.cu:3: cudaErrorLaunchFailure: kernel k"


def test_a_launch_that_failed_without_a_finding_is_no_failure_that_was_ignored(capsys):
    seen = Observed()
    seen.messages.append(("failed kernel", FAILED))
    found = judge("p", [], seen)
    assert (found.ended, found.ignored, found.errors) == ([FAILED], [], 1)
    assert report.document("p", "p.cu", found, seen).ignored == [FAILED]
    report.sanitized("p", [], found, seen)
    printed = capsys.readouterr()
    text = " ".join((printed.out + printed.err).split())
    assert f"Launches that failed: {FAILED}" in text
    assert "ignores" not in text


def test_lines_that_lead_to_local_memory_are_listed_but_for_launches():
    seen = Observed(launches=[Launch("k", (1, 1, 1), (1, 1, 1), "p.cu:9")])
    seen.looks.own |= {Place("p.cu", 9), Place("q.cu", 2), Place("p.cu", 11), Place("p.cu", 4)}
    seen.looks.local |= seen.looks.own
    document = report.document("p", "p.cu", judge("p", [], seen), seen)
    listed = [text.partition(": ")[0] for text in document.not_looked_at]
    assert listed == ["p.cu:4", "p.cu:11", "q.cu:2"]
