"""Each .cu file names the macros from outside, without which `nvcc -c` cannot compile it."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache

import pytest

from cudalab import labs
from cudalab.labs import registry
from cudalab.language import source

VARIANTS = [
    pytest.param(lab, variant, id=f"{lab.name}-{variant.name}")
    for lab in map(labs.get, labs.names())
    for variant in registry.variants(lab)
]
LIST = re.compile(r"^// Macros from outside: ((?:[^\n]*\n// )*?[^\n]*\.)\n(?!//)", re.MULTILINE)
NAME = re.compile(r"[A-Za-z_][\w*]*")


@cache
def defined_by_cases(lab):
    """The macros that the lab defines for some case, whatever it is."""
    return {name for case in lab.cases() for name in lab.kernel_defines(case)}


def listed(text):
    """The names in the list that ends the comment at the top, explanations left out."""
    found = LIST.findall(text)
    assert len(found) == 1, "one line `// Macros from outside: …` at the end of the top comment"
    assert text.startswith("// ///")
    entries = re.sub(r"\([^()]*\)", "", found[0].replace("\n//", "")).rstrip(".").split(",")
    names = [entry.strip() for entry in entries]
    assert all(NAME.fullmatch(name) for name in names), names
    return names


def used(variant, offered):
    """Those of `offered` that the file or one of its headers uses."""
    code = source.blank_comments(source.load(variant.path).text)
    return offered & set(re.findall(r"[A-Za-z_]\w*", code))


@pytest.mark.parametrize(("lab", "variant"), VARIANTS)
def test_a_file_lists_the_macros_that_it_uses(lab, variant):
    names = listed(variant.path.read_text(encoding="utf-8"))
    needed = used(variant, defined_by_cases(lab) | variant.defines.keys())
    assert {name for name in needed if not any(fnmatchcase(name, each) for each in names)} == set()
    assert [each for each in names if not any(fnmatchcase(name, each) for name in needed)] == []
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "text",
    [
        "// ///\n// Macros from outside: T.\n// more\ncode\n",
        "// ///\n// T, TILE.\ncode\n",
        "// ///\n// Macros from outside: T (element type) TILE.\ncode\n",
    ],
)
def test_a_list_of_another_form_is_no_list(text):
    with pytest.raises(AssertionError):
        listed(text)


def test_a_list_may_be_several_lines_long_and_explain_its_names():
    text = "// ///\n//\n// Macros from outside: T (a, b), OP_* (one),\n// BM, BN.\ncode\n"
    assert listed(text) == ["T", "OP_*", "BM", "BN"]
