"""Programs and commands that are handed in to `cudalab check`."""

from __future__ import annotations

import shutil
import sys

import pytest
from checking import CHEATS, RACE, ROOT, SORT, checked, cudalab, kernel

from cudalab.checker.sandbox import sandbox
from cudalab.checker.submit.submission import Command
from cudalab.errors import CudalabError, ExitCode
from cudalab.program import runtime


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
        ((), "sum.cu", ExitCode.USAGE, "Hint: name it with --program sum.cu"),
        ((), "my.cu", ExitCode.USAGE, "Hint: name it with --kernel my.cu"),
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
