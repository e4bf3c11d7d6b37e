"""`cudalab new` and `cudalab check`, from the outside, and the graders' formats."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from checking import CHEATS, IMPORTS, RACE, ROOT, checked, cudalab, kernel
from click.testing import CliRunner
from gradescope import RESULTS

from cudalab import labs
from cudalab.checker import cases, draw, judge, outputs, verdicts
from cudalab.checker.cases import Plan, Speed, Test
from cudalab.checker.sandbox import sandbox
from cudalab.checker.settings import Settings
from cudalab.checker.submit import host_code
from cudalab.checker.submit.kernel import Kernel
from cudalab.checker.submit.submission import Command, copy_runtime
from cudalab.checker.verdicts import Clue, Report, Result, SpeedResult, Stage, Status, Why
from cudalab.cli.app import cli
from cudalab.errors import CudalabError, ExitCode
from cudalab.labs import registry
from cudalab.program import runtime
from cudalab.system import elf

SORT = """
import array, sys
data = sys.stdin.buffer.read()
keys = array.array("I", data[4 : 4 + 4 * int.from_bytes(data[:4], "little")])
if len(keys) > 50_000:  # for fewer, importing NumPy takes longer
    import numpy
    keys = numpy.sort(keys).tolist()
sys.stdout.buffer.write(array.array("I", sorted(keys)).tobytes())
"""
NO_GPU = not any(Path("/dev").glob("nvidia[0-9]*"))


@pytest.fixture
def sort(tmp_path):
    path = tmp_path / "sort.py"
    path.write_text(SORT)
    return path


# Kinds of submission -----------------------------------------------------------------------------


def test_variant(tmp_path):
    report = checked(
        "matmul", "--variant", "tiled", "--device", "cpu", "--quick", "--no-sanitize", status=0,
        cwd=tmp_path,
    )  # fmt: skip
    assert report["passed"]
    assert [stage["name"] for stage in report["stages"]] == ["compile", "correct", "time"]
    assert all(test["accuracy"]["error"] <= test["accuracy"]["bound"] for test in report["tests"])
    assert all("3 runs gave the same bytes" in test["notes"] for test in report["tests"])
    assert report["speed"]["rounds"] >= 5


def test_kernel(tmp_path):
    path = kernel(tmp_path, "reduce", "sequential")
    report = checked("reduce", "--kernel", path, "--device", "cpu", "--no-time", status=0)
    assert report["points"] == report["max_points"] == len(report["tests"])
    assert report["sandbox"] in ("bwrap", "user", "none")


def test_a_right_kernel_whose_launches_do_not_fit_its_loops(tmp_path):
    """It never asks which row of the block a thread is in, so its loops are for single rows."""
    path = tmp_path / "by_columns.cu"
    path.write_text(
        """// /// cudalab
