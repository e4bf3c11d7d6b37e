"""GPUs as files."""

from __future__ import annotations

import pytest
from command import cudalab

from cudalab.errors import UsageError
from cudalab.predict import gpus, show


@pytest.mark.parametrize("name", gpus.names())
def test_every_number_has_a_source(name):
    gpu = gpus.load(name)
    assert gpu.architecture.startswith("sm_")
    kinds = [len(gpu.origins(kind)) for kind in gpus.SOURCES]
    assert sum(kinds) == len(gpu.sources) > 20


def test_the_names_of_the_course():
    assert gpus.names() == ["a100", "a6000", "b200", "h100", "h200", "rtx3060", "rtx4090", "t4"]
    assert gpus.load("H100") == gpus.load("h100")


def test_an_unknown_name():
    with pytest.raises(UsageError, match="GPU 'h10' is unknown") as error:
        gpus.load("h10")
    assert "h100" in error.value.hint


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name              = "NVIDIA T4"', "", "name is missing"),
        ("warps  ", "wraps  ", "wraps is unknown"),
        ("value = 40,", "value = 0,", "multiprocessors: its value is no number above 0"),
        ("value = 40,", "value = true,", "multiprocessors: its value is no number above 0"),
        ("value = 40, ", "", "multiprocessors is missing, or not of the form"),
        ("documented =", "guessed =", "guessed is none of measured, documented, assumed"),
        ("{ value = 40", "{{ value = 40", "t4.toml: "),
        ('"sm_75"', '"75"', "architecture: 75 is not of the form sm_90"),
    ],
)
def test_a_wrong_file_names_the_key(tmp_path, old, new, message):
    text = (gpus.FOLDER / "t4.toml").read_text()
    path = tmp_path / "t4.toml"
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(UsageError, match=r"t4\.toml") as error:
        gpus.load(str(path))
    assert message in error.value.message


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        gpus.load(str(tmp_path / "none.toml"))


def test_without_a_gpu_all_are_named():
    done = cudalab("predict", "reduce", text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert all(name in done.stderr for name in gpus.names())


def test_a_time_that_is_next_to_nothing_has_no_exponent():
    assert [show.ms(one) for one in (None, 0.0, 5.61e-8, 0.0123, 12345.0)] == [
        "", "0", "< 0.00001", "0.0123", "12,345",
    ]  # fmt: skip
