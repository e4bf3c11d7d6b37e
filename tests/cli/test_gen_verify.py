"""`cudalab gen` and `cudalab verify`."""

import signal
import struct
import subprocess
import sys

import click
import pytest
from sorting import ANSWER, INPUT, LAB, expect, names, run, sort

from cudalab.cli.values import size


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("1000", 1000),
        ("1e6", 10**6),
        ("1.5e3", 1500),
        ("2^20", 2**20),
        ("1Ki", 2**10),
        ("1Mi", 2**20),
        ("1Gi", 2**30),
        ("2k", 2000),
        ("0.5M", 500_000),
        ("128M", 128_000_000),
        ("1.001K", 1001),
        ("2.01K", 2010),
        ("1.001M", 1_001_000),
        ("1.1e1", 11),
        ("2147483647", 2**31 - 1),
    ],
)
def test_sizes(text, count):
    assert count == size(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "-1", "x", "1.5", "2^31", "2^99", "1e99", "3G", "1_000", "1 000", "0xF", "3^2"),
        *("1.0001K", f"1.{29 * '0'}1K"),
    ],
)
def test_what_is_no_size(text):
    with pytest.raises(click.BadParameter):
        size(text)
    expect(run("gen", "radixsort", f"--n={text}"), 2, "Invalid value for '--n'")


ENDLESS = """
import hashlib, sys
from cudalab.cli.app import main
from cudalab.labs.bitonic.lab import Bitonic

def generate(*_):
    print("begun", file=sys.stderr, flush=True)
    yield hashlib.pbkdf2_hmac("sha256", b"", b"", 1 << 30)  # Python sees no signal meanwhile

Bitonic.generate = generate
sys.argv = ["cudalab", "gen", "bitonic", "--n", "4", "-o", sys.argv[1]]
main()
"""


def test_ctrl_c_ends_gen_also_while_numpy_computes(tmp_path):
    command = [sys.executable, "-c", ENDLESS, str(tmp_path / "in.bin")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (130, "\nInterrupted\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dist", LAB.distributions)
def test_gen_run_verify(dist, tmp_path):
    paths = tmp_path / "in.bin", tmp_path / "out.bin"
    args = ("--dtype", "float32")
    expect(run("gen", "radixsort", "--n", 1000, "--dist", dist, *args, "-o", paths[0]), 0)
    assert paths[0].stat().st_size == 4 + 4 * 1000
    expect(sort(*args, "-i", paths[0], "-o", paths[1], stdin=subprocess.DEVNULL), 0)
    done = run("verify", "radixsort", *paths, *args)
    expect(done, 0, stdout=b"correct: 1,000 elements\n")


@pytest.mark.parametrize("args", [["--n", "3x4"], ["--n", "3", "--dist", "few:2"]], ids=" ".join)
def test_gen_refuses_what_the_lab_does_not_have(args, tmp_path):
    expect(run("gen", "radixsort", *args), 2, "radixsort has no data of size ", "Hint: ")
    expect(run("gen", "radixsort", *args, "-o", tmp_path / "in.bin"), 2, "Hint: ")
    assert names(tmp_path) == []


def test_same_seed_same_bytes():
    args = ("gen", "radixsort", "--n", 100, "--seed")
    assert run(*args, 1).stdout == run(*args, 1).stdout != run(*args, 2).stdout


def judge(tmp_path, answer, stream=INPUT):
    (tmp_path / "in.bin").write_bytes(stream)
    (tmp_path / "out.bin").write_bytes(answer)
    done = run("verify", "radixsort", tmp_path / "in.bin", tmp_path / "out.bin")
    piped = run("verify", "radixsort", tmp_path / "in.bin", "-", stdin=answer)
    assert (done.returncode, done.stdout) == (piped.returncode, piped.stdout)
    return done


def test_right_answer(tmp_path):
    expect(judge(tmp_path, ANSWER), 0, stdout=b"correct: 7 elements\n")
    expect(judge(tmp_path, b"", struct.pack("<i", 0)), 0, stdout=b"correct: 0 elements\n")


def test_wrong_answer(tmp_path):
    swapped = struct.pack("<7I", 0, 1, 7, 5, 7, 2**31, 2**32 - 1)
    done = judge(tmp_path, swapped)
    expect(done, 3, "out.bin: wrong: 2 of 7 elements differ", "[2] expected 5, got 7")
    expect(done, 3, "not sorted", "the same multiset")


@pytest.mark.parametrize("stream", [INPUT, struct.pack("<i", 0)])
def test_repeated_header(tmp_path, stream):
    answer = b"" if len(stream) == 4 else ANSWER
    expect(judge(tmp_path, stream[:4] + answer, stream), 3, "the header is repeated", "4 bytes")


def test_answer_of_another_length(tmp_path):
    expect(judge(tmp_path, ANSWER[:-3]), 3, "truncated: ends at byte 25", "6 complete elements")
    expect(judge(tmp_path, b""), 3, "truncated: ends at byte 0")
    expect(judge(tmp_path, ANSWER + b"\n"), 3, "too long: expected 28 bytes, got 29")


def test_missing_answer(tmp_path):
    (tmp_path / "in.bin").write_bytes(INPUT)
    args = ("verify", "radixsort", tmp_path / "in.bin", tmp_path / "out.bin")
    expect(run(*args), 2, "does not exist")


def test_bad_input_of_an_answer(tmp_path):
    expect(judge(tmp_path, ANSWER, INPUT[:-1]), 1, "in.bin: truncated")
