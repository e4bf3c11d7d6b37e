"""Cooperative groups in other words: grids, blocks, tiles of a warp, and lanes that come together.

`block.sync()` becomes `__syncthreads()`, `tile.shfl_down(value, 1)` a warp operation, and
`grid.thread_rank()` an expression of threadIdx and blockIdx. What the older words lack is called
`__grid_sync` and `__cg_…`: group_regions.h. A coalesced group stays a variable of each thread, with
the mask of its lanes. A function with any other use keeps its fibers.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from cudalab.backends.cpu.regions.functions import Function, Parameter
from cudalab.backends.cpu.regions.syntax import nodes
from cudalab.backends.cpu.regions.words import NotCoveredError, Words, calls, close, whole_arguments
from cudalab.language.scopes import Node
from cudalab.language.tokens import Token, only_x, set_of, split, texts, tokenize

# Words that only a function with groups other than its block has.
GROUPS = frozenset(
    {"this_grid", "grid_group", "coalesced_threads", "coalesced_group", "thread_group"}
    | {"tiled_partition", "thread_block_tile", "binary_partition", "labeled_partition"}
    | {"this_multi_grid", "multi_grid_group", "cluster_group", "this_cluster"}
)
# Those that are also in the text for loops.
_KEPT = set_of("grid_group this_grid coalesced_group thread_block_tile tiled_partition")
_OBJECTS = frozenset({"thread_block", "grid_group", "coalesced_group"})  # which stay variables
_OF_PARAMETERS = _OBJECTS | {"thread_block_tile"}
_MAKERS = frozenset(
    {"this_thread_block", "this_grid", "tiled_partition", "coalesced_threads"}
    | {"labeled_partition", "binary_partition"}
)
_KINDS = {"this_thread_block": "thread_block", "this_grid": "grid_group"}
_SIZES = ("1", "2", "4", "8", "16", "32")
_THREADS = "( blockDim.x * blockDim.y * blockDim.z )"
_RANK = {
    True: "threadIdx.x",  # in blocks that are rows
    False: "CUDALAB_RANK",  # a macro of regions.h
}
# What operations without arguments mean; RANK is one of the above.
_OF_BLOCK = {
    "sync": "__syncthreads ( )",
    "thread_rank": "RANK",
    "size": _THREADS,
    "num_threads": _THREADS,
    "group_index": "blockIdx",
    "group_dim": "blockDim",
    "dim_threads": "blockDim",
    "thread_index": "threadIdx",
}
_BLOCK_RANK = (
    "( ( ( unsigned long long ) blockIdx.z * gridDim.y + blockIdx.y ) * gridDim.x + blockIdx.x )"
)
_BLOCKS = "( ( unsigned long long ) gridDim.x * gridDim.y * gridDim.z )"
_OF_GRID = {
    "sync": "__grid_sync ( )",
    "thread_rank": f"( {_BLOCK_RANK} * {_THREADS} + RANK )",
    "size": f"( {_BLOCKS} * {_THREADS} )",
    "num_threads": f"( {_BLOCKS} * {_THREADS} )",
    "block_rank": _BLOCK_RANK,
    "num_blocks": _BLOCKS,
    "group_dim": "gridDim",
    "dim_blocks": "gridDim",
    "block_index": "blockIdx",
    "is_valid": "::cudalab::in_cooperative_launch ( )",
}
_OPERATIONS = {"thread_block": _OF_BLOCK, "grid_group": _OF_GRID}
_SHUFFLES = {f"shfl{kind}": f"__shfl{kind}_sync" for kind in ("", "_up", "_down", "_xor")}
_SOURCES = {
    "shfl": "lane_at",
    "shfl_up": "lane_below",
    "shfl_down": "lane_above",
    "shfl_xor": "lane_across",
}
_VOTES = {"any": "__any_sync", "all": "__all_sync"}
_MASKS = {"ballot": "__ballot_sync", "match_any": "__match_any_sync"}  # whose results are masks
_FUNCTIONS = re.compile("reduce|inclusive_scan|exclusive_scan")
_PARTS = {"labeled_partition": "", "binary_partition": "bool"}
_NUMBERS = ("integer", "float", "bool")  # kinds of types
_ALL_LANES = "0xffffffffu"


class _Tile(NamedTuple):
    """Consecutive threads, all of one warp."""

    size: str
    parent: str  # the size of the tile that it is part of, if any


def is_row(functions: list[Function]) -> bool:
    """Whether functions ask for a thread's place only along the first dimension."""
    bodies = [each.body for each in functions]
    return all(only_x(body) and "thread_index" not in texts(body) for body in bodies)


