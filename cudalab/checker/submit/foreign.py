"""What no submission may hold: what a host's compiler takes, and no GPU's.

In the text that the preprocessor leaves: attributes, pragmas, functions and assembly of the host,
by which a kernel would do what no GPU does, or escape the sanitizer. In the compiled library, by
its own tables (system/elf.py) and not by its source: functions that no kernel can call, and code
that runs when the library is loaded.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from cudalab.checker.submit.reports import UnreadableError, read_regular
from cudalab.checker.verdicts import Why
from cudalab.language import ptx
from cudalab.language.tokens import Token, closing
from cudalab.system import elf

Place = tuple[str, int]  # a file and a line
_PRAGMA = re.compile(r"\s*#\s*pragma\s+(?P<first>\w+)(?:\s+(?P<second>\w+))?")
# Built-in functions that nvcc has for a GPU, too, besides those of the mathematical library.
_BUILTINS = frozenset(
    """
    clz clzl clzll popcount popcountl popcountll ffs ffsl ffsll abs labs llabs expect unreachable
    assume assume_aligned memcpy memmove memset memcmp strlen bit_cast addressof offsetof alloca
    huge_val huge_valf inf inff nan nanf isnan isinf isfinite isnormal signbit LINE FILE FUNCTION
    is_constant_evaluated va_start va_arg va_end
    """.split()  # noqa: SIM905 - a list of strings is no easier to read
)
# Attributes that change neither what is linked nor what the sanitizer observes.
_ATTRIBUTES = frozenset(
    """
    aligned packed noinline always_inline gnu_inline unused used const pure may_alias fallthrough
    noreturn nothrow leaf hot cold flatten visibility deprecated vector_size malloc returns_nonnull
    nonnull warn_unused_result format assume_aligned alloc_size global device shared host constant
    managed launch_bounds grid_constant
    """.split()  # noqa: SIM905 - as above
)
_HIDES = re.compile(r"no_?sanitize|no_instrument|disable_sanitizer|^optimize$|^target|^no_profile")
_INTRINSIC = re.compile(r"_mm\d*_\w+|_m_\w+|vst\dq?_[suf]\d+|__gnu_cxx|__atomic_(?:base|float)")
_ATOMIC = re.compile(r"atomic_(?:ref|flag|bool|s?char\d*|u?(?:char|short|int|long|llong)|\w+_t)")
_NAMESPACE = "cuda"  # of CUDA's own atomics
_COUNTS = re.compile(r"%[^a-zA-Z%]*(?:hh?|ll?|[qLjzt])?n")


class CompileFailure(Exception):  # noqa: N818 - a verdict
    """The submission does not compile, or holds code that is not allowed."""

    def __init__(self, why: Why, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.why, self.message, self.hint = why, message, hint


class Seen(NamedTuple):
    """What the preprocessor leaves of the submission's own files."""

    tokens: list[Token]
    places: list[Place]  # of each line of the text that the tokens are from
    lines: list[str]
    starts: list[int]  # the position at which each line begins

    def at(self, token: Token) -> str:
        """The place of a token, as in a compiler's message."""
        file, line = self.places[bisect_right(self.starts, token.start) - 1]
        return f"{file}:{line}"


# The text ----------------------------------------------------------------------------------------


def in_kernels(seen: Seen, own: Collection[str]) -> Iterator[str]:
    """Messages about what nvcc rejects in a kernel file, or would not do."""
    yield from assembly(seen, is_kernel_file=True)
    for name in attributes(seen.tokens):
        if name.text.strip("_") not in _ATTRIBUTES:
            yield f"{seen.at(name)}: error: the attribute {name.text} is for host code"
    for token in seen.tokens:
        if token.kind == "directive" and (pragma := _PRAGMA.match(token.text)):
            if pragma["first"] in ("GCC", "clang", "redefine_extname", "weak", "STDC"):
                words = " ".join(filter(None, pragma.groups()))
                if words != "GCC unroll":
                    yield f"{seen.at(token)}: error: #pragma {words} is for a host's compiler"
        elif token.kind == "name" and not _is_builtin_of_nvcc(token.text):
            yield f"{seen.at(token)}: error: {token.text} is a function of a host's compiler"
        elif token.text in own:
            yield f"{seen.at(token)}: error: {token.text} is a name of cudalab's own"
    for token, says in accesses(seen.tokens):
        yield f"{seen.at(token)}: error: {says}"


def _is_builtin_of_nvcc(name: str) -> bool:
    """Whether nvcc compiles a function of that name for a GPU, if it is one of a compiler's."""
    if name == "__sync_threads":  # a slip of the pen, which the compiler explains
        return True
    if name.startswith(("__atomic_", "__sync_")):
        return False
    plain = name.removeprefix("__builtin_")
    return plain == name or plain in _BUILTINS or is_mathematical(plain)


