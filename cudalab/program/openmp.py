"""OpenMP in a program: adds the option that it needs and that is easily forgotten."""

import re
from collections.abc import Sequence

from cudalab.backends.cpu.toolchain import find_compiler
from cudalab.language.source import blank_comments
from cudalab.output.notes import note
from cudalab.program.files import File
from cudalab.program.options import for_host

OPTION = "-Xcompiler=-fopenmp"
_USED = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+omp\b|\bomp_[a-z]\w*[ \t]*\(", re.MULTILINE)


def added(files: Sequence[File], options: Sequence[str], *, tell: bool = True) -> list[str]:
    """The options, with the one for OpenMP if the program needs it and it is missing.

    Clang gets none: it may be installed without the library.
    """
    if any(option.startswith("-fopenmp") for option in for_host(options).compile):
        return list(options)
    for file in files:
        # the text itself is searched first: most programs use no OpenMP
        if "omp" in file.text and (match := _USED.search(blank_comments(file.text))):
            if "clang" in find_compiler().version():
                return list(options)
            if tell:
                line, option = file.text.count("\n", 0, match.end()) + 1, OPTION.replace("=", " ")
                note(f"{file.label}:{line}: OpenMP: compiled with {option}, as nvcc needs it")
            return [*options, OPTION]
    return list(options)
