"""Reading .cu files: locating them, inlining their includes, listing their kernels.

Includes are inlined here because an `#include` would make PyCUDA start nvcc on every run.
With `#line` directives the compilers' messages still name the real files.
"""

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cache, lru_cache
from os.path import normpath
from pathlib import Path, PurePath

from cudalab.errors import CudalabError, NoDeviceError

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"[^\n]*$', re.MULTILINE)
_PACKAGE = Path(__file__).parents[1]
_LONG_TYPE = re.compile(r"(?:unsigned|long)(?: \w+)+")
_SYSTEM_INCLUDE = re.compile(r"[ \t]*#[ \t]*include[ \t]*<[^>]+>")
_CONDITIONAL = re.compile(r"[ \t]*#[ \t]*(if|endif)")
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b", re.MULTILINE)
# Comments and literals, which are blanked so that positions and lines stay the same.
_NOT_CODE = re.compile(
    r"""
    //[^\n]* | /\*.*?\*/
    | R"(?P<d>[^()\\\s]{0,16})\(.*?\)(?P=d)" | "(?:\\.|[^"\\\n])*"
    | (?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'  # a quote after a digit separates digits
    """,
    re.DOTALL | re.VERBOSE,
)
MAIN = re.compile(r"\bmain\s*\(")  # of a whole program
# A variant's header: TOML in a comment block.
HEADER = re.compile(r"^// /// cudalab[ \t]*\n(?P<toml>(?://[^\n]*\n)*?)// ///[ \t]*$", re.MULTILINE)
# Names of files between quotes, as assembly and PTX have them: bytes beyond ASCII are escaped.
QUOTED = r'"((?:[^"\\]|\\.)*)"'  # a regular expression
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LINE = re.compile(r'^#line (\d+) "([^"]*)"$', re.MULTILINE)
_GLOBAL = re.compile(
    r"\b__global__\b(?P<attributes>(?:[^;{(]|\((?:[^()]|\([^()]*\))*\))*?)"
    r"\b(?P<name>[A-Za-z_]\w*)\s*\((?P<params>(?:[^()]|\([^()]*\))*)\)\s*\{"
)
_QUALIFIERS = {"const", "volatile", "restrict", "__restrict", "__restrict__", "__grid_constant__"}
_TYPE_WORDS = {"char", "short", "int", "long", "signed", "unsigned", "float", "double", "bool"}


# CUDA's headers that the CPU device has, too: includes of them are left to the compilers.
_NAMES = """
    builtin_types.h channel_descriptor.h cooperative_groups.h cooperative_groups/memcpy_async.h
    cooperative_groups/reduce.h cooperative_groups/scan.h crt/common_functions.h
    crt/device_double_functions.h crt/device_double_functions.hpp crt/device_functions.h
    crt/device_functions.hpp crt/host_config.h crt/host_defines.h crt/math_functions.h
    crt/math_functions.hpp cublas_api.h cublas_v2.h cublasLt.h cuComplex.h cuda.h cuda_bf16.h
    cuda_device_runtime_api.h cuda_fp16.h cuda_pipeline.h cuda_pipeline_primitives.h
    cuda_profiler_api.h cuda_runtime.h cuda_runtime_api.h cuda_surface_types.h cuda_texture_types.h
    curand.h curand_globals.h curand_kernel.h curand_normal.h curand_philox4x32_x.h curand_uniform.h
    device_atomic_functions.h device_functions.h device_launch_parameters.h driver_functions.h
    driver_types.h host_defines.h library_types.h math_constants.h math_functions.h mma.h
    nvToolsExt.h nvToolsExtCuda.h nvToolsExtCudaRt.h nvtx3/nvToolsExt.h nvtx3/nvToolsExtCuda.h
    nvtx3/nvToolsExtCudaRt.h nvtx3/nvtx3.hpp sm_20_atomic_functions.h sm_20_intrinsics.h
    sm_30_intrinsics.h sm_32_atomic_functions.h sm_32_intrinsics.h sm_35_atomic_functions.h
    sm_35_intrinsics.h sm_60_atomic_functions.h sm_61_intrinsics.h surface_functions.h
    surface_indirect_functions.h surface_types.h texture_fetch_functions.h
    texture_indirect_functions.h texture_types.h vector_functions.h vector_types.h
"""
HEADERS = frozenset(_NAMES.split())


