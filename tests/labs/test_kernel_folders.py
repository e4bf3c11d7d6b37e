"""The headers lie where their users are: beside one lab, or in common/ for several."""

from collections import defaultdict

import pytest

from cudalab import labs
from cudalab.labs import registry
from cudalab.language import source

SCOPES = {"thread", "warp", "warpgroup", "block", "device"}  # who calls a shared header together


def users() -> dict[str, set[str]]:
    """The labs that use each header, by its path in the kernels folder."""
    folder = source.kernels_dir().resolve()
    found: dict[str, set[str]] = {path: set() for path in headers()}
    for lab in labs.names():
        for variant in registry.variants(labs.get(lab)):
            for file in source.load(variant.path).files:
                if file.suffix == ".cuh":
                    found[file.relative_to(folder).as_posix()].add(lab)
    return found


def headers() -> list[str]:
    folder = source.kernels_dir()
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.cuh"))


def test_a_header_of_one_lab_lies_in_the_parts_of_that_lab():
    of_one = {path: labs for path, labs in users().items() if not path.startswith("common/")}
    assert of_one
    for path, labs_using in of_one.items():
        lab, folder, _ = path.split("/")
        assert folder == "parts"
        assert labs_using == {lab}, path


def test_a_common_header_serves_several_labs():
    common = {path: labs for path, labs in users().items() if path.startswith("common/")}
    assert common
    for path, labs_using in common.items():
        assert path.split("/")[1] in SCOPES
        assert len(labs_using) > 1, path


def test_no_header_is_unused():
    assert [path for path, labs_using in users().items() if not labs_using] == []


@pytest.mark.parametrize("path", headers())
def test_a_header_names_what_it_includes_from_the_kernels_folder(path):
    """So that a copy of a variant finds them wherever it lies."""
    text = source.blank_comments((source.kernels_dir() / path).read_text("utf-8"), literals=False)
    for line in text.splitlines():
        if line.startswith('#include "'):
            assert (source.kernels_dir() / line.split('"')[1]).is_file(), f"{path}: {line}"


def test_a_common_header_includes_no_part_of_a_lab():
    includes = defaultdict(list)
    for path in headers():
        if path.startswith("common/"):
            text = (source.kernels_dir() / path).read_text("utf-8")
            includes[path] += [line for line in text.splitlines() if "/parts/" in line]
    assert {path: lines for path, lines in includes.items() if lines} == {}
