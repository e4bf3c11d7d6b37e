"""`cudalab selftest`: a part of it, and that it would notice."""

from __future__ import annotations

import os
from pathlib import Path

import documents
import pytest
from command import cudalab

from cudalab import labs
from cudalab.backends.cpu.device import CpuDevice
from cudalab.checker import selftest
from cudalab.checker.sandbox import sandbox
from cudalab.checker.selftest import Finding, Job
from cudalab.language import source

ROOT = Path(selftest.__file__).parents[2]


def the_jobs(*names):
    return list(selftest.jobs(names, "cpu", CpuDevice.features))


def test_every_mutant_differs_from_its_variant_once():
    for name in labs.names():
        for mutant in labs.get(name).teaching.mutants:
            path = source.kernels_dir() / name / f"{mutant.variant}.cu"
            assert path.read_text().count(mutant.old) >= 1, mutant
            assert mutant.old != mutant.new


def test_every_lab_has_variants_and_a_mutant():
    for name in labs.names():
        groups = [job.group for job in the_jobs(name)]
        assert "variants" in groups
        assert "mutants" in groups


def test_every_cheat_says_what_it_does():
    cheats = [job for job in the_jobs(*labs.names()) if job.group == "cheats"]
    assert len(cheats) == sum(path.suffix in (".cu", ".py") for path in selftest.CHEATS.iterdir())
    assert all(job.what and job.needs in ("", "sandbox", "timing", "alone") for job in cheats)


def test_a_small_lab_holds(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "160"}
    words = ("--device", "cpu", "--lab", "transpose", "--json", tmp_path / "verdicts.json")
    done = cudalab("selftest", *words, text=True, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 mutants rejected" in done.stdout
    assert "No verdict was wrong" in done.stdout
    document = documents.checked((tmp_path / "verdicts.json").read_text(), "selftest")
    assert document["trusted"]
    assert {one["accepted"] for one in document["verdicts"] if one["group"] == "mutants"} == {False}


@pytest.mark.parametrize(
    ("group", "passed", "broken", "right"),
    [
        ("variants", True, False, True),
        ("variants", False, False, False),
        ("mutants", True, False, False),
        ("mutants", False, False, True),
        ("cheats", False, False, True),
        ("cheats", False, True, False),  # what could not be judged was not rejected
        ("variants", True, True, False),
    ],
)
def test_verdicts(group, passed, broken, right):
    assert Finding(Job(group, "reduce", "x", ""), passed, "", broken).right is right


def test_an_accepted_cheat_is_reported():
    box = sandbox.choose("none")
    cheat = Job("cheats", "reduce", "x", "", needs="")
    said = "\n".join(selftest.summary([Finding(cheat, passed=True, why="")], box, "cpu"))
    assert "do not grade with it" in said
    leak = Job("cheats", "reduce", "network", "", needs="sandbox")
    said = "\n".join(selftest.summary([Finding(leak, passed=True, why="")], box, "cpu"))
    assert "OPEN: network" in said


def test_without_a_sandbox_it_does_not_claim_to_have_one():
    """Cheats that only a sandbox keeps out are accepted without one, and reported."""
    job = next(job for job in the_jobs("reduce") if job.name == "reads_files")
    finding = selftest._judge(job, sandbox.choose("none"), "cpu")
    assert finding.passed
    assert selftest.leaks([finding]) == [finding]


def test_a_lossy_variant_is_no_right_submission():
    features = frozenset({"sm_80", "tensor_cores", "inline_ptx"})
    jobs = {job.name: job for job in selftest.jobs(["matmul"], "cuda", features)}
    assert jobs["tensor_cores_bf16"].group == "lossy variants"
    assert not jobs["tensor_cores_bf16"].must_pass
    assert jobs["tiled"].must_pass