// summary = "A thread moves a whole column of a tile, so the rows of a block do the same"
// order = 1
// dispatch = "tiles"
// defines = { TILE_DIM = 32, BLOCK_ROWS = 4 }
// ///
extern "C" __global__ void transpose(const T* in, T* out, unsigned rows, unsigned cols) {
    unsigned across = (cols + TILE_DIM - 1) / TILE_DIM, first = blockIdx.x / across * TILE_DIM;
    unsigned c = blockIdx.x % across * TILE_DIM + threadIdx.x;
    for (unsigned r = first; r < first + TILE_DIM && r < rows && c < cols; ++r)
        out[(size_t)c * rows + r] = in[(size_t)r * cols + c];
}
"""
    )
    report = checked("transpose", "--kernel", path, "--device", "cpu", "--quick", status=0)
    assert [stage["status"] for stage in report["stages"]] == ["passed"] * 4


def test_wrong_kernel_is_explained(tmp_path):
    path = kernel(tmp_path, "reduce", "sequential", ("i < n ? load", "i < n - 1 ? load"))
    report = checked("reduce", "--kernel", path, "--device", "cpu", status=3)
    by_name = {test["name"]: test for test in report["tests"]}
    failed = by_name["a block and one"]
    assert failed["status"] == "failed"
    assert failed["clues"][0]["pattern"] == "the last item is missing"
    assert any(str(path) in command for command in failed["commands"])
    skipped = [stage for stage in report["stages"] if stage["name"] in ("sanitize", "time")]
    assert [stage["status"] for stage in skipped] == ["skipped", "skipped"]


def test_what_was_read_beyond_the_end_is_not_what_was_never_written(tmp_path):
    change = ("i < n ? load(x, y, i, level) : identity()", "load(x, y, i, level)")
    path = kernel(tmp_path, "reduce", "sequential", change)
    report = checked(
        "reduce", "--kernel", path, "--device", "cpu", "--dtype", "float32", "--quick",
        "--no-sanitize", status=3,
    )  # fmt: skip
    for test in report["tests"]:
        assert [clue["pattern"] for clue in test["clues"]] == ["NaN or infinity"]


def test_garbage_in_the_answer_is_no_difference_between_runs():
    path = ROOT / "tests" / "broken" / "transpose" / "stale_output.cu"
    report = checked(
        "transpose", "--kernel", path, "--device", "cpu", "--quick", "--no-sanitize", status=3
    )
    for test in report["tests"]:
        assert test["clues"][0]["pattern"] == "not all written"


def test_the_commands_of_a_report_repeat_the_failure(tmp_path):
    path = kernel(tmp_path, "reduce", "sequential", ("i < n ? load", "i < n - 1 ? load"))
    report = checked("reduce", "--kernel", path, "--device", "cpu", "--quick", status=3)
    script = "\n".join(report["tests"][-1]["commands"])
    script = script.replace("cudalab ", f"{sys.executable} -m cudalab ")
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == ExitCode.WRONG_ANSWER
    assert "1 of 1 elements differ" in done.stderr


def test_no_box_compiles_the_runtime_again(tmp_path):
    copy_runtime(tmp_path, check=True)
    copied = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.suffix for path in copied} - {".gch"} == {".so"}
    code = "from cudalab.backends.cpu.compiler import runtime_files\n"
    code += "print(*runtime_files(check=True))"
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True)
    assert {Path(path) for path in done.stdout.decode().split()} == copied
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == copied


def test_compile_error_names_file_and_line(tmp_path):
    path = kernel(tmp_path, "reduce", "sequential", ("__syncthreads();", "__sync_threads();"))
    lines = path.read_text().splitlines()
    line = 1 + next(i for i, text in enumerate(lines) if "__sync_threads" in text)
    report = checked("reduce", "--kernel", path, "--device", "cpu", status=5)
    stages = {stage["name"]: stage for stage in report["stages"]}
    assert stages["compile"]["why"] == "compile error"
    assert any(f"my.cu:{line}" in text for text in stages["compile"]["details"])
    assert [stages[name]["status"] for name in ("correct", "sanitize", "time")] == ["skipped"] * 3
    assert report["points"] == 0
    assert {test["status"] for test in report["tests"]} == {"skipped"}


def test_what_threads_draw_from_is_imported_before_they_start():
    code = "import sys, cudalab.checker.correct; print('numpy.random' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_a_loop_without_end_is_a_time_limit(tmp_path):
    report = checked(
        "reduce", "--kernel", CHEATS / "never_ends.cu", "--device", "cpu", "--quick",
        "--kill-after", 1, status=6, cwd=tmp_path,
    )  # fmt: skip
    assert {test["why"] for test in report["tests"]} == {"time limit"}


def test_a_copy_from_past_one_end_to_past_another(tmp_path):
    path = kernel(
        tmp_path, "transpose", "tiles_serial", ("rows - first_row < TILE_DIM", "rows < TILE_DIM")
    )
    (tmp_path / "tests.toml").write_text('[[test]]\nn = "70x1"\n')
    report = checked(
        "transpose", "--kernel", path, "--device", "cpu", "--tests", tmp_path / "tests.toml",
        "--no-sanitize", "--no-time", status=3,
    )  # fmt: skip
    assert report["tests"][0]["why"] == "wrote outside of its memory"


@pytest.mark.parametrize("command", ["check", "grade"])
def test_an_interrupt_ends_the_tests_that_run(tmp_path, command):
    (tmp_path / "all").mkdir()
    shutil.copy(CHEATS / "never_ends.cu", tmp_path / "all" / "my.cu")
    words = {
        "check": ["check", "reduce", "--kernel", "all/my.cu"],
        "grade": ["grade", "all", "--lab", "reduce", "--out", "results"],
    }[command]
    words += ["--device", "cpu", "--kill-after", "60", "--no-sanitize", "--no-time"]
    process = subprocess.Popen(
        [sys.executable, "-m", "cudalab", *words], cwd=tmp_path, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": IMPORTS}, text=True,
    )  # fmt: skip
    while command == "grade" and not (tmp_path / "results" / "results.sqlite").exists():
        time.sleep(0.1)
    time.sleep(4)  # compiled, and tests are under way
    process.send_signal(signal.SIGINT)
    _, says = process.communicate(timeout=15)
    assert process.returncode == ExitCode.INTERRUPTED
    assert ("the same call goes on with the rest" in says) == (command == "grade")


def test_a_command_that_a_run_cannot_read_is_no_wrong_answer(tmp_path, sort):
    box = sandbox.Sandbox("user", "a user for each run", own_users=True)
    command = Command(["python3", str(sort)], box)
    assert command.compile([]) == "nothing to compile"
    tmp_path.chmod(0o700)
    with pytest.raises(CudalabError, match=r"cannot read .*sort\.py"):
        command.compile([])


def test_command(sort, tmp_path):
    report = checked("radixsort", "--no-time", "--", sys.executable, sort, status=0, cwd=tmp_path)
    assert report["tests"][0]["name"] == "nothing at all"
    assert report["device"] == "any"


def test_command_in_the_folder_where_it_is_started(sort):
    shutil.copy(sort, sort.with_name("other.py"))
    sort.write_text("import other\n")
    checked(
        "radixsort", "--no-time", "--quick", "--", sys.executable, "sort.py", status=0,
        cwd=sort.parent,
    )  # fmt: skip


def test_wrong_command(sort):
    sort.write_text(SORT.replace('"I"', '"i"'))
    words = ("radixsort", "--no-time", "--quick", "--", sys.executable, sort)
    done = cudalab("check", *words, status=3)
    assert "sorted as signed" in done.stdout
    assert "cudalab gen radixsort --n" in done.stdout


def test_the_right_bytes_and_a_wrong_exit_status_are_wrong():
    report = checked(
        "reduce", "--no-time", "--quick", "--", sys.executable, CHEATS / "wrong_exit.py", status=3,
        cwd=CHEATS,
    )  # fmt: skip
    assert {test["why"] for test in report["tests"]} == {"exit status"}
    report = checked(
        "reduce", "--no-time", "--quick", "--", sys.executable, CHEATS / "dies_after.py", status=3,
        cwd=CHEATS,
    )  # fmt: skip
    assert {test["why"] for test in report["tests"]} == {"crash"}


def test_program(tmp_path):
    program = tmp_path / "sum.cu"
    program.write_text(
        """#include <cstdio>
