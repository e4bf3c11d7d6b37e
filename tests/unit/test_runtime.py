"""How the parts of the runtime get into the cache: which are compiled, how, and how often."""

import pytest

from cudalab.backends.cpu.compiler.toolchain import Compiler
from cudalab.errors import ToolchainError
from cudalab.program import runtime

# Says what it is, or writes down its words and makes the file behind -o, the last one.
COMPILER = """#!/bin/sh
if [ "$1" = --version ]; then echo {name}; exit; fi
echo "$@" >> {log}
case "$*" in *{refused}*) echo wrong; exit 1;; esac
while [ $# -gt 1 ]; do shift; done
echo made > "$1"
"""


@pytest.fixture(params=["g++ 13", "clang version 18"])
def name(request):
    return request.param


@pytest.fixture
def made(tmp_path, monkeypatch, name):
    """A function that makes parts; it returns the objects, and the commands since the last call."""
    log = tmp_path / "log"

    def make(*parts, refused="nothing", header=("-DHEADER",)):
        path = tmp_path / "compiler"
        path.write_text(COMPILER.format(name=name, log=log, refused=refused), encoding="utf-8")
        path.chmod(0o755)
        own = Compiler(name, (str(path),), name)
        monkeypatch.setattr(runtime, "find_compiler", lambda: own)
        log.unlink(missing_ok=True)
        objects = runtime.Runtime(tmp_path / "runtime", parts, "-DMORE", header=header).finish()
        return objects, log.read_text().splitlines() if log.exists() else []

    return make


def test_each_missing_part_is_compiled_once(made, name, tmp_path):
    objects, commands = made("memory", "launch")
    assert objects == [str(tmp_path / "runtime" / f"{part}.o") for part in ("memory", "launch")]
    kinds = ["/api/memory.cpp", "/api/launch.cpp", *["-x c++-header"] * name.startswith("g++")]
    assert [sum(kind in command for command in commands) for kind in kinds] == [1] * len(kinds)
    assert len(commands) == len(kinds)
    files = {path.name for path in (tmp_path / "runtime").iterdir()}
    header = {f"{runtime.PRECOMPILED}.gch"} if name.startswith("g++") else set()
    assert files == {"memory.o", "launch.o"} | header  # all complete and in their places
    assert made("memory", "launch")[1] == []
    (objects, commands) = made("memory", "copies")
    assert objects == [str(tmp_path / "runtime" / f"{part}.o") for part in ("memory", "copies")]
    assert [("/api/copies.cpp" in command) for command in commands] == [True]


def test_only_what_runs_kernels_is_optimized(made):
    _, commands = made("memory", "launch", header=())
    (of_memory,) = (command.split() for command in commands if "/memory.cpp" in command)
    (of_launch,) = (command.split() for command in commands if "/launch.cpp" in command)
    assert of_memory.index("-O1") > of_memory.index("-O3")  # the last one counts
    assert "-O1" not in of_launch
    assert "-DMORE" in of_memory
    assert "-DMORE" in of_launch


def test_a_part_that_does_not_compile_is_the_runtimes_failure(made, tmp_path):
    with pytest.raises(ToolchainError, match="own runtime does not compile:\nwrong"):
        made("memory", "launch", refused="launch.cpp")
    assert not (tmp_path / "runtime" / "launch.o").exists()
    assert [("/launch.cpp" in command) for command in made("launch", header=())[1]] == [True]


def test_processes_of_one_number_make_the_same_part_at_once(tmp_path):
    """Containers that share a cache count their processes from 1, each for itself."""
    both = [runtime.Runtime(tmp_path, [runtime.FIRST]) for _ in range(2)]
    assert [one.finish() for one in both] == [[str(tmp_path / f"{runtime.FIRST}.o")]] * 2
    assert [each.name for each in tmp_path.iterdir()] == [f"{runtime.FIRST}.o"]
