"""What nvcc refuses, but works here, with a note.

Old programs use features that CUDA has removed, and others headers of NVIDIA's samples that are not
beside them.
"""

import re
from collections.abc import Iterator, Sequence

from cudalab.backends.cpu import cccl
from cudalab.backends.cpu.flags import OF_SAMPLES
from cudalab.language.tokens import Token
from cudalab.output.notes import note
from cudalab.program.parsed import Parsed

# What CUDA has removed and many old programs use, and what takes its place.
_WARP = "its form with a mask, such as __shfl_sync"
_REMOVED = {
    **{f"__{name}": _WARP for name in ("shfl", "shfl_up", "shfl_down", "shfl_xor")},
    **{f"__{name}": _WARP for name in ("any", "all", "ballot")},
    "thrust::unary_function": "no base class",
    "thrust::binary_function": "no base class",
    "thrust::identity": "cuda::std::identity",
    "cub::Sum": "cuda::std::plus<>",
    "cub::Max": "cuda::maximum<>",
    "cub::Min": "cuda::minimum<>",
    **{
        f"cub::{kind}InputIterator": f"thrust::{kind.lower()}_iterator"
        for kind in ("Counting", "Constant", "Transform")
    },
    **{
        f"cudaThread{old}": f"cudaDevice{new}"
        for old, new in (
            ("Synchronize", "Synchronize"),
            ("Exit", "Reset"),
            ("SetLimit", "SetLimit"),
            ("GetLimit", "GetLimit"),
            ("SetCacheConfig", "SetCacheConfig"),
            ("GetCacheConfig", "GetCacheConfig"),
        )
    },
}
_THRUST = re.compile(r"[ \t]*#[ \t]*include[ \t]*<thrust/")
_HELPER = re.compile(r'[ \t]*#[ \t]*include[ \t]*(["<]helper_\w+\.h[">])')


def tell(parsed: Sequence[Parsed]) -> None:
    """Print notes about what nvcc no longer accepts, and what replaces it."""
    own = {macro.name for each in parsed for macro in each.macros}
    own |= {name for each in parsed for name in each.structure.host_functions}
    for each in parsed:
        first: dict[str, dict[str, int]] = {}
        for name, start in _names(each.tokens):
            if name in _REMOVED and name not in own:
                first.setdefault(_REMOVED[name], {}).setdefault(name, start)
        for instead, names in first.items():
            place = each.place(next(iter(names.values())))
            note(f"{place}: nvcc 13 has no {', '.join(names)}: use {instead}")
        if helpers := _helpers(each):
            at, listed = each.place(next(iter(helpers.values()))), ", ".join(helpers)
            note(f"{at}: no {listed} of NVIDIA's samples here: cudalab brings its own")


def _helpers(parsed: Parsed) -> dict[str, int]:
    """The headers of NVIDIA's samples that a file includes, but that are not beside it."""
    found = {start for start, _ in parsed.file.includes}
    helpers: dict[str, int] = {}
    for directive in parsed.directives:
        header = _HELPER.match(directive.text)
        if header and directive.start + header.start(1) not in found:
            name = header[1][1:-1]
            if (OF_SAMPLES / name).is_file():
                helpers.setdefault(name, directive.start)
    return helpers


def _names(tokens: Sequence[Token]) -> Iterator[tuple[str, int]]:
    """The names in the code, with the namespaces of Thrust and CUB, and their places."""
    for i, token in enumerate(tokens):
        space = tokens[i - 2].text if i > 1 and tokens[i - 1].text == "::" else ""
        yield f"{space}::{token.text}" if space in ("thrust", "cub") else token.text, token.start


def include_thrust(parsed: Parsed) -> None:
    """Include the headers of Thrust that nvcc includes indirectly."""
    used = (name.partition("::") for name, _ in _names(parsed.tokens))
    names = {name for space, _, name in used if space == "thrust" and name}
    lines = [f"#include <{header}>\n" for header in cccl.headers_of(names)] if names else []
    place = next((each for each in reversed(parsed.directives) if _THRUST.match(each.text)), None)
    if lines and place is None:
        parsed.head += "".join(lines)
    elif lines and place is not None:
        after = parsed.lines[place.start] + 1
        parsed.replace(place.end, place.end, "\n" + "".join(lines) + f"#line {after}")
