"""Numbers that a kernel's template is instantiated with, as arguments of its loops.

`template <int N> __global__ void k(…)` that is launched with many N has one function for a whole
block: `k_cudalab_all(cudalab_B, N, …)`.
"""

from cudalab.backends.cpu.regions.lambdas import has_lambda
from cudalab.backends.cpu.regions.syntax import Function, Parameter, Statement
from cudalab.backends.cpu.regions.unit import parsed
from cudalab.backends.cpu.regions.words import NotCoveredError, Words, texts
from cudalab.language.tokens import closing_angle, split

_NUMBERS = frozenset(
    {"bool", "char", "short", "int", "long", "unsigned", "signed", "const", "size_t"}
    | {"int32_t", "uint32_t", "int64_t", "uint64_t"}
)
# Words at the beginning of what the compiler has to know.
_CONSTANT = frozenset({"__shared__", "static", "constexpr", "static_assert", "using", "typedef"})


def hand_over_numbers(kernel: Function) -> None:
    """Turn template parameters of a kernel into parameters, unless they must be constants."""
    parts = split(kernel.template[2:-1])
    declared = [part[: texts(part).index("=")] if "=" in texts(part) else part for part in parts]
    places = [
        i
        for i, part in enumerate(declared)
        if len(part) > 1 and _NUMBERS.issuperset(texts(part[:-1]))
    ]
    try:
        if not places or _must_be_known(kernel, {declared[i][-1].text for i in places}):
            return
    except NotCoveredError:  # it keeps its fibers in any case
        return
    kernel.numbers = tuple(places)
    left = [part for i, part in enumerate(parts) if i not in places]
    comma = kernel.template[0]._replace(text=",", kind="sign")
    between = [word for part in left for word in (comma, *part)][1:]
    kernel.template = [*kernel.template[:2], *between, kernel.template[-1]] if left else []
    kernel.parameters[:0] = [Parameter(declared[i], declared[i][-1].text, []) for i in places]


def _must_be_known(kernel: Function, names: set[str]) -> bool:
    """Whether one of `names`, or a value computed from it, must be a constant."""
    statements = [each for part in parsed(kernel).statements for each in part.walk()]
    before: set[str] = set()
    while before != names:
        before = set(names)
        for each in statements:
            names |= {local.name for local in each.declared if names & set(texts(local.value))}
    outside = {word.text for parameter in kernel.parameters for word in parameter.words}
    outside |= set(kernel.bounds.split())
    return (
        bool(names & outside)
        or has_lambda(kernel.body)
        or _are_template_arguments(kernel.body, names)
        or any(_asks(each, names) for each in statements)
    )


def _are_template_arguments(words: Words, names: set[str]) -> bool:
    """Whether one of `names` may stand between `<` and `>`, not those of our own conversions."""
    return any(
        word.text == "<"
        and words[i - 1].text != "cudalab_fit"
        and names & set(texts(words[i : closing_angle(words, i) or i]))
        for i, word in enumerate(words)
    )


def _asks(statement: Statement, names: set[str]) -> bool:
    """Whether a statement itself requires a constant."""
    if statement.kind == "if constexpr":
        return bool(names & set(texts(statement.condition)))
    if any(names & set(texts(local.array)) for local in statement.declared):
        return True
    constant = statement.kind == "other" or statement.own[0].text in _CONSTANT
    return constant and bool(names & set(texts(statement.own)))
