"""A kernel file by itself: its variables, and its text for a host's compiler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property, lru_cache
from types import MappingProxyType

from cudalab.language import local_variables, lockstep, shared
from cudalab.language.exact import Exact, declare_macros
from cudalab.language.scopes import Node, Scope
from cudalab.language.structure import CudaFile
from cudalab.language.tokens import Edit, Place, Places

NOTHING: Mapping[Place, int] = MappingProxyType({})


@lru_cache(maxsize=8)
def read(text: str) -> KernelFile:
    """The file with this text; a process that runs a kernel again and again reads it once."""
    return KernelFile(text)


class KernelFile(CudaFile):
    """A file that has been read."""

    def __init__(self, text: str) -> None:
        """Read the text."""
        super().__init__(text)
        self.scope = Scope("namespace")
        self.read(self.scope, declare_macros(self.macros, self.scope))

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

    @cached_property
    def local_arrays(self) -> set[str]:
        """The names of the arrays that each thread has for itself while a function runs."""
        functions = self.root.of_kind("function")
        return {
            self.words.texts[each.name]
            for node in (node for each in functions for node in each.of_kind("declaration"))
            if node.words.isdisjoint({"__shared__", "static", "extern"})
            for each in node.declarators
            if each.array < each.value
        }

    def for_host(
        self, *, observed: bool, exact: bool = True, refused: Mapping[Place, int] = NOTHING
    ) -> str:
        """The text for a host's compiler.

        Lanes go in step where the kernels count on it, as they do if they are `observed`; local
        variables lie between zones then. Conversions and shifts have a GPU's results if they are
        `exact`. `refused` says where the compiler has refused those, and how often: functions with
        a statement that cannot have them refuse to run.
        """
        edits = shared.edits(self, self.scope)
        if not observed:
            edits += lockstep.edits([self])[0]
        of_locals, blamed = list[Edit](), set[Place]()
        if observed and exact:
            of_locals, blamed = local_variables.edits(self, self.places.__getitem__, refused)
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
            return [self.places[token.start] for token in tokens] or [("", 0)]

        edits = list(exact.edits(self, made, lines, refused))
        defined = [text for _, text in exact.twins(once, self.text, made)]
        return "".join([*defined, "\n"] if defined else ""), edits

    @cached_property
    def places(self) -> Places:
        """The user's files and lines."""
        return Places(self.text)
