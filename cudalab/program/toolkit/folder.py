"""The folder that looks like NVIDIA's toolkit to makefiles and to CMake.

Its nvcc is cudalab's, its headers include those of the CPU device, and each of its libraries stands
for the same archive: the runtime of whole programs.
"""

import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

from cudalab.backends.cpu import cccl, parts
from cudalab.backends.cpu.flags import PART, for_programs, with_users
from cudalab.backends.cpu.key import PACKAGE, key
from cudalab.backends.cpu.toolchain import find_compiler, run
from cudalab.errors import CudalabError, NoDeviceError
from cudalab.output.progress import stage
from cudalab.program.files import IN_C, TOOLKIT_VERSION
from cudalab.program.runtime import plain
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
def runtime() -> Path:
    """The folder with the runtime's objects and the precompiled header."""
    made = plain(parts.OPTIONAL)
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
        _make(folder)
    return folder


@explain_full_disk()
def _make(folder: Path) -> None:
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
        _write_shell(made / SHELL, folder)
        _write_headers(made / "include")
        _write_libraries(made / "lib64", str(folder / "lib64" / _ARCHIVE))
        (made / "lib").symlink_to("lib64")
        version = {"cuda": {"name": "CUDA SDK, cudalab's", "version": TOOLKIT_VERSION}}
        (made / "version.json").write_text(json.dumps(version), encoding="utf-8")
        try:
            made.rename(folder)
        except OSError:
            if not folder.exists():  # another process was faster
                raise


def _write_shell(path: Path, folder: Path) -> None:
    """Write the shell for makefiles."""
    own = re.sub(r"([\\&#])", r"\\\1", str(folder)).replace("'", r"'\''")
    text = _SHELL.format(named=_NAMED, own=rf"\1{own}\4")
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def _write_headers(folder: Path) -> None:
    """Write headers that include those of the CPU device, for other compilers."""
    for searched in map(Path, for_programs()[1::2]):
        for header in searched.rglob("*"):
            inside = header.relative_to(searched)
            if header.is_file() and inside.parts[0] != "aliases":
                forwarding = folder / inside
                forwarding.parent.mkdir(parents=True, exist_ok=True)
                if not forwarding.exists():
                    text = _IN_C if IN_C.fullmatch(header.name) else _IN_CPP
                    forwarding.write_text(text.format(header), encoding="utf-8")


def _write_libraries(folder: Path, archive: str) -> None:
    """Write the runtime's archive, and files that stand in for NVIDIA's libraries."""
    objects = runtime()
    always = [parts.FIRST, *parts.ALWAYS, "launch", *parts.OF_PROGRAM]
    together = folder / "runtime.o"  # in this order, which matters
    linked = [str(objects / f"{part}.o") for part in always]
    _check("ld", "-r", "-o", str(together), *linked)
    others = [str(objects / f"{part}.o") for part in parts.OPTIONAL]
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
