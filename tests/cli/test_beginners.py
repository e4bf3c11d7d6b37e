"""What `cudalab run --sanitize` says of a mistake says what it is."""

import pytest
from whole_programs import run

pytestmark = pytest.mark.xdist_group("run")

SAID = {
    "signed_char": [
        "before the start of 'bins' in global memory (2,048 bytes, allocated at",
        "a byte that is an index is an unsigned char",
    ],
    "counts_down": [
        "element 4,294,967,295",
        "past the end of 'in' in global memory (has an unsigned number been counted below 0?)",
        "An unsigned number is never less than 0",
    ],
    "forgets_sizeof": [
        "element 128: just past the end of 'x' in global memory (512 bytes, allocated at",
    ],
    "left_neighbour": [
        "element -1: 4 bytes before the start of 'keys'",
        "A neighbour such as x[i - 1] needs i > 0",
    ],
    "size_of_pointer": [
        "reads x[2] in global memory",
        "nobody has written it (of its 2048 bytes, 8 have been)",
    ],
    "swaps": ["1. data race", "split the kernel in two"],
    "exchanges": ["and the source is on the other side: the target comes first"],
}
NOTED = {
    "by_value": [
        "1. note: result that stays in a parameter",
        "Kernel sum assigns to its parameter result, and nothing reads that",
        "result = sum;",
    ],
    "fills_with_more": [
        "cudaMemset fills each byte with 255, not each number with 2147483647",
        "or let a kernel store them",
    ],
}


@pytest.mark.parametrize(("slip", "words"), [*SAID.items(), *NOTED.items()])
def test_a_report_says_what_is_wrong(slip, words):
    done = run("beginners.cu", "cpu", "--sanitize", "--kill-after", "5", arguments=[slip])
    report = " ".join(done.stderr.decode().split())
    assert done.returncode == (3 if slip in SAID else 0), report
    for each in words:
        assert each in report
    assert "lost update" not in report


def test_what_follows_from_a_launch_that_has_failed_is_no_note():
    done = run("beginners.cu", "cpu", "--sanitize", arguments=["blocks_too_large"])
    assert done.stdout == b"the launch has failed\n"
    assert b"note: copy" not in done.stderr
    assert b"blocks of 2048 x 1 x 1 threads: 1 to 1024 are allowed" in done.stderr


def test_a_plain_run_tells_of_a_fill_with_more_than_a_byte_once():
    said = run("beginners.cu", "cpu", arguments=["fills_with_more"]).stderr.decode()
    assert said.count("fills each byte with 255") == 1
    assert run("beginners.cu", "cpu", arguments=["none"]).stderr == b""