def constants(declared: Iterable[Node], words: Words) -> dict[str, str]:
    """The named numbers, as in `constexpr int TILE = 16;`."""
    return {
        words[each.name].text: words[each.value + 1].text.rstrip("uUlL")
        for node in declared
        if node.words & {"const", "constexpr"}
        for each in node.declarators
        if each.last == each.value + 2
    }


def translate(
    function: Function, by_name: dict[str, list[Function]], outside: dict[str, str], *, row: bool
) -> None:
    """Write the groups of a function in the older words, as far as that is possible.

    `outside` are the constants of the file.
    """
    function.body = _without_aliases(function.body)
    names = {word.text for word in function.body}
    kinds = {word.text for each in function.parameters for word in each.words}
    if names.isdisjoint(GROUPS | {"this_thread_block"}) and kinds.isdisjoint(_OF_PARAMETERS):
        return
    read = [node for top in nodes(function.body) for node in top.walk()]
    own = Counter([*function.template_names, *(each.name for each in function.parameters)])
    own.update(
        name.name
        for node in read
        for each in (node, *node.parameters)
        if each.kind != "initializer"
        for name in each.names
    )
    known = {name: number for name, number in outside.items() if not own[name]}
    inside = constants(read, function.body)
    known |= {name: number for name, number in inside.items() if own[name] == 1}
    reader = _Reader(function, by_name, known, row=row)
    result = reader.translated(function.body)
    reader.check_rest(result)
    function.body = result


