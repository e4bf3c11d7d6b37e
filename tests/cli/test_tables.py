"""`cudalab list` and the other tables, on terminals and in pipes."""

import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress
from itertools import groupby
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from command import cudalab
from sorting import COMMAND, LAB, expect, run, shell

from cudalab import labs
from cudalab.backends import DEVICES
from cudalab.cli.app import cli
from cudalab.cli.work.inventory import by_ladder
from cudalab.labs import registry

# Own files, supervised ----------------------------------------------------------------------------


REPORTS = [
    ["list", "reduce"],
    ["show", "reduce", "sequential"],
    ["explain", "scan"],
    ["device", "cpu"],
    ["--help"],
    ["profile", "reduce", "--n", "64", "--variant", "sequential"],
    ["profile", "reduce", "--n", "64", "--variant", "sequential", "--kill-after", "60"],
    ["sanitize", "reduce", "--n", "64", "--orders", "1"],
]


@pytest.mark.parametrize("words", REPORTS, ids=" ".join)
def test_a_report_into_a_closed_pipe_ends_like_a_filter(words):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*COMMAND, *words], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert done.returncode == -signal.SIGPIPE
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", REPORTS, ids=" ".join)
def test_a_report_onto_a_full_disk_is_an_error_in_words(words):
    with Path("/dev/full").open("wb") as full:
        done = cudalab(*words, stdout=full)
    assert done.returncode == 1
    assert b"Error: cannot write: No space left on device\nHint: " in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


# Tables -------------------------------------------------------------------------------------------


def printed(*args, columns=None):
    """What a command prints into a pipe, or where there are so many columns."""
    done = CliRunner().invoke(cli, args, env={"COLUMNS": columns}, catch_exceptions=False)
    assert done.exit_code == 0
    assert "\x1b" not in done.output
    return done.output


def test_list_has_a_line_for_each_lab():
    shown = printed("list").splitlines()
    assert [line.split()[0] for line in shown] == ["lab", *labs.names()]
    case = LAB.complete({})
    for device, kind in DEVICES.items():
        features = kind.load().possible_features
        line = next(line for line in shown if line.startswith(LAB.name))
        assert registry.default(LAB, case, device, features).name in line.split(), device


def test_a_pipe_gets_a_line_for_each_variant():
    lines = printed("list", "radixsort").splitlines()
    assert lines[0].split() == [
        *("variant", "summary", "ladder", "default", "also", "for", "computes", "requires"),
        "devices",
    ]
    variants = by_ladder(registry.variants(LAB))
    assert [line.split()[0] for line in lines[1:]] == [variant.name for variant in variants]
    assert all(v.summary in line for v, line in zip(variants, lines[1:], strict=True))


def test_ladders_are_listed_one_behind_the_other():
    lines = printed("list", "matmul").splitlines()[1:]
    names = [line.split()[0] for line in lines]
    assert names[:3] == ["naive", "tiled", "register_tiled_1d"]
    ladders = [registry.find(labs.get("matmul"), name).ladder for name in names]
    assert len([*groupby(ladders)]) == len(set(ladders))
    assert all(ladder in line for ladder, line in zip(ladders, lines, strict=True))


@pytest.mark.parametrize("width", [40, 60, 80, 100, 150])
def test_a_list_fits_the_terminal(width):
    shown = printed("list", columns=str(width))
    ladder = printed("list", "radixsort", columns=str(width))
    assert max(map(len, (shown + ladder).splitlines())) <= width
    assert all(variant.name in ladder for variant in registry.variants(LAB))
    assert all(labs.summary(name).split()[0] in shown for name in labs.names())
    if width in (80, 150):  # a line for each
        assert shown.count("\n") <= 4 + len(labs.names())
    assert ("default on cpu" in shown.partition("no room")[0]) == (width >= 150 or width < 60)


def test_json_of_a_missing_gpu_is_an_error(no_gpu):
    expect(run("device", "cuda", "--json", "-", env=no_gpu), 4, "Error: ", "Hint: ")


def on_terminal(*args, env=None):
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *args],
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        env=os.environ | {"TERM": "xterm-256color"} | (env or {}),
    )
    os.close(terminal)
    output = b""
    while True:
        try:
            output += os.read(controller, 65_536)
        except OSError:  # the terminal's last writer has ended
            break
    os.close(controller)
    assert process.wait() == 0
    return output


def test_source_is_highlighted_on_a_terminal():
    assert b"\x1b[" in on_terminal("show", "radixsort", "split_1bit")
    no_color = {"NO_COLOR": "1"}
    assert b"\x1b[3" not in on_terminal("show", "radixsort", "split_1bit", env=no_color)


def test_a_terminal_shows_which_headers_are_included():
    header = b"kernels/radixsort/parts/sweep_digit.cuh\r\n"
    output = on_terminal("show", "radixsort", "onesweep", env={"NO_COLOR": "1"})
    assert b"(--whole prints them in place):" in output
    assert b"\r\n  " + header in output
    assert b"\r\n  kernels/common/warp/warp_scan.cuh\r\n" in output
    output = on_terminal("show", "--whole", "radixsort", "onesweep", env={"NO_COLOR": "1"})
    assert b"(--whole" not in output
    assert b"// begin " + header.strip() in output


def test_broken_report_pipe_ends_quietly():
    done = shell("cudalab show radixsort split_1bit | true; cudalab list | true; true")
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("arguments", "opens"),
    [
        ([], True),
        (["--device", "cuda"], True),
        (["--device", "cpu"], False),
        (["--device=cpu"], False),
        (["--kernel", "my.cu"], False),  # a child process computes, which is forked
        (["--kernel=my.cu"], False),
        (["--kill-after", "9"], False),
        (["--help"], False),
    ],
)
def test_the_gpu_is_opened_early_where_this_process_computes(monkeypatch, arguments, opens):
    opened = []
    monkeypatch.setattr(
        "cudalab.backends.cuda.driver.begin_to_open_gpu", lambda: opened.append(True)
    )
    with suppress(click.ClickException):
        cli.main(["radixsort", *arguments, "-i", "no such file"], standalone_mode=False)
    assert opened == [True] * opens


def test_other_commands_of_a_lab_open_no_gpu(monkeypatch):
    monkeypatch.setattr(
        "cudalab.backends.cuda.driver.begin_to_open_gpu", lambda: pytest.fail("opened")
    )
    with suppress(click.ClickException):
        cli.main(["verify", "radixsort", "no such file", "nor this"], standalone_mode=False)


def test_a_thread_that_opens_the_gpu_is_silent_without_one():
    code = "from cudalab.backends.cuda import driver; driver._retain_primary_context()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        check=True,
    )
    assert done.stdout + done.stderr == b""