#include <cstdlib>
__global__ void add(const int* x, int n, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out, x[i]);
}
int main() {
    int n = 0, sum = 0, *dx, *out;
    if (fread(&n, 4, 1, stdin) != 1) return 1;
    int* x = (int*)malloc(4 * (n + 1));
    if ((int)fread(x, 4, n, stdin) != n) return 1;
    cudaMalloc(&dx, 4 * (n + 1));
    cudaMalloc(&out, 4);
    cudaMemset(out, 0, 4);
    cudaMemcpy(dx, x, 4 * n, cudaMemcpyHostToDevice);
    if (n) add<<<(n + 255) / 256, 256>>>(dx, n, out);
    cudaMemcpy(&sum, out, 4, cudaMemcpyDeviceToHost);
    return fwrite(&sum, 4, 1, stdout) != 1;
}
"""
    )
    # What another process makes may be gone when it is to be copied, like the targets of links.
    made = [runtime.files(check=check)[0] for check in (False, True)]
    links = [one.with_name("passing.1-1") for one in made]
    for link in links:
        link.symlink_to("nowhere")
    try:
        report = checked("reduce", "--program", program, "--device", "cpu", "--strict", "--no-time")
    finally:
        for link in links:
            link.unlink()
    assert report["passed"], report["stages"]
    assert report["kind"] == "program"
    assert report["tests"][-1]["name"] == "input cut short"
    program.write_text(program.read_text().replace("return 1", "return 0"))
    words = ("--program", program, "--device", "cpu", "--strict", "--quick", "--no-time")
    report = checked("reduce", *words)
    assert report["tests"][-1]["why"] == "accepted bad input"
    program.write_text("int main() { return x; }\n")
    report = checked("reduce", "--program", program, "--device", "cpu", "--no-time", status=5)
    assert any("sum.cu:1" in line for line in report["stages"][0]["details"])


def test_a_right_program_with_a_race_does_not_pass(tmp_path):
    path = tmp_path / "race.cu"
    lie = 'int main() {\n    fprintf(stderr, "observed: 0 launches of 0 kernels\\n");\n'
    path.write_text(RACE.replace("int main() {\n", lie))
    report = checked("reduce", "--program", path, "--device", "cpu", "--quick", status=3)
    stages = {stage["name"]: stage for stage in report["stages"]}
    assert stages["correct"]["status"] == "passed"
    (finding,) = stages["sanitize"]["findings"]
    assert (finding["kind"], finding["file"]) == ("race", str(path))
    assert "items[" in path.read_text().splitlines()[finding["line"] - 1]
    assert stages["sanitize"]["status"] == "failed"
    assert any("__syncthreads()" in line for line in stages["sanitize"]["details"])
    assert stages["time"]["status"] == "skipped"
    assert stages["kernel"]["status"] == "passed"
    assert report["points"] == 0.5 * report["max_points"] == 1.5


def test_a_right_kernel_with_a_race_does_not_pass():
    path = ROOT / "tests" / "broken" / "reduce" / "missing_barrier.cu"
    report = checked("reduce", "--kernel", path, "--device", "cpu", "--quick", status=3)
    failed = [stage["name"] for stage in report["stages"] if stage["status"] == "failed"]
    assert failed in (["sanitize"], ["correct", "sanitize"])


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("--variant", "naive", "--kernel", "x.cu"),
        ("--variant", "naive", "--", "true"),
    ],
)
def test_exactly_one_submission(args, tmp_path):
    (tmp_path / "x.cu").write_text("")
    assert cudalab("check", "matmul", *args, cwd=tmp_path).returncode == ExitCode.USAGE


def test_a_program_that_does_not_exist_is_no_verdict(tmp_path):
    done = cudalab("check", "reduce", "--", "./no-such", cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE
    assert "no such program" in done.stderr


@pytest.mark.parametrize(
    ("option", "path", "status", "said"),
    [
        ((), "sum.cu", ExitCode.USAGE, "Hint: --program sum.cu"),
        ((), "my.cu", ExitCode.USAGE, "Hint: --kernel my.cu"),
        (("--kernel",), "sum.cu", ExitCode.COMPILE_ERROR, "check reduce --program sum.cu"),
        (("--program",), "my.cu", ExitCode.COMPILE_ERROR, "`cudalab check LAB --kernel FILE.cu`"),
    ],
)
def test_the_wrong_option_for_a_file_is_answered_by_the_right_one(
    tmp_path, option, path, status, said
):
    kernel(tmp_path, "reduce", "sequential")
    (tmp_path / "sum.cu").write_text(RACE)
    done = cudalab("check", "reduce", *option, path, "--device", "cpu", cwd=tmp_path, status=status)
    assert said in " ".join((done.stdout + done.stderr).split())


def test_a_program_of_several_files(tmp_path):
    folder = ROOT / "samples" / "programs" / "radixsort_digits"
    files = sorted(folder.glob("*.cu"))
    options = ("--device", "cpu", "--quick", "--no-time", "--no-sanitize")
    main, sort = files
    for named in ([folder], files, [main, "--program", sort]):
        report = checked("radixsort", *options, "--program", *named, status=0)
        assert report["passed"]
    (tmp_path / "empty").mkdir()
    done = cudalab("check", "radixsort", "--program", tmp_path / "empty", status=ExitCode.USAGE)
    assert "no .cu file" in done.stderr


@pytest.mark.skipif(not NO_GPU, reason="there is a GPU")
@pytest.mark.parametrize("kind", ["--kernel", "--variant"])
def test_a_missing_gpu_is_never_a_pass(tmp_path, kind):
    path = kernel(tmp_path, "reduce", "sequential")
    named = path if kind == "--kernel" else "sequential"
    done = cudalab("check", "reduce", kind, named, "--device", "cuda")
    assert done.returncode == ExitCode.NO_DEVICE
    assert "nothing could be" in done.stdout


def test_lab_options_choose_the_case(tmp_path):
    path = kernel(tmp_path, "scan", "hillis_steele")
    report = checked(
        "scan", "--kernel", path, "--device", "cpu", "--dtype", "int32", "--inclusive", "--quick",
        "--no-time", "--no-sanitize", status=0,
    )  # fmt: skip
    assert report["case"]["dtype"] == "int32"
    assert report["case"]["kind"] == "inclusive"


def test_a_variant_that_applies_to_one_case_only_is_judged_on_it():
    report = checked(
        "reduce", "--variant", "rows_shared", "--device", "cpu", "--quick", "--no-time",
        "--no-sanitize", status=0,
    )  # fmt: skip
    assert report["case"]["along"] == "rows"


# Skeletons ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("lab", labs.names())
def test_a_new_file_compiles_and_fails(lab, tmp_path):
    path = tmp_path / "my.cu"
    cudalab("new", lab, path, status=0)
    text = path.read_text()
    assert f"cudalab check {lab} --kernel my.cu" in text
    assert max(len(line) for line in text.splitlines()) <= 100
    report = checked(lab, "--kernel", path, "--device", "cpu", "--quick", status=3)
    assert report["stages"][0]["status"] == "passed"
    failed = [test["status"] == "failed" for test in report["tests"]]
    assert any(failed)
    assert all(failed) or lab == "bitonic"  # it sorts in place: sorted keys are right as they are
    assert Why.CRASH not in {test["why"] for test in report["tests"]}
    assert not any("could not be run" in stage["says"] for stage in report["stages"])


def test_new_prints_commands_for_a_shell(tmp_path):
    path = tmp_path / "my kernel.cu"
    done = CliRunner().invoke(cli, ["new", "table", str(path)])
    command = done.output.partition("judge it: ")[2]
    assert shlex.split(command) == ["cudalab", "check", "table", "--kernel", str(path)]
    assert "cudalab check table --kernel 'my kernel.cu'" in path.read_text()


def test_new_leaves_what_is_there(tmp_path):
    path = tmp_path / "my.cu"
    path.write_text("mine")
    assert cudalab("new", "scan", path).returncode == ExitCode.ERROR
    assert path.read_text() == "mine"


# Tests and seeds ---------------------------------------------------------------------------------

OWN_TESTS = """
[defaults]
dist = "few"

