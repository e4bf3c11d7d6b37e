"""The functions that a compiled kernel may import.

A kernel file that is compiled for the host could hold any host code, which no GPU would run. So two
things are refused: imported functions that no kernel can call, and code that runs when the library
is loaded. Both are read from the library's own tables (system/elf.py), not from its source.
"""

import re
from pathlib import Path

from cudalab.checker.sandbox.reading import UnreadableError, read_regular
from cudalab.checker.submit.sources import CompileFailure
from cudalab.checker.verdicts import Why
from cudalab.system import elf
from cudalab.system.elf import Demands

MAX_LIBRARY_BYTES = 64 << 20

COMPILERS_OWN = 1  # entry of .init_array and of .fini_array, from the compiler's start files

# A kernel may call CUDA's device functions, and functions that compilers insert.
_LIBM = frozenset(
    """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10
    exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp lgamma
    llrint llround log log10 log1p log2 logb lrint lround modf nearbyint nextafter pow
    remainder remquo rint round roundeven scalbln scalbn sin sincos sinh sqrt tan tanh
    tgamma trunc y0 y1 yn
    """.split()  # noqa: SIM905 - a list of strings is no easier to read
)
_ALLOWED = re.compile(
    r"cudalab_\w+ | _ZNK?7cudalab\w+"
    r"| mem(?:cpy|set|move|cmp) | str(?:len|cmp) | malloc | calloc | free"
    r"| (?:v|f|vf)?printf | puts | putchar | fflush | stdout | stderr | abort | __assert_fail"
    r"| __(?:mem\w+|\w*printf)_chk | __stack_chk_fail | __cxa_(?:finalize|guard_\w+)"
    r"| __gmon_start__ | _ITM_\w+ | __tls_get_addr | _Zn[wa]m | _Zd[la]Pvm? | __errno_location"
    r"| __(?:u?(?:div|mod)|mul|pow|extend|trunc|fix|float)\w*[dtsx][ifc]\w*  # the compiler's own",
    re.VERBOSE,
)


def foreign(demands: Demands) -> list[str]:
    """Imported functions that no kernel can call."""
    return [name for name in demands.imports if not allowed(name)]


def allowed(name: str) -> bool:
    """Whether a kernel may call the function."""
    plain = name.removeprefix("__").removesuffix("_finite")
    return is_mathematical(plain) or _ALLOWED.fullmatch(name) is not None


def is_mathematical(name: str) -> bool:
    """Whether it is a function of the mathematical library, for any type of floats."""
    return name in _LIBM or (name[-1:] in ("f", "l") and name[:-1] in _LIBM)


def inspect(library: Path, own: Path) -> None:
    """Raise CompileFailure if a library holds more than kernels; `own` is one of cudalab's."""
    try:
        demands = elf.demands(read_regular(library, MAX_LIBRARY_BYTES))
        usual = elf.demands(own.read_bytes())
    except (UnreadableError, ValueError):
        raise CompileFailure(Why.FOREIGN, "the compiled library cannot be inspected") from None
    names = foreign(demands)
    if names:
        raise CompileFailure(
            Why.FOREIGN,
            f"it uses functions that no kernel can call on a GPU: {', '.join(names[:5])}",
            "a kernel file holds __global__ and __device__ functions and constants, nothing else",
        )
    many = max(demands.constructors, demands.destructors) > COMPILERS_OWN
    if many or demands.frame_bytes != usual.frame_bytes:
        raise CompileFailure(
            Why.FOREIGN,
            "it has code that runs when the file is loaded or the process ends: a constructor or "
            "destructor",
            "a global variable needs a constant as its initial value, on a GPU as well",
        )