class _Reader:
    """Translates the words of a function."""

    def __init__(
        self,
        function: Function,
        by_name: dict[str, list[Function]],
        known: dict[str, str],
        *,
        row: bool,
    ) -> None:
        """Start with the groups that the function is passed; `known` are its constants."""
        self.constants = known
        self.words, self.by_name, self.rank = function.body, by_name, _RANK[row]
        self.objects: dict[str, str] = {}  # the kinds of groups that remain variables in the text
        self.tiles: dict[str, _Tile] = {}
        self.hiding = _hiding(self.words)
        self.passed: set[int] = set()  # the words that name a group where it is known to be one
        for parameter in function.parameters:
            for kind in _OBJECTS.intersection(texts(parameter.words)):
                parameter.words = [word for word in parameter.words if word.text != "&"]
                self.objects[parameter.name] = kind
            if size := _size_of_tile(parameter):
                self.tiles[parameter.name] = _Tile(size, "")

    def translated(self, words: Words) -> Words:
        """The words of the function, or of a part of it, in the older words."""
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

    # Groups that are made -------------------------------------------------------------------------

    def _declaration(self, words: Words, i: int, result: Words) -> int | None:
        """Read `this_grid()`, `tiled_partition<32>(group)` and the like in a declaration."""
        maker, place = words[i].text, words[i]
        if maker not in _MAKERS:
            return None
        if texts(words[i + 1 : i + 4]) == ["(", ")", "."] and i + 5 < len(words):
            return self._at_once(words, i, result)
        end = next(k for k in range(i, len(words)) if words[k].text == ";")
        equals = i - 3 if words[i - 1].text == "::" else i - 1
        if words[equals].text != "=":
            raise _refusal(place)
        name = words[equals - 1].text
        if maker == "tiled_partition":
            tile = self._tile(words[i:end])
            if name in self.objects or self.tiles.setdefault(name, tile) != tile:
                raise _refusal(place)
            while result and result[-1].text not in (";", "{", "}"):
                result.pop()
            ends = (k for k in range(i) if words[k].text in (";", "{", "}"))
            start = max(ends, default=-1)
            if name in whole_arguments(self.words, self.by_name.keys()):
                result += words[start + 1 : end + 1]
                self.passed |= {id(word) for word in words[start + 1 : end]}
            return end + 1
        kind = _KINDS.get(maker, "coalesced_group")
        made = self._made(words[i:end])
        if kind == "coalesced_group":
            _drop_namespace(result)
        # A group that is a variable; its name must be unique among groups.
        if name in self.tiles or self.objects.setdefault(name, kind) != kind:
            raise _refusal(place)
        result += [*made, words[end]]
        return end + 1

    def _made(self, words: Words) -> Words:
        """The translated call that makes a group which is a variable."""
        place, maker = words[0], words[0].text
        arguments = split(words[2:-1])
        if close(words, 1) != len(words) - 1 or len(arguments) != 2 * (maker in _PARTS):
            raise _refusal(place)
        if maker in _PARTS:
            label = self._call(place, _PARTS[maker], self.translated(arguments[1]))
            return self._call(place, "__cg_split", self._mask(arguments[0]), label)
        return self._call(place, "__cg_here") if maker == "coalesced_threads" else words

    def _at_once(self, words: Words, i: int, result: Words) -> int:
        """Translate `this_grid().name()`, without a variable."""
        operations = _OPERATIONS.get(_KINDS.get(words[i].text, ""), {})
        plain = operations.get(words[i + 4].text, "")
        if not plain or texts(words[i + 5 : i + 7]) != ["(", ")"]:
            raise _refusal(words[i])
        _drop_namespace(result)
        result += _as_words(words[i], plain.replace("RANK", self.rank))
        return i + 7

    def _tile(self, made: Words) -> _Tile:
        """The tile that `tiled_partition<32>(group)` makes."""
        words = texts(made)
        size, group = (words[2], words[5]) if len(words) == 7 else ("", "")
        size = self.constants.get(size, size)
        is_block = self.objects.get(group) == "thread_block"
        if size not in _SIZES or not (is_block or group in self.tiles):
            raise _refusal(made[0])
        return _Tile(size, self.tiles[group].size if group in self.tiles else "")

    def _mask(self, group: Words) -> str:
        """An expression for the lanes of a tile or of a coalesced group."""
        name = group[0].text
        if len(group) == 1 and self.objects.get(name) == "coalesced_group":
            return f"{name}.cudalab_mask ( )"
        if len(group) != 1 or name not in self.tiles:
            raise _refusal(group[0])
        size = self.tiles[name].size
        return _ALL_LANES if size == "32" else f"::cudalab::lanes_of_tile ( {size} , {self.rank} )"

    # Groups that are used -------------------------------------------------------------------------

    def _use(self, words: Words, i: int, result: Words) -> int | None:
        """Translate `group.name(...)`, or a function of a group."""
        name = words[i].text
        known = self.objects.keys() | self.tiles.keys()
        if id(words[i]) in self.hiding or (i and words[i - 1].text in (".", "->")):
            return None
        if texts(words[i + 1 : i + 2]) == ["("] and (name == "sync" or _FUNCTIONS.fullmatch(name)):
            end = close(words, i + 1)
            arguments = split(words[i + 2 : end])
            group = texts(arguments[0]) if arguments else []
            if len(group) == 1 and group[0] in known and name not in self.by_name:
                _drop_namespace(result)
                result += self._function(words[i], name, arguments)
                return end + 1
        if name not in known or (i and words[i - 1].text == "::"):
            return None
        if texts(words[i + 1 : i + 2]) != ["."] or texts(words[i + 3 : i + 4]) != ["("]:
            return None
        operation, end = words[i + 2].text, close(words, i + 3)
        arguments = split(words[i + 4 : end])
        if plain := self._plain(name, operation):
            result += _as_words(words[i], plain)
        else:
            result += self._exchange(words[i], operation, arguments)
        return end + 1

    def _function(self, place: Token, name: str, arguments: list[Words]) -> Words:
        """`sync(group)`, or a reduction or a scan by a group."""
        group = arguments[0]
        if name == "sync":
            return _as_words(place, self._plain(group[0].text, "sync"))
        if "[" in texts(arguments[-1]) and "{" in texts(arguments[-1]):  # a lambda has no type
            raise _refusal(place)
        others = [self.translated(each) for each in arguments[1:]]
        return self._call(place, f"__cg_{name}", self._mask(group), *others)

    def _plain(self, group: str, name: str) -> str:
        """The translation of an operation without arguments; empty if it has none."""
        kind = self.objects.get(group, "")
        if kind in _OPERATIONS:
            return _OPERATIONS[kind].get(name, "").replace("RANK", self.rank)
        if kind == "coalesced_group":
            mask = f"{group}.cudalab_mask ( )"
            if name == "thread_rank":
                return f"::cudalab::rank_in ( {mask} , {self.rank} )"
            same = ("size", "num_threads", "meta_group_rank", "meta_group_size")
            return (
                f"__syncwarp ( {mask} )"
                if name == "sync"
                else f"{group}.{name} ( )" * (name in same)
            )
        size, parent = self.tiles[group]
        whole = parent or _THREADS
        return {
            "sync": "__syncwarp ( )",
            "size": f"{size}u",
            "num_threads": f"{size}u",
            "thread_rank": f"( {self.rank} % {size} )",
            "meta_group_rank": f"( {self.rank} {'%' if parent else ''} {parent} / {size} )",
            "meta_group_size": f"( ( {whole} + {size} - 1 ) / {size} )",
        }.get(name, "")

    def _exchange(self, place: Token, name: str, arguments: list[Words]) -> Words:
        """A shuffle or a vote of some lanes of a warp."""
        group = place.text
        mask = self._mask([place])
        inside = [self.translated(each) for each in arguments]
        if group in self.tiles and name in _SHUFFLES:
            size = _as_words(place, self.tiles[group].size)
            return self._call(place, _SHUFFLES[name], _ALL_LANES, *inside, size)
        if name in _SHUFFLES and len(inside) == 2:
            source = self._call(
                place, f"::cudalab::{_SOURCES[name]}", mask, _as_words(place, self.rank), inside[1]
            )
            return self._call(place, "__shfl_sync", mask, inside[0], source)
        if name in _VOTES:
            return self._call(place, _VOTES[name], mask, *inside)
        if name in _MASKS:
            lanes = self._call(place, _MASKS[name], mask, *inside)
            whole = mask == _ALL_LANES
            return lanes if whole else self._call(place, "::cudalab::ranks_of", mask, lanes)
        raise _refusal(place)

    def _call(self, place: Token, name: str, *arguments: str | Words) -> Words:
        """A generated call."""
        made = _as_words(place, f"{name} (")
        for number, each in enumerate(arguments):
            comma = _as_words(place, "," * (number > 0))
            made += [*comma, *(_as_words(place, each) if isinstance(each, str) else each)]
        return [*made, *_as_words(place, ")")]

    def check_rest(self, result: Words) -> None:
        """Refuse groups used in any way other than being passed to functions that know them."""
        for call in calls(result, self.by_name.keys()):
            functions = self.by_name[call.word.text]
            for k, argument in enumerate(call.arguments):
                if all(self._is_known(argument, each.parameters[k:]) for each in functions):
                    self.passed.add(id(argument[0]))
        groups = self.objects.keys() | self.tiles.keys()
        for i, word in enumerate(result):
            after = texts(result[i + 1 : i + 2])
            asked = self.objects.get(word.text) == "coalesced_group" and after == ["."]
            is_group = word.text in groups and id(word) not in self.passed | self.hiding
            if word.text in GROUPS - _KEPT or (is_group and after != ["="] and not asked):
                raise _refusal(word)

    def _is_known(self, argument: Words, parameters: list[Parameter]) -> bool:
        """Whether an argument is a group of the kind that the first parameter declares."""
        name = argument[0].text if len(argument) == 1 else ""
        if not parameters:
            return False
        if name in self.tiles:
            return self.tiles[name] == _Tile(_size_of_tile(parameters[0]), "")
        return self.objects.get(name, " ") in texts(parameters[0].words)


