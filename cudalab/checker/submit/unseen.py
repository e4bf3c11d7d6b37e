"""What a host's compiler takes, and by which a kernel's accesses would escape the sanitizer.

Attributes that leave a function without hooks, functions of the host's headers that become a bare
instruction, and `%n` of printf, by which the C library writes. nvcc takes none of them in kernels.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from cudalab.language.tokens import Token, closing

_INTRINSIC = re.compile(r"_mm\d*_\w+|_m_\w+|vst\dq?_[suf]\d+|__gnu_cxx|__atomic_(?:base|float)")
_ATOMIC = re.compile(r"atomic_(?:ref|flag|bool|s?char\d*|u?(?:char|short|int|long|llong)|\w+_t)")
_NAMESPACE = "cuda"  # of CUDA's own atomics
_COUNTS = re.compile(r"%[^a-zA-Z%]*(?:hh?|ll?|[qLjzt])?n")


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
