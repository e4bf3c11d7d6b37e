"""`cudalab run --make`: make, or CMake, with our toolkit instead of NVIDIA's."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from cudalab.errors import CudalabError
from cudalab.program.toolkit.folder import SHELL, environment, toolkit

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
