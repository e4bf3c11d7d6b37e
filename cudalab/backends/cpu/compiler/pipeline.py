"""The one way from CUDA C++ to what a processor runs: for programs, and for the kernels of labs.

    sources → rewritten texts → objects → linked → in the cache

The kind of what is built decides how its texts are written: `program` does that for programs,
kernels.py for kernel files. The mode decides how a text becomes an object: plain, or
observed, in whose assembly each access to memory calls a hook.

A compiler may refuse some of what has been added to the texts, such as loops in the place of
threads: then they are written and compiled again without that.
"""

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from cudalab.backends.cpu.compiler import toolchain
from cudalab.backends.cpu.compiler.commands import Command, compile_all
from cudalab.backends.cpu.regions import Place, blamed, places_in
from cudalab.language import source
from cudalab.language.local_variables import EVERYWHERE
from cudalab.system.cache import explain_full_disk

_BUILTIN_COPY = re.compile(r"\b__builtin_(mem(?:cpy|move|set))\b")
# A section that a linker drops if a file before has one of that name.
_GROUP = re.compile(r'(\t\.section\t[^,\n]+,"\w*)G(\w*)"(,[@%]\w+(?:,\d+)?),[^,\n]+,comdat')
_NAMED = re.compile(rf"^#line \d+ {source.QUOTED}", re.MULTILINE)
# Where a message is; and what begins one, to which notes and source lines that follow belong.
_WHERE = re.compile(r"^In file included|: (?:In |At global scope|Assembler messages)")
_BEGINS = re.compile(rf": (?:(?:fatal )?error|warning): |{_WHERE.pattern}")


class Written(NamedTuple):
    """The rewritten texts of all files."""

    plain: Sequence[str]  # the threads of all kernels are fibers
    texts: Sequence[str]  # those of some are loops
    places: Mapping[str, frozenset[Place]] = MappingProxyType({})  # of these kernels, by name


# Writes the texts without what the compiler has refused: additions in the lines given, with how
# often that was, and the loops of the kernels given, with the reasons.
Write = Callable[[Counter[Place], Mapping[str, str]], Written]


class RefusedError(Exception):
    """The compiler refuses the sources themselves, whatever is added to them."""

    def __init__(self, messages: str) -> None:
        """Keep the compiler's messages about the last texts."""
        super().__init__(messages)
        self.messages = messages


class Unit(NamedTuple):
    """A file that is compiled."""

    path: str
    command: Command  # the compiler and its flags


@dataclass(frozen=True, kw_only=True)
class Units:
    """The files of a build, in a folder of its own, and how each becomes an object."""

    folder: Path
    names: Sequence[str]  # of the files with the texts
    compiled: Sequence[Unit]
    observed: bool = False
    is_program: bool = False

    @property
    def objects(self) -> list[str]:
        """The paths of the objects."""
        return [f"{self.folder / name}.o" for name, _ in zip(self.names, self.compiled)]  # noqa: B905 - headers follow

    def compile(self, texts: Sequence[str], *more: str) -> str:
        """Compile the texts, with `more` flags; the errors among the compilers' messages."""
        texts = [_BUILTIN_COPY.sub(r"\1", text) for text in texts] if self.observed else texts
        for name, text in zip(self.names, texts, strict=True):
            path = self.folder / name
            path.write_text(text, encoding="utf-8", errors="surrogateescape")
        step, end = ("-S", "s") if self.observed else ("-c", "o")
        failed = compile_all(
            [
                [*unit.command, *more, step, unit.path, "-o", f"{made[:-1]}{end}"]
                for unit, made in zip(self.compiled, self.objects, strict=True)
            ]
        )
        if self.observed and not failed and not more:
            self._annotate(texts)
            assemble = [*toolchain.find_compiler().compile, "-c"]
            failed = compile_all([[*assemble, f"{o[:-1]}s", "-o", o] for o in self.objects])
        return _without_warnings(failed) or failed

    def _annotate(self, texts: Sequence[str]) -> None:
        """Add to each assembly file the tables that continue those of the files before."""
        from cudalab.backends.cpu import assembly  # noqa: PLC0415 - when observed only

        counts = None
        for i, (made, text) in enumerate(zip(self.objects, texts, strict=True)):
            listing = Path(f"{made[:-1]}s")
            # Inline functions are kept, though another file has them, too: the tables name places
            # in all of them.
            kept = _GROUP.sub(r'\1\2"\3', listing.read_text(encoding="utf-8"))
            rows, counts = assembly.annotate(
                kept.replace("gnu_unique_object", "object"),
                {source.unquoted(name) for name in _NAMED.findall(text)},
                is_program=self.is_program,
                before=counts,
                is_last=i == len(texts) - 1,
            )
            listing.write_text(rows, encoding="utf-8")


def compiled(write: Write, units: Units) -> Written:
    """Rewrite and compile until the compiler accepts it; what it has accepted. RefusedError.

    Conversions, shifts and zones around local variables are left out of the statements that it
    refuses, loops of the kernels whose loops it refuses. Of observed texts the zones go first.
    """
    refused, of_loops = Counter[Place](), dict[str, str]()
    before, errors = None, ""
    while True:
        written = write(refused, of_loops)
        if written.plain == before:
            if not units.observed or refused[EVERYWHERE] > 1:
                raise RefusedError(errors)
            refused[EVERYWHERE] += 1
            if refused[EVERYWHERE] > 1:  # the text has no zones, so these are not to blame
                refused.update(places_in(errors))
            continue
        before = written.plain
        failed = units.compile(written.texts)
        errors = failed
        if failed and written.places:
            errors = units.compile(written.plain, *toolchain.find_compiler().only_checks)
        while failed and not errors:
            if not written.places:  # the assembler refuses what is left
                errors = failed
                break
            of_loops |= blamed(failed, dict(written.places))
            written = write(refused, of_loops)
            failed = units.compile(written.texts)
        if not failed:
            return written
        refused.update(places_in(errors))


def build(place: Path, make: Callable[[Path], Path]) -> Path:
    """Make what the cache lacks, in a folder beside it; it takes its place when it is complete."""
    with (
        explain_full_disk(),
        tempfile.TemporaryDirectory(prefix="build-", dir=place.parent) as folder,
    ):
        return make(Path(folder)).replace(place)


def _without_warnings(messages: str) -> str:
    """The errors among a compiler's messages: nvcc, which graders run, has other warnings."""
    errors: list[str] = []
    message: list[str] = []  # its place, its text and the lines that belong to it
    for line in [*messages.splitlines(), "In file included"]:
        if message and _BEGINS.search(line) and not _WHERE.search(message[-1]):
            errors += [] if any(": warning: " in each for each in message) else message
            message = []
        message.append(line)
    return "\n".join(errors)
