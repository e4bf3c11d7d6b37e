"""The command line from outside: help, usage, devices, what is refused at once."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from sorting import ANSWER, COMMAND, INPUT, expect, run, sort

from cudalab.cli.app import cli
from cudalab.cli.failures import report_errors
from cudalab.errors import install_command
from cudalab.predict import gpus
from tests.command import cudalab

# Help ---------------------------------------------------------------------------------------------


def commands(group=cli, path=()):
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


@pytest.mark.parametrize("path", [path for path, _ in commands()], ids=" ".join)
def test_every_command_has_help_with_an_example(path):
    done = run(*path, "-h", env={"COLUMNS": "80"})
    expect(done, 0, stdout=done.stdout)
    assert max(map(len, done.stdout.decode().splitlines())) <= 80
    assert b"Usage: cudalab " in done.stdout
    assert b"\n  Example:\n    cudalab " in done.stdout


@pytest.mark.parametrize(("path", "command"), list(commands()), ids=str)
def test_every_option_has_help(path, command):
    del path
    for param in command.params:
        if isinstance(param, click.Option):
            assert param.help, param.name


@pytest.mark.parametrize("path", ["check", "grade", "check reduce"])
def test_the_help_of_judging_is_in_sections(path):
    """Each option stands in one of them, and few in the last one."""
    name, *lab = path.split()
    shown = run(name, *lab, "--help").stdout.decode()
    sections = re.split(r"^(\S.*):\n", shown.partition("Example:")[0], flags=re.MULTILINE)
    found = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert {"Tests", "Limits", "Rules", "Speed", "Results"} <= found.keys()
    assert ("Case of reduce" in found) == bool(lab)
    option = re.compile(r"^  (?:-\w, )?--([\w-]+)", re.MULTILINE)
    assert option.findall(found["Other"]) == ["quiet", "help"]
    listed = option.findall("".join(found.values()))
    assert len(set(listed)) == len(listed) > 20


def test_help_imports_neither_numpy_nor_rich():
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *COMMAND[1:], "--help"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert "radixsort  Sorts n keys" in done.stdout
    for module in ("numpy", "rich", "tomllib", "ctypes"):
        assert not re.search(rf"\| +{module}$", done.stderr, re.MULTILINE)


def test_a_run_imports_neither_rich_nor_what_draws_random_numbers():
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *COMMAND[1:], "radixsort", "--device", "cpu"],
        capture_output=True,
        check=True,
        input=INPUT,
    )
    assert done.stdout == ANSWER
    for module in (b"rich", rb"numpy\.random"):
        assert not re.search(rb"\| +" + module + b"$", done.stderr, re.MULTILINE)


def test_version():
    assert re.fullmatch(rb"cudalab \d+\.\d+\.\d+\n", run("--version").stdout)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["radixsrot"], "No such command 'radixsrot': did you mean radixsort?"),
        (["verfy"], "did you mean verify?"),
        (["gen", "radix"], "did you mean radixsort?"),
        (["zzz"], "No such command 'zzz': expected one of bitonic"),
        (["radixsort", "--variant", "digit_8bits"], "did you mean digit_8bit"),
        (["radixsort", "--variant", "../x"], "radixsort has no variant '../x'"),
        (["show", "radixsort", "split"], "split_1bit"),
        (["list", "radix"], "'radix' is unknown: did you mean radixsort?"),
        (["show", "transpose"], "missing: cudalab show transpose VARIANT\nHint: naive, tiled"),
        (["gen", "solve"], "--n is missing: the size of the input\nHint: cudalab gen solve --n "),
        (["radixsort", "--dtype", "int8"], "'int8' is unknown: did you mean int32"),
        (["radixsort", "--threads", "0"], "--threads"),
        (["radixsort", "--kill-after", "0"], "--kill-after"),
        (["radixsort", "--kill-after", "nan"], "'nan' is not a finite number"),
        (["radixsort", "--kill-after", "inf"], "--kill-after"),
        (["radixsort", "--kill-after", "1e10"], "--kill-after"),
        (["bench", "reduce", "--time-limit", "nan"], "'nan' is not a finite number"),
        (["bench", "--compare", __file__, __file__, "--threshold", "nan"], "'nan' is not a finite"),
        (["bench", "--compare", __file__, __file__, "--threshold", "inf"], "'inf' is not a finite"),
        (["bench", "reduce", "--hot", "all", "--op", "max"], "No such option '--op'"),
        (
            ["bench", "reduce", "--baseline", "numpy", "--sweep", "THREADS_PER_BLOCK=64"],
            "--baseline and --sweep exclude each other",
        ),
        (["histogram", "--plot", "nowhere/x.png"], "there is no folder nowhere"),
        (["radixsort", "--kernel", "/nowhere/my.cu"], "'/nowhere/my.cu' does not exist"),
        (["radixsort", "-i", "/nowhere/in.bin"], "'/nowhere/in.bin' does not exist"),
        (["radixsort", "-i", "/"], "is a directory"),
        (["--kernels", "/nowhere", "list"], "'/nowhere' does not exist"),
    ],
    ids=" ".join,
)
def test_usage_errors(args, words):
    expect(run(*args, stdin=INPUT), 2, "Error: ", words)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("sovle", "did you mean solve?"),
        ("prof", "did you mean profile?"),  # it begins so, whatever else is like it
        ("lern", "did you mean learn?"),
        *((word, "expected one of ") for word in ("nosuch", "judge", "measure", "compile")),
    ],
)
def test_a_command_is_suggested_only_if_it_is_like_the_word(word, meant):
    expect(run(word), 2, f"No such command '{word}': {meant}")


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        ("bench redcue", "did you mean reduce?"),
        ("explain bank", "did you mean banks"),
        ("profile reduce --dist unform", "did you mean uniform?"),
        ("bench reduce --dist unform", "did you mean uniform?"),
        ("gen reduce --n 1 --dist unform", "did you mean uniform?"),
        ("bench reduce --dtype int3", "did you mean int32"),
        ("bench reduce --baseline nunpy", "did you mean numpy or cupy?"),
        ("bench reduce --sweep THREADS=1,2", "did you mean THREADS_PER_BLOCK"),
        ("scan --variants warp_shufle", "did you mean warp_shuffle"),
        ("bench scan --variants warp_shufle", "did you mean warp_shuffle"),
        ("bench scan --variant warp_shufle", "did you mean warp_shuffle"),
        ("report scan --variant warp_shufle", "did you mean warp_shuffle"),
        ("profile scan --variant warp_shufle", "did you mean warp_shuffle"),
        ("sanitize scan --variants warp_shufle", "did you mean warp_shuffle"),
        ("check scan --variants warp_shufle", "did you mean warp_shuffle"),
        ("scan --device gpu", "expected one of auto, cuda, cpu"),
    ],
)
def test_names_are_suggested_everywhere(args, hint, capsys):
    words = args.split()
    if {"bench", "report"} & set(words):
        words += ["--device", "cpu"]
    assert report_errors(lambda: cli.main(words, standalone_mode=False)) == 2
    assert hint in capsys.readouterr().err


def test_variant_and_kernel_exclude_each_other(own):
    expect(sort("--variant", "split_1bit", "--kernel", own("")), 2, "exclude each other")


# Devices ------------------------------------------------------------------------------------------


def test_auto_says_that_it_takes_the_cpu(no_gpu):
    done = run("radixsort", stdin=INPUT, env=no_gpu)
    expect(done, 0, stdout=ANSWER)
    assert done.stderr == b"note: no GPU here: running on the CPU device\n"


def test_missing_gpu(no_gpu):
    for args in (["radixsort", "--device", "cuda"], ["device", "cuda"]):
        expect(run(*args, stdin=INPUT, env=no_gpu), 4, "Error: ", "Hint: ")


def test_missing_compiler():
    program = "import sys; sys.modules['ziglang'] = None; from cudalab.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "radixsort", "--device", "cpu"],
        input=INPUT,
        capture_output=True,
        check=False,
        env={k: v for k, v in os.environ.items() if k != "CXX"} | {"PATH": "/nowhere"},
    )
    expect(done, 4, "C++ compiler", install_command("cpu"))


def test_device_tables(no_gpu):
    done = run("device", env=no_gpu)
    expect(done, 0, stdout=done.stdout)
    assert b"cuda device: " in done.stdout
    assert b"compiler" in done.stdout
    assert done.stderr == b""
    assert b"cuda" not in run("device", "cpu").stdout.splitlines()[0]


# Own files, supervised ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "one", "other"),
    [
        ("reduce --rows --cols", "--rows", "--cols"),
        ("gen reduce --n 5x5 --cols --rows", "--cols", "--rows"),
        ("verify matmul --aat --abt FILE FILE", "--aat", "--abt"),
        ("bench matmul --aat --abt", "--aat", "--abt"),
        ("profile reduce --data FILE --n 5", "--data", "--n"),
        ("profile reduce --data FILE --seed 5", "--data", "--seed"),
        ("sanitize reduce --data FILE --dist uniform", "--data", "--dist"),
    ],
)
def test_options_that_would_be_ignored_are_refused(words, one, other):
    message = f"Error: {one} and {other} exclude each other\nHint: leave one of them out"
    expect(run(*words.replace("FILE", __file__).split()), 2, message)


def test_a_report_from_results_takes_no_options_of_measuring():
    done = run("report", "reduce", "--from", __file__, "--n", "5", "--op", "max", "-o", "r.md")
    expect(done, 2, "Error: --from measures nothing\nHint: leave out --n, --op\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--variants nope", "reduce has no variant 'nope'"),
        ("scan --variants warp_shuffle,single_pass", "scan has no variant 'single_pass'"),
        ("--n 100,30x20", "reduce has no data of size (30, 20)"),
        ("--sweep LANES=1,2", "no variant of reduce here defines LANES"),
    ],
)
def test_nothing_is_printed_before_bench_refuses(words, message):
    done = run("bench", "reduce", *words.split(), "--device", "cpu")
    expect(done, 2, f"Error: {message}")


def test_compare_takes_no_other_options():
    done = run("bench", "reduce", "--compare", __file__, __file__, "--hot", "--n", "5")
    expect(done, 2, "Error: --compare measures nothing\nHint: leave out the labs, --n, --hot\n")


@pytest.mark.parametrize(
    "words",
    [
        "check reduce --variant sequential --json",
        "bench reduce --csv",
        "report reduce -o",
        "profile reduce --html",
        "sanitize reduce --json",
    ],
)
def test_a_path_that_cannot_be_written_is_refused_at_once(words, tmp_path):
    path = tmp_path / "gone" / "out.html"
    expect(run(*words.split(), path), 2, f"{path}: there is no folder {path.parent}")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("show reduce seq", ["sequential"]),
        ("reduce --variant seq", ["sequential"]),
        ("check reduce --variant seq", ["sequential"]),
        ("sanitize reduce --variant seq", ["sequential"]),
        ("profile reduce --variants serial,seq", ["serial,sequential"]),
        ("bench reduce --variants serial,se", ["serial,sequential", "serial,serial"]),
        ("report reduce --variants seq", ["sequential"]),
        ("bench --variants seq", []),
    ],
)
def test_shells_are_offered_the_names_of_variants(words, offered):
    words = ["cudalab", *words.split()]
    env = {
        "_CUDALAB_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    lines = run(env=env).stdout.decode().split()
    assert lines == [f"plain,{name}" for name in offered]


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not here")
def test_bash_completes_with_the_file_of_the_wheel():
    script = """source docs/shell/cudalab.bash
        COMP_WORDS=(cudalab rad) COMP_CWORD=1
        _cudalab_completion cudalab
        echo "${COMPREPLY[@]}"
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PATH": path},
    )
    assert (done.stdout, done.stderr) == ("radixsort\n", "")