@dataclass(frozen=True)
class Source:
    """A .cu file ready for a compiler."""

    path: Path
    label: str  # the file's name in messages
    text: str  # with includes inlined and #line directives
    _: KW_ONLY
    kernels: dict[str, int] = field(default_factory=dict)  # name -> number of parameters
    files: tuple[Path, ...] = ()  # the file itself and all that it includes


@lru_cache(maxsize=64)  # one text is blanked for its includes, its kernels and its variables
def blank_comments(text: str, *, literals: bool = True) -> str:
    """`text` with comments (and literals) replaced by spaces; every line keeps its number."""

    def blank(match: re.Match[str]) -> str:
        if not literals and match[0][:2] not in ("//", "/*"):
            return match[0]
        return re.sub(r"[^\n]", " ", match[0])

    return _NOT_CODE.sub(blank, text)


# Kernels ------------------------------------------------------------------------------------------
#
# A kernel that is compiled already must start at once, so its parameters are found by a pattern: to
# read the tree takes ten times as long. (A test compares the two.)


def find_kernels(text: str) -> dict[str, int]:
    """The `__global__` functions defined in `text`, with their numbers of parameters."""
    return {kernel: len(each) for kernel, each in _parameters(text).items()}


def parameter_names(text: str) -> dict[str, list[str]]:
    """The names of each kernel's parameters, in order; empty for one without a name."""
    names = {}
    for kernel, each in _parameters(text).items():
        matches = (re.search(r"(\w+)\s*(?:\[\s*\w*\s*\]\s*)?$", param) for param in each)
        names[kernel] = [match[1] if match else "" for match in matches]
    return names


def parameter_types(text: str) -> dict[str, list[str]]:
    """The types of each kernel's parameters, without `const` and its like: `float *`, `size_t`."""
    types = dict[str, list[str]]()
    for kernel, each in _parameters(text).items():
        types[kernel] = []
        for parameter in each:
            declared, array, _ = parameter.partition("[")
            words = [w for w in re.findall(r"\w+|[*&]", declared) if w not in _QUALIFIERS]
            if len(words) > 1 and words[-1] not in {*_TYPE_WORDS, "*", "&"}:
                words.pop()  # the name
            types[kernel].append(" ".join([*words, "*"] if array else words))
    return types


def _parameters(text: str) -> dict[str, list[str]]:
    """The declarations of each kernel's parameters, without brackets and defaults."""
    found = {}
    for match in _GLOBAL.finditer(blank_comments(text)):
        params, nested = match["params"], 1
        while nested:  # commas inside brackets do not separate parameters
            params, nested = re.subn(r"<[^<>]*>|\([^()]*\)", "", params)
        each = [] if params.strip() in ("", "void") else params.split(",")
        found[match["name"]] = [parameter.partition("=")[0].rstrip() for parameter in each]
    return found


# Files --------------------------------------------------------------------------------------------


def lines_of(text: str) -> list[str]:
    """The lines as compilers count them: str.splitlines also ends one at a form feed or U+2028."""
    return text.removesuffix("\n").split("\n") if text else []


def load(path: Path, label: str | None = None) -> Source:
    """Read a .cu file. CudalabError if it or one of its includes cannot be read."""
    label = label or path.as_posix()
    files: list[Path] = []
    text = _inline(path, label, files)
    return Source(path, label, text, kernels=find_kernels(text), files=tuple(files))


def headers(loaded: Source) -> list[str]:
    """The labels of the files that `loaded` includes, in the order in which they begin."""
    opened = [match[2] for match in _LINE.finditer(loaded.text) if match[1] == "1"]
    return [label for label in opened if label != loaded.label]


def whole(loaded: Source) -> str:
    """`loaded` as one readable file: comments instead of #line mark where a header begins and ends.

    A header that several files include appears once.
    """
    lines: list[str] = []
    inside: list[str] = []
    for line in loaded.text.splitlines():
        mark = _LINE.fullmatch(line)
        if mark is None:
            lines.append(line)
        elif mark[1] == "1":
            inside.append(mark[2])
            lines += ["", f"// begin {mark[2]}", ""]
        elif inside[-1] != mark[2]:  # back in the including file
            lines += ["", f"// end {inside.pop()}", ""]
    text = "\n".join(lines[3:])
    header = HEADER.search(text)
    if header:  # an included variant's header declares nothing here
        text = text[: header.end()] + HEADER.sub("", text[header.end() :])
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


