"""The basic blocks where the lanes of a warp stop, to go on together after a branch.

Without such stops a lane would run ahead to its next store, barrier or warp operation. Loops that
do nothing of the kind need none: their lanes meet where the loop ends.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

# Calls in which no lane stops; functions of the program may be such calls, too.
_GOES_ON = re.compile(
    r"__tsan_(?:(?:unaligned_)?read\d+$|read_(?:range|object)|func_)|__sanitizer_cov_|__ubsan_|"
    r"__tls_get_addr|_ZN7cudalab14without_launch"
)
_ACCESS = re.compile(r"__tsan_")
_BARRIER = re.compile(r"\w*__syncthreads_|cudalab_grid_barrier")


def may_stop(called: str, *, in_header: bool) -> bool:
    """Whether a lane may stop in a call; what headers access themselves is not observed."""
    return not (_GOES_ON.match(called) or (in_header and _ACCESS.match(called)))


@dataclass(frozen=True, kw_only=True)
class Graph:
    """The basic blocks of a program, by number."""

    ways: Sequence[Collection[int]]  # out of each block; -1: to an unknown one
    stops: Sequence[Sequence[str]]  # the calls of each block in which a lane may stop
    function_of: Sequence[int]  # the number of each block's function
    functions: Mapping[str, int]  # name -> number
    unclear: Collection[int]  # the functions with jumps to unknown places

    def joins(self, candidates: Iterable[int]) -> set[int]:
        """The blocks where lanes have to stop; `candidates` are those with several ways in."""
        passed = self._without_stops()
        stops = [[call for call in calls if call not in passed] for calls in self.stops]
        quiet_functions = {self.functions[name] for name in passed}
        before = _reversed(range(len(self.ways)), self.ways)

        chosen = set(candidates)
        quiet = {at for at, calls in enumerate(stops) if not calls and -1 not in self.ways[at]}
        for loop in self._quiet_loops(quiet, before):
            chosen -= loop
            chosen |= {way for at in loop for way in self.ways[at]} - loop

        with_barrier = {at for at, calls in enumerate(stops) if any(map(_BARRIER.match, calls))}

        def is_needed(at: int) -> bool:
            """Whether lanes neither go to a barrier nor come from one, without a stop between."""
            goes_to_barrier = stops[at] and _BARRIER.match(stops[at][0])
            comes_from_one = with_barrier.issuperset(before[at])
            is_clear = self.function_of[at] not in self.unclear
            return not goes_to_barrier and not (comes_from_one and is_clear)

        return {
            at for at in chosen if self.function_of[at] not in quiet_functions and is_needed(at)
        }

    def _without_stops(self) -> set[str]:
        """The functions in which no lane stops."""
        calls: dict[int, set[str]] = defaultdict(set)
        for function, stops in zip(self.function_of, self.stops, strict=True):
            calls[function].update(stops)
        result = {name for name, number in self.functions.items() if number in calls}
        while stopping := {name for name in result if calls[self.functions[name]] - result}:
            result -= stopping
        return result

    def _quiet_loops(
        self, quiet: set[int], before: Mapping[int, Collection[int]]
    ) -> Iterator[set[int]]:
        """The outermost loops all of whose blocks are quiet."""
        todo: list[Collection[int]] = [range(len(self.ways))]
        while todo:
            for loop in cycles(todo.pop(), self.ways):
                if loop <= quiet:
                    yield loop
                    continue
                heads = {at for at in loop if not loop.issuperset(before[at])}
                todo.append(loop - (heads or {min(loop)}))  # the loops within


def cycles(blocks: Collection[int], ways: Sequence[Collection[int]]) -> list[set[int]]:
    """The largest sets of blocks each of which leads to all others of its set."""
    before, result, seen = _reversed(blocks, ways), [], set[int]()
    for root in reversed(_by_end(blocks, ways)):
        component, todo = set[int](), [root]
        while todo:
            if (at := todo.pop()) not in seen:
                seen.add(at)
                component.add(at)
                todo += before[at]
        if len(component) > 1 or root in ways[root]:
            result.append(component)
    return result


def _reversed(
    blocks: Collection[int], ways: Sequence[Collection[int]]
) -> defaultdict[int, list[int]]:
    """The ways into each block, from those of the others that are among `blocks`."""
    result = defaultdict(list)
    for at in blocks:
        for way in ways[at]:
            if way in blocks:
                result[way].append(at)
    return result


def _by_end(blocks: Collection[int], ways: Sequence[Collection[int]]) -> list[int]:
    """The blocks in the order in which a search of the depth leaves them."""
    result, seen = [], set[int]()
    for root in blocks:
        todo = [] if root in seen else [(root, iter(ways[root]))]
        seen.add(root)
        while todo:
            at, rest = todo[-1]
            way = next((way for way in rest if way in blocks and way not in seen), None)
            if way is None:
                result.append(at)
                todo.pop()
            else:
                seen.add(way)
                todo.append((way, iter(ways[way])))
    return result