def test_an_input_file_is_named_with_an_option():
    message = "Error: Got unexpected extra argument (in.bin). An input file is named with -i: "
    expect(sort("in.bin"), 2, message + "cudalab radixsort -i in.bin")


@pytest.mark.parametrize("words", ["reduce", "profile reduce", "sanitize reduce", "predict reduce"])
def test_a_kernel_file_is_named_with_an_option(words):
    done = cudalab(*words.split(), "my.cu", *(["--gpu", "t4"] if "predict" in words else []))
    expect(done, 2, f"A kernel file is named with --kernel: cudalab {words} --kernel my.cu")


@pytest.mark.parametrize(
    ("words", "programs"),
    [
        ("sanitize", "have cudalab run --sanitize"),
        ("profile", "have cudalab run --profile"),
        ("predict", "are not predicted"),
        ("bench", "are not measured"),
    ],
)
def test_a_program_is_no_lab(words, programs):
    message = f"cudalab {words} LAB --kernel my.cu; whole programs {programs}"
    expect(cudalab(words, "my.cu"), 2, message)


def test_a_whole_program_is_no_kernel_file(tmp_path):
    (tmp_path / "my.cu").write_text("int main() {}\n")
    done = cudalab("reduce", "--kernel", str(tmp_path / "my.cu"), input=b"")
    expect(done, 1, "my.cu: a whole program, not a kernel file")
    expect(done, 1, "my.cu, or cudalab check reduce --program")


def test_grade_without_words_says_what_is_missing():
    expect(cudalab("grade"), 2, "Missing argument 'FOLDER'")


def test_the_help_of_predict_names_each_gpu():
    done = cudalab("predict", "--help", env=os.environ | {"COLUMNS": "200"}, text=True)
    assert f"{', '.join(gpus.names())}, or a file" in done.stdout
