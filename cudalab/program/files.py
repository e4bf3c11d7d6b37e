"""The files of a program: those named on the command line and the headers they include.

A `Part` is what is compiled together, with what its texts and options ask of the host's compiler.
Plain and observed programs both begin with it.
"""
# ruff: noqa: PLC0415 - a program that is cached must start at once

import os
import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property

from cudalab.backends.cpu.compiler import cccl
from cudalab.backends.cpu.compiler.flags import PROGRAM, for_programs, with_users
from cudalab.backends.cpu.compiler.toolchain import find_compiler
from cudalab.errors import CudalabError
from cudalab.language import source
from cudalab.output.notes import note
from cudalab.program.options import HostOptions, for_host

_HEADER = re.compile(r"^// /// cudalab[ \t\r]*$", re.MULTILINE)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.MULTILINE)
_VERSION_MACRO = re.compile(r"\b__(?:NVCC|CUDACC_VER_\w+)__")
TOOLKIT_VERSION = "13.0.0"  # of the toolkit that the CPU device follows
_FOR_HOST = (".c", ".cpp", ".cc", ".cxx", ".C")  # nvcc hands these to the host's compiler
# What files in C may include: these headers give them the runtime API in C. Such a file with a
# kernel, which nvcc would refuse, is taken for one of CUDA.
IN_C = re.compile(r"(cuda_runtime(_api)?|cuda_profiler_api|(driver|vector|builtin)_types)\.h")
_KERNEL = re.compile(r"\b__global__\b|<<<")
_OPENMP = "-Xcompiler=-fopenmp"
_USES_OPENMP = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+omp\b|\bomp_[a-z]\w*[ \t]*\(", re.MULTILINE)


@dataclass
class File:
    """A source file of a program."""

    path: str
    label: str  # its name in messages
    text: str
    # The start and end of each #include's quoted name, and the index of the file that it names.
    includes: dict[tuple[int, int], int] = field(default_factory=dict)
    _: KW_ONLY
    is_cuda: bool = False  # whatever its name says

    @property
    def is_c(self) -> bool:
        """Whether it is C, which has no kernels."""
        return self.path.endswith(".c") and not self.is_cuda and not _KERNEL.search(self.text)


def gather(
    paths: Sequence[str], include_dirs: Sequence[str], *, is_cuda: bool = False
) -> list[File]:
    """The files named by `paths`, then every file that they include, except the system's.

    With `is_cuda`, all named files are CUDA sources, whatever their suffix.
    CudalabError if a named file cannot be read or is a lab's kernel file. A header that is
    not found is left to the compiler, which searches more folders.
    """
    files = [File(path, path, _read(path), is_cuda=is_cuda) for path in paths]
    for file in files:
        if is_kernel_file(file.text):
            raise CudalabError(
                f"{file.label}: a kernel file, not a program: it has a lab's header and no main",
                hint="`cudalab LAB --kernel FILE.cu` runs it, `cudalab check LAB --kernel FILE.cu` "
                "judges it",
            )
    index = {os.path.realpath(file.path): i for i, file in enumerate(files)}
    for file in files:  # the list grows during the loop
        beside = os.path.dirname(file.path)  # noqa: PTH120 - pathlib is slow to start with
        for match in _INCLUDE.finditer(file.text):
            folders = [beside, *include_dirs] if match[1] == '"' else include_dirs
            likely = (os.path.join(folder, match[2]) for folder in folders)  # noqa: PTH118 - as above
            path = next(filter(os.path.isfile, likely), None)
            if path is None:
                continue
            real = os.path.realpath(path)
            if real not in index:
                index[real] = len(files)
                files.append(File(path, os.path.normpath(path), _read(path)))
            file.includes[match.start(1), match.end()] = index[real]
    return files


def is_for_host(files: Sequence[File], index: int) -> bool:
    """Whether a file is plain C or C++: neither it nor its headers include a header of CUDA.

    C may include those of the runtime API.
    """
    from cudalab.program import refusals

    source = files[index]
    if source.is_cuda or not source.path.endswith(_FOR_HOST):
        return False
    for file in (files[i] for i in included(files, index)):
        resolved = {start for start, _ in file.includes}
        for match in _INCLUDE.finditer(file.text):
            if match.start(1) in resolved or (source.is_c and IN_C.fullmatch(match[2])):
                continue
            if refusals.is_cuda_header(match[2]):
                return False
    return True


def included(files: Sequence[File], index: int) -> set[int]:
    """The indices of a file and of all that it includes."""
    reached, todo = {index}, [index]
    while todo:
        new = set(files[todo.pop()].includes.values()) - reached
        reached |= new
        todo += new
    return reached


@dataclass(frozen=True, kw_only=True)
class Part:
    """Sources that one command compiles, and its options."""

    files: Sequence[File]
    sources: int  # how many of the files are sources; the others are headers
    options: Sequence[str]
    objects: Sequence[str] = ()  # of other compilers, which are linked

    @cached_property
    def texts(self) -> list[str]:
        """The texts of the files."""
        return [file.text for file in self.files]

    @cached_property
    def names(self) -> list[str]:
        """The names under which the rewritten files are stored."""
        paths = (file.path.rpartition("/")[2] for file in self.files)
        return [f"{i}-{path.rpartition('.')[0] or path}.cpp" for i, path in enumerate(paths)]

    @cached_property
    def for_host(self) -> list[int]:
        """The indices of the sources that are host code."""
        return [i for i in range(self.sources) if is_for_host(self.files, i)]

    @property
    def for_device(self) -> list[int]:
        """The indices of the other sources, each a translation unit with CUDA."""
        return [i for i in range(self.sources) if i not in self.for_host]

    @cached_property
    def host(self) -> HostOptions:
        """What the options mean to the host's compiler."""
        return for_host(self.options)

    @property
    def flags(self) -> list[str]:
        """The flags for sources with CUDA that the options and the texts ask for.

        Texts may ask for nvcc's name and version. Programs that use CCCL get none: it would rely on
        extensions that only nvcc has.
        """
        own = [*self.host.compile, *self.host.folders]
        if cccl.identity(self.texts) or not any(map(_VERSION_MACRO.search, self.texts)):
            return own
        major, minor, patch = TOOLKIT_VERSION.split(".")
        numbers = {"MAJOR": major, "MINOR": minor, "BUILD": patch}
        return [
            *own,
            "-D__NVCC__",
            *(f"-D__CUDACC_VER_{each}__={n}" for each, n in numbers.items()),
        ]

    @property
    def headers(self) -> list[str]:
        """The options by which these sources find the headers of CUDA and of its libraries."""
        return [*for_programs(), *cccl.flags(self.texts)]

    def host_command(self, index: int, rewritten: str = "") -> list[str]:
        """The command that compiles a source in plain C or C++, as nvcc would pass it on.

        If its text is `rewritten` in another folder, that file finds the headers beside the source.
        """
        path = self.files[index].path
        macros = [option for option in self.options if option.startswith("-D")]
        flags = [*with_users(PROGRAM), *self.host.compile, *self.host.folders, *macros]
        flags += ["-fPIC", "-fno-semantic-interposition"]
        if path.endswith(".c"):
            flags = [flag for flag in flags if not flag.startswith("-std=")]
            flags += [*for_programs(), "-x", "c"]
        if rewritten:
            flags += ["-iquote", path.rpartition("/")[0] or "."]
            flags.append(f"-ffile-prefix-map={rewritten}={path}")
        return [*find_compiler().compile, *flags]


def with_openmp(part: Part) -> Part:
    """A part with the option for OpenMP, if its files need it and it is missing.

    Clang gets none: it may be installed without the library.
    """
    from cudalab.language.source import blank_comments

    if any(option.startswith("-fopenmp") for option in part.host.compile):
        return part
    for file in part.files:
        # the text itself is searched first: most programs use no OpenMP
        if "omp" in file.text and (match := _USES_OPENMP.search(blank_comments(file.text))):
            if find_compiler().is_clang:
                return part
            line, option = file.text.count("\n", 0, match.end()) + 1, _OPENMP.replace("=", " ")
            note(f"{file.label}:{line}: OpenMP: compiled with {option}, as nvcc needs it")
            return replace(part, options=[*part.options, _OPENMP])
    return part


def is_binary(path: str) -> bool:
    """Whether a file's first bytes are those of a program or a library."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib is slow to start with
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def is_kernel_file(text: str) -> bool:
    """Whether the text is a file for `cudalab LAB --kernel`: it has a lab's header and no main."""
    return bool(_HEADER.search(text)) and not has_main(text)


def is_program(text: str) -> bool:
    """Whether the text is a program: it has a main function and no lab's header."""
    return has_main(text) and not _HEADER.search(text)


def has_main(text: str) -> bool:
    """Whether the text appears to have a main function."""
    return bool(source.MAIN.search(text))


def _read(path: str) -> str:
    try:
        # surrogateescape preserves the bytes of comments in any encoding
        with open(path, encoding="utf-8-sig", errors="surrogateescape") as file:  # noqa: PTH123
            return file.read()
    except FileNotFoundError:
        raise CudalabError(f"{path}: no such file") from None
    except OSError as error:
        raise CudalabError(f"{path}: cannot be read: {error.strerror}") from None
