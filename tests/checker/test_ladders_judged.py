"""The sanitizer's stage of a check, of kernels whose first text the compiler refuses."""

from __future__ import annotations

import pytest
from checking import checked

from cudalab import labs
from cudalab.labs import registry
from cudalab.language import source


@pytest.mark.parametrize("label", ["radixsort/onesweep", "scan/decoupled_lookback"])
def test_the_sanitizer_looks_at_a_variant_that_is_handed_in(label, tmp_path):
    """Some of its conversions are refused, and the run after the compilation must not try again."""
    lab, _, name = label.partition("/")
    variant = registry.find(labs.get(lab), name)
    path = tmp_path / "my.cu"
    path.write_text(source.whole(source.load(variant.path)), encoding="utf-8")
    words = ("--kernel", path, "--device", "cpu", "--quick", "--no-time")
    report = checked(lab, *words, status=0)
    (stage,) = (each for each in report["stages"] if each["name"] == "sanitize")
    assert (stage["status"], stage["details"]) == ("passed", [])