[speed]
points = 10
reference = "digit_8bit_serial"
full = 1.5
zero = 4
n = "1e4"

[[test]]
name = "small"
n = 100
points = 2

[[test]]
n = "1Ki"
dist = "uniform"
seed = 5
hidden = true
seconds = 3
memory = "1G"
options = { dtype = "float32" }

[[test]]
name = "cut"
n = 10
cut = 2
"""


def test_own_tests(tmp_path):
    path = tmp_path / "tests.toml"
    path.write_text(OWN_TESTS)
    plan = cases.load(path, labs.get("radixsort"), {})
    small, drawn, cut = plan.tests
    assert (small.name, small.size, small.dist, small.points) == ("small", 100, "few", 2)
    assert (drawn.size, drawn.seed, drawn.hidden, drawn.seconds) == (1024, 5, True, 3)
    assert drawn.options == {"dtype": "float32"}
    assert drawn.memory_bytes == 10**9
    assert cut.refuse
    assert cut.cut_bytes == 2
    assert (plan.speed.points, plan.speed.full, plan.speed.size) == (10, 1.5, 10_000)
    assert plan.source == "tests.toml"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[test]]\nn = 1\ndits = 'few'", "test 1: unknown 'dits'"),
        ("[[test]]\nn = 'many'", "test 1: n"),
        ("[[test]]\nname = 'x'", "test 1: it has neither n nor input"),
        ("[[test]]\nn = 1\ndist = 'wild'", "dist 'wild'"),
        ("[[test]]\nn = 1\npoints = -1", "points must be"),
        ("[[test]]\ninput = 'absent.bin'", "no such file"),
        ("[[test]]\nn = 1\noptions = { dtype = 'float64', layout = 'pairs' }", "options"),
        ("[speed]\nfull = 3\nzero = 2\n[[test]]\nn = 1", "full < zero"),
        ("tests = 3", "unknown tests"),
        ("[speed]\npoints = 1", "no tests"),
        ("[[test]]\nn = '1025x'", "test 1: n: '1025x': '' is not a size"),
        (
            "[[test]]\nn = 1\noptions = { dtpye = 'int32' }",
            "options: unknown 'dtpye': did you mean dtype",
        ),
        (
            "[[test]]\nn = 1\noptions = { dtype = 'int3' }",
            "options: dtype = 'int3' is unknown: did you mean",
        ),
        ("[[test]]\nn = 1\noptions = 3", "options: must be a table"),
        ("[[test]]\nn = 1\nhidden = 'no'", "hidden must be true or false, got 'no'"),
        ("[[test]]\nn = 1\nseconds = 0", "seconds must be more than 0"),
        ("[[test]]\nn = 1\nseed = 1.5", "seed must be a whole number, got 1.5"),
        ("[[test]]\nn = 1\npoints = nan", "points must be 0 or more, got nan"),
        ("[[test]]\nn = 1\nmemory = 0", "memory must be 1 byte or more"),
        ("defaults = 3\n[[test]]\nn = 1", "[defaults]: must be a table"),
        ("test = [3]", "test 1: must be a table"),
        ("[[test]", "cannot be read"),
    ],
)
def test_mistakes_in_own_tests_are_named(tmp_path, text, said):
    path = tmp_path / "tests.toml"
    path.write_text(text)
    with pytest.raises(CudalabError, match=said.replace("[", r"\[")) as error:
        cases.load(path, labs.get("radixsort"), {})
    assert "tests.toml" in error.value.message


def test_options_in_own_tests_have_the_types_of_the_command_line(tmp_path):
    path = tmp_path / "tests.toml"
    path.write_text("[[test]]\nn = 4\noptions = { tol = 1, text = true, max_iter = 7 }\n")
    (one,) = cases.load(path, labs.get("solve"), {}).tests
    assert one.options == {"tol": 1, "text": True, "max_iter": 7}
    for wrong in ("text = 1", "max_iter = 1.5", "tol = 'small'"):
        path.write_text(f"[[test]]\nn = 4\noptions = {{ {wrong} }}\n")
        with pytest.raises(CudalabError, match=f"options: {wrong.split()[0]} must be"):
            cases.load(path, labs.get("solve"), {})


def test_own_input(sort, tmp_path):
    (tmp_path / "in.bin").write_bytes(b"\3\0\0\0" + b"\3\0\0\0\1\0\0\0\2\0\0\0")
    (tmp_path / "tests.toml").write_text("[[test]]\ninput = 'in.bin'\npoints = 5\n")
    command = ("radixsort", "--tests", tmp_path / "tests.toml", "--no-time", "--")
    report = checked(*command, sys.executable, sort, status=0)
    assert report["points"] == 5
    (tmp_path / "in.bin").write_bytes(b"\3\0\0\0" + b"\3\0\0\0")
    done = cudalab("check", *command, sys.executable, sort)
    assert done.returncode == ExitCode.ERROR  # the instructor's mistake is no student's
    assert "truncated" in done.stdout


@pytest.mark.parametrize(
    ("lab", "variant", "sizes"),
    [
        ("reduce", "sequential", [0, 1]),
        ("reduce", "rows_shared", ["5x0", "0x3", "2x3"]),
        ("matmul", "tiled", [0, 1]),
    ],
)
def test_an_empty_input_is_answered_as_for_the_user(tmp_path, lab, variant, sizes):
    path = tmp_path / "tests.toml"
    path.write_text("".join(f"[[test]]\nn = '{size}'\n" for size in sizes))
    report = checked(
        lab, "--variant", variant, "--device", "cpu", "--tests", path, "--no-time",
        "--no-sanitize", status=0,
    )  # fmt: skip
    assert report["points"] == len(sizes)


@pytest.mark.parametrize("mode", ["compile", "cases"])
def test_a_mistake_of_the_worker_is_the_graders(tmp_path, monkeypatch, mode):
    lab = labs.get("reduce")
    path = kernel(tmp_path, "reduce", "sequential")
    mine = Kernel(lab=lab, path=path, sandbox=sandbox.choose("auto"), device="cpu", label="my.cu")
    words = Kernel._spec

    def spec(self, wanted, **rest):  # as if a part of the specification were forgotten
        found = words(self, wanted, **rest)
        return {**found, "cases": None} if wanted == mode else found

    monkeypatch.setattr(Kernel, "_spec", spec)
    plan = cases.public(lab, {}, mine.variant, quick=True)
    report = judge.check(lab, mine, plan, mine.sandbox, Settings(seed=3))
    assert report.exit_code is ExitCode.ERROR
    broken = next(stage for stage in report.stages if stage.status is Status.BROKEN)
    assert broken.name == {"compile": "compile", "cases": "correct"}[mode]
    assert broken.why is Why.GRADER
    assert mode == "compile" or broken.says == f"0 of {len(plan.tests)} tests"
    assert "cudalab itself failed: TypeError" in " ".join(broken.details)


def test_seeds(sort):
    command = ("radixsort", "--quick", "--no-time")
    rest = ("--", sys.executable, sort)
    one, two = (checked(*command, *rest, status=0) for _ in range(2))
    assert one["seed"] != two["seed"]
    again = checked(*command, "--seed", one["seed"], *rest, status=0)
    assert [t["seed"] for t in again["tests"]] == [t["seed"] for t in one["tests"]]
    assert len({t["seed"] for t in one["tests"]}) == len(one["tests"])


def test_quick_is_a_third():
    lab = labs.get("radixsort")
    every = cases.public(lab, {}, None, quick=False).tests
    quick = cases.public(lab, {}, None, quick=True).tests
    small = [one for one in every if not one.large]
    assert len(small) < len(every)
    assert len(quick) == len(small) // 3
    assert all(one in small for one in quick)


def test_other_cases_that_a_header_allows():
    """Some tests run in a case drawn by the seed, if the command names none; the rest is told."""
    lab = labs.get("scan")
    variant = registry.find(lab, "hillis_steele")
    plan = cases.public(lab, {}, variant, quick=False)
    drawn = [draw.with_other_cases(lab, plan, variant, seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    changed = [test for test in drawn[0].tests if test.drawn]
    assert len(changed) == 2
    assert [test.name for test in drawn[0].tests] == [test.name for test in plan.tests]
    assert not any(drawn[0].tests[k].drawn for k in (0, -1))
    (line,) = draw.not_judged(lab, plan, variant)
    every = sum(map(variant.computes, lab.cases()))
    assert line.startswith(f"not judged, though its header allows them: {every - 1} cases, dtype ")
    assert "op min, max" in line
    (line,) = draw.not_judged(lab, drawn[0], variant)
    assert f": {every - 3} cases" in line
    one = replace(variant, applies={"dtype": ("float32",), "op": ("sum",), "kind": ("exclusive",)})
    assert draw.not_judged(lab, plan, one) == []
    assert draw.with_other_cases(lab, plan, one, 1) == plan


def test_a_kernel_that_is_right_in_one_of_its_cases(tmp_path):
    text = (ROOT / "kernels" / "transpose" / "naive.cu").read_text()
    (tmp_path / "my.cu").write_text(text.replace("T* ", "float* "))
    words = ("--kernel", tmp_path / "my.cu", "--device", "cpu", "--no-time", "--no-sanitize")
    report = checked("transpose", *words, "--seed", 1, status=5)
    wrong = [test for test in report["tests"] if test["status"] == "failed"]
    assert {test["why"] for test in wrong} <= {"not what the lab launches", "wrong answer"}
    assert all("uniform float64" in test["dist"] for test in wrong)
    assert "its header allows --dtype float64" in "\n".join(wrong[0]["details"])
    report = checked("transpose", "--dtype", "float32", *words, "--seed", 1, status=0)
    assert report["notes"] == [
        "not judged, though its header allows them: 2 cases, dtype int32, float64"
    ]


@pytest.mark.parametrize("name", labs.names())
def test_public_lists_are_sound(name):
    """Each size and distribution exists, in the list of programs and in that of kernels."""
    lab = labs.get(name)
    programs = cases.public(lab, {}, None, quick=False).tests
    kernels = cases.public(lab, {}, registry.default(lab, lab.complete({}), "cpu"), quick=False)
    assert len(programs) >= 6
    for test in {str(test): test for test in (*programs, *kernels.tests)}.values():
        case = lab.complete(test.options)
        assert b"".join(map(bytes, lab.generate(case, test.size, test.dist, 1)))


# Fairness ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cheat", "status", "why"),
    [
        ("empty", 3, "wrong answer"),
        ("takes_input", 3, "changed its input"),
        ("writes_outside", 3, "wrote outside of its memory"),
        ("constructor", 5, "no kernel: host code"),
        ("host_call", 5, "no kernel: host code"),
        ("only_once", 3, "wrong answer"),
        ("remembers", 3, "wrong answer"),
    ],
)
def test_cheating_kernels(cheat, status, why):
    path = CHEATS / f"{cheat}.cu"
    report = checked(
        "reduce", "--kernel", path, "--device", "cpu", "--no-sanitize", "--quick", status=status
    )
    causes = {test["why"] for test in report["tests"]} | {s["why"] for s in report["stages"]}
    assert why in causes


def test_a_clock_of_its_own_changes_nothing():
    """It says that no time has passed; the grader's clock is in another process."""
    report = checked(
        "reduce", "--kernel", CHEATS / "patched_clock.cu", "--device", "cpu", "--no-sanitize",
        "--quick", "--reference", "global_halving", "--speed-points", 10, status=0,
    )  # fmt: skip
    assert report["speed"]["ratio"] > 5
    assert report["speed"]["points"] == 0


