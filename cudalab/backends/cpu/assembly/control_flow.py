"""The control flow of a compiled kernel: its basic blocks, branches, joins and waiting loops."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from cudalab.backends.cpu import layout

BLOCK_HOOK = "__sanitizer_cov_trace_pc"
ENTRY_HOOK, LEAVE_HOOK = "__tsan_func_entry", "__tsan_func_exit"
GUARD = "_ZN7cudalab14without_launch"
BOUNDS_HOOK = "__ubsan_handle_out_of_bounds"
# Calls that look at a word again, and calls that no loop makes which only waits for one.
LOOKS = re.compile(r"__tsan_(?:unaligned_)?volatile_read|\w*__ldcv")
_WORKS = re.compile(r"__tsan_(?:unaligned_)?volatile_write|\w*__syncthreads_|cudalab_grid_barrier")

# The label is empty where the jump goes to one of several places.
_JUMP_IF = re.compile(
    r"\s+(?:(?:j(?!mp)[a-z]+|b\.[a-z]+|cbn?z|tbn?z)\s+(?:[^,]+,\s*)*(\.?\w+)|jmpq?\s+\*|br\s+x)"
)
_JUMP = re.compile(r"\s+(?:jmpq?|b)\s+(\.?\w+)")
_RETURN = re.compile(r"\s+(?:rep\s+)?(?:retq?|ud2|brk)\b")
_FLOAT = re.compile(
    r"\s+(?:v?(?P<x86>add|sub|mul|div|sqrt|fn?m(?:add|sub)[123]+)s(?P<x86_width>[sd])\s"
    r"|f(?P<arm>add|sub|mul|div|sqrt|madd|msub|nmadd|nmsub)\s+(?P<arm_width>[sd])\d)"
)
_FUSED = re.compile(r"f?n?m(?!ul)")  # a multiplication and an addition
# Operations on float and double for which some compilers have an instruction and others a call.
_MATH = {"sqrtf": (1, 0), "sqrt": (0, 1), "fmaf": (2, 0), "fma": (0, 2)}

# Calls in which no lane stops; functions of the program may be such calls, too.
_GOES_ON = re.compile(
    r"__tsan_(?:(?:unaligned_)?read\d+$|read_(?:range|object)|func_)|__sanitizer_cov_|__ubsan_|"
    r"__tls_get_addr|_ZN7cudalab14without_launch"
)
_ACCESS = re.compile(r"__tsan_")
_BARRIER = re.compile(r"\w*__syncthreads_|cudalab_grid_barrier")


@dataclass
class Site:
    """A call, identified by the label after it."""

    number: int  # from 1
    file: int
    line: int
    function: int
    _: KW_ONLY
    flags: int = 0
    branch: tuple[int, int] = (0, 0)  # file and line of the last conditional jump of the block
    floats: int = 0
    doubles: int = 0
    head: int = 0  # site of the block whose condition this block goes on with, or of its own block
    looks: str = ""  # how a call that looks at a word computes its address


@dataclass
class Block:
    """A basic block: from one call of its hook to the next."""

    site: Site
    position: int  # in the order of the listing
    _: KW_ONLY
    calls: int = 0
    stops: list[str] = field(default_factory=list)  # calls in which a lane may stop
    sites: list[Site] = field(default_factory=list)  # of its calls
    works: bool = False  # it does more than waiting for a word to change
    only_checks: bool = False  # it reports an index that is out of bounds, and nothing else
    jumps_if: set[str] = field(default_factory=set)  # where its conditional jumps go
    jumps: str | None = None  # where its end goes
    rejoined: set[str] = field(default_factory=set)  # where jumps have gone within the block
    ends: bool = False  # no way leads from its end to the next block
    returns: bool = False  # it leaves the function
    is_guard: bool = False  # it asks whether its kernel has been launched

    def take(self, row: str, called: str | None, place: tuple[int, int]) -> None:
        """Record the facts about an instruction of the block; `called` is what it calls."""
        if match := _FLOAT.match(row):
            count = 2 if _FUSED.match(match["x86"] or match["arm"]) else 1
            single = "s" in (match["x86_width"], match["arm_width"])
            self._add_operations(count if single else 0, 0 if single else count)
        elif called and (counts := _MATH.get(called.partition("@")[0])):
            self._add_operations(*counts)
        elif self.ends:
            return  # unreachable code
        elif jump := _JUMP_IF.match(row):
            self.site.branch = place
            self.jumps_if.add(jump[1] or "")
        elif jump := _JUMP.match(row):
            self.jumps, self.ends = jump[1], True
        elif _RETURN.match(row):
            self.ends = self.returns = True
        elif called and called.startswith(BOUNDS_HOOK):
            self.only_checks = not self.calls
        elif called and not called.startswith(LEAVE_HOOK):
            self.calls, self.only_checks = self.calls + 1, False
            self.is_guard |= called.startswith(GUARD)
            self.works |= _WORKS.match(called) is not None

    @property
    def is_straight(self) -> bool:
        """Whether all that has been read of the block runs whenever its first instruction does."""
        return not (self.jumps_if or self.jumps or self.rejoined or self.ends)

    def rejoin(self, labels: set[str]) -> None:
        """Forget jumps inside the block, as for checks and for converting unsigned to float."""
        self.rejoined |= labels & {self.jumps, *self.jumps_if}
        if self.jumps in labels:
            self.jumps, self.ends = None, False
        self.jumps_if -= labels
        self.only_checks &= not labels

    def _add_operations(self, floats: int, doubles: int) -> None:
        self.site.floats += floats
        self.site.doubles += doubles


class Flow:
    """The ways from block to block.

    `starts` has the position of the block behind each label, `functions` the number of each name.
    """

    def __init__(
        self, blocks: list[Block], starts: dict[str, int], functions: dict[str, int]
    ) -> None:
        self.blocks, self.starts, self.functions = blocks, starts, functions

    def classify(self) -> None:
        """Set the flags of all sites, and the heads of conditions."""
        leaving: set[int] = set()
        stands_for: dict[int, int] = {}  # blocks that only choose a value -> the one that branches
        for block in reversed(self.blocks):  # from the ends backwards
            chosen = self._choices(block) if block.jumps_if else None
            if chosen is not None:
                stands_for.update(dict.fromkeys(chosen, block.position))
            elif block.jumps_if and len(self._ways(block)) != 1 and not block.is_guard:
                block.site.flags |= layout.IS_BRANCH
            if not block.calls and (block.returns or self._ways(block) <= leaving):
                leaving.add(block.position)
                block.site.flags |= layout.IS_END
        for block in self.blocks:
            if block.site.flags & layout.IS_BRANCH and not block.site.head:
                for part in self._parts(block):
                    part.site.head = block.site.number
        self._mark_joins(stands_for)
        if any(site.looks for block in self.blocks for site in block.sites):
            self._mark_waits()

    def _ways(self, block: Block) -> set[int]:
        """The positions of the blocks that follow; -1: unknown."""
        ways = {self.starts.get(label, -1) for label in block.jumps_if}
        if block.jumps:
            ways.add(self.starts.get(block.jumps, -1))
        elif not block.ends:
            ways.add(block.position + 1)
        known = {way if way < len(self.blocks) else -1 for way in ways}
        return {way for way in known if way < 0 or not self.blocks[way].only_checks} or {-1}

    def _choices(self, block: Block) -> set[int] | None:
        """The blocks between a jump and the place where its ways meet again, if they do no work.

        Such a jump only chooses between values, with no memory access and no call on either path.
        It is no branch in a GPU's sense, which computes both values and selects one. Some compilers
        do so too, others jump.
        """
        ways, between = self._ways(block), set[int]()
        while len(ways) > 1:
            if min(ways) <= block.position:
                return None  # a loop, or unknown
            block = self.blocks[min(ways)]  # compilers lay out blocks before those they lead to
            if block.calls:
                return None
            between.add(block.position)
            ways = ways - {block.position} | self._ways(block)
        return between if between and -1 not in ways else None

    def _parts(self, head: Block) -> list[Block]:
        """The blocks that evaluate the rest of a condition, such as `b` of `a && b`.

        They do nothing else, belong to the same line, and have two ways out between them.
        """
        tested: list[Block] = []
        ways = self._ways(head)
        whole = 0  # how many of those make up the condition
        while True:
            if len(ways) == 2:  # true and false
                whole = len(tested)
            ahead = [w for w in ways if w > head.position and self.blocks[w] not in tested]
            parts = []
            for way in ahead:
                site = self.blocks[way].site
                place = site.branch if self.blocks[way].jumps_if else (site.file, site.line)
                if self.blocks[way].calls == 0 and place == head.site.branch:
                    parts.append(way)
            if not parts:
                return tested[:whole]
            block = self.blocks[min(parts)]
            tested.append(block)
            ways = ways - {block.position} | self._ways(block)

    def _mark_joins(self, stands_for: dict[int, int]) -> None:
        """Mark the blocks where lanes that a branch has separated may meet again."""
        before: dict[int, set[int]] = defaultdict(set)
        unclear: set[int] = set()  # functions with jumps to unknown places
        for block in self.blocks:
            if block.only_checks:
                continue
            origin = block.position
            while origin in stands_for:
                origin = stands_for[origin]
            for way in self._ways(block):
                before[way].add(origin)
            if "" in block.jumps_if:
                unclear.add(block.site.function)
        candidates = (
            block.position
            for block in self.blocks
            if len(before[block.position]) > 1 or block.site.function in unclear
        )
        graph = Graph(
            ways=[self._ways(block) for block in self.blocks],
            stops=[block.stops for block in self.blocks],
            function_of=[block.site.function for block in self.blocks],
            functions=self.functions,
            unclear=unclear,
        )
        for position in graph.joins(candidates):
            self.blocks[position].site.flags |= layout.IS_JOIN

    def _mark_waits(self) -> None:
        """Mark calls in loops that only wait, and functions that might be called by such loops."""
        working = {block.site.function for block in self.blocks if block.works}
        idle = {block.position for block in self.blocks if not block.works}
        # Blocks from which a way without work leads back to them.
        cyclic = set().union(*cycles(idle, [self._ways(block) for block in self.blocks]))
        looks: set[tuple[int, str]] = set()  # of a function, in such a loop
        for block in self.blocks:
            for site in block.sites:
                if site.function not in working:
                    site.flags |= layout.IS_READER
                if block.position in cyclic:
                    site.flags |= layout.IS_IN_WAIT
                    looks.add((site.function, site.looks))
        for block in self.blocks:  # value = *p; while (value == 0) value = *p;
            for site in block.sites:
                if site.looks and (site.function, site.looks) in looks:
                    site.flags |= layout.IS_IN_WAIT


# Joins -------------------------------------------------------------------------------------------
# Without stops where the lanes of a warp wait for each other after a branch, a lane would run ahead
# to its next store, barrier or warp operation. Loops that do nothing of the kind need none: their
# lanes meet where the loop ends.


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
    """The strongly connected components that have a cycle: each block leads to all of its set."""
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
    """The blocks in the order in which a depth-first search leaves them."""
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
