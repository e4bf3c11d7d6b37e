"""The hand-out's exercises: verdicts, the table, exit statuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cudalab import labs
from cudalab.bench.measured import Plan
from cudalab.cli.app import cli
from cudalab.errors import ExitCode, UsageError
from cudalab.explain import exercises
from cudalab.labs import registry
from cudalab.labs.inputs import HostInputs

LAB = labs.get("reduce")
TASKS = {exercise.title: exercise for exercise in LAB.teaching.exercises()}
WRONG_COLUMNS = (
    'extern "C" __global__ void reduce_cols(const T* x, T* out, unsigned rows, unsigned cols,\n'
    "                                       unsigned count) {\n"
    "    (void)x, (void)rows, (void)count;\n"
    "    if (threadIdx.x < cols) out[threadIdx.x] = 7;\n"
    "}\n"
)


@pytest.fixture(autouse=True)
def _few_samples(monkeypatch):
    monkeypatch.setattr(exercises, "PLAN", Plan(time_limit_s=0.01))


@pytest.fixture
def wrong_columns(tmp_path, monkeypatch):
    """cols_shared gives a wrong answer."""
    path = tmp_path / "wrong.cu"
    path.write_text(WRONG_COLUMNS)
    right = registry.find

    def find(lab, name):
        if name != "cols_shared":
            return right(lab, name)
        return replace(right(lab, "cols_global"), name=name, path=path, label="wrong.cu")

    monkeypatch.setattr(registry, "find", find)


@pytest.fixture
def only_columns(monkeypatch):
    monkeypatch.setattr(type(LAB.teaching), "exercises", lambda _: [TASKS["column means"]])


def inputs(data):
    x = np.array(data, np.float32)
    return HostInputs({"x": x}, {"rows": x.shape[0], "cols": x.shape[1]})


# Differences -------------------------------------------------------------------------------------


def test_equal_answers_are_equal():
    case = LAB.complete({"op": "max", "along": "rows"})
    answer = np.array([2, 4], np.float32)
    assert exercises.differences([answer, answer], inputs([[1, 2], [3, 4]]), case) == (None, None)


def test_a_difference_where_none_is_allowed_is_infinite():
    case = LAB.complete({"op": "max", "along": "rows"})
    answers = [np.array([2, 4], np.float32), np.array([2, 5], np.float32)]
    found = exercises.differences(answers, inputs([[1, 2], [3, 4]]), case)
    assert found == (np.inf, np.inf)


def test_differences_are_parts_of_the_bound():
    # A sum of two rounds once: half an epsilon of the sum of magnitudes.
    case = LAB.complete({"op": "sum", "along": "rows"})
    step = np.float32(3) * np.finfo(np.float32).eps / 2
    answers = [np.array([3 + k * step], np.float32) for k in (-2, 0, 2)]
    between, to_reference = exercises.differences(answers, inputs([[1, 2]]), case)
    spread = float(answers[2][0]) - float(answers[0][0])
    assert between == pytest.approx(spread / step, rel=1e-5)
    assert to_reference == pytest.approx(between / 2)


def test_a_not_a_number_is_no_agreement():
    case = LAB.complete({"op": "sum", "along": "rows"})
    answers = [np.array([3], np.float32), np.array([np.nan], np.float32)]
    between, to_reference = exercises.differences(answers, inputs([[1, 2]]), case)
    assert not between < 1
    assert not to_reference < 1


# Sizes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "size", "expected"),
    [
        ("dot product", 1000, "1000"),
        ("dot product", (30, 20), None),
        ("row sums", 1000, "1000x1000"),
        ("row sums", (300, 200), "300x200"),
        ("row sums", (3, 2, 1), None),
        ("column means", 10**6, None),  # a matrix of 4 TB
    ],
)
def test_sizes_of_vectors_and_matrices(title, size, expected):
    exercise = TASKS[title]
    assert exercises.fits(exercise, size) == (expected is not None)
    if expected:
        assert exercises.shown_size(exercise, size) == expected


def test_the_hand_out_s_size_comes_first():
    assert {exercise.sizes[0] for exercise in TASKS.values()} == {1000}
    assert all(len(exercise.sizes) > 1 for exercise in TASKS.values())


# Runs --------------------------------------------------------------------------------------------


def test_every_exercise_agrees(device):
    seen = []
    found = list(exercises.run(device, [45, (31, 70)], progress=lambda *args: seen.append(args)))
    assert {result.title for result in found} == set(TASKS)
    assert len(found) == 1 + 2 * (len(TASKS) - 1)
    for result in found:
        assert list(result.rows) == list(TASKS[result.title].variants)
        assert all(map(exercises.timed, result.rows.values()))
        assert result.ratio().value > 0
        assert (result.to_reference or 0) <= 1
        if "max" in result.title or "min" in result.title:
            assert (result.between, result.to_reference) == (None, None)
    assert exercises.exit_codes(found) == {ExitCode.OK}
    assert seen[0] == ("dot product, 45", 0.0)
    assert seen[-1][1] == 1.0


def test_the_table(device):
    found = list(exercises.run(device, [33]))
    grid = exercises.grid(found, device.name, exercises.device_name(device))
    heads = [column.title for column in grid.columns]
    assert heads == ["exercise", "size", "global", "shared", "padded", "ratio", "apart", "error"]
    assert [row[0] for row in grid.rows] == list(TASKS)
    assert ("emulated" in grid.title) == (device.name == "cpu")
    assert "all answers are right" in grid.notes[-1]
    rows = {row[0]: dict(zip(heads, row, strict=True)) for row in grid.rows}
    assert rows["dot product"]["padded"] == ""
    assert rows["row sums"]["padded"] != ""
    assert rows["row maxima"]["apart"] == "equal"


@pytest.mark.usefixtures("wrong_columns", "only_columns")
def test_a_wrong_answer_is_named(device):
    (result,) = exercises.run(device, [20])
    assert exercises.exit_codes([result]) == {ExitCode.OK, ExitCode.WRONG_ANSWER}
    assert result.ratio() is None
    grid = exercises.grid([result], device.name, "a device")
    assert grid.rows[0][3] == "WRONG"
    assert "cols_shared: WRONG: 20 of 20 elements differ" in grid.notes[-1].splitlines()[0]


def test_no_data_of_such_sizes(device):
    for sizes in ([(1, 2, 3)], [(1, 2, 3), 16]):
        with pytest.raises(UsageError, match="no exercise has data of size 1x2x3"):
            list(exercises.run(device, sizes))


# The command -------------------------------------------------------------------------------------


def command(device, *args):
    return cli.main(
        ["exercises", "--device", device, *args], prog_name="cudalab", standalone_mode=False
    )


@pytest.mark.usefixtures("lock_of_its_own")
@pytest.mark.usefixtures("only_columns")
def test_the_report_goes_to_stdout(device_name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert command(device_name, "--size", "16,24", "--size", "8x40") == ExitCode.OK
    out, err = capsys.readouterr()
    assert [line for line in ("16x16", "24x24", "8x40") if line not in out] == []
    assert max(map(len, out.splitlines())) <= 80
    assert err.splitlines()[0] == "column means, 16x16"


@pytest.mark.usefixtures("lock_of_its_own")
@pytest.mark.usefixtures("only_columns", "wrong_columns")
def test_a_wrong_answer_exits_3(device_name, capsys):
    assert command(device_name, "--size", "16") == ExitCode.WRONG_ANSWER
    assert "WRONG" in capsys.readouterr().out