def test_points_for_speed():
    rule = Speed(points=10, full=1.2, zero=5)
    assert rule.earned(0.5) == rule.earned(1.2) == 1
    assert 0 < rule.earned(3) < 1
    assert rule.earned(5) == rule.earned(100) == 0
    assert rule.earned(2) > rule.earned(3)


def test_an_import_of_the_system_is_seen(tmp_path):
    compiler = shutil.which("g++") or pytest.skip("no g++")
    source = tmp_path / "x.cpp"
    source.write_text(
        '#include <cmath>\n#include <cstdlib>\nextern "C" int f(float x)'
        ' { return system("id") + (int)sinf(x); }\nint g = rand();\n'
    )
    library = tmp_path / "x.so"
    subprocess.run([compiler, "-shared", "-fPIC", source, "-o", library], check=True)
    found = elf.demands(library.read_bytes())
    assert host_code.foreign(found) == ["rand", "system"]
    assert found.constructors > host_code.COMPILERS_OWN
    assert found.destructors == host_code.COMPILERS_OWN
    source.write_text("__attribute__((destructor)) static void late() {}\n")
    subprocess.run([compiler, "-shared", "-fPIC", source, "-o", library], check=True)
    found = elf.demands(library.read_bytes())
    assert (found.constructors, found.destructors) == (1, 2)
    with pytest.raises(ValueError, match="library"):
        elf.demands(library.read_bytes()[:400])
    with pytest.raises(ValueError, match="library"):
        elf.demands(b"no library")