def read(path: Path, label: str) -> str:
    """The text of a source file. CudalabError if it cannot be read."""
    try:
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:  # comments from an older editor
            text = path.read_text(encoding="latin-1")
    except FileNotFoundError:
        raise CudalabError(f"{label}: no such file") from None
    except OSError as error:
        raise CudalabError(f"{label}: cannot be read as CUDA source: {error.strerror}") from None
    if "\0" in text:
        raise CudalabError(
            f"{label}: cannot be read as CUDA source: it contains zero bytes",
            hint="save it as UTF-8, not as UTF-16",
        )
    return text


def _inline(path: Path, label: str, files: list[Path]) -> str:
    text = read(path, label)
    files.append(path.resolve())
    text = _ONCE.sub("", text)  # a compiler warns about it outside a header
    code = blank_comments(text, literals=False)
    pieces = [f"#line 1 {quoted(label)}\n"]
    end = 0
    for match in _INCLUDE.finditer(code):
        line = text.count("\n", 0, match.start()) + 1
        if match[1] in HEADERS and not (path.parent / match[1]).is_file():
            pieces.append(text[end : match.start()] + f"#include <{match[1]}>")
            end = match.end()
            continue
        included, included_label = _find_include(match[1], path, label, line)
        pieces.append(text[end : match.start()])
        if included.resolve() not in files:  # as if every header began with #pragma once
            pieces.append(_inline(included, included_label, files))
        pieces.append(f"\n#line {line + 1} {quoted(label)}")
        end = match.end()
    pieces.append(text[end:])
    return "".join(pieces) + "\n"


def _find_include(name: str, includer: Path, label: str, line: int) -> tuple[Path, str]:
    beside = includer.parent / name
    if beside.is_file():
        return beside, normpath(PurePath(label).parent / name)
    ours = kernels_dir() / name
    if ours.is_file():
        return ours, f"kernels/{name}"
    raise CudalabError(
        f'{label}:{line}: cannot find the included file "{name}"',
        hint=f"searched the file's own folder and {kernels_dir()}",
    )


def quoted(text: str) -> str:
    """The text as a string literal of C++."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def unquoted(text: str) -> str:
    """What QUOTED has found, without escapes."""

    def byte(escape: re.Match[bytes]) -> bytes:
        return bytes([int(escape[1], 8) & 255]) if len(escape[1]) == 3 else escape[1]

    return _ESCAPE.sub(byte, text.encode()).decode(errors="replace")


@cache
def _installed_kernels() -> Path:
    for candidate in (_PACKAGE / "kernels", _PACKAGE.parent / "kernels"):
        if candidate.is_dir():
            return candidate
    raise NoDeviceError(
        f"the kernels/ folder is missing: searched {_PACKAGE} and {_PACKAGE.parent}",
        hint="install cudalab again, or name the folder with `cudalab --kernels DIR`",
    )


_custom_kernels: Path | None = None


def kernels_dir() -> Path:
    """The kernels' folder: `--kernels DIR`, else the packaged copy, else the repository's."""
    return _custom_kernels or _installed_kernels()


def is_own(path: Path) -> bool:
    """Whether a file is one of cudalab's own kernels."""
    return path.resolve().is_relative_to(_installed_kernels().resolve())


def use_kernels_dir(path: Path) -> None:
    """Take the kernels from `path` (the command line's `--kernels DIR`)."""
    global _custom_kernels  # noqa: PLW0603 - one process has one kernels folder
    _custom_kernels = path


def with_defines(text: str, defines: Mapping[str, str | int]) -> str:
    """Put `defines` in front of a source's text, behind the system headers it includes.

    They are not -D flags, because those would reach CUDA's own headers, whose templates have a
    parameter T too. `text` begins with a #line directive, so its line numbers stay. A type of
    several words gets a name, as `T(0)` needs it.
    """
    lines = _system_includes(text)
    for name, value in defines.items():
        if _LONG_TYPE.fullmatch(str(value)):
            lines.append(f"using cudalab_{name} = {value};")
            lines.append(f"#define {name} cudalab_{name}")
        else:
            lines.append(f"#define {name} {value}")
    return "\n".join([*lines, text])


def _system_includes(text: str) -> list[str]:
    """The unconditional `#include <...>` lines of `text`."""
    includes, depth = [], 0
    for line in blank_comments(text).splitlines():
        conditional = _CONDITIONAL.match(line)
        if conditional:
            depth += 1 if conditional[1] == "if" else -1
        elif depth == 0 and _SYSTEM_INCLUDE.match(line):
            includes.append(line.strip())
    return includes
