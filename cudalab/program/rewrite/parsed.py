"""A file of a program while it is rewritten: its tokens, its tree, and the edits so far."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cudalab.language import exact, source
from cudalab.language.scopes import Scope
from cudalab.language.structure import CudaFile
from cudalab.language.tokens import Edit, Place, Token
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


class Parsed(CudaFile):
    """A file, its words, and what it declares once its tree is read."""

    def __init__(self, file: File, lacking: refusals.Lacking | None = None) -> None:
        """Find the words of a file. What only a GPU has goes to `lacking`."""
        super().__init__(file.text)
        self.file = file
        self.edits: list[Edit] = []
        self.lacking = refusals.Lacking() if lacking is None else lacking
        self.head = self.tail = ""  # directives that come first, and what follows the text
        self.launches: list[Launch] = []  # of kernel templates
        self.addresses: list[Launch] = []  # of their instances

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


def read(files: Sequence[Parsed]) -> Scope:
    """Read the trees of all files, each after those that it includes, into one scope."""
    scope = Scope("namespace")
    marks = exact.declare_macros([macro for each in files for macro in each.macros], scope)
    for each in _in_order(files):
        each.read(scope, marks)
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
