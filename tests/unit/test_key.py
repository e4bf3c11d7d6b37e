"""The names of cached binaries: whatever decides what is compiled changes them."""

import os
import shutil
from pathlib import Path

import pytest

import cudalab
from cudalab.backends.cpu.compiler import cccl, toolchain
from cudalab.program import runtime
from cudalab.program.build import made_of
from cudalab.program.files import File, Part

PACKAGE = Path(cudalab.__file__).parent
DECIDING = ("language", "program", "backends/cpu")
LEFT_OUT = "__pycache__"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    for part in DECIDING:
        ignored = shutil.ignore_patterns(LEFT_OUT)
        shutil.copytree(PACKAGE / part, folder / part, ignore=ignored)
    return folder


def code(folder):
    return toolchain._code.__wrapped__(str(folder))


def test_each_file_that_decides_on_the_code_changes_the_key(copy):
    before = code(copy)
    assert before == code(PACKAGE)
    files = [path for path in copy.rglob("*") if path.is_file()]
    assert len(files) > 200
    seen = {before}
    for path in files:
        content = path.read_bytes()
        path.write_bytes(content + b"\n")
        seen.add(code(copy))
        path.write_bytes(content)
    assert len(seen) == len(files) + 1
    assert code(copy) == before


def test_a_new_file_a_new_name_and_a_new_folder_change_the_key(copy):
    before = code(copy)
    folder = copy / "backends/cpu/runtime/new"
    folder.mkdir()
    (folder / "new.h").write_text("", encoding="utf-8")
    seen = {before, code(copy)}
    (folder / "new.h").rename(folder / "newer.h")
    seen.add(code(copy))
    folder = folder.rename(folder.with_name("newer"))  # in the same place of their order
    seen.add(code(copy))
    assert len(seen) == 4
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["processor", "__version__"])
def test_another_processor_or_version_has_other_names(name, monkeypatch):
    before = toolchain.key("text")
    monkeypatch.setattr(toolchain, name, "another" if name == "__version__" else lambda: "another")
    assert toolchain.key("text") != before


@pytest.mark.parametrize("letter", ["x", "\u00e4", "\U0001f600"])
def test_a_file_with_the_longest_name_has_a_place_in_the_cache(letter, tmp_path, monkeypatch):
    monkeypatch.setattr(toolchain, "cache_dir", lambda _: tmp_path)
    stem = letter * (250 // len(letter.encode()))
    (tmp_path / f"{stem}.cu").touch()
    place = toolchain.cached("programs", stem, "text")
    assert len(os.fsencode(place.name)) < 128  # what is made for it may have endings of its own
    place.touch()
    assert place != toolchain.cached("programs", stem, "another text")


def test_parts_do_not_run_into_each_other():
    assert toolchain.key("ab", "c") != toolchain.key("a", "bc")


def test_whatever_decides_a_program_names_it(tmp_path, monkeypatch):
    library = tmp_path / "libmine.a"
    library.write_bytes(b"!<arch>\n")
    options = [f"-L{tmp_path}", "-lmine"]

    def name(text="int main() {}", label="a.cu", device="cpu", options=options):
        part = Part(files=[File(label, label, text)], sources=1, options=options)
        return toolchain.key(*made_of(part, device))

    before, names = name(), set[str]()
    names.add(name(text="int main() { }"))
    names.add(name(label="b.cu"))
    names.add(name(device="cuda"))
    names.add(name(options=[*options, "-DN=4"]))
    library.write_bytes(b"!<arch>\n!<arch>\n")
    names.add(name())
    library.write_bytes(b"!<arch>\n")
    monkeypatch.setenv("CUDALAB_CXXFLAGS", "-DN=5")
    names.add(name())
    monkeypatch.setattr(cccl, "installed", lambda: cccl.Headers("/a", (3, 5, 0)))
    thrust = "#include <thrust/sort.h>"
    names.add(name(thrust))
    monkeypatch.setattr(cccl, "installed", lambda: cccl.Headers("/a", (3, 5, 1)))
    names.add(name(thrust))
    assert len({before, *names}) == 9


def test_a_program_with_cublas_finds_the_hosts_blas(tmp_path, monkeypatch):
    own = tmp_path / "numpy.libs" / "libopenblas.so"
    own.parent.mkdir()
    own.touch()
    monkeypatch.setattr(runtime.sys, "path", [str(tmp_path)])
    monkeypatch.setenv(runtime.BLAS_PATH, "the user's")
    runtime.provide_blas(["#include <cublas_v2.h>"])
    assert os.environ[runtime.BLAS_PATH] == "the user's"
    monkeypatch.delenv(runtime.BLAS_PATH)
    runtime.provide_blas(["int main() {}", "// cublas"])
    assert runtime.BLAS_PATH not in os.environ
    runtime.provide_blas(["int main() {}", '#include "cublas_v2.h"'])
    assert os.environ[runtime.BLAS_PATH] == str(own)
