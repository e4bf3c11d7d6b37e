"""The words of docstrings and of `--help`: CONTRIBUTING.md has the rules."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
MODULES = [
    path
    for folder in ("cudalab", "tools")
    for path in sorted((REPOSITORY / folder).rglob("*.py"))
    if "cheats" not in path.parts  # what students hand in
]
DANGLING = re.compile(r"(?:Of|Beside|Those|One that)\b")


def texts(source):
    """Every docstring and every `help=`, with its line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""
        elif isinstance(node, ast.keyword) and node.arg == "help":
            words = (part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant))
            yield node.value.lineno, str(next(words, ""))


def dangling(source):
    """The texts that begin in the middle of a sentence."""
    return [f"line {line}: {text}" for line, text in texts(source) if DANGLING.match(text)]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_texts_say_what_a_thing_is(path):
    assert dangling(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("text", ["Of the data.", "Beside nobody.", "Those left.", "One that is."])
def test_a_dangling_text_is_seen(text):
    assert dangling(f'"""{text}"""') == [f"line 1: {text}"]
    assert dangling(f'def f():\n    """{text}"""') == [f"line 1: {text}"]
    assert dangling(f'option(\n    help="{text}"\n)') == [f"line 2: {text}"]
    assert dangling(f'option(help=f"{text} {{1}}")') == [f"line 1: {text} "]
    assert dangling(f'option(default="{text}")') == []
    assert dangling('"""Offsets of the data."""') == []