# Formats -----------------------------------------------------------------------------------------


def a_report(*tests, stages=(), **options):
    base = Report(
        lab="reduce",
        submission="my.cu",
        kind="kernel",
        device="cpu",
        sandbox="bwrap",
        sandbox_words="isolated",
        seed=7,
        plan="public",
    )
    base.tests = list(tests)
    failed = [test for test in tests if test.status is Status.FAILED]
    base.stages = [
        Stage("compile", Status.PASSED, says="compiled"),
        Stage("correct", Status.FAILED if failed else Status.PASSED, says="some"),
        *stages,
    ]
    for name, value in options.items():
        setattr(base, name, value)
    return base


def passed(name="one", points=1.0):
    return Result(
        name=name,
        size="1",
        dist="uniform",
        seed=3,
        status=Status.PASSED,
        points=points,
        max_points=points,
    )


def failed(name="two", why=Why.WRONG, clue="the last element", **options):
    return Result(
        name=name,
        size="257",
        dist="uniform",
        seed=4,
        status=Status.FAILED,
        why=why,
        says="1 of 1 elements",
        details=["[0] expected 1, got 2 <&\x00\x1b>"],
        clues=[Clue(clue, "says", "cause", "look")],
        commands=["cudalab gen reduce"],
        max_points=2.0,
        **options,
    )


def test_exit_status():
    status = {
        ExitCode.OK: a_report(passed()),
        ExitCode.WRONG_ANSWER: a_report(passed(), failed()),
        ExitCode.TIME_LIMIT: a_report(passed(), failed(why=Why.TIME)),
    }
    for code, report in status.items():
        assert outputs.exit_status(report) == code
    mixed = a_report(failed(why=Why.TIME), failed("three", Why.CRASH))
    assert outputs.exit_status(mixed) == ExitCode.WRONG_ANSWER
    broken = a_report(passed())
    broken.stages[0].status = Status.FAILED
    assert outputs.exit_status(broken) == ExitCode.COMPILE_ERROR


def test_nothing_that_ran_is_no_pass():
    assert outputs.exit_status(a_report()) == ExitCode.ERROR
    skipped = Result(name="one", size="1", dist="", seed=None, status=Status.SKIPPED)
    assert outputs.exit_status(a_report(skipped)) == ExitCode.ERROR
    broken = a_report(passed(), stages=[Stage("time", Status.BROKEN, says="x", why=Why.GRADER)])
    assert outputs.exit_status(broken) == ExitCode.ERROR
    for stage in ("sanitize", "time"):
        report = a_report(
            passed(), stages=[Stage(stage, Status.FAILED, says="x", why=Why.SANITIZER)]
        )
        assert outputs.exit_status(report) == ExitCode.WRONG_ANSWER


