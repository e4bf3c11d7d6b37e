"""What a check tells to type: it works as it is printed, and it shows what was wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from checking import CHEATS, RACE, ROOT, checked, cudalab, kernel

from cudalab import labs
from cudalab.checker.cases import Test
from cudalab.checker.sandbox import sandbox
from cudalab.checker.sandbox.running import Limits, Outcome
from cudalab.checker.submit import commands
from cudalab.checker.submit.kernel import Kernel
from cudalab.checker.submit.program import Program
from cudalab.checker.submit.reports import Reply
from cudalab.checker.submit.submission import Command, Trial
from cudalab.checker.verdicts import Why
from cudalab.errors import ExitCode
from cudalab.language import source

WALLS = sandbox.choose("none")


def shell(script, folder):
    """Run commands as a user would type them."""
    command = folder / "bin" / "cudalab"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m cudalab "$@"\n')
    command.chmod(0o755)
    env = os.environ | {
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
    }
    return subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, check=False, cwd=folder, env=env
    )


def see(report):
    """The commands behind "see:"."""
    clues = [clue["look"] for test in report["tests"] for clue in test["clues"]]
    lines = [line for test in report["tests"] for line in test["details"]]
    lines += [line for stage in report["stages"] for line in stage["details"]]
    return [*filter(None, clues), *(x.removeprefix("see: ") for x in lines if "see: " in x)]


def test_names_are_quoted_and_the_case_is_named(tmp_path):
    folder = tmp_path / "my folder"
    folder.mkdir()
    folder.chmod(0o755)
    kernel(folder, "reduce", "sequential", ("i < n ? load", "i < n - 1 ? load"))
    report = checked(
        "reduce", "--kernel", "my folder/my.cu", "--device", "cpu", "--quick", "--op", "sumsq",
        "--dtype", "float32", "--seed", "1", cwd=tmp_path, status=3,
    )  # fmt: skip
    # With another seed the last item may be so small that leaving it out is no mistake; among
    # 99,329 it is none with this one either.
    test = next(test for test in report["tests"] if test["status"] == "failed")
    assert all("--op sumsq" in line for line in test["commands"])
    for line in {*see(report)} - {"cudalab explain reduction"}:
        assert "--op sumsq" in line
        assert "--kernel 'my folder/my.cu'" in line
    done = shell("\n".join(test["commands"]), tmp_path)
    assert done.returncode == ExitCode.WRONG_ANSWER, done.stderr
    done = shell(see(report)[0], tmp_path)
    assert "my.cu" in done.stdout, done.stderr


def test_an_input_that_is_cut_is_cut_by_hand(tmp_path):
    (tmp_path / "tests.toml").write_text("[[test]]\nn = 10\ncut = 3\nseed = 1\n")
    report = checked(
        "reduce", "--no-time", "--tests", "tests.toml", "--", sys.executable,
        CHEATS / "known_answers.py", cwd=tmp_path, status=3,
    )  # fmt: skip
    make, run = report["tests"][0]["commands"]
    assert make.endswith("| head -c -3 > in.bin")
    done = shell(f"{make}\n{run}", tmp_path)
    assert done.stdout == "exit status 0\n"
    assert (tmp_path / "in.bin").stat().st_size == 4 + 40 - 3


def test_each_kind_of_submission_has_its_commands(tmp_path):
    lab = labs.get("reduce")
    path = kernel(tmp_path, "reduce", "sequential")
    test = Test("one", 10, "uniform", options={"dtype": "int64"})
    drawn = "--n 10 --dist uniform --seed 5"

    def of(submission, test=test):
        return commands.of_test(lab, submission, test, 5)

    found = of(Kernel(lab=lab, path=path, sandbox=WALLS, device="cpu", label="my.cu"))
    assert found.repeat() == [
        f"cudalab gen reduce --dtype int64 {drawn} > in.bin",
        "cudalab reduce --dtype int64 --kernel my.cu --device cpu < in.bin > out.bin",
        "cudalab verify reduce --dtype int64 in.bin out.bin",
    ]
    assert found.sanitize == f"cudalab sanitize reduce --dtype int64 --kernel my.cu {drawn}"

    program = Program(files=[path], sandbox=WALLS, name="anna", device="cpu", words=["a b.cu"])
    found = of(program)
    assert found.run == "cudalab run --device cpu 'a b.cu' < in.bin"
    assert found.sanitize == f"{found.make[0]} && cudalab run --sanitize 'a b.cu' < in.bin"
    assert Program(files=[path], sandbox=WALLS, name="anna", device="cpu").words == ["my.cu"]

    found = of(Command(["./a.out", "x y"], WALLS, name="ben"))
    assert (found.run, found.sanitize) == ("./a.out 'x y' < in.bin", "")
    assert found.fill("{run} | xxd") == "./a.out 'x y' < in.bin | xxd"
    slow = Test("slow", 10, "uniform", options={}, pipe=True)
    found = of(Command(["./a.out"], WALLS), slow)
    assert found.run == "dd if=in.bin bs=7 status=none | ./a.out"

    (tmp_path / "mine.bin").write_bytes(bytes(44))
    given = Test("mine", 0, "", options={}, file=tmp_path / "mine.bin")
    found = of(Kernel(lab=lab, path=path, sandbox=WALLS, device="cpu", label="my.cu"), given)
    assert found.make == ()
    assert found.sanitize.endswith(f"--kernel my.cu --data {tmp_path}/mine.bin")


# The sanitizer looks at what fails ---------------------------------------------------------------


def stages(report):
    return {stage["name"]: stage for stage in report["stages"]}


def test_a_wrong_answer_from_a_lost_barrier_is_explained(tmp_path):
    path = kernel(
        tmp_path, "reduce", "sequential", ("        __syncthreads();  // the next level", "  //")
    )
    report = checked("reduce", "--kernel", path, "--device", "cpu", "--quick", status=3)
    stage = stages(report)["sanitize"]
    assert (stage["status"], stage["why"]) == ("failed", "sanitizer")
    assert any("my.cu" in line and "__syncthreads()" in line for line in stage["details"])
    assert stages(report)["time"]["status"] == "skipped"
    assert all("see: cudalab sanitize reduce" in "".join(t["details"]) for t in report["tests"])
    report = checked(
        "reduce", "--kernel", path, "--device", "cpu", "--quick", "--no-sanitize", status=3
    )
    assert "sanitize" not in stages(report)
    assert see(report)


@pytest.mark.parametrize("kind", ["--kernel", "--program"])
def test_what_a_hidden_test_computes_is_not_told_by_the_sanitizer(tmp_path, kind):
    path = kernel(
        tmp_path, "reduce", "sequential", ("        __syncthreads();  // the next level", "  //")
    )
    if kind == "--program":
        path.write_text(RACE.replace("int i = b", "int i = 1 + b"))
    (tmp_path / "tests.toml").write_text("[[test]]\nn = 777\nseed = 4321\nhidden = true\n")
    report = checked(
        "reduce", kind, path, "--device", "cpu", "--no-time", "--tests", tmp_path / "tests.toml",
        status=3,
    )  # fmt: skip
    stage = stages(report)["sanitize"]
    assert stage["status"] == "failed"
    assert "4321" not in json.dumps(stage)


def test_a_crash_is_given_its_line(tmp_path):
    path = kernel(
        tmp_path, "reduce", "sequential", ("out[blockIdx.x] =", "out[blockIdx.x + (1 << 28)] =")
    )
    report = checked("reduce", "--kernel", path, "--device", "cpu", "--quick", status=3)
    assert {test["why"] for test in report["tests"]} == {"crash"}
    assert "out of bounds" in stages(report)["sanitize"]["details"][0]
    assert "Traceback" not in json.dumps(report)


def test_a_wrong_answer_without_a_race_says_so(tmp_path):
    path = kernel(tmp_path, "reduce", "sequential", ("i < n ? load", "i < n - 1 ? load"))
    report = checked("reduce", "--kernel", path, "--device", "cpu", "--quick", status=3)
    stage = stages(report)["sanitize"]
    assert stage["status"] == "skipped"
    assert stage["says"].startswith("no cause found: no race")


def test_an_answer_that_only_the_sanitizer_sees_to_be_wrong(tmp_path):
    path = kernel(tmp_path, "reduce", "serial", ("out[s] = ", "out[s] = cols == 1023 ? 0 : "))
    text = "[rules]\nrace_cost = 0.25\n[[test]]\nn = 300\n"
    (tmp_path / "tests.toml").write_text(text)
    report = checked(
        "reduce", "--kernel", path, "--device", "cpu", "--tests", tmp_path / "tests.toml", status=3
    )
    stage = stages(report)["sanitize"]
    assert (stage["status"], stage["why"], stage["cost"]) == ("failed", "wrong answer", 1.0)
    assert stage["details"][0].startswith("wrong answer: 1 of 1 elements")
    assert report["points"] == 0
    done = shell(see(report)[-1], tmp_path)
    assert "wrong answer" in done.stdout


@pytest.mark.parametrize(
    ("change", "why", "says"),
    [
        (("i, first_bad, bin", "i + 1, first_bad, bin"), "wrong answer", "another error than"),
        (("i, first_bad, bin", "i, &none, bin"), "accepted bad input", "not reported:"),
    ],
)
def test_a_kernel_reports_the_first_element_of_no_class(tmp_path, change, why, says):
    declared = ("unsigned bin;", "unsigned bin;\n    [[maybe_unused]] FirstBad none = 0;")
    path = kernel(tmp_path, "histogram", "global_atomic", change, declared)
    report = checked(
        "histogram", "--dtype", "uint32", "--bins", "1000", "--kernel", path, "--device", "cpu",
        "--no-time", "--no-sanitize", status=3,
    )  # fmt: skip
    wrong = [test for test in report["tests"] if test["status"] == "failed"]
    assert [test["name"] for test in wrong] == ["elements of no class"]
    assert (wrong[0]["why"], wrong[0]["says"].startswith(says)) == (why, True)
    done = shell("; ".join(wrong[0]["commands"]), tmp_path)
    assert (why == "wrong answer") == ("not below the number of classes, 1,000" in done.stderr)


ROWS = "Idx.{} * CHUNK, last = first + CHUNK < n ? first + CHUNK : n;\n#pragma unroll 8"


@pytest.mark.parametrize(
    ("variant", "old", "new", "names"),
    [
        ("jacobi", "b > a || b != b ? b : a", "b > a ? b : a", ["a NaN"]),
        (
            "gauss_jordan",
            ROWS.format("y"),
            ROWS.format("x"),
            ["columns of different size", "fewer columns of different size"],
        ),
    ],
)
def test_only_these_systems_show_the_mistake(tmp_path, variant, old, new, names):
    whole = source.whole(source.load(ROOT / "kernels" / "solve" / f"{variant}.cu"))
    assert old in whole
    path = tmp_path / "my.cu"
    path.write_text(whole.replace(old, new))
    report = checked(
        "solve", "--kernel", path, "--device", "cpu", "--no-time", "--no-sanitize", status=3
    )
    failed = [test["name"] for test in report["tests"] if test["status"] == "failed"]
    assert [name for name in failed if not name.endswith(", again")] == names


POINTER = """#include <cstdio>
#include <cstdlib>
__global__ void add(const int* x, int n, int* out) {
    for (int i = 0; i < n; ++i) *out += x[i];
}
int main() {
    int n = 0, sum = 0, *out;
    if (fread(&n, 4, 1, stdin) != 1) return 1;
    int* x = (int*)malloc(4 * n);
    if ((int)fread(x, 4, n, stdin) != n) return 1;
    cudaMalloc(&out, 4);
    add<<<1, 1>>>(x, n, out);
    CALL
    cudaMemcpy(&sum, out, 4, cudaMemcpyDeviceToHost);
    return fwrite(&sum, 4, 1, stdout) != 1;
}
"""


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("", "my.cu:12: cudaErrorIllegalAddress: kernel add: argument 1 points to host memory"),
        ("*out = 1;", "my.cu:13: host code dereferences the device pointer"),
    ],
)
def test_what_a_program_says_on_stderr_is_shown(tmp_path, call, said):
    path = tmp_path / "my.cu"
    path.write_text(POINTER.replace("CALL", call))
    words = ("--program", path, "--device", "cpu", "--quick", "--no-time")
    done = cudalab("check", "reduce", *words, status=3)
    assert said in " ".join(done.stdout.split())
    assert "cudalab-box" not in done.stdout
    assert f"cudalab run --sanitize {path} < in.bin" in done.stdout


def test_a_command_without_a_pattern_shows_its_last_words(tmp_path):
    path = tmp_path / "sum.py"
    path.write_text("import sys\nprint('\\x1b[31mhere', file=sys.stderr)\nraise ValueError('no')\n")
    words = ("--no-time", "--quick", "--", sys.executable, path)
    done = cudalab("check", "reduce", *words, status=3)
    assert "[31mhere" in done.stdout
    assert "\x1b" not in done.stdout


def test_memory_wrecked_by_a_kernel_is_a_crash_and_not_the_graders(tmp_path):
    """Python itself may stumble over what a kernel has written into its memory."""
    path = kernel(tmp_path, "reduce", "sequential")
    mine = Kernel(lab=labs.get("reduce"), path=path, sandbox=WALLS, device="cpu", label="my.cu")
    outcome = Outcome(1, stderr="Traceback (most recent call last):\nMemoryError\n")
    for loaded, why in ((False, Why.GRADER), (True, Why.CRASH)):
        reply = Reply(status=1, loaded=loaded, peak_bytes=0)
        trial = Trial({}, tmp_path / "in.bin", Limits())
        assert mine._attempt_of(tmp_path, outcome, reply, trial).why is why


def test_a_file_of_ones_own_is_run_directly_without_alarm(tmp_path):
    """Also where no sandbox works; whoever grades others is warned."""
    path = kernel(tmp_path, "reduce", "sequential")
    words = ("check", "reduce", "--kernel", path, "--device", "cpu", "--quick", "--no-time")
    done = cudalab(*words, "--no-sanitize", "--sandbox", "none", status=0)
    assert done.stdout.splitlines()[-1].startswith("sandbox none: run directly, as you;")
    assert "NO SANDBOX" not in done.stdout + done.stderr
