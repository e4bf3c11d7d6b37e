"""`cudalab run --make`: make, or CMake, with our toolkit instead of NVIDIA's.

It is a folder that looks like NVIDIA's to makefiles and to CMake. Its nvcc is cudalab's, its
headers include those of the CPU device, and each of its libraries stands for the same archive: the
runtime of whole programs.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from cudalab.backends.cpu.compiler import cccl
from cudalab.backends.cpu.compiler.flags import PART, for_programs, with_users
from cudalab.backends.cpu.compiler.toolchain import PACKAGE, find_compiler, key, run
from cudalab.errors import CudalabError, NoDeviceError
from cudalab.output.progress import stage
from cudalab.program import files, runtime
from cudalab.system.cache import cache_dir, explain_full_disk

SHELL = "bin/shell-of-make"
_LIBRARIES = ("cudart", "cudadevrt", "cublas", "cublasLt", "curand", "nvToolsExt")
_ARCHIVE = "libcudalab.a"
_IN_C = """#pragma once
#pragma GCC system_header
#include "{}"
"""
_IN_CPP = """#pragma once
#pragma GCC system_header
#ifdef __cplusplus
#include "{}"
#else
#error on the CPU device this header needs C++: compile this file by g++, as in make CC=g++
#endif
"""
# The shell of makefiles, whose last argument is a command: NVIDIA's toolkit in it becomes this one.
_SHELL = """#!/bin/sh
for command; do :; done
case $command in */cuda*) ;; *) exec "${{CUDALAB_SHELL:-/bin/sh}}" "$@" ;; esac
command=$(printf '%s\\n' "$command" | sed -E 's#{named}#{own}#g')
others=$(($# - 1))
while [ $others -gt 0 ]; do set -- "$@" "$1"; shift; others=$((others - 1)); done
shift
exec "${{CUDALAB_SHELL:-/bin/sh}}" "$@" "$command"
"""
_NAMED = (
    r"(^|[^[:alnum:]_.$)/-]|-[LI]|-isystem)/(usr/local|opt)/cuda(-[0-9.]+)?(/|[^[:alnum:]_./-]|$)"
)
# How makefiles and CMake call the folder.
_VARIABLES = ("CUDA_PATH", "CUDA_HOME", "CUDA_ROOT", "CUDA_DIR", "CUDAToolkit_ROOT")


def environment() -> dict[str, str]:
    """The variables of the environment with which make and CMake find our nvcc."""
    top = str(toolkit())
    variables = dict.fromkeys(_VARIABLES, top)
    variables["CUDACXX"] = f"{top}/bin/nvcc"
    for name, folder in (
        ("PATH", f"{top}/bin"),
        ("CPATH", f"{top}/include"),
        ("LIBRARY_PATH", f"{top}/lib64"),
    ):
        before = os.environ.get(name, "").split(os.pathsep)
        others = [each for each in before if each and each != folder]
        variables[name] = os.pathsep.join([folder, *others])
    return variables


@cache
def runtime_folder() -> Path:
    """The folder with the runtime's objects and the precompiled header."""
    made = runtime.plain(runtime.OPTIONAL)
    made.finish()
    return made.folder


@cache
def toolkit() -> Path:
    """The folder, which is created if it is missing."""
    compiler = find_compiler()
    if not shutil.which("ld"):
        raise NoDeviceError(
            f"make and CMake need a linker of the system: found {compiler.name} only",
            hint="install g++",
        )
    depends = (*with_users(PART), compiler.identity, sys.executable, PACKAGE, str(cccl.installed()))
    folder = cache_dir("toolkit") / key(*depends)
    if not folder.exists():
        _prepare(folder)
    return folder


@explain_full_disk()
def _prepare(folder: Path) -> None:
    """Create the folder under another name, then move it into place."""
    with (
        stage("preparing a toolkit for make and CMake, once", once=True),
        tempfile.TemporaryDirectory(prefix="build-", dir=folder.parent) as name,
    ):
        made = Path(name, "toolkit")
        for each in ("bin", "include", "lib64/stubs", "nvvm/libdevice"):
            (made / each).mkdir(parents=True)
        # The command finds this package wherever it is called from.
        path = made / "bin" / "nvcc"
        code = f"import sys; sys.path[:1] = [{str(Path(PACKAGE).parent)!r}]"
        code += "; from cudalab.cli.nvcc import main; main()"
        command = shlex.join([sys.executable, "-c", code])
        path.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        path.chmod(0o755)
        shell = made / SHELL
        own = re.sub(r"([\\&#])", r"\\\1", str(folder)).replace("'", r"'\''")
        shell.write_text(_SHELL.format(named=_NAMED, own=rf"\1{own}\4"), encoding="utf-8")
        shell.chmod(0o755)
        _write_headers(made / "include")
        _write_libraries(made / "lib64", str(folder / "lib64" / _ARCHIVE))
        (made / "lib").symlink_to("lib64")
        version = {"cuda": {"name": "CUDA SDK, cudalab's", "version": files.TOOLKIT_VERSION}}
        (made / "version.json").write_text(json.dumps(version), encoding="utf-8")
        try:
            made.rename(folder)
        except OSError:
            if not folder.exists():  # another process was faster
                raise


def _write_headers(folder: Path) -> None:
    """Write headers that include those of the CPU device, for other compilers."""
    for searched in map(Path, for_programs()[1::2]):
        for header in searched.rglob("*"):
            inside = header.relative_to(searched)
            if header.is_file() and inside.parts[0] != "aliases":
                forwarding = folder / inside
                forwarding.parent.mkdir(parents=True, exist_ok=True)
                if not forwarding.exists():
                    text = _IN_C if files.IN_C.fullmatch(header.name) else _IN_CPP
                    forwarding.write_text(text.format(header), encoding="utf-8")


def _write_libraries(folder: Path, archive: str) -> None:
    """Write the runtime's archive, and files that stand in for NVIDIA's libraries."""
    objects = runtime_folder()
    always = [runtime.FIRST, *runtime.OF_PLAIN]
    together = folder / "runtime.o"  # in this order, which matters
    linked = [str(objects / f"{part}.o") for part in always]
    _check("ld", "-r", "-o", str(together), *linked)
    others = [str(objects / f"{part}.o") for part in runtime.OPTIONAL]
    _check("ar", "rcs", str(folder / _ARCHIVE), str(together), *others)
    together.unlink()
    text = f"INPUT({archive} -lpthread -ldl -lm)\n"
    for library in _LIBRARIES:
        for name in (f"lib{library}.so", f"lib{library}_static.a", f"lib{library}.a"):
            (folder / name).write_text(text, encoding="utf-8")
    for name in ("libcuda.so", "stubs/libcuda.so"):  # the driver's, which is a system's
        (folder / name).write_text(text, encoding="utf-8")


def _check(*command: str) -> None:
    done = run(command)
    if done.returncode:
        raise CudalabError(f"{command[0]}: {done.stderr.strip()}")


_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_ELSEWHERE = ("-C", "-f", "--directory", "--file", "--makefile")  # options that name the makefile
_BUILD = "build"  # CMake's folder
_CONFIGURING = ("-D", "-U", "-G")  # CMake's variables and its generator, also as two words
# Where makefiles expect NVIDIA's toolkit.
_TOOLKIT = re.compile(
    r"(?:(?<=-[LI])|(?<=-isystem)|(?<![\w.$)/-]))/(?:usr/local|opt)/cuda(?:-[\d.]+)?(?![\w.-])"
)
_OF_MAKEFILE = re.compile(r"# makefile \(from .*\)$")
_VARIABLE = re.compile(r"([\w.-]+) :{0,2}= (.*)$")


def exports() -> str:
    """The lines that make our toolkit the shell's."""
    return "".join(f"export {name}={shlex.quote(each)}\n" for name, each in environment().items())


def make(arguments: Sequence[str]) -> int:
    """Run make, or CMake where there is no makefile; its exit status."""
    variables = {**os.environ, **environment()}
    has_makefile = any(Path(name).is_file() for name in _MAKEFILES)
    if has_makefile or any(word.startswith(_ELSEWHERE) for word in arguments):
        _need("make")
        moved = _moved(arguments, variables)
        variables["CUDALAB_SHELL"] = moved.pop("SHELL", "/bin/sh")
        changed = {**moved, "SHELL": str(toolkit() / SHELL)}
        return _run(
            ["make", *(f"{each}={of}" for each, of in changed.items()), *arguments], variables
        )
    if Path("CMakeLists.txt").is_file():
        _need("cmake")
        configuring, building = _of_cmake(arguments)
        failed = _run(["cmake", "-S", ".", "-B", _BUILD, *configuring], variables)
        return failed or _run(["cmake", "--build", _BUILD, *building], variables)
    raise CudalabError("no Makefile and no CMakeLists.txt here", hint="cd to the folder with one")


def _of_cmake(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments with which CMake configures, such as `-D NAME=VALUE`, and the build's."""
    configuring, building, is_value = list[str](), list[str](), False
    for word in arguments:
        option = is_value or word.startswith(_CONFIGURING)
        (configuring if option else building).append(word)
        is_value = not is_value and word in _CONFIGURING
    return configuring, building


def _need(command: str) -> None:
    if shutil.which(command) is None:
        raise CudalabError(f"{command} is not installed", hint=f"sudo apt install {command}")


def _run(command: list[str], variables: Mapping[str, str]) -> int:
    return subprocess.run(command, env=variables, check=False).returncode


def _moved(arguments: Sequence[str], variables: Mapping[str, str]) -> dict[str, str]:
    """The variables of the makefile that name a folder of NVIDIA's toolkit, with ours instead.

    And its shell, if it names one.
    """
    command = ["make", "-pnq", *arguments]
    done = subprocess.run(
        command, env=variables, capture_output=True, text=True, errors="replace", check=False
    )
    moved: dict[str, str] = {}
    named = {word.partition("=")[0] for word in arguments}
    of_makefile = False
    for line in done.stdout.splitlines():
        match = _VARIABLE.match(line)
        if not match or not of_makefile or match[1] in named:
            pass
        elif match[1] == "SHELL" or _TOOLKIT.search(match[2]):
            moved[match[1]] = _TOOLKIT.sub(str(toolkit()), match[2])
        of_makefile = _OF_MAKEFILE.match(line) is not None
    return moved
