"""Every sample, through the real command line."""

from pathlib import Path

import pytest
from command import cudalab

SAMPLES = Path(__file__).parents[2] / "samples"
INPUTS = sorted(SAMPLES.glob("*/*.in.bin"))
GOOD = [path for path in INPUTS if not path.name.startswith("bad-")]
BAD = [path for path in INPUTS if path.name.startswith("bad-")]


def name(path):
    return f"{path.parent.name}/{path.name.removesuffix('.in.bin')}"


def run(path, device, **stdin):
    return cudalab(path.parent.name, *options(path), "--device", device, **stdin)


def verify(path, answer):
    return cudalab("verify", path.parent.name, *options(path), str(path), "-", input=answer)


def options(path):
    # CASE.DTYPE[.OPTION...].in.bin: "op=max" stands for --op=max, "rows" for --rows.
    _, dtype, *rest = path.name.removesuffix(".in.bin").split(".")
    return ["--dtype", dtype, *(f"--{option}" for option in rest)]


def test_samples_exist():
    assert len(GOOD) >= 10
    assert len(BAD) >= 4


@pytest.mark.parametrize("path", GOOD, ids=name)
def test_answer_from_a_file(path, device_name):
    expected = path.with_name(path.name.replace(".in.bin", ".out.bin")).read_bytes()
    with path.open("rb") as stdin:
        done = run(path, device_name, stdin=stdin)
    assert done.returncode == 0, done.stderr.decode()
    if path.name.startswith("approx-"):  # the answer is one of many within the lab's bound
        for answer in (done.stdout, expected):
            verdict = verify(path, answer)
            assert verdict.returncode == 0, verdict.stderr.decode()
    else:
        assert expected == done.stdout, done.stderr.decode()
    assert ("trailing" in path.name) == (b"warning:" in done.stderr)


@pytest.mark.parametrize("path", BAD, ids=name)
def test_bad_input_is_refused(path, device_name):
    with path.open("rb") as stdin:
        from_file = run(path, device_name, stdin=stdin)
    from_pipe = run(path, device_name, input=path.read_bytes())
    assert b"Error: stdin: " in from_file.stderr
    for done in (from_file, from_pipe):
        assert (done.returncode, done.stdout) == (1, b"")
        assert b"Error: " in done.stderr  # a pipe's huge n may exceed the memory first
        assert b"\nHint: " in done.stderr


def test_every_answer_has_an_input():
    answers = {path.name.removesuffix(".out.bin") for path in SAMPLES.glob("*/*.out.bin")}
    assert answers == {path.name.removesuffix(".in.bin") for path in GOOD}


def test_readme_describes_every_case():
    for path in INPUTS:
        case = path.name.split(".")[0]
        assert f"`{case}`" in (path.parent / "README.md").read_text(encoding="utf-8")
