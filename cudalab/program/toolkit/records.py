"""The records in our objects: the source and options of each.

A linker collects the records of all objects in a section of the program, which needs no memory when
it runs. `cudalab run --sanitize PROGRAM` builds the program anew by them, instrumented.
"""

import base64
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cudalab.backends.cpu import blas, parts
from cudalab.program.files import File
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
    library = blas.find(sys.path)
    if library and "blas" in parts.used(file.text for file in files):
        lines += [
            'extern "C" int setenv(const char*, const char*, int) noexcept;',
            "__attribute__((constructor)) static void cudalab_set_blas() {",
            f"    setenv({json.dumps(blas.PATH)}, {json.dumps(library)}, 0);",
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
