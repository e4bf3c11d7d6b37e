"""`cudalab check`: variants, kernels, programs and commands that are handed in, from outside."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from checking import CHEATS, IMPORTS, ROOT, checked, cudalab, kernel

from cudalab.checker.submit.program import copy_runtime
from cudalab.errors import ExitCode

NO_GPU = not any(Path("/dev").glob("nvidia[0-9]*"))


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
    drawn = [test for test in report["tests"] if test["name"].endswith(", again")]
    assert drawn
    assert report["points"] == report["max_points"] == len(report["tests"]) - len(drawn)
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
    report = checked("reduce", "--op", "sum", "--kernel", path, "--device", "cpu", status=3)
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
    code = "from cudalab.backends.cpu.kernel_runtime import runtime_files\n"
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
    assert "it had 0.5 s and not 1" in str(report["tests"][-1]["details"])  # the rest ends soon


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
