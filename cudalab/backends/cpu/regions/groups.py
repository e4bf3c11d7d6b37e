"""Cooperative groups in the older words: the block's and those of a warp's lanes.

`group.sync()` becomes `__syncthreads()`, `tile.shfl_down(value, 1)` a warp operation, and
`group.thread_rank()` an expression of threadIdx. A function with any other use keeps its fibers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.backends.cpu.regions.words import NotCoveredError, Words, calls, close, split, texts
from cudalab.language.tokens import tokenize

if TYPE_CHECKING:
    from cudalab.backends.cpu.regions.syntax import Function
    from cudalab.backends.cpu.regions.words import Word

_OTHERS = frozenset(
    {"this_grid", "grid_group", "coalesced_threads", "coalesced_group", "thread_group"}
    | {"tiled_partition", "thread_block_tile", "binary_partition", "labeled_partition"}
    | {"this_multi_grid", "multi_grid_group", "cluster_group", "this_cluster"}
)
_SIZES = ("1", "2", "4", "8", "16", "32")
_THREADS = "( blockDim.x * blockDim.y * blockDim.z )"
_RANK = {
    True: "threadIdx.x",  # in blocks that are rows
    False: "( threadIdx.x + blockDim.x * ( threadIdx.y + blockDim.y * threadIdx.z ) )",
}
_OF_BLOCK = {
    "sync": "__syncthreads ( )",
    "size": _THREADS,
    "num_threads": _THREADS,
    "group_index": "blockIdx",
    "group_dim": "blockDim",
    "dim_threads": "blockDim",
    "thread_index": "threadIdx",
}
_WARP_WIDE = {f"shfl{kind}": f"__shfl{kind}_sync" for kind in ("", "_up", "_down", "_xor")}
_VOTES = {"any": "__any_sync", "all": "__all_sync", "ballot": "__ballot_sync"}


def is_row(functions: list[Function]) -> bool:
    """Whether no function asks for a thread's place but along the first dimension."""
    return not any(
        word.text == "thread_index" or texts(function.body[i : i + 3 : 2]) in _OTHER_PLACES
        for function in functions
        for i, word in enumerate(function.body)
    )


_OTHER_PLACES = (["threadIdx", "y"], ["threadIdx", "z"])


def translate(function: Function, by_name: dict[str, list[Function]], *, row: bool) -> None:
    """Write the groups of a function in the older words, as far as that is possible."""
    blocks = set()
    for parameter in function.parameters:
        if "thread_block" in texts(parameter.words):
            parameter.words = [word for word in parameter.words if word.text != "&"]
            blocks.add(parameter.name)
    names = {word.text for word in function.body}
    if not blocks and not names & (_OTHERS | {"this_thread_block"}):
        return
    reader = _Reader(function, blocks, row=row)
    reader.read()
    reader.check_calls(by_name)
    function.body = reader.result