def _size_of_tile(parameter: Parameter) -> str:
    """The size of a parameter that is a tile within a warp; empty for any other."""
    words = texts(parameter.words)
    at = words.index("thread_block_tile") + 2 if "thread_block_tile" in words else len(words)
    size = "".join(words[at : at + 1])
    return size if size in _SIZES and words[at - 1] == "<" else ""


def _hiding(words: Words) -> set[int]:
    """The identities of words that name a number, such as a loop's `int block`."""
    found: set[int] = set()
    for node in (node for top in nodes(words) for node in top.walk()):
        for each in (node, *node.parameters):
            if each.type.kind in _NUMBERS:
                found |= {id(words[declarator.name]) for declarator in each.declarators}
        known = (
            node.scope.find(node.text, node.first) if node.kind == "name" and node.scope else None
        )
        if known is not None and known.type.kind in _NUMBERS:
            found.add(id(words[node.first]))
    return found


def _refusal(word: Token) -> NotCoveredError:
    return NotCoveredError(f"{word.place}: cooperative groups")


def _without_aliases(words: Words) -> Words:
    """The words with aliases from `namespace cg = …;` replaced by the namespaces' own names."""
    starts = (i for i in range(len(words)) if texts(words[i : i + 3 : 2]) == ["namespace", "="])
    if (start := next(starts, None)) is None:
        return words
    end = next(i for i in range(start, len(words)) if words[i].text == ";")
    alias, named = words[start + 1].text, words[start + 3 : end]
    rest = [part for word in words[end + 1 :] for part in (named if word.text == alias else [word])]
    return [*words[:start], *_without_aliases(rest)]


def _drop_namespace(result: Words) -> None:
    """Remove a namespace before a name."""
    if result and result[-1].text == "::":
        del result[-2:]


def _as_words(place: Token, text: str) -> Words:
    """Generated words at the place of a word of the user."""
    return [place._replace(text=token.text, kind=token.kind) for token in tokenize(text)]