def assembly(seen: Seen, *, is_kernel_file: bool) -> Iterator[str]:
    """Messages about assembly that is not a GPU's."""
    tokens = seen.tokens
    for i, token in enumerate(tokens):
        if token.text not in ("asm", "__asm", "__asm__"):
            continue
        begin = next((k for k in range(i + 1, len(tokens)) if tokens[k].text == "("), None)
        end = None if begin is None else closing(tokens, begin)
        if begin is None or end is None:
            yield f"{seen.at(token)}: error: assembly of the host"
            continue
        strings = []
        for inside in tokens[begin + 1 : end]:
            if inside.kind != "string":
                break
            strings.append(inside.text)
        if strings and not "".join(strings).replace('"', "").strip():
            continue  # no instruction: it keeps the compiler from moving or dropping something
        if is_kernel_file:
            yield (
                f"{seen.at(token)}: error: inline assembly: a GPU's cannot run on the CPU "
                'device (declare requires = ["inline_ptx"]), and the host\'s is no kernel'
            )
        elif not _is_ptx(tokens[begin + 1 : end], "\n".join(seen.lines)):
            yield f"{seen.at(token)}: error: inline assembly that is no PTX, or none known here"


def _is_ptx(tokens: Sequence[Token], text: str) -> bool:
    """Whether an `asm` statement with these tokens of a text is one that is translated here."""
    statement = ptx.read(tokens, text)
    try:
        return statement is not None and bool(ptx.translate(statement))
    except ptx.UnknownInstructionError:
        return False


def hiding(tokens: Sequence[Token]) -> Iterator[Token]:
    """Attributes and questions by which a program hides from the sanitizer."""
    for name in attributes(tokens):
        if _HIDES.search(name.text.strip("_")):
            yield name
    for token in tokens:
        if token.text in ("__builtin_constant_p", "__builtin_object_size"):
            yield token
        pragma = _PRAGMA.match(token.text) if token.kind == "directive" else None
        if pragma and pragma["first"] == "GCC" and pragma["second"] in ("optimize", "target"):
            yield token


def attributes(tokens: Sequence[Token]) -> Iterator[Token]:
    """The names of the attributes of the host's compiler."""
    for i, token in enumerate(tokens):
        if token.text in ("__attribute__", "__attribute"):
            end = closing(list(tokens), i + 1) or i
            depth = 0
            for inside in tokens[i + 1 : end]:
                depth += (inside.text == "(") - (inside.text == ")")
                if depth == 2 and inside.kind == "name":
                    yield inside
        elif begin := _double_bracket(tokens, i):
            yield from _of_compilers(tokens, begin)


def _double_bracket(tokens: Sequence[Token], i: int) -> int:
    """The index behind `[[`, or behind the same in digraphs; 0 if that does not stand there."""
    for _ in range(2):
        signs = [token.text for token in tokens[i : i + 2]]
        if signs[:1] != ["["] and signs != ["<", ":"]:
            return 0
        i += 1 if signs[0] == "[" else 2
    return i


def _of_compilers(tokens: Sequence[Token], i: int) -> Iterator[Token]:
    """The names in `[[gnu::name]]` or `[[using gnu: name]]`, from behind the brackets."""
    shared = tokens[i + 1].text if tokens[i].text == "using" else ""
    i += 3 if shared else 0
    depth = 0
    while i < len(tokens) and (depth or tokens[i].text not in ("]", ":")):
        depth += (tokens[i].text == "(") - (tokens[i].text == ")")
        one, after = tokens[i], tokens[i + 1 : i + 2]
        if one.kind == "name" and not depth and not (after and after[0].text == "::"):
            space = tokens[i - 2].text if tokens[i - 1].text == "::" else shared
            if space.strip("_").lower() in ("gnu", "clang"):
                yield one
        i += 1


def accesses(tokens: Sequence[Token]) -> Iterator[tuple[Token, str]]:
    """The names of functions that access memory unseen, and what to say of each."""
    for i, token in enumerate(tokens):
        before, after = tokens[max(i - 4, 0) : i], tokens[i + 1 : i + 3]
        if _is_of_processors(token, before, after):
            yield token, f"{token.text} is for the host: nvcc refuses it, and no sanitizer sees it"
        elif token.text in ("printf", "vprintf") and after and after[0].text == "(":
            if after[-1].kind != "string":
                yield token, "the format of a kernel's printf is a literal here"
            elif _COUNTS.search(_literal(tokens[i + 2 :])):
                yield token, "a kernel's printf has no %n"


def _is_of_processors(token: Token, before: Sequence[Token], after: Sequence[Token]) -> bool:
    """Whether it is an intrinsic or one of the host's atomics; CUDA's are in a namespace cuda."""
    if token.kind != "name" or _NAMESPACE in (one.text for one in before):
        return False
    named = token.text == "atomic" and bool(after) and after[0].text in ("<", "(", "{")
    return named or any(of.fullmatch(token.text) for of in (_INTRINSIC, _ATOMIC))


def _literal(tokens: Sequence[Token]) -> str:
    """The text of the string literals that stand side by side at the beginning, less each %%."""
    strings = (one.text for one in takewhile(lambda one: one.kind == "string", tokens))
    text = "".join(one.partition('"')[2][:-1] for one in strings)
    return text.encode("latin-1", "replace").decode("unicode_escape", "replace").replace("%%", "")


# The compiled library ----------------------------------------------------------------------------

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


def foreign(demands: elf.Demands) -> list[str]:
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