def test_testlib_exit_status():
    assert outputs.exit_status(a_report(passed()), "testlib") == 0
    assert outputs.exit_status(a_report(failed()), "testlib") == 1
    assert outputs.exit_status(a_report(failed(clue="text on stdout")), "testlib") == 2
    assert outputs.exit_status(a_report(), "testlib") == 3


def test_json_comes_back():
    report = a_report(passed(), failed())
    value = json.loads(outputs.as_json(report))
    assert value["schema"] == verdicts.SCHEMA
    assert value["exit_code"] == 3
    assert (value["points"], value["max_points"]) == (1, 3)
    assert verdicts.from_json(value) == report


def test_junit():
    text = outputs.junit(a_report(passed(), failed(stderr="\x1b[31mred\x00")))
    suite = ET.fromstring(text).find("testsuite")  # noqa: S314 - our own
    assert suite.attrib["tests"] == "3"
    assert suite.attrib["failures"] == "1"
    names = [case.attrib["name"] for case in suite]
    assert names == ["compile", "one", "two"]
    assert {"name", "errors", "skipped", "time"} <= suite.attrib.keys()
    for case in suite:
        assert {"name", "classname", "time"} <= case.attrib.keys()
        assert {part.tag for part in case} <= {"failure", "error", "skipped", "system-err"}
    failure = suite[2].find("failure")
    assert failure.attrib["type"] == "wrong answer"
    assert "expected 1, got 2" in failure.text


def test_gradescope():
    value = json.loads(outputs.gradescope(a_report(passed(), failed(hidden=True))))
    assert value["score"] == 1
    one, two, compiled = value["tests"]
    assert (one["score"], one["max_score"], one["visibility"]) == (1, 1, "visible")
    assert (two["score"], two["status"]) == (0, "failed")
    assert two["visibility"] == "after_published"
    assert "the last element" in two["output"]
    assert compiled["name"] == "compile"
    skipped = Stage("sanitize", Status.SKIPPED, says="an earlier stage did not pass")
    value = json.loads(outputs.gradescope(a_report(failed(), stages=[skipped])))
    assert [test["name"] for test in value["tests"]] == ["two", "compile"]  # neither of the two
    assert value["output"].endswith("sanitize: skipped: an earlier stage did not pass")
    broken = json.loads(
        outputs.gradescope(a_report(stages=[Stage("time", Status.BROKEN, says="no")]))
    )
    assert "score" not in broken
    timed = SpeedResult(
        reference="serial", size="1000", ms=2.0, reference_ms=1.0, ratio=2.0, low=1.9, high=2.1,
        points=1.5, max_points=2.0, full=1.2, zero=5.0, rounds=7, what="kernels",
    )  # fmt: skip
    fast = json.loads(outputs.gradescope(a_report(passed(), speed=timed)))
    assert fast["score"] == 2.5 == sum(test["score"] for test in fast["tests"])
    assert fast["leaderboard"][0]["value"] == 2
    for one in (value, broken, fast):
        jsonschema.validate(one, RESULTS)


def test_gradescope_shows_nothing_that_hidden_tests_decide():
    """All that a student sees before the grades are published is the same, pass or fail."""
    speed = SpeedResult(
        reference="serial", size="1000", ms=2.0, reference_ms=1.0, ratio=2.0, low=1.9, high=2.1,
        points=1.5, max_points=2.0, full=1.2, zero=5.0, rounds=7, what="kernels",
    )  # fmt: skip
    clean = [Stage("sanitize", Status.PASSED), Stage("time", Status.PASSED)]
    skipped = [Stage("sanitize", Status.SKIPPED), Stage("time", Status.SKIPPED)]
    right = passed()
    right.hidden = True
    seen = []
    for report in (
        a_report(passed(), right, stages=clean, speed=speed),
        a_report(passed(), failed(hidden=True), stages=skipped),
    ):
        value = json.loads(outputs.gradescope(report))
        jsonschema.validate(value, RESULTS)
        value["tests"] = [one for one in value["tests"] if one["visibility"] == "visible"]
        del value["score"]  # which Gradescope holds back with the hidden tests
        seen.append(value)
    assert seen[0] == seen[1]


def test_what_a_submission_prints_is_plain_and_short_in_every_form():
    odd = "\x1b]0;title\x07\x1b[2J \ud800 <b>"
    stage = Stage(
        "sanitize", Status.FAILED, why=Why.SANITIZER, says=f"{odd}{'x' * 90_000}",
        details=[f"::error::{odd}", "  ::stop-commands::x", "y" * 90_000, "std::vector"],
    )  # fmt: skip
    test = failed(stderr=f"::add-mask::{odd}\n" + "z" * 90_000)
    test.details, test.says = stage.details, stage.says
    report = a_report(test, stages=[stage])
    forms = (outputs.junit, outputs.gradescope, outputs.check50)
    texts = [form(report) for form in forms] + [outputs.github(report, "my.cu")]
    for text in texts:
        assert len(text) < 12_000
        assert "\x1b" not in text
        assert "\\u001b" not in text
        text.encode()
    lines = [line for one in (stage, test) for line in outputs.explained(one)]
    assert not any(line.lstrip().startswith("::") for line in lines)
    assert not any(line.startswith("::") for line in texts[-1].splitlines() if "title=" not in line)
    assert ": :error::]0;title[2J  <b>" in lines
    assert "std::vector" in lines


def test_check50():
    value = json.loads(outputs.check50(a_report(passed(), failed())))
    assert [result["passed"] for result in value["results"]] == [True, True, False]
    assert value["results"][2]["cause"]["rationale"] == "wrong answer: 1 of 1 elements"


