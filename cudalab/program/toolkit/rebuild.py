"""The parts of a program for the instruments: named sources, or what our nvcc has built."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from cudalab.errors import CudalabError
from cudalab.program import openmp
from cudalab.program.files import Part, gather, is_binary
from cudalab.program.options import folders_of
from cudalab.program.toolkit.records import Record, recorded

_FOLDER = re.compile(r"-(?:I|L|isystem)")
_MAIN = re.compile(r"\bmain\s*\(")


def parts_of(files: Sequence[str], options: Sequence[str]) -> Sequence[Part]:
    """The sources that are named, or those of a program that our nvcc has built."""
    if is_binary(files[0]):
        return _parts_of_binary(files[0])
    sources = gather(files, folders_of(options))
    return [Part(files=sources, sources=len(files), options=openmp.added(sources, options))]


def _parts_of_binary(program: str) -> Sequence[Part]:
    """The sources of a program, as they are now, with the options of their objects."""
    records = recorded(Path(program))
    linked = [word for each in records if not each.source for word in _options(each)]
    objects = [each for record in records for each in record.objects]
    sources = [record for record in records if record.source]
    parts = [_part(record, linked, objects if record is sources[0] else []) for record in sources]
    if not parts:
        raise CudalabError(
            f"{program}: not built by cudalab's nvcc, so its sources are not known",
            hint="`cudalab run --make` builds it, or name the .cu files instead",
        )
    if not objects and not any(_MAIN.search(part.files[0].text) for part in parts):
        raise CudalabError(
            f"{program}: its main function is in a file that another compiler has compiled, which "
            "says nothing of its source",
            hint="let nvcc compile all files, as in `make CXX=nvcc CC=nvcc`, or name them instead",
        )
    return parts


def _options(record: Record) -> list[str]:
    return [_placed(option, record.folder) for option in record.options]


def _part(record: Record, linked: Sequence[str], objects: Sequence[str]) -> Part:
    options = [*_options(record), *linked]
    source = _near(record.source, record.folder)
    files = gather([source], folders_of(options), is_cuda=record.is_cuda)
    return Part(files=files, sources=1, options=options, objects=objects)


def _placed(option: str, folder: str) -> str:
    """An option with its folder, if any, relative to the current one."""
    kind = _FOLDER.match(option)
    return kind[0] + _near(option[kind.end() :], folder) if kind else option


def _near(path: str, folder: str) -> str:
    """A path relative to `folder`, made relative to the current folder."""
    whole = os.path.normpath(Path(folder, path))
    return os.path.relpath(whole) if Path(whole).is_relative_to(Path.cwd()) else whole
