"""A kernel file by itself: its variables, and its text for a host's compiler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property, lru_cache
from types import MappingProxyType

from cudalab.language import arithmetic, local_variables, lockstep, shared
from cudalab.language.device_functions import File
from cudalab.language.exact import Exact, declare_macros
from cudalab.language.macros import macros, read_body
from cudalab.language.scopes import Node, Scope
from cudalab.language.structure import scan
from cudalab.language.tokens import Edit, Lines, Place, Places, Words, tokenize
from cudalab.language.tree import Reader

NOTHING: Mapping[Place, int] = MappingProxyType({})


@lru_cache(maxsize=8)
def read(text: str) -> KernelFile:
    """The file with this text; a process that runs a kernel again and again reads it once."""
    return KernelFile(text)


class KernelFile:
    """A file that has been read."""

    def __init__(self, text: str) -> None:
        """Read the text."""
        self.text, tokens = text, tokenize(text)
        self.directives = [token for token in tokens if token.kind == "directive"]
        code = [token for token in tokens if token.kind != "directive"]
        self.words, self.scope = Words(code, self.directives), Scope("namespace")
        self.macros = macros(self.directives)
        marks = declare_macros(self.macros, self.scope)
        self.root = Reader(self.words).file(self.scope)
        self.structure = scan(self.root, self.words, Lines(text))
        self.bodies = list(arithmetic.device_functions(self.root, self.words, marks))

    @property
    def variables(self) -> dict[str, bool]:
        """Its `__device__` and `__constant__` variables, and which of them are constant."""
        return self.structure.own_variables

    @property
    def dynamic(self) -> str | None:
        """The name of its `extern __shared__` array; of the first one, if kernels have several."""
        declared = self.root.of_kind("declaration")
        arrays = (node for node in declared if node.words >= {"extern", "__shared__"})
        return next((name.name for node in arrays for name in node.names), None)

    def for_host(
        self, *, observed: bool, exact: bool = True, refused: Mapping[Place, int] = NOTHING
    ) -> str:
        """The text for a host's compiler.

        Lanes go in step where the kernels count on it, as they do if they are `observed`; local
        variables lie between zones then. Conversions and shifts have a GPU's results if they are
        `exact`. `refused` says where the compiler has refused those, and how often: functions with
        a statement that cannot have them refuse to run.
        """
        edits = list(shared.edits(self.root, self.words, self.text))
        for macro in self.macros:
            if "__shared__" in macro.words:
                words, body = read_body(macro, self.scope)
                edits += shared.edits(body, words, self.text, macro)
        if not observed:
            functions = self.structure.device_functions
            edits += lockstep.edits([File(self.words, self.directives, functions)])[0]
        of_locals, blamed = list[Edit](), set[Place]()
        if observed and exact:
            of_locals, blamed = local_variables.edits(
                self.bodies, self.words, self.text, self._places.__getitem__, refused
            )
        others = {place: times - (place in blamed) for place, times in refused.items()}
        head, more = self._exact(edits, others) if exact else ("", [])
        more += of_locals
        pieces, end = [head], 0
        for start, stop, written in sorted([*edits, *more]):
            pieces += [self.text[end:start], written]
            end = stop
        return "".join([*pieces, self.text[end:]])

    def _exact(self, made: list[Edit], refused: Mapping[Place, int]) -> tuple[str, list[Edit]]:
        """Directives for the top, and edits, that give conversions and shifts a GPU's results.

        Where an edit has been `made`, none is added; nor is a macro with several definitions.
        """
        times = Counter(macro.name for macro in self.macros)
        once = [macro for macro in self.macros if times[macro.name] == 1]
        exact = Exact([self], once, self.scope, divisions=False)

        def lines(statement: Node) -> list[Place]:  # of tokens; they matter if some are refused
            tokens = self.words.tokens[statement.first : statement.last if refused else 0]
            return [self._places[token.start] for token in tokens] or [("", 0)]

        edits = list(exact.edits(self, made, lines, refused))
        defined = [text for _, text in exact.twins(once, self.text, made)]
        return "".join([*defined, "\n"] if defined else ""), edits

    @cached_property
    def _places(self) -> Places:
        return Places(self.text)