class _Reader:
    """Goes through the words of a function."""

    def __init__(self, function: Function, blocks: set[str], *, row: bool) -> None:
        self.words, self.blocks, self.rank = function.body, blocks, _RANK[row]
        self.tiles: dict[str, str] = {}  # their sizes
        self.result: Words = []

    def read(self) -> None:
        """Translate all words."""
        self.result = self._translated(self.words)

    def _translated(self, words: Words) -> Words:
        result: Words = []
        i = 0
        while i < len(words):
            end = self._declaration(words, i, result)
            if end is None:
                end = self._use(words, i, result)
            if end is None:
                result.append(words[i])
                end = i + 1
            i = end
        return result

    def _declaration(self, words: Words, i: int, result: Words) -> int | None:
        """Read `this_thread_block()` or `tiled_partition<32>(group)` in a declaration."""
        if words[i].text not in ("this_thread_block", "tiled_partition"):
            return None
        start = i
        while start and words[start - 1].text not in (";", "{", "}"):
            start -= 1
        end = i
        while words[end].text != ";":
            end += 1
        name, equals = texts(words[start:i])[-4:-2] if words[i - 1].text == "::" else ("", "")
        if words[i - 1].text == "=":
            name, equals = words[i - 2].text, "="
        if equals != "=":
            self._refuse(words[i])
        if words[i].text == "this_thread_block":
            self.blocks.add(name)
            result += words[i : end + 1]
            return end + 1
        size = texts(words[i + 1 : end])
        if len(size) != 6 or size[1] not in _SIZES or size[4] not in self.blocks:
            self._refuse(words[i])
        self.tiles[name] = size[1]
        while result and result[-1].text not in (";", "{", "}"):
            result.pop()
        return end + 1

    def _use(self, words: Words, i: int, result: Words) -> int | None:
        """Translate `group.name(...)` or `sync(group)`."""
        name = words[i].text
        known = self.blocks | self.tiles.keys()
        if name == "sync" and texts(words[i + 1 : i + 4 : 2]) == ["(", ")"]:
            group = words[i + 2].text
            if group in known:
                if result and result[-1].text == "::":
                    del result[-2:]
                result += _as_words(words[i], self._operation(group, "sync") or "")
                return i + 4
        if name not in known or (i and words[i - 1].text in (".", "->", "::")):
            return None
        if texts(words[i + 1 : i + 2]) != ["."] or texts(words[i + 3 : i + 4]) != ["("]:
            if name in self.tiles:
                self._refuse(words[i])
            return None
        operation, end = words[i + 2].text, close(words, i + 3)
        arguments = words[i + 4 : end]
        if plain := self._operation(name, operation):
            result += _as_words(words[i], plain)
        else:
            result += self._exchange(words[i], name, operation, arguments)
        return end + 1

    def _operation(self, group: str, name: str) -> str | None:
        """An operation without arguments, in other words."""
        if group in self.blocks:
            return self.rank if name == "thread_rank" else _OF_BLOCK.get(name)
        size = self.tiles[group]
        return {
            "sync": "__syncwarp ( )",
            "size": size,
            "num_threads": size,
            "thread_rank": f"( {self.rank} % {size} )",
            "meta_group_rank": f"( {self.rank} / {size} )",
            "meta_group_size": f"( ( {_THREADS} + {size} - 1 ) / {size} )",
        }.get(name)

    def _exchange(self, place: Word, group: str, name: str, arguments: Words) -> Words:
        """A shuffle or a vote of a tile."""
        size = self.tiles.get(group, "")
        inside = self._translated(arguments)
        if size and name in _WARP_WIDE:
            head, tail = f"{_WARP_WIDE[name]} ( 0xffffffffu ,", f", {size} )"
        elif size == "32" and name in _VOTES:
            head, tail = f"{_VOTES[name]} ( 0xffffffffu ,", ")"
        else:
            self._refuse(place)
        return [*_as_words(place, head), *inside, *_as_words(place, tail)]

    def check_calls(self, by_name: dict[str, list[Function]]) -> None:
        """Refuse groups that are passed on as anything but a block."""
        for word in self.result:
            if word.text in _OTHERS:
                self._refuse(word)
        passed = set()
        for call in calls(self.result, by_name.keys()):
            arguments = split(self.result[call.opening + 1 : call.closing])
            for k, argument in enumerate(arguments):
                if len(argument) != 1 or argument[0].text not in self.blocks:
                    continue
                functions = by_name[self.result[call.name].text]
                if all(
                    k < len(each.parameters) and "thread_block" in texts(each.parameters[k].words)
                    for each in functions
                ):
                    passed.add(id(argument[0]))
        for i, word in enumerate(self.result):
            declared = texts(self.result[i + 1 : i + 2]) == ["="]
            if word.text in self.blocks and id(word) not in passed and not declared:
                self._refuse(word)

    def _refuse(self, word: Word) -> None:
        raise NotCoveredError(f"{word.place}: cooperative groups")


def _as_words(place: Word, text: str) -> Words:
    """Words of ours at the place of another one."""
    return [place._replace(text=token.text, kind=token.kind) for token in tokenize(text)]
