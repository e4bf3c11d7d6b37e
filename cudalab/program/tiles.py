"""Stretches of kernels that only load and multiply fragments: one lane runs them for its warp.

All lanes of a warp call the functions of `mma.h` together and with the same arguments, so that a
loop with no other effects does the same in every lane. Here each call would be a meeting of all
lanes. Instead they meet once: the last one to arrive runs the stretch with whole tiles, which it
gathers from the lanes' fragments before and gives back afterwards.
"""

from collections.abc import Sequence

from cudalab.language.scopes import Node, Scope
from cudalab.language.tokens import Words
from cudalab.program.fragments import Purity, Stretch, is_fragment, is_made
from cudalab.program.parsed import Parsed

Edit = tuple[int, int, str]


def rewrite(files: Sequence[Parsed], scope: Scope) -> None:
    """Put the edits for all device functions into the files, whose names are in `scope`."""
    if not any("mma_sync" in each.words.texts for each in files):
        return
    purity = Purity([macro for each in files for macro in each.macros], scope)
    for each in files:
        conditions = [one.start for one in each.directives if "pragma" not in one.text]
        for function in each.bodies:
            if function.kind == "function":
                for edit in _Finder(each.words, conditions, purity, function).edits:
                    each.replace(*edit)


class _Finder:
    """Finds the stretches of a function."""

    def __init__(
        self, words: Words, conditions: Sequence[int], purity: Purity, function: Node
    ) -> None:
        self.words, self.conditions, self.purity = words, conditions, purity
        self.edits: list[Edit] = []
        parameters = function.scope.names.values() if function.scope is not None else ()
        found = [name for names in parameters for name in names if name.type.is_reference]
        for node in function.of_kind("declaration"):
            if not node.words & {"static", "__shared__"}:
                found += node.names
        self.declared = {name for name in found if is_fragment(name.type) or is_made(name)}
        if self.declared:
            for part in function.children:
                self._look_into(part)

    def _look_into(self, node: Node) -> None:
        """Search the statements inside a statement."""
        if node.kind == "block":
            self._block(node.children)
        elif node.kind in ("for", "while", "if", "switch", "else", "do"):
            for part in node.children:
                if not self._take([part]):
                    self._look_into(part)

    def _block(self, statements: Sequence[Node]) -> None:
        run: list[Node] = []
        stretch = Stretch(self.words, self.purity)
        for node in statements:
            if stretch.add(node):
                run.append(node)
            else:
                self._take_pieces(run)
                run, stretch = [], Stretch(self.words, self.purity)
                self._look_into(node)
        if not self._take(run):  # its declarations end with it
            self._take_pieces(run)

    def _take_pieces(self, run: Sequence[Node]) -> None:
        """Try the parts between the declarations of a run, whose names may be used after it."""
        piece: list[Node] = []
        for node in run:
            if node.kind != "declaration" and Stretch(self.words, self.purity).add(node):
                piece.append(node)
            else:
                self._take(piece)
                piece = []
        self._take(piece)

    def _take(self, run: Sequence[Node]) -> bool:
        """Edit a run of statements if it is a stretch that is worth it."""
        s, tokens = Stretch(self.words, self.purity), self.words.tokens
        if not run or not all(map(s.add, run)):
            return False
        begin, end = tokens[run[0].first - 1].end, tokens[run[-1].last - 1].end
        outer = [name.name for name in s.outer if name in self.declared and name is not None]
        named = s.used | {name.name for name in s.variables}
        if (
            not s.products
            or s.calls == 1
            or not outer
            or len(outer) < len(s.outer)
            or named & {*outer, *(name.name for name in s.own)}
            or any(begin < each < end for each in self.conditions)
        ):
            return False
        shares = ", ".join(f"(void*)&{name}" for name in outer)
        text = f" {{ void* const cudalab_shares[] = {{{shares}}};"
        text += " ::cudalab::cudalab_lanes cudalab_meeting(cudalab_shares);"
        text += " while (cudalab_meeting.begins()) {"
        for i, name in enumerate(outer):
            text += f" ::nvcuda::wmma::Borrowed<decltype({name})> cudalab_{name}"
            text += f"(cudalab_meeting, {i}); auto& {name} = cudalab_{name}.tiles;"
        self.edits += [(begin, begin, text), (end, end, " } }")]
        for node in s.types:
            start, stop = tokens[node.first].start, tokens[node.at - 1].end
            self.edits += [(start, start, "::nvcuda::wmma::Whole<"), (stop, stop, ">")]
        for i, k, instead in s.roundings:
            self.edits.append((tokens[i].start, tokens[k].end, instead))
        return True
