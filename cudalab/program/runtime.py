"""The runtime of whole programs: objects and a precompiled header, made once for each compiler.

A program runs with the plain ones. One that is observed has ones of its own, and the runtime API as
a library beside it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from threading import get_native_id
from typing import TYPE_CHECKING

from cudalab.backends.cpu import compiler, parts
from cudalab.backends.cpu.flags import (
    CUDA_RUNTIME,
    PART,
    PROGRAM,
    for_programs,
    for_runtime,
    with_users,
)
from cudalab.backends.cpu.key import cached
from cudalab.backends.cpu.toolchain import environment, find_compiler
from cudalab.errors import NoDeviceError
from cudalab.system.cache import explain_full_disk

if TYPE_CHECKING:
    from collections.abc import Sequence

PRECOMPILED = "cudalab_program.h"  # the header that g++ reads once
HOST_LIBRARY = "libhost.so"
# Added to the flags of kernel files: programs use exceptions, and main must be visible.
OBSERVED_PROGRAM = ("-fexceptions", "-frtti", "-fvisibility=default", "-pthread", "-UNDEBUG")
_OBSERVED = ("-fPIC", "-fno-omit-frame-pointer")


class Runtime:
    """Files of the runtime that compilers make, each for itself, while the caller goes on."""

    def __init__(self, folder: Path, parts_of_it: Sequence[str], *more: str) -> None:
        """Start the compilers for the objects that are missing, with `more` flags."""
        folder.mkdir(exist_ok=True)
        self.folder, self.parts = folder, parts_of_it
        self._running: dict[Path, subprocess.Popen[str]] = {}
        for part in parts_of_it:
            flags = [*with_users(parts.flags(part)), *more, *for_runtime()]
            self.make(folder / f"{part}.o", [*flags, "-c", str(parts.source(part))])

    def make(self, made: Path, options: Sequence[str]) -> None:
        """Start the compiler with these options unless the file is there."""
        if not made.exists():
            command = [*find_compiler().compile, *options, "-o", str(_building(made))]
            self._running[made] = start(command)

    def precompile(self, flags: Sequence[str]) -> None:
        """Start to read the header of programs with these flags."""
        if "clang" not in find_compiler().version():  # which would need an option in each call
            header = str(CUDA_RUNTIME.with_name(PRECOMPILED))
            self.make(self.folder / f"{PRECOMPILED}.gch", [*flags, "-x", "c++-header", header])

    def finish(self) -> list[str]:
        """Wait for the compilers and return the object files."""
        for process in self._running.values():
            messages, _ = process.communicate()
            if process.returncode:
                raise compiler.runtime_failure(messages)
        for made in self._running:
            _building(made).replace(made)
        return [str(self.folder / f"{part}.o") for part in self.parts]


def _building(made: Path) -> Path:
    """Where this thread makes a file, before it takes its place."""
    return made.with_suffix(f".{os.getpid()}-{get_native_id()}")


def plain(used: Sequence[str] = ()) -> Runtime:
    """Begin to make the runtime: the common parts and those `used`."""
    place = cached("programs", "runtime", *with_users(PART), find_compiler().identity)
    made = Runtime(place, (parts.FIRST, *used, *parts.ALWAYS, "launch", *parts.OF_PROGRAM))
    made.precompile([*with_users(PROGRAM), *for_programs()])
    return made


def folder(*, check: bool) -> Path:
    """The folder of what each program has of the runtime, which is made if it is missing."""
    objects = observed() if check else plain().finish()
    return Path(objects[-1]).parent


@explain_full_disk()
def observed(used: Sequence[str] = ()) -> list[str]:
    """The objects that belong to a program which is observed, and the runtime API as a library."""
    checked = compiler.check_runtime_library()  # depends on the processor's features, too
    place = cached("programs", "observed", *with_users(PART), checked.name)
    own = Runtime(place, (*used, *parts.OF_OBSERVED, *parts.OF_PROGRAM), *_OBSERVED)
    own.precompile(compiler.check_flags((*OBSERVED_PROGRAM, *for_programs())))
    objects, library = own.finish(), place / HOST_LIBRARY
    if not library.exists():
        apart = cached("programs", "library", *with_users(PART), checked.name)
        shared = Runtime(apart, (*parts.ALWAYS, *parts.OF_CHECK), *_OBSERVED).finish()
        done = find_compiler().link(_building(library), (*shared, str(checked)), shared=True)
        if done.returncode:
            raise compiler.runtime_failure(done.stderr)
        _building(library).replace(library)
    return [*objects, str(library)]


def start(command: Sequence[str]) -> subprocess.Popen[str]:
    """Start a compiler, whose messages come together."""
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment(),
        )
    except OSError as error:
        raise NoDeviceError(f"{command[0]} cannot be started: {error.strerror}") from None


def run_all(commands: Sequence[Sequence[str]]) -> str:
    """Run the commands in parallel and return the messages of those that failed."""
    failed = ""
    for process in [start(command) for command in commands]:
        messages, _ = process.communicate()
        if process.returncode:
            failed += messages or f"{process.args!r} failed without a message"
    return failed
