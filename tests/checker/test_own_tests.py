"""The tests and inputs that a submission is judged by, and their seeds."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import pytest
from checking import ROOT, checked, cudalab, kernel

from cudalab import labs
from cudalab.checker import cases, draw, judge
from cudalab.checker.options import Settings
from cudalab.checker.sandbox import sandbox
from cudalab.checker.sandbox.running import Limits
from cudalab.checker.submit.kernel import Kernel
from cudalab.checker.submit.submission import PIPE_BYTES, slow_pipe
from cudalab.checker.verdicts import Status, Why
from cudalab.errors import CudalabError, ExitCode
from cudalab.labs import registry

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


def test_what_a_test_says_itself_takes_the_place_of_the_defaults(tmp_path):
    path = tmp_path / "tests.toml"
    path.write_text("[defaults]\npoints = 3\nn = 5\n[[test]]\npoints = 2\n[[test]]\nn = 7\n")
    tests = cases.load(path, labs.get("reduce"), {}).tests
    assert [(test.name, test.size, test.points) for test in tests] == [
        ("n = 5", 5, 2),
        ("n = 7", 7, 3),
    ]


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
        ("[[test]]\nn = '1025x'", "test 1: n: '1025x' is not a shape"),
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
        ("[[test]]\nn = 1\npoints = inf", "points must be 0 or more, got inf"),
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


@pytest.mark.parametrize(
    "limits",
    [
        # Copies of inputs, and the answers of several runs: of 64 MB each they were too much.
        Limits(disk_bytes=4 << 20),
        # More than the worker has, as for an input of 128 MB: a child cannot raise it.
        Limits(output_bytes=2 << 30),
    ],
)
def test_limits_that_large_inputs_need(tmp_path, limits):
    lab = labs.get("transpose")
    right = kernel(tmp_path, "transpose", "naive")
    mine = Kernel(lab=lab, path=right, sandbox=sandbox.choose("auto"), device="cpu", label="my.cu")
    path = tmp_path / "tests.toml"
    path.write_text("[[test]]\nn = '1x1Mi'\n")
    plan = cases.load(path, lab, {})
    settings = Settings(seed=3, sanitize=False, timing=False, limits=limits)
    report = judge.check(lab, mine, plan, mine.sandbox, settings)
    assert report.exit_code is ExitCode.OK


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
    """Some tests run in a case drawn by the seed, too, if the command names none.

    Each stays in the case that it is made for; the points are the same; the rest is told.
    """
    lab = labs.get("scan")
    variant = registry.find(lab, "hillis_steele")
    plan = cases.public(lab, {}, variant, quick=False)
    drawn = [draw.with_other_cases(lab, plan, variant, seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    changed = [test for test in drawn[0].tests if test.drawn]
    assert len(changed) == 3
    kept = [test for test in drawn[0].tests if not test.drawn]
    assert [replace(test, points=1.0) for test in kept] == list(plan.tests)
    assert sum(test.points for test in drawn[0].tests) == len(plan.tests)
    names = [test.name for test in drawn[0].tests]
    assert len(set(names)) == len(names)
    assert not any(drawn[0].tests[k].drawn for k in (0, -1))
    (line,) = draw.not_judged(lab, plan, variant)
    every = sum(map(variant.computes, lab.cases()))
    assert line.startswith(f"not judged, though its header allows them: {every - 1} cases, dtype ")
    assert "op min, max" in line
    (line,) = draw.not_judged(lab, drawn[0], variant)
    assert f": {every - 1 - len(changed)} cases" in line
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


def test_a_slow_pipe_delivers_a_few_bytes_at_a_time(tmp_path, monkeypatch):
    path, write, sizes = tmp_path / "in.bin", os.write, []
    monkeypatch.setattr(os, "write", lambda fd, data: sizes.append(len(data)) or write(fd, data))
    for length, at_once in ((20, PIPE_BYTES), (70_000, 140)):
        path.write_bytes(bytes(number % 251 for number in range(length)))
        with slow_pipe(path) as fd, open(fd, "rb", closefd=False) as file:
            assert file.read() == path.read_bytes()
        assert max(sizes) == at_once
        sizes.clear()
