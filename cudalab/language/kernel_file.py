"""A kernel file by itself: its variables, and its text for a host's compiler."""

from __future__ import annotations

from functools import lru_cache

from cudalab.language import lockstep, shared
from cudalab.language.device_functions import File
from cudalab.language.macros import macros, read_body
from cudalab.language.scopes import Scope
from cudalab.language.structure import scan
from cudalab.language.syntax import Words
from cudalab.language.tokens import Lines, tokenize
from cudalab.language.tree import Reader


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
        self.root = Reader(self.words).file(self.scope)
        self.structure = scan(self.root, self.words, Lines(text))

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

    def for_host(self, *, in_step: bool) -> str:
        """The text for a host's compiler; lanes go `in_step` where the kernels count on it."""
        edits = list(shared.edits(self.root, self.words, self.text))
        for macro in macros(self.directives):
            if "__shared__" in macro.words:
                words, body = read_body(macro, self.scope)
                edits += shared.edits(body, words, self.text, macro)
        if in_step:
            functions = self.structure.device_functions
            edits += lockstep.edits([File(self.words, self.directives, functions)])[0]
        pieces, end = [], 0
        for start, stop, written in sorted(edits):
            pieces += [self.text[end:start], written]
            end = stop
        return "".join([*pieces, self.text[end:]])
