"""The words of CUDA C++ that the readers of the tree walk over."""

from collections.abc import Sequence

from cudalab.language.tokens import CLOSING, OPENING, Token, as_sign, closing_angle, set_of

QUALIFIERS = set_of(
    "const constexpr consteval constinit volatile static inline extern register mutable "
    "friend virtual explicit thread_local typename restrict __restrict __restrict__ __inline "
    "__inline__ __forceinline__ __noinline__ __device__ __host__ __global__ __shared__ "
    "__constant__ __managed__ __grid_constant__ __extension__"
)
ATTRIBUTES = set_of(
    "__launch_bounds__ __attribute__ __declspec __align__ __maxnreg__ __cluster_dims__ "
    "__block_size__ alignas noexcept"
)
# Words that neither begin a type nor are the name of anything.
KEYWORDS = set_of(
    "return if else while for do switch case default break continue goto try catch throw new "
    "delete sizeof alignof operator using typedef namespace template class struct union enum "
    "public private protected asm __asm__ __asm static_cast reinterpret_cast const_cast "
    "dynamic_cast this co_await co_return co_yield static_assert concept requires"
)
BEHIND_PARAMETERS = frozenset({"const", "volatile", "override", "final", "mutable", "&", "try"})
POINTERS = set_of("* & const volatile __restrict__ __restrict restrict")
ASSEMBLY = frozenset({"asm", "__asm__", "__asm"})
_ALONE = frozenset("(){}[];,?~")  # no operator of several signs begins with them
_OPERATORS = set_of(
    "<<= >>= <=> ... ->* << >> <= >= == != && || += -= *= /= %= &= |= ^= ++ -- .* ->"
)


class Words:
    """The tokens of a file without its directives, by index; behind the end there are none."""

    def __init__(self, tokens: Sequence[Token], directives: Sequence[Token] = ()) -> None:
        """Find the partner of each bracket."""
        self.tokens = list(tokens)
        signs = [as_sign(token) for token in tokens]
        self.texts = [token.text for token in signs] + [""] * 8
        self.kinds = [token.kind for token in signs] + ["end"] * 8
        self.partners = _partners(self.tokens, directives)

    def __len__(self) -> int:
        """The number of tokens."""
        return len(self.tokens)

    def behind(self, opening: int, end: int) -> int:
        """The index behind the bracket that opens here, or `end` if it does not close."""
        partner = self.partners.get(opening)
        return end if partner is None or partner >= end else partner + 1

    def skip(self, i: int, end: int) -> int:
        """The index behind a token, or behind a bracket that opens here."""
        return self.behind(i, end) if self.texts[i] in OPENING else i + 1

    def adjacent(self, i: int) -> bool:
        """Whether nothing is between a token and the next one."""
        return i + 1 < len(self.tokens) and self.tokens[i].end == self.tokens[i + 1].start

    def operator(self, i: int) -> str:
        """The longest operator that begins here, or the token's text."""
        texts = self.texts
        if self.kinds[i] != "sign" or texts[i] in _ALONE:
            return texts[i]
        joined, k = texts[i], i
        while len(joined) < 3 and self.adjacent(k) and self.kinds[k + 1] == "sign":
            k += 1
            joined += texts[k]
        return next((joined[:n] for n in (3, 2) if joined[:n] in _OPERATORS), texts[i])

    def width(self, i: int, operator: str) -> int:
        """The number of tokens of an operator that begins here."""
        k, joined = i, ""
        while len(joined) < len(operator):
            joined += self.texts[k]
            k += 1
        return k - i

    def angle(self, i: int, end: int) -> int | None:
        """The index behind a template argument list that begins here, if it may be one."""
        if self.texts[i] != "<" or self.operator(i) in ("<<", "<=", "<<="):
            return None
        close = closing_angle(self.tokens, i)
        if close is None or close >= end:
            return None
        inside = [self.operator(k) for k in range(i + 1, close)]
        return None if {"||", "=="} & set(inside) else close + 1

    def end_of(self, i: int, end: int, signs: str = ";") -> int:
        """The index of the first of the signs outside brackets; `end` if there is none."""
        while i < end and self.texts[i] not in signs and self.texts[i] not in CLOSING:
            i = self.skip(i, end)
        return min(i, end)

    def text(self, first: int, last: int) -> str:
        """The tokens with spaces where there was something between them."""
        return "".join(
            self.texts[k] + ("" if k == last - 1 or self.adjacent(k) else " ")
            for k in range(first, last)
        )


def _partners(tokens: Sequence[Token], directives: Sequence[Token]) -> dict[int, int]:
    """The partners of brackets. The branches of `#if` begin with the same ones open."""
    partners: dict[int, int] = {}
    open_: list[int] = []
    saved: list[list[int]] = []
    pending = list(reversed(directives))
    for i, token in enumerate(tokens):
        while pending and pending[-1].start < token.start:
            word = pending.pop().text.lstrip().lstrip("#").lstrip()
            if word.startswith("if"):
                saved.append(list(open_))
            elif word.startswith("el") and saved:
                open_ = list(saved[-1])
            elif word.startswith("endif") and saved:
                saved.pop()
        if token.text in OPENING:
            open_.append(i)
        elif token.text in CLOSING:
            depth = len(open_) - 1
            while depth >= 0 and tokens[open_[depth]].text not in (CLOSING[token.text], "{"):
                depth -= 1  # over what does not close
            if depth >= 0 and tokens[open_[depth]].text == CLOSING[token.text]:
                partners[i], partners[open_[depth]] = open_[depth], i
                del open_[depth:]
    return partners
