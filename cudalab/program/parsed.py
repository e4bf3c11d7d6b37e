"""A file of a program while it is rewritten: its tokens, its tree, and the edits so far."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cudalab.language import arithmetic, exact, source, tree
from cudalab.language.macros import Macro, macros
from cudalab.language.scopes import Node, Scope
from cudalab.language.structure import Structure, scan
from cudalab.language.tokens import Lines, Place, Token, Words, tokenize
from cudalab.program import refusals
from cudalab.program.files import File

ONLY_LAUNCHED = "CUDALAB_ONLY_LAUNCHED"  # a macro of launch.h


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A launch of a kernel template, or an instance of one whose address is taken."""

    edit: int  # the index of its edit
    kernel: str  # as the text says it, with template arguments
    name: str
    position: int
    macro: str = ""  # whose body it is in


@dataclass(kw_only=True)
class Parsed:
    """A file, its tokens, and what it declares once its tree is read."""

    file: File
    words: Words  # without directives
    directives: list[Token]
    macros: list[Macro]  # that it defines
    lines: Lines
    root: Node = field(default_factory=lambda: Node("file", 0, 0))
    structure: Structure = field(default_factory=Structure)
    bodies: list[Node] = field(default_factory=list)  # functions and lambdas for the device
    edits: list[tuple[int, int, str]] = field(default_factory=list)
    lacking: refusals.Lacking = field(default_factory=refusals.Lacking)  # what only a GPU has
    head: str = ""  # directives that come first
    tail: str = ""  # what follows the text
    launches: list[Launch] = field(default_factory=list)  # of kernel templates
    addresses: list[Launch] = field(default_factory=list)  # of their instances

    @property
    def tokens(self) -> list[Token]:
        """The tokens without directives."""
        return self.words.tokens

    def replace(self, start: int, end: int, text: str, newline: str = "\n") -> None:
        """Replace [start, end) of the file by `text`, and keep the number of lines."""
        lost = self.file.text.count("\n", start, end) - text.count("\n")
        self.edits.append((start, end, text + newline * lost))

    def place(self, position: int) -> str:
        """The file and line of a position."""
        return f"{self.file.label}:{self.lines[position]}"

    def line_of(self, position: int) -> Place:
        """The file and line of a position, apart."""
        return self.file.label, self.lines[position]

    def rewritten(self, guard: str = "") -> str:
        """The text with all edits, under the file's own name.

        With a macro as guard, a kernel that is called as a function, through a pointer, fails and
        does not run.
        """
        guards = [
            (each.body, each.body, f' {guard}("{each.name}")')
            for each in self.structure.kernels
            if each.body is not None and guard
        ]
        edits = [*guards, *self.edits]
        pieces = [self.head, f"#line 1 {source.quoted(self.file.label)}\n"]
        end = 0
        for start, stop, text in sorted(edits, key=lambda edit: edit[:2]):
            pieces += [self.file.text[end:start], text]
            end = stop
        pieces += [self.file.text[end:], "\n", self.tail]
        return "".join(pieces)


def parse(file: File) -> Parsed:
    """Read the tokens of a file."""
    tokens = tokenize(file.text)
    code = [token for token in tokens if token.kind != "directive"]
    directives = [token for token in tokens if token.kind == "directive"]
    return Parsed(
        file=file,
        words=Words(code, directives),
        directives=directives,
        macros=macros(directives),
        lines=Lines(file.text),
    )


def read(files: Sequence[Parsed]) -> Scope:
    """Read the trees of all files, each after those that it includes, into one scope."""
    scope = Scope("namespace")
    marks = exact.declare_macros([macro for each in files for macro in each.macros], scope)
    for each in _in_order(files):
        each.root = tree.Reader(each.words).file(scope)
        each.structure = scan(each.root, each.words, each.lines)
        each.bodies = list(arithmetic.device_functions(each.root, each.words, marks))
    return scope


def _in_order(files: Sequence[Parsed]) -> Iterator[Parsed]:
    """The files, each after those that it includes."""
    done: set[int] = set()

    def visit(i: int) -> Iterator[Parsed]:
        if i not in done:
            done.add(i)
            for other in files[i].file.includes.values():
                yield from visit(other)
            yield files[i]

    for i in range(len(files)):
        yield from visit(i)
