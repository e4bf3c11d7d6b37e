"""What a function's text is made of: words with their lines, regions, and the loops around them."""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field

from cudalab.backends.cpu.regions.functions import Function, Parameter
from cudalab.backends.cpu.regions.syntax import Local, Statement
from cudalab.backends.cpu.regions.words import Words, close
from cudalab.language.tokens import Token, spaced

Piece = Token | str
_FEW = 4  # lines that are skipped by empty ones


class Writer:
    """Collects words of the user and pieces of our own, which have no lines."""

    def __init__(self) -> None:
        """Start with an empty text."""
        self._pieces: list[str] = []
        self._file = ""
        self._line = 0

    def add(self, *pieces: Piece | Iterable[Piece]) -> None:
        """Append words, and texts without newlines."""
        for piece in pieces:
            if isinstance(piece, Token):
                self._move(piece)
                self._pieces.append(piece.text)
            elif isinstance(piece, str):
                self._pieces.append(piece)
            else:
                self.add(*piece)

    def text(self) -> str:
        """All that was added."""
        return " ".join(self._pieces) + "\n"

    def _move(self, word: Token) -> None:
        if not word.line or (word.file, word.line) == (self._file, self._line):
            return
        skipped = word.line - self._line
        if word.file == self._file and 0 < skipped <= _FEW:
            self._pieces.append("\n" * skipped)
        else:
            self._pieces.append(f'\n#line {word.line} "{word.file}"\n')
        self._file, self._line = word.file, word.line


# Statements that belong to the block: what they declare is the same for all threads.
OUTER = frozenset({"using", "typedef", "static_assert", "static", "constexpr", "__shared__"})


@dataclass
class Home:
    """How a region reaches a thread's own value of a local variable."""

    binding: list[Piece]
    needs: set[str] = field(default_factory=set)  # names in the binding
    _: KW_ONLY
    computed: bool = False  # anew in each region
    is_array: bool = False  # of the values themselves
    nearby: list[Piece] = field(default_factory=list)  # the binding in a region with loops, if any


@dataclass
class Region:
    """Statements that each thread runs through without waiting for others."""

    pieces: list[Piece] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)  # locals that are declared in it
    _: KW_ONLY
    number: int = 0  # of the label behind its statements, if anything jumps there
    leaves: bool = False  # whether threads leave the function or a loop in it
    ordered: bool = False  # threads are to be taken one by one
    empty: bool = True  # but for variables that are computed anew

    def add(
        self,
        *pieces: Piece | Iterable[Piece],
        of: Iterable[Token] = (),
        computed: bool = False,
    ) -> None:
        """Append text that is made `of` these words of the user.

        `computed`: of a variable that is computed anew in each region.
        """
        self.names |= {word.text for word in of}
        self.empty &= computed
        for piece in pieces:
            if isinstance(piece, str | Token):
                self.pieces.append(piece)
            else:
                self.pieces += piece


@dataclass
class Loop:
    """A loop around regions."""

    mask: str = ""  # of the threads still in it, if they may leave it at different times
    round: str = ""  # of those still in this round
    label: str = ""  # behind its body, for `continue`; if empty, the word itself will do


@dataclass
class Part:
    """A part of a list of statements: a statement, or a call that comes before one."""

    kind: str  # one of those that `Passes.write` has
    statement: Statement
    call: Words = field(default_factory=list)
    result: str = ""
    _: KW_ONLY
    cuts: bool = False  # it ends the region before it
    last: bool = False  # nothing follows it in the function
    used: dict[str, set[int]] = field(default_factory=dict)  # the regions that use each name


def type_of_value(words: Words) -> str:
    """The type of an expression, without references and qualifiers."""
    return f"::std::decay_t<decltype({spaced(words)})>"


def type_of(parameter: Parameter) -> str:
    """The type of a parameter; for a reference, of a pointer to what it refers to."""
    words = [word for word in parameter.words if word.text != parameter.name]
    text = spaced(words)
    if parameter.is_reference:
        return text.replace("&", "*")
    if words and words[0].text == "const" and "*" not in text:
        text = spaced(words[1:])
    return text


def named(local: Local) -> list[Token]:
    """The words that stand for a local variable's name in its declaration."""
    place = local.spec[0]
    if local.is_reference and local.array:
        return [place._replace(text=text) for text in (")", local.name)]
    return [place._replace(text=local.name)]


def by_itself(local: Local) -> Words:
    """A declaration of this variable alone, without its alignment."""
    return [*local.spec, *local.pointer, *named(local), *local.array, *local.value]


def nearby(name: str, home: str) -> list[Piece]:
    """The binding of an array that a region with loops works on a copy of."""
    kind = f"::std::remove_reference_t<decltype({home})>"
    copy = f"{name}_cudalab_n"
    return [f"::cudalab::Nearby<{kind}> {copy}({home}); auto& {name} = {copy}.value;"]


def in_lambda(words: Words, i: int) -> bool:
    return any(word.text == "{" and j < i < close(words, j) for j, word in enumerate(words[:i]))


def declaration(kernel: Function) -> str:
    """The declaration of the function for a whole block that a kernel becomes."""
    parameters = ["::cudalab::cudalab_block&"]
    for each in kernel.parameters:
        default = f" = {spaced(each.default)}" if each.default else ""
        parameters.append(spaced(each.words) + default)
    head = f"static inline void {kernel.name}_cudalab_all({', '.join(parameters)});"
    return f"{spaced(kernel.template)} {head}"
