"""The package as users get it: built, installed apart from the repository, run elsewhere."""

from __future__ import annotations

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import cudalab

REPOSITORY = Path(__file__).parents[2]
SAMPLE = REPOSITORY / "samples" / "radixsort" / "course.uint32.in.bin"
OFFLINE = ("No matching distribution found", "Could not find a version")
COMPILER_HERE = any(shutil.which(name) for name in (os.environ.get("CXX", "g++"), "clang++"))

pytestmark = pytest.mark.skipif(find_spec("pip") is None, reason="pip is not installed here")


def pip(*args: object, python: Path | str = sys.executable) -> None:
    """Run pip for `python`. Skips the test where no package index can be reached."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    command += ["--python", str(python), *map(str, args)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=REPOSITORY,
        env={**os.environ, "PIP_NO_COMPILE": "1"},  # what is imported is compiled then
    )  # fmt: skip
    if done.returncode != 0 and any(words in done.stderr for words in OFFLINE):
        pytest.skip(f"no package index can be reached: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


def clean_venv(folder: Path) -> Path:
    """The Python of a new virtual environment."""
    venv.create(folder)  # to install pip in it would take longer than all else
    return folder / "bin" / "python"


def elsewhere(folder: Path) -> dict[str, object]:
    """Run in `folder`, without this repository on the path and without compiled kernels."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {"cwd": folder, "env": {**env, "XDG_CACHE_HOME": str(folder / "cache")}}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", ".", "--no-deps", "--wheel-dir", folder)
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_carries_kernels_and_runtime(wheel):
    carried = set(zipfile.ZipFile(wheel).namelist())
    for folder, pattern in (("kernels", "*.cu*"), ("cudalab", "*.py"), ("cudalab", "*.h")):
        paths = [path.relative_to(REPOSITORY) for path in (REPOSITORY / folder).rglob(pattern)]
        assert paths
        inside = {f"cudalab/{p}" if folder == "kernels" else str(p) for p in paths}
        assert inside <= carried
    assert "cudalab/backends/cpu/runtime/grids/runtime.cpp" in carried
    assert "cudalab/py.typed" in carried  # users' type checkers read our annotations
    assert not [name for name in carried if not name.startswith("cudalab")]


def shown_texts(wheel: Path) -> Iterator[tuple[str, str]]:
    """What users read of a wheel's files: messages, help texts, and what JSON Schemas say."""
    with zipfile.ZipFile(wheel) as carried:
        for name in carried.namelist():
            if name.startswith("cudalab/schemas/"):
                yield name, carried.read(name).decode()
            if not name.endswith(".py"):
                continue
            tree = ast.parse(carried.read(name))
            about_code = set()  # docstrings, which users do not see but for those of commands
            for node in ast.walk(tree):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
                    first = node.body[0]
                    is_help = isinstance(node, ast.FunctionDef) and node.decorator_list
                    if isinstance(first, ast.Expr) and not is_help:
                        about_code.add(first.value)
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and node not in about_code:
                    yield f"{name}:{node.lineno}", str(node.value)
    for name in cudalab.__all__:
        yield name, inspect.getdoc(getattr(cudalab, name)) or ""
    yield "cudalab", cudalab.__doc__ or ""


def test_the_wheel_refers_users_to_no_file_that_it_lacks(wheel):
    texts = list(shown_texts(wheel))
    read = {where.partition(":")[0] for where, _ in texts}
    assert {"cudalab/schemas/lab-1.json", "cudalab/cli/instruments.py", "sanitize"} <= read
    lacking = re.compile(r"\b(?:docs|tools|tests|samples)/[\w./-]+")
    assert not [(where, found[0]) for where, text in texts if (found := lacking.search(text))]


def test_installed_wheel_sorts_in_another_folder(wheel, tmp_path):
    python = clean_venv(tmp_path / "venv")
    pip("install", wheel if COMPILER_HERE else f"{wheel}[cpu]", python=python)
    with SAMPLE.open("rb") as stdin:
        done = subprocess.run(
            [python.with_name("cudalab"), "radixsort", "--device", "cpu"],
            stdin=stdin,
            capture_output=True,
            check=False,
            **elsewhere(tmp_path),
        )
    expected = SAMPLE.with_name("course.uint32.out.bin").read_bytes()
    assert (0, expected) == (done.returncode, done.stdout), done.stderr.decode()


def test_editable_install_reads_the_repository_s_kernels(tmp_path):
    python = clean_venv(tmp_path / "venv")
    pip("install", "--no-deps", "--editable", ".", python=python)
    code = "from cudalab.language.source import kernels_dir; print(kernels_dir())"
    done = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True, **elsewhere(tmp_path)
    )
    assert done.stdout.strip() == str(REPOSITORY / "kernels")
    assert not list(tmp_path.glob("venv/lib/*/site-packages/cudalab/*"))


def test_the_changelog_s_newest_release_is_this_version():
    text = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[(\d.*?)\] - \d{4}-\d\d-\d\d$", text, re.MULTILINE)
    assert newest
    assert newest[1] == cudalab.__version__


@pytest.mark.parametrize("module", ["cudalab", "cudalab.cli.app", "cudalab.learn.path"])
def test_no_heavy_module_is_imported_early(module):
    code = f"import sys, {module}; print({{'numpy', 'rich', 'pycuda'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
