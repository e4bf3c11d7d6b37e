"""The instructor's rules: a kernel must compute the answer, what a race costs, the language."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from checking import checked, cudalab

from cudalab import labs
from cudalab.checker import cases, judge, outputs
from cudalab.checker.cases import Plan, Test
from cudalab.checker.grading import batch
from cudalab.checker.grading.batch import Task
from cudalab.checker.options import JudgingOptions, Rules, Settings
from cudalab.checker.platforms import results
from cudalab.checker.sandbox import sandbox
from cudalab.checker.sandbox.running import Limits
from cudalab.checker.submit import stages
from cudalab.checker.submit.kernel import own_kernel
from cudalab.checker.submit.program import JudgedRun
from cudalab.checker.submit.submission import Attempt, Trial
from cudalab.checker.verdicts import Stage, Status, Why
from cudalab.errors import CudalabError, ExitCode
from cudalab.labs import registry
from cudalab.output.annotations import Annotation

FAKE = """#include <cstdio>
#include <vector>
__global__ void nothing(int* p) { *p = 1; }
int main() {
    int* d;
    cudaMalloc(&d, 4);
    nothing<<<1, 1>>>(d);
    nothing<<<1, 1>>>(d);
    cudaFree(d);
    int n = 0;
    unsigned sum = 0;
    if (fread(&n, 4, 1, stdin) != 1) return 1;
    std::vector<int> items(n);
    if (fread(items.data(), 4, n, stdin) != (size_t)n) return 1;
    for (int item : items) sum += item;
    return fwrite(&sum, 4, 1, stdout) != 1;
}
"""


def test_rules_stand_in_the_file_of_tests_and_options_replace_them(tmp_path):
    path, lab = tmp_path / "tests.toml", labs.get("reduce")
    path.write_text("[[test]]\nn = 1\n")
    assert cases.load(path, lab, {}).rules == Rules()
    path.write_text(
        "[rules]\nrequire_kernel = false\nraces = 'warning'\nrace_cost = 0.25\nlanguage = 'any'\n"
        "[[test]]\nn = 1\n"
    )
    rules = Rules(require_kernel=False, races="warning", race_cost=0.25, language="any")
    assert cases.load(path, lab, {}).rules == rules
    options = dict.fromkeys(JudgingOptions.__dataclass_fields__) | {"races": "free"}
    replaced = JudgingOptions(**options).rules(rules)
    assert replaced == Rules(require_kernel=False, races="free", race_cost=0.25, language="any")
    for wrong, says in (
        ("races = 'half'", "races must be free or warning or points, got 'half'"),
        ("race_cost = 1.5", "race_cost is a share, 0 to 1, got 1.5"),
        ("require_kernel = 1", "require_kernel must be true or false"),
        ("kernel = true", "unknown 'kernel'"),
        ("language = ['cuda']", "language must be cuda or any"),
    ):
        path.write_text(f"[rules]\n{wrong}\n[[test]]\nn = 1\n")
        with pytest.raises(CudalabError, match=r"tests.toml: \[rules\]: ") as error:
            cases.load(path, lab, {})
        assert says in error.value.message


@pytest.fixture
def judged(monkeypatch):
    """Judges a right kernel in which the sanitizer finds something, by given rules."""

    def check(*, timing=False, **rules):
        found = Stage("sanitize", Status.FAILED, says="1 finding", why=Why.SANITIZER)
        monkeypatch.setattr(judge.stages, "sanitize_kernel", lambda *_, **__: found)
        lab = labs.get("reduce")
        submission = own_kernel(lab, registry.find(lab, "serial"), "cpu")
        tests = (Test("one", 300, "uniform", points=4.0),)
        plan = Plan(tests, rules=Rules(**rules))
        settings = Settings(seed=1, timing=timing)
        return judge.check(lab, submission, plan, sandbox.choose("none"), settings)

    return check


def test_nothing_is_timed_in_which_a_race_was_found(judged, monkeypatch):
    timed = Stage("time", Status.PASSED)
    monkeypatch.setattr(judge.speed, "measure", lambda *_: (None, timed))
    before = [("compile", Status.PASSED), ("correct", Status.PASSED)]

    def stages_of(report):
        return [(stage.name, stage.status) for stage in report.stages]

    found = [("sanitize", Status.FAILED), ("time", Status.SKIPPED)]
    assert stages_of(judged(timing=True)) == [*before, *found]
    warned = [("sanitize", Status.PASSED), ("time", Status.PASSED)]
    assert stages_of(judged(timing=True, races="warning")) == [*before, *warned]


def test_what_a_race_costs(judged, monkeypatch):
    costly = judged(race_cost=0.25)
    assert (costly.points, costly.max_points, costly.share) == (3, 4, 0.75)
    assert costly.exit_code is ExitCode.WRONG_ANSWER
    assert results.codegrade(costly) == "0.7500"
    score = json.loads(results.gradescope(costly))
    assert score["score"] == 3
    assert "3 of 4 points, less 25% by the stage sanitize" in score["output"]
    warned = judged(races="warning")
    assert (warned.points, warned.exit_code) == (4, ExitCode.OK)
    assert warned.stage("sanitize").says == "1 finding, a warning"
    warned.stage("sanitize").findings = ["a finding"]
    error = Annotation(rule="race", title="t", level="error", text="x", file="my.cu", line=3)
    monkeypatch.setattr(outputs, "of_findings", lambda *_: [error])
    assert [one.level for one in outputs.remarks(warned, "my.cu")] == ["warning"]
    free = judged(races="free")
    assert (free.points, free.stage("sanitize")) == (4, None)


def test_a_program_whose_host_computes_the_answer(tmp_path):
    path = tmp_path / "fake.cu"
    path.write_text(FAKE)
    report = checked("reduce", "--program", path, "--device", "cpu", "--quick", status=3)
    stages = {stage["name"]: stage for stage in report["stages"]}
    assert [stage["status"] for stage in stages.values()] == [
        *("passed", "passed", "failed", "skipped", "skipped")
    ]
    assert stages["kernel"]["details"][0] == "without its 2 launches every answer is right, too"
    assert report["points"] == 0
    assert report["max_points"] == 3


READS = """#include <cstdio>
#include <vector>
__managed__ int of_all[30000];
__global__ void adds(const int* x, int n, int* flag) {
    int sum = 0;
    for (int i = 0; i < n; ++i) sum += x[i];
    *flag = sum;
}
__global__ void ran(const int*, int, int* flag) { *flag = 1; }
int main() {
    int n = 0, got = 0, sum = 0, *in, *flag;
    if (fread(&n, 4, 1, stdin) != 1) return 1;
    std::vector<int> items(n);
    if (fread(items.data(), 4, n, stdin) != (size_t)n) return 1;
    cudaMalloc(&flag, 4);
    BEGIN
    KERNEL<<<1, 1>>>(in, n, flag);
    cudaMemcpy(&got, flag, 4, cudaMemcpyDeviceToHost);
    for (int item : items) sum += item;
    if (ASKS) got = got == 1 ? sum : 0;
    return fwrite(&got, 4, 1, stdout) != 1;
}
"""
COPY = "cudaMalloc(&in, 4 * n); cudaMemcpy(in, items.data(), 4 * n, cudaMemcpyDefault);"
MANAGED = "cudaMallocManaged(&in, 4 * n); for (int i = 0; i < n; ++i) in[i] = items[i];"
PINNED = "cudaMallocHost(&in, 4 * n); for (int i = 0; i < n; ++i) in[i] = items[i];"
REGISTERED = "in = items.data(); cudaHostRegister(in, 4 * n, 0);"
VARIABLE = "in = of_all; for (int i = 0; i < n; ++i) in[i] = items[i];"
STAGED = (
    PINNED
    + "int* on; cudaMalloc(&on, 4 * n); cudaMemcpyAsync(on, in, 4 * n, "
    + ("cudaMemcpyHostToDevice); in = on;")
)


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("begin", [COPY, MANAGED, PINNED, REGISTERED, VARIABLE, STAGED])
def test_a_program_that_asks_a_kernel_whether_it_ran(tmp_path, begin, asks):
    """It computes on the host, whatever its kernel was given; others compute from that."""
    text = READS.replace("BEGIN", begin).replace("ASKS", "true" if asks else "false")
    (tmp_path / "asks.cu").write_text(text.replace("KERNEL", "ran" if asks else "adds"))
    (tmp_path / "tests.toml").write_text("[[test]]\nn = 5000\n[[test]]\nn = 300\n")
    words = ("--device", "cpu", "--no-time", "--no-sanitize", "--tests", tmp_path / "tests.toml")
    caught = asks and begin != REGISTERED  # the host reads what the kernel got, so it is wrong, too
    status = 3 if caught else 0
    report = checked("reduce", "--program", tmp_path / "asks.cu", *words, status=status)
    kernel = next(stage for stage in report["stages"] if stage["name"] == "kernel")
    assert kernel["status"] == ("failed" if caught else "passed")
    if caught:
        assert (
            kernel["details"][0] == "its kernels had other data, and every answer is right even so"
        )
        assert report["points"] == 0


def test_the_environment_of_a_run_does_not_tell_what_it_is_for():
    drawn = [(run, run.environment()) for run in JudgedRun for _ in range(50)]
    assert {tuple(one) for _, one in drawn} == {("CUDALAB_RUN",)}
    assert {len(one["CUDALAB_RUN"]) for _, one in drawn} == {16}
    assert len({one["CUDALAB_RUN"] for _, one in drawn}) == len(drawn)


class Answers:
    """A program that gives these answers without its kernels, then with other data."""

    gets_other_data = True

    def __init__(self, *answers):
        self.answers = iter(answers)

    def without_kernels(self, trial):
        return self.with_other_data(trial), 3

    def with_other_data(self, trial):
        assert isinstance(trial, Trial)
        answer = next(self.answers)
        return Attempt(None, answers=[answer], why=Why.CRASH if answer == b"dies" else "")


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ((b"right", b"right", b"right"), Status.FAILED),
        ((b"right", b"right", b"wrong", b"wrong"), Status.PASSED),
        ((b"wrong", b"wrong"), Status.PASSED),  # the first wrong answer is enough
        ((b"dies", b"dies"), Status.PASSED),
        ((b"wrong", b"right", b"right", b"right"), Status.FAILED),
        ((b"wrong", b"right", b"right", b"dies"), Status.PASSED),
    ],
)
def test_one_wrong_answer_shows_that_kernels_compute(tmp_path, answers, status):
    (tmp_path / "input").write_bytes(bytes(5000))
    trial = Trial({}, tmp_path / "input", Limits())
    trials = [(trial, lambda answer: answer == b"right")] * 3
    assert stages.kernel_stage(Answers(*answers), trials).status is status


def test_the_tests_that_tell_most_come_first():
    tests = [
        Test("empty", 0, "uniform"),
        Test("sorted", 5000, "sorted"),
        Test("small", 33, "uniform"),
        Test("large", 1025, "uniform"),
        Test("matrix", (10, 20), "uniform"),
        Test("cut", 9000, "uniform", refuse=True),
    ]
    assert [tests[i].name for i in stages.telling(tests, "uniform")] == [
        *("large", "matrix", "small")
    ]
    assert stages.telling(tests[:1], "uniform") == []


def test_a_script_is_no_cuda(tmp_path):
    (tmp_path / "sum.py").write_text("pass")
    (tmp_path / "tests.toml").write_text("[rules]\nlanguage = 'cuda'\n[[test]]\nn = 1\n")
    command = ("check", "reduce", "--no-time", "--tests", "tests.toml", "--", "python3", "sum.py")
    done = cudalab(*command, cwd=tmp_path, status=5)
    assert "not CUDA source: this is a script" in done.stdout
    done = cudalab(*command[:2], "--language", "any", *command[2:], cwd=tmp_path, status=3)
    assert "stdout is empty" in done.stdout


def test_a_class_hands_in_cuda_unless_the_command_says_otherwise(tmp_path):
    path = tmp_path / "bob.py"
    path.write_text("pass")

    def verdict(kind="auto", command="", language=None):
        options = dict.fromkeys(JudgingOptions.__dataclass_fields__) | {
            "seed": 1, "quick": True, "strict": False, "device": "cpu", "sandbox": "none",
            "kill_after": 5.0, "memory": "1Gi", "no_sanitize": True, "no_time": True,
            "time_limit": 1.0, "language": language,
        }  # fmt: skip
        task = Task(
            lab="reduce", name="bob", kind=kind, command=command, file="", options={},
            judging=JudgingOptions(**options),
        )  # fmt: skip
        report, _ = batch.judge_one(task, Path(path))
        return report.stages[0].why

    assert verdict() == Why.LANGUAGE
    assert verdict(kind="command") == verdict(command="python3 bob.py") == ""
    assert verdict(language="any") == ""
