"""The runtime of whole programs: objects and a precompiled header, made once for each compiler.

A program normally uses the plain ones. An observed program has its own, and the runtime API as a
separate library.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from threading import get_native_id

from cudalab.backends.cpu import commands, compiler, flags
from cudalab.backends.cpu.toolchain import cached, find_compiler
from cudalab.output.progress import stage
from cudalab.program import parts
from cudalab.system.cache import explain_full_disk

PRECOMPILED = "cudalab_program.h"  # the header that g++ reads once
HOST_LIBRARY = "libhost.so"
# Added to the flags of kernel files: programs use exceptions, main must be visible, nvcc takes
# arrays of variable length in functions of the host, and the C library, which the interpreter has
# loaded before the program, must not be what assert() in a kernel calls. No other library puts
# functions in the place of the program's, so that each of them can be inlined.
OBSERVED_PROGRAM = (
    *("-fexceptions", "-frtti", "-fvisibility=default", "-pthread", "-UNDEBUG", "-Wno-vla"),
    "-fno-semantic-interposition",
    *("-D__assert_fail=cudalab_assert_fail", flags.FITTING),
)
_OBSERVED = ("-fPIC", "-fno-omit-frame-pointer")


def libraries(sources: Iterable[Path]) -> Sequence[Path]:
    """The libraries, of the cache `zig`, that a program may need: compiled once, with zig only."""
    text = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in sources)
    return find_compiler().libraries(text)


class Runtime:
    """Files of the runtime, which compilers make in parallel while the caller continues."""

    def __init__(self, folder: Path, parts_of_it: Sequence[str], *more: str) -> None:
        """Start the compilers for the objects that are missing, with `more` flags."""
        folder.mkdir(exist_ok=True)
        self.folder, self.parts = folder, parts_of_it
        self._compilers, self._made = commands.Compilers(), list[Path]()
        for part in parts_of_it:
            own = [*flags.with_users(parts.flags(part)), *more, *flags.for_runtime()]
            self.make(folder / f"{part}.o", [*own, "-c", str(parts.source(part))])

    def make(self, made: Path, options: Sequence[str]) -> None:
        """Start the compiler with these options unless the file is there."""
        if not made.exists():
            command = [*find_compiler().compile, *options, "-o", str(_building(made))]
            self._compilers.add(command)
            self._made.append(made)

    def precompile(self, own: Sequence[str]) -> None:
        """Start to read the header of programs with these flags."""
        if not find_compiler().is_clang:  # which would need an option in each call
            header = str(flags.CUDA_RUNTIME.with_name(PRECOMPILED))
            self.make(self.folder / f"{PRECOMPILED}.gch", [*own, "-x", "c++-header", header])

    def finish(self, say: Callable[[int, int], None] = lambda _done, _total: None) -> list[str]:
        """Wait for the compilers and return the object files; see Compilers.finish for `say`."""
        if failed := self._compilers.finish(say):
            raise compiler.runtime_failure(failed)
        for made in self._made:
            _building(made).replace(made)
        return [str(self.folder / f"{part}.o") for part in self.parts]


def _building(made: Path) -> Path:
    """Where this thread builds a file before moving it into place."""
    return made.with_suffix(f".{os.getpid()}-{get_native_id()}")


def plain(used: Sequence[str] = ()) -> Runtime:
    """Start to build the runtime: the common parts and those `used`."""
    place = cached("programs", "runtime", *flags.with_users(flags.PART))
    made = Runtime(place, (parts.FIRST, *used, *parts.ALWAYS, "launch", *parts.OF_PROGRAM))
    made.precompile([*flags.with_users(flags.PROGRAM), *flags.for_programs()])
    return made


def files(*, check: bool) -> list[Path]:
    """The parts of the runtime that each program has, made if missing: what another cache needs.

    Not all that is in the folder: other processes may be making more there.
    """
    objects = [Path(one) for one in (observed() if check else plain().finish())]
    header = objects[0].with_name(f"{PRECOMPILED}.gch")
    return [*objects, header] if header.is_file() else objects


@explain_full_disk()
def observed(used: Sequence[str] = ()) -> list[str]:
    """The objects for an observed program, followed by the library with the runtime API."""
    checked = compiler.check_runtime_library()  # depends on the processor's features, too
    place = cached("programs", "observed", *flags.with_users(flags.PART), checked.name)
    own = Runtime(place, (*used, *parts.OF_OBSERVED, *parts.OF_PROGRAM), *_OBSERVED)
    own.precompile(flags.check_flags((*OBSERVED_PROGRAM, *flags.for_programs())))
    with stage("compiling the runtime, once") as known:
        objects = own.finish(lambda done, total: known.reach(done, total, "parts"))
    library = place / HOST_LIBRARY
    if not library.exists():
        apart = cached("programs", "library", *flags.with_users(flags.PART), checked.name)
        shared = Runtime(apart, (*parts.ALWAYS, *parts.OF_CHECK), *_OBSERVED).finish()
        done = find_compiler().link(_building(library), (*shared, str(checked)), shared=True)
        if done.returncode:
            raise compiler.runtime_failure(done.stderr)
        _building(library).replace(library)
    return [*objects, str(library)]
