"""The parts of a program for the instruments: named sources, or what our nvcc has built.

Our nvcc leaves in each object a record of its source and options. A linker collects them in a
section of the program, which needs no memory when it runs, and by them `cudalab run --sanitize
PROGRAM` builds the program anew, instrumented.
"""

import base64
import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cudalab.errors import CudalabError
from cudalab.program import runtime
from cudalab.program.files import File, Part, gather, has_main, is_binary, with_openmp
from cudalab.program.options import folders_of
from cudalab.system import elf

_SECTION = "cudalab_sources"


@dataclass(frozen=True, kw_only=True)
class Record:
    """A source file that nvcc has compiled, or what it has linked to a program."""

    folder: str  # where nvcc was called
    source: str  # empty: the options are those of the whole program
    options: list[str]
    is_cuda: bool  # whatever its name says
    objects: list[str] = field(default_factory=list)  # linked, of other compilers: whole paths


def text(record: Record, files: Sequence[File]) -> str:
    """The code compiled along with a source to leave the record in its object.

    A program that calls cuBLAS finds the host's BLAS without `cudalab run`, too.
    """
    lines = [statement(record)]
    library = runtime.find_blas(sys.path)
    if library and "blas" in runtime.used(file.text for file in files):
        lines += [
            'extern "C" int setenv(const char*, const char*, int) noexcept;',
            "__attribute__((constructor)) static void cudalab_set_blas() {",
            f"    setenv({json.dumps(runtime.BLAS_PATH)}, {json.dumps(library)}, 0);",
            "}",
        ]
    return "\n".join([*lines, ""])


def statement(record: Record) -> str:
    """The record as code of C or C++."""
    encoded = base64.b64encode(json.dumps(asdict(record)).encode()).decode()
    return (
        f'__asm__(".pushsection {_SECTION},\\"\\",%progbits\\n"\n'
        f'        ".ascii \\"{encoded}\\\\n\\"\\n.popsection");'
    )


def is_foreign(path: str) -> bool:
    """Whether another compiler has made an object, so that it has no record."""
    try:
        return path.endswith(".o") and not elf.section(Path(path), _SECTION)
    except OSError:
        return False  # the linker will say what it is


def recorded(program: Path) -> list[Record]:
    """The records of all objects of a program, one for each source."""
    lines = dict.fromkeys(elf.section(program, _SECTION).split())
    return [Record(**json.loads(base64.b64decode(line))) for line in lines]


_FOLDER = re.compile(r"-(?:I|L|isystem)")


def parts_of(files: Sequence[str], options: Sequence[str]) -> Sequence[Part]:
    """The sources that are named, or those of a program that our nvcc has built."""
    if is_binary(files[0]):
        return _parts_of_binary(files[0])
    gathered = gather(files, folders_of(options))
    return [with_openmp(Part(files=gathered, sources=len(files), options=options))]


def _parts_of_binary(program: str) -> Sequence[Part]:
    """The sources of a program, as they are now, with the options of their objects."""
    records = recorded(Path(program))
    linked = [word for each in records if not each.source for word in _options(each)]
    objects = [each for record in records for each in record.objects]
    parts: list[Part] = []
    for record in (each for each in records if each.source):
        options = [*_options(record), *linked]
        source = _near(record.source, record.folder)
        files = gather([source], folders_of(options), is_cuda=record.is_cuda)
        foreign = [] if parts else objects  # linked once
        parts.append(Part(files=files, sources=1, options=options, objects=foreign))
    if not parts:
        raise CudalabError(
            f"{program}: not built by cudalab's nvcc, so its sources are not known",
            hint="`cudalab run --make` builds it, or name the .cu files instead",
        )
    if not objects and not any(has_main(part.files[0].text) for part in parts):
        raise CudalabError(
            f"{program}: its main function is in a file that another compiler has compiled, which "
            "says nothing of its source",
            hint="let nvcc compile all files, as in `make CXX=nvcc CC=nvcc`, or name them instead",
        )
    return parts


def _options(record: Record) -> list[str]:
    """The options, with their folders relative to the current one."""
    folders = [_FOLDER.match(option) for option in record.options]
    return [
        kind[0] + _near(option[kind.end() :], record.folder) if kind else option
        for option, kind in zip(record.options, folders, strict=True)
    ]


def _near(path: str, folder: str) -> str:
    """A path relative to `folder`, made relative to the current folder."""
    whole = os.path.normpath(Path(folder, path))
    return os.path.relpath(whole) if Path(whole).is_relative_to(Path.cwd()) else whole
