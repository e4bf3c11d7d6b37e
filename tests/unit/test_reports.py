"""The verdict on a program, from what was observed of it."""

from __future__ import annotations

from cudalab.backends.trace import Finding, Place
from cudalab.program.files import File
from cudalab.program.observed import report
from cudalab.program.observed.order import NOBODY
from cudalab.program.observed.run import Launch, Observed
from cudalab.program.observed.verdict import LEAK, judge

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


def test_a_launch_that_failed_follows_from_a_finding():
    finding = Finding("infinite_loop", "k", Place("p.cu", 2), NOBODY)
    seen = Observed(findings=[finding], messages=[("failed kernel", FAILED), ("leak", "p.cu:1: m")])
    found = judge("p", [], seen, leaks=True)
    assert (found.ended, found.follows, found.errors) == ([], [FAILED], 1)
    (leak,) = found.remarks("q.cu")[1:]
    assert (leak.rule, leak.file, leak.line, leak.text) == (LEAK, "p.cu", 1, "m")
    assert leak.level == "warning"  # for the program has not come to its end


def test_what_a_failed_allocation_causes_follows_from_it():
    calls = "cudaMalloc(&p, 1);\n    cudaMemset(p, 0, 1);\n    cudaMemcpy(q, h, 1, x);"
    file = File("p.cu", "p.cu", f"int main() {{\n    {calls}\n}}\n")
    made = "p.cu:2: cudaMalloc: cudaErrorMemoryAllocation: out of memory"
    of_null = "p.cu:3: cudaMemset: cudaErrorInvalidValue: (nil) is not on the device"
    other = "p.cu:4: cudaMemcpy: cudaErrorInvalidValue: 0x10 is not on the device"
    seen = Observed(messages=[("failed call", text) for text in (made, of_null, other)])
    found = judge("p", [file], seen)
    assert (found.ignored, found.follows, found.failed) == ([made, other], [of_null], [])
    seen.messages.append(("errors read", ""))  # the program has asked for errors
    found = judge("p", [file], seen)
    assert (found.ignored, found.follows, found.failed) == ([], [], [made, of_null, other])
    seen.messages.pop()
    file.text = file.text.replace("cudaM", "e = cudaM")  # it has their results
    assert judge("p", [file], seen).ignored == []


def test_lines_that_lead_to_local_memory_are_listed_but_for_launches():
    seen = Observed(launches=[Launch("k", (1, 1, 1), (1, 1, 1), "p.cu:9")])
    seen.looks.own |= {Place("p.cu", 9), Place("q.cu", 2), Place("p.cu", 11), Place("p.cu", 4)}
    seen.looks.local |= seen.looks.own
    document = report.document("p", "p.cu", judge("p", [], seen), seen)
    listed = [text.partition(": ")[0] for text in document.not_looked_at]
    assert listed == ["p.cu:4", "p.cu:11", "q.cu:2"]