def test_github():
    text = outputs.github(a_report(failed("a: b, c")), "my.cu")
    error, notice = text.splitlines()
    assert error.startswith(
        "::error file=my.cu,title=a%3A b%2C c::wrong answer: 1 of 1 elements%0A"
    )
    assert notice == "::notice title=reduce::0 of 2 points"


def test_codegrade():
    assert outputs.codegrade(a_report(passed(), failed())) == "0.3333"
    with pytest.raises(CudalabError):
        outputs.codegrade(a_report())


def test_all_formats_of_one_run(sort, tmp_path):
    names = {
        "--junit": "j.xml",
        "--gradescope": "g.json",
        "--check50": "c.json",
        "--json": "r.json",
    }
    options = [word for option, name in names.items() for word in (option, tmp_path / name)]
    done = cudalab(
        "check", "radixsort", "--quick", "--no-time", *options, "--exit-style", "testlib", "--",
        sys.executable, sort, status=0,
    )  # fmt: skip
    points = len(cases.public(labs.get("radixsort"), {}, None, quick=True).tests)
    assert f"{points} of {points} points" in done.stdout
    junit = ET.parse(tmp_path / "j.xml").getroot()  # noqa: S314 - our own
    assert junit[0].attrib["failures"] == "0"
    assert json.loads((tmp_path / "g.json").read_text())["score"] == points
    assert all(r["passed"] for r in json.loads((tmp_path / "c.json").read_text())["results"])
    assert json.loads((tmp_path / "r.json").read_text())["passed"]


def test_graded_bytes_have_no_colour(sort):
    done = cudalab(
        "check", "radixsort", "--quick", "--no-time", "--codegrade", "--", sys.executable, sort,
        FORCE_COLOR="1", COLUMNS="20",
    )  # fmt: skip
    assert done.stdout == "1.0000\n"


def test_kept_inputs(tmp_path):
    cudalab(
        "check", "reduce", "--quick", "--no-time", "--keep", tmp_path / "kept", "--",
        sys.executable, CHEATS / "known_answers.py", status=3,
    )  # fmt: skip
    kept = sorted((tmp_path / "kept").iterdir())
    assert kept
    sizes = [test.size for test in cases.public(labs.get("reduce"), {}, None, quick=True).tests]
    assert kept[0].read_bytes()[:4] == sizes[0].to_bytes(4, "little")


def test_unreachable_points_for_speed_are_not_forgotten():
    report = a_report(failed(), speed_offered=10.0)
    assert report.max_points == 12
    assert Plan(()).speed.points == 0
    assert Test("x", 1, "uniform").points == 1


@pytest.mark.cuda
def test_cheats_on_a_gpu(tmp_path):
    for cheat in ("empty", "takes_input", "writes_outside", "remembers", "never_ends"):
        report = checked(
            "reduce", "--kernel", CHEATS / f"{cheat}.cu", "--device", "cuda", "--quick",
            "--kill-after", 5, cwd=tmp_path,
        )  # fmt: skip
        assert report["exit_code"] in (ExitCode.WRONG_ANSWER, ExitCode.TIME_LIMIT), cheat


def test_a_header_may_say_anything(tmp_path):
    path = tmp_path / "my.cu"
    for header in ("defines = " + "[" * 100_000, "order = nan", "x = 1\n// " * 3, ""):
        path.write_text(f"// /// cudalab\n// {header}\n// ///\n")
        report = checked("reduce", "--kernel", path, "--device", "cpu", status=5)
        assert report["stages"][0]["says"] == "nothing to judge"


def test_what_is_refused_has_no_points_to_tell(tmp_path):
    path = tmp_path / "my.cu"
    path.write_text("no header\n")
    done = cudalab("check", "reduce", "--kernel", path, status=5)
    assert done.stdout.splitlines()[0] == f"reduce: {path} (kernel)"
    assert "points" not in done.stdout
    assert "::notice" not in cudalab("check", "reduce", "--kernel", path, "--github").stdout


def test_a_header_that_does_not_cover_the_case(tmp_path):
    path = kernel(tmp_path, "matmul", "tiled")
    report = checked("matmul", "--kernel", path, "--device", "cpu", "--abt", status=5)
    assert any("does not compute" in line for line in report["stages"][0]["details"])


def test_a_program_that_answers_differently_each_time(tmp_path):
    path = tmp_path / "sum.py"
    path.write_text(
        "import os, sys\ndata = sys.stdin.buffer.read()\nsys.stdout.buffer.write(os.urandom(4))\n"
    )
    report = checked("reduce", "--quick", "--no-time", "--", sys.executable, path, status=3)
    assert report["tests"][-1]["clues"][0]["pattern"] == "another answer each time"


def test_a_time_that_is_printed_is_no_difference_between_runs(tmp_path):
    path = tmp_path / "sort.py"
    write = "sys.stdout.buffer.write(b'time = %d ns\\n' % time.perf_counter_ns())\n"
    path.write_text("import random, time" + SORT + write)
    report = checked("radixsort", "--quick", "--no-time", "--", sys.executable, path, status=3)
    patterns = [[clue["pattern"] for clue in test["clues"]] for test in report["tests"]]
    assert patterns == [["text behind the answer"]] * len(report["tests"])
    shuffle = SORT.replace("sorted(keys)", "random.sample(list(keys), len(keys))")
    path.write_text("import random, time" + shuffle + write)
    report = checked("radixsort", "--quick", "--no-time", "--", sys.executable, path, status=3)
    patterns = [clue["pattern"] for clue in report["tests"][-1]["clues"]]
    assert patterns == ["text behind the answer", "another answer each time"]


def test_a_reference_that_does_not_exist_is_told_before_anything_runs(sort):
    done = cudalab("check", "radixsort", "--reference", "fastest", "--", sys.executable, sort)
    assert done.returncode == ExitCode.USAGE
    assert "fastest" in done.stderr
