"""How the programs of others are compared: what counts as the same, and what does not."""

import json

import pytest

from tools.world.compare import VERDICTS, _row, judged
from tools.world.masks import close, masked, same_lines
from tools.world.programs import STORED, Program, by_build, chosen, programs, sets

PROGRAM = Program(set="olcf", folder="hw1", files=("add.cu",))


def outcome(printed, status=0, message=""):
    return {"status": status, "printed": printed, "message": message}


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        (outcome("sum 4\n"), outcome("sum 4\n"), "same"),
        (outcome("sum 4\n"), outcome("sum 5\n"), "different"),
        (outcome("sum 4\n", 1), outcome("sum 4\n"), "different"),
        (outcome("no data\n", 1), outcome("no data\n", 1), "unjudged"),
        (outcome("1.2 ms\n"), outcome("3.4 ms\n"), "same"),
        (outcome(""), outcome(""), "unjudged"),
        (outcome("add starts\n"), outcome("./program.out starts\n"), "same"),
        (outcome("sum 4\n"), outcome("sum 4\nsum 4\n"), "different"),
        (outcome("a 1\nb 2\n"), outcome("b 2\na 1\n"), "order"),
        (outcome("sum 4.25000\n"), outcome("sum 4.25001\n"), "close"),
        (outcome("sum 4.25000\n"), outcome("sum 4.26000\n"), "different"),
        (outcome("sum nan\n"), outcome("sum 4.2\n"), "different"),
        (outcome("error -1e-3\n"), outcome("error 1e-3\n"), "different"),
        (outcome("PASSED\n"), outcome("FAILED\n"), "different"),
        (outcome("took 4.1 ms\n"), outcome("took 9 ms\n"), "same"),
        (outcome("at 0x7f0012345678\n"), outcome("at 0x7f0012349999\n"), "same"),
        (outcome("", 125, "cuFFT is not supported"), outcome("1\n"), "refused"),
        (outcome("", 125, "a.cu does not compile"), outcome("1\n"), "error"),
        (outcome("1\n", "stopped"), outcome("1\n"), "slow"),
        (outcome("1\n"), {"status": "not compiled", "message": ""}, "unjudged"),
        (outcome("1\n"), None, "unjudged"),
        (outcome("Test PASSED\n"), None, "passed"),
        (outcome("Test PASSED\n", 1), None, "unjudged"),
        (outcome("2 tests passed, 1 failed\n"), None, "failed"),
        (outcome("passed, failed: 0\n"), None, "passed"),
        (outcome("1\n", "stopped"), None, "slow"),
    ],
)
def test_verdicts(ours, theirs, verdict):
    assert verdict in VERDICTS
    assert judged(PROGRAM, ours, theirs)[0] == verdict


def test_a_difference_that_the_table_explains_is_no_agreement():
    varying = Program(set="olcf", folder="hw1", files=("add.cu",), varies="draws by the time")
    assert judged(varying, outcome("4\n"), outcome("5\n")) == ("varies", "draws by the time")
    assert judged(varying, outcome("4\n"), outcome("4\n")) == ("same", "")


def test_times_hide_no_wrong_answer():
    """A program that prints something else each time is judged by what it says of its answer."""
    timed = Program(set="a", folder="b", files=("c.cu",), varies="times", says="Percent: 0$")
    right, wrong = outcome("1.5\nPercent: 0\n"), outcome("1.7\nPercent: 8190\n")
    assert judged(timed, right, outcome("2.5\nPercent: 0\n")) == ("passed", "")
    assert judged(timed, wrong, right)[0] == "failed"
    assert judged(timed, outcome("1.5\n"), right)[0] == "failed"
    plain = Program(set="a", folder="b", files=("c.cu",), varies="times")
    assert judged(plain, outcome("3\nFAILED\n"), outcome("4\nPASSED\n"))[0] == "failed"
    assert judged(plain, outcome("3\nFAILED\n"), outcome("4\nFAILED\n"))[0] == "varies"
    assert judged(plain, outcome("3\nPASSED\n"), outcome("4\nFAILED\n"))[0] == "passed"


def test_masks_keep_what_a_program_computes():
    assert masked("Hello from the GPU, thread 3\n") == "Hello from the GPU, thread 3\n"
    assert masked("Using Device 0: NVIDIA H100\nresult = 3.5\n") == "result = 3.5\n"
    assert "3.5" in masked("result[7] = 3.5\n")
    assert not same_lines("a\na\nb\n", "a\nb\nb\n")
    assert close("x 1.0e-3\n", "x 1.1e-3\n", 0)  # one unit in the last place that is printed
    assert not close("x 7\n", "x 8\n", 1.0)


def test_each_program_of_the_table_is_there_once():
    every = programs()
    names = [(each.set, each.name, each.options) for each in every]
    assert len(names) == len(set(names))
    assert {each.set for each in every} == set(sets())
    assert sum(map(len, by_build(every))) == len(every)
    assert all(len(each["commit"]) == 40 for each in sets().values())


def test_no_stored_verdict_but_agreement_lacks_a_reason():
    rows = json.loads(STORED.read_text("utf-8"))["programs"]
    silent = [
        row["program"]
        for row in rows
        if row["verdict"] not in {"same", "order", "close", "passed"} and not row["reason"]
    ]
    assert not silent
    assert sum(row["verdict"] == "different" for row in rows) <= 1  # known, and not explained


def test_programs_are_chosen_by_their_stored_verdicts_in_the_order_that_is_given():
    rows = json.loads(STORED.read_text("utf-8"))["programs"]
    verdict = {(row["set"], row["program"]): row["verdict"] for row in rows}
    given = [verdict.get((each.set, each.name), "none") for each in chosen("", ["none", "slow"])]
    assert given == sorted(given)
    assert set(given) == {"none", "slow"}
    assert len(given) == sum(verdict.get((p.set, p.name), "none") in given for p in programs())


@pytest.mark.parametrize(
    ("status", "said", "verdict"),
    [(0, "", "unjudged"), (-6, "", "failed"), (1, "status on the GPU: 1", "unjudged")],
)
def test_a_crash_is_no_missing_answer(status, said, verdict):
    before = {"cuda_sha256": "0123456789abcdef", "cuda": "a GPU", "reason": said}
    ours = {**outcome("1\n", status), "limit_s": 60, "on": "a CPU"}
    assert _row(PROGRAM, ours, None, before)["verdict"] == verdict
