"""Turns the C structures of check mode's runtime into the classes of trace.py."""

import ctypes
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cudalab.backends.cpu import layout
from cudalab.backends.cpu.layout import Site
from cudalab.backends.trace import (
    Access,
    Branch,
    BranchStep,
    Finding,
    Kind,
    LaunchTrace,
    Looks,
    Place,
    Space,
    Step,
    Thread,
)
from cudalab.system import elf

_NO_ROWS: np.ndarray[Any, Any] = np.zeros((0, 4), np.uint64)
# cudalab::Looks of check_sites.h
LOOKED_AT, NOT_LOOKED_AT, ENTERED, OWN, LOCAL_MEMORY, UNALIGNED, ELSEWHERE = 1, 2, 4, 8, 16, 32, 64
NOT_KNOWN_LOCAL = 128
FIRST_SHARED_REGION = 1 << 20
NO_REGION = NO_THREAD = 2**32 - 1
LOCAL_REGION = NO_REGION - 1  # the detail of a finding is a local variable's name

_KINDS: tuple[Kind | None, ...] = (None, None, "load", "store", "atomic")
SPACES: tuple[Space, ...] = ("global", "shared", "constant", "local")
FINDINGS = (
    "race",
    "lost_update",
    "same_word",
    "out_of_bounds",
    "misaligned",
    "uninitialised",
    "barrier_divergence",
    "deadlock",
    "wrong_mask",
    "infinite_loop",
    "crash",
    "barrier_divergence",  # by an early return, which CUDA allows
    "not_arrived",
    "same_value",
    "out_of_bounds",  # of an array within an object
    "out_of_bounds",  # in memory that no argument leads to
    "same_word",  # with values that differ
    "after_free",
    "zero_division",
    "uninitialised",  # by a thread that stores nothing behind it
)
_SAME_WORD, _EARLY_RETURN, _SAME_VALUE, _INNER_ARRAY, _OUT_OF_REACH = 2, 11, 13, 14, 15
_UNUSED_VALUE = 19
_NOTES = (_SAME_WORD, _EARLY_RETURN, _SAME_VALUE, _INNER_ARRAY, _UNUSED_VALUE)
_MISSING = (None, "__syncthreads", "__syncwarp", "__threadfence")


class Tables:
    """The tables of an instrumented library: its sites, files and shared arrays."""

    def __init__(
        self, path: Path, library: ctypes.CDLL, runtime: ctypes.CDLL, dynamic: str | None = None
    ) -> None:
        """Register them with the runtime; `dynamic` is the name of the dynamic shared memory."""
        arrays = elf.shared_arrays(path)
        self.shared_names = [*(array.name for array in arrays), dynamic or "dynamic shared memory"]
        self._arrays = (layout.SharedArrayRow * len(arrays))()
        for row, array in zip(self._arrays, arrays, strict=True):
            row.offset, row.bytes = array.offset, array.num_bytes
            row.is_guard, row.is_own = array.is_guard, array.is_own
        count = ctypes.c_size_t.in_dll(library, "cudalab_check_num_sites").value
        self.sites = (Site * count).in_dll(library, "cudalab_check_sites")
        num_files = ctypes.c_size_t.in_dll(library, "cudalab_check_num_files").value
        files = (ctypes.c_char_p * num_files).in_dll(library, "cudalab_check_files")
        self.files = [(name or b"").decode(errors="replace") for name in files]
        self.handle = runtime.cudalab_check_module(
            ctypes.byref(self.sites), count, self._arrays, len(arrays)
        )

    def place(self, number: int) -> Place:
        """The source line for the number of a place."""
        return Place(self.files[number >> 20], number & 0xFFFFF)

    def count_local(self, accesses: Iterable[tuple[str, int, str]]) -> None:
        """Let these accesses to local memory be counted: file, line, and "load" or "store"."""
        counted = set(accesses)
        for site in self.sites:
            at = (self.files[site.file], site.line)
            before = site.flags & (layout.LOADS_LOCAL | layout.STORES_LOCAL)
            if counted or before:  # a library is loaded once
                site.flags &= ~before
                site.flags |= layout.LOADS_LOCAL if (*at, "load") in counted else 0
                site.flags |= layout.STORES_LOCAL if (*at, "store") in counted else 0

    def local_lines(self, checker: ctypes.CDLL) -> set[Place]:
        """The lines that have used memory of their own thread."""
        _, lines = looks(checker, self, b"", whole=False)
        return lines.local if lines else set()


def looks(
    checker: ctypes.CDLL, tables: Tables, before: bytes, *, whole: bool
) -> tuple[bytes, Looks | None]:
    """What is known of each site, and of the lines if that is more than `before`.

    `whole` says that all threads have come to their end while they were observed.
    """
    checker.cudalab_check_looks.restype = ctypes.c_void_p
    address = checker.cudalab_check_looks(ctypes.c_void_p(tables.handle))
    known = ctypes.string_at(address, len(tables.sites))
    if known == before:
        return known, None
    lines = Looks(
        unaligned={
            Place(tables.files[site.file], site.line)
            for site, known_of in zip(tables.sites, known, strict=True)
            if known_of & UNALIGNED and not site.flags & layout.IS_HEADER
        }
    )
    for site, look in zip(tables.sites, known, strict=True):
        place = Place(tables.files[site.file], site.line)
        if look & LOOKED_AT:
            lines.at.add(place)
        if look & LOCAL_MEMORY and not site.flags & layout.IS_HEADER:
            lines.local.add(place)
        if look & NOT_KNOWN_LOCAL and not site.flags & layout.IS_HEADER:
            lines.own.add(place)
        entered = site.head and known[site.head - 1] & ENTERED
        if why := _why_missed(site.flags, look, entered=bool(entered), whole=whole):
            lines.missed[place] = why
    return known, lines


def _why_missed(flags: int, look: int, *, entered: bool, whole: bool) -> str:
    """Why an access was not looked at; "" if it was, or none was made."""
    if look & ELSEWHERE and not flags & layout.IS_HEADER:
        return "some lead to what has no name, such as a literal"
    if look & NOT_LOOKED_AT:
        return "made in a header of cudalab"
    if entered and flags & layout.IS_BLIND:
        return "the compiler gives them no hook"
    if entered and flags & layout.IS_ACCESS and whole and not look & (LOOKED_AT | OWN):
        return "the instrument has lost them"
    return ""


@dataclass(frozen=True, kw_only=True)
class Names:
    """Resolves the numbers in the rows of one launch."""

    kernel: str
    tables: Tables
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    buffers: Mapping[int, tuple[str, int]]  # name, and bytes of an item if known, by region
    about: Callable[[str, int], str] = lambda _kind, _region: ""  # of memory, for a kind of finding

    def region(self, number: int) -> str | None:
        """The name of a buffer or of a shared array."""
        if number == NO_REGION:
            return None
        if number >= FIRST_SHARED_REGION:
            return self.tables.shared_names[number - FIRST_SHARED_REGION]
        return self.buffers.get(number, ("a buffer", 0))[0]

    def item_bytes(self, number: int) -> int:
        """The bytes of an item of a buffer; 0 if it is as wide as the access."""
        return self.buffers.get(number, ("", 0))[1]

    def place(self, number: int) -> Place:
        """The source line for the number of a place."""
        return self.tables.place(number)

    def thread(self, block: int, thread: int) -> Thread:
        """The coordinates of a thread, from linear indices."""
        return Thread(_coordinates(block, self.grid), _coordinates(thread, self.block))


def _order(place: Place) -> tuple[str, int]:
    """Sorts places by file and line; file numbers depend on the compiler."""
    return place.file, place.line


def _coordinates(linear: int, size: tuple[int, int, int]) -> tuple[int, int, int]:
    return linear % size[0], linear // size[0] % size[1], linear // (size[0] * size[1])


def findings(checker: ctypes.CDLL, names: Names) -> list[Finding]:
    """The runtime's findings in the last launch, which it forgets."""
    rows = _rows(checker.cudalab_check_findings, layout.FindingRow)
    result = [finding(row, names) for row in rows]
    checker.cudalab_check_forget()
    return result


def trace(checker: ctypes.CDLL, names: Names, blocks: int, traced: int) -> LaunchTrace:
    """The runtime's counts of the last launch, of which `traced` of the `blocks` were traced."""
    threads = names.block[0] * names.block[1] * names.block[2]
    launch = LaunchTrace(
        kernel=names.kernel,
        grid=names.grid,
        block=names.block,
        blocks=blocks,
        blocks_traced=traced,
        warps_traced=traced * -(-threads // 32),
        accesses=(),
    )
    if traced == 0:  # the runtime still holds observations of the previous launch
        return launch
    sites = names.tables.sites
    by_site = layout.BranchRow * len(sites), layout.U64 * len(sites)
    floats, doubles = layout.U64(), layout.U64()
    checker.cudalab_check_operations(ctypes.byref(floats), ctypes.byref(doubles))
    operations = {"float": floats.value, "double": doubles.value}
    return replace(
        launch,
        accesses=accesses(
            _rows(checker.cudalab_check_rows, layout.AccessRow),
            _rows(checker.cudalab_check_steps, layout.StepRow),
            names,
        ),
        branches=branches(
            sites,
            by_site[0].from_address(checker.cudalab_check_branches()),
            _rows(checker.cudalab_check_ways, layout.WaysRow),
            names,
        ),
        barriers=uses(sites, by_site[1].from_address(checker.cudalab_check_barriers()), names),
        warp_operations=uses(
            sites, by_site[1].from_address(checker.cudalab_check_warp_ops()), names
        ),
        operations={name: count for name, count in operations.items() if count},
    )


def _rows(function: Any, kind: Any) -> Any:
    """The current rows of one of the runtime's lists."""
    count = ctypes.c_size_t()
    address = function(ctypes.byref(count))
    return (kind * count.value).from_address(address) if count.value else []


def accesses(rows: Sequence[Any], steps: Iterable[Any], names: Names) -> tuple[Access, ...]:
    """The accesses in the order of the source; rows of one line and array are merged."""
    of_row: dict[int, list[Any]] = defaultdict(list)
    for step in steps:
        of_row[step.row].append(step)
    same: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        key = (row.place, row.space, row.kind, row.bytes, names.region(row.region) or "")
        same[key].append(index)
    return tuple(
        _access([rows[i] for i in same[key]], [s for i in same[key] for s in of_row[i]], names)
        for key in sorted(same, key=lambda key: (_order(names.place(key[0])), *key[1:]))
    )


def _access(rows: list[Any], steps: list[Any], names: Names) -> Access:
    def total(field: str) -> int:
        return sum(getattr(row, field) for row in rows)

    addresses: list[tuple[int | None, ...]] = []
    for step in steps:
        active = [step.address[lane] if step.lanes >> lane & 1 else None for lane in range(32)]
        low = min(address for address in active if address is not None) // 128 * 128
        addresses.append(tuple(None if each is None else each - low for each in active))
    first, requests = rows[0], total("requests")
    kind = _KINDS[first.kind]
    if kind is None:
        raise ValueError(f"no access: {first.kind}")
    return Access(
        place=names.place(first.place),
        space=SPACES[first.space],
        kind=kind,
        bytes_per_lane=first.bytes,
        requests=requests,
        lanes=total("lanes"),
        buffer=names.region(first.region),
        sectors=total("sectors"),
        ideal_sectors=total("ideal_sectors"),
        lines=total("lines"),
        partial_sectors=total("partial"),
        wavefronts=total("wavefronts"),
        ideal_wavefronts=total("ideal_wavefronts"),
        conflict_degree_max=max(row.degree_max for row in rows),
        conflict_degree_mean=total("degree_sum") / requests,
        same_address_max=max(row.same_max for row in rows),
        same_address_mean=total("same_sum") / requests,
        steps=tuple(
            Step(
                requests=step.requests,
                conflict_degree=step.wavefronts / step.ideal if step.ideal else 0.0,
                sectors=float(step.sectors),
            )
            for step in steps
        ),
        addresses=tuple(addresses),
    )


def branches(sites: ctypes.Array[Site], rows: Any, ways: Any, names: Names) -> tuple[Branch, ...]:
    """The branches, by line.

    If a line of one function has several branches, which compilers arrange as they like, the one
    that splits lanes most often stands for the line.
    """
    of_function: dict[tuple[Place, int], tuple[int, ...]] = {}  # four counts, and the site
    counts = np.frombuffer(rows, np.uint64).reshape(-1, 4) if len(rows) else _NO_ROWS
    for index in np.flatnonzero(counts[:, 0]).tolist():
        site, row = sites[index], rows[index]
        place = Place(names.tables.files[site.branch_file], site.branch_line)
        key = place, site.function
        one = (row.divergent, row.executions, row.lanes_first, row.lanes_second, index + 1)
        of_function[key] = max(of_function.get(key, one), one)
    sums: dict[Place, list[int]] = {}
    worst: dict[Place, tuple[int, int]] = {}  # how often it splits, and its site
    for (place, _), values in of_function.items():
        sums[place] = [a + b for a, b in zip(sums.get(place, [0] * 4), values[:4], strict=True)]
        worst[place] = max(worst.get(place, (0, 0)), (values[0], values[4]))
    kept = np.frombuffer(ways, np.uint32).reshape(-1, 34) if len(ways) else _NO_ROWS
    return tuple(
        Branch(
            place=place,
            executions=executions,
            divergent=divergent,
            lanes_first=first,
            lanes_second=second,
            **(_ways(sites, kept[kept[:, 0] == worst[place][1], 1:]) if divergent else {}),
        )
        for place, (divergent, executions, first, second) in sorted(
            sums.items(), key=lambda item: _order(item[0])
        )
    )


def _ways(sites: ctypes.Array[Site], rows: np.ndarray[Any, Any]) -> dict[str, Any]:
    """The steps of a branch, and the lines to which its ways lead: see Branch.

    Each row has a mask of lanes, and their 32 successors.
    """
    number: dict[int, int] = {}  # of a way, by the site to which it leads
    steps = []
    changes = (np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1)) + 1).tolist()
    for begin, end in pairwise([0, *changes, len(rows)] if len(rows) else []):
        lanes, *successors = rows[begin].tolist()
        ways = tuple(
            number.setdefault(site, len(number)) if lanes >> lane & 1 else None
            for lane, site in enumerate(successors)
        )
        steps.append(BranchStep(end - begin, ways))
    lines = tuple(sites[site - 1].line if site else 0 for site in number)
    return {"steps": tuple(steps), "lines": lines}


def uses(sites: ctypes.Array[Site], rows: Any, names: Names) -> dict[Place, int]:
    """Counts by the line of the call."""
    sums: dict[Place, int] = defaultdict(int)
    counts = np.frombuffer(rows, np.uint64) if len(rows) else _NO_ROWS[:, 0]
    for index in np.flatnonzero(counts).tolist():
        site = sites[index]
        sums[Place(names.tables.files[site.file], site.line)] += rows[index]
    return {place: sums[place] for place in sorted(sums, key=_order)}


def finding(row: Any, names: Names) -> Finding:
    """One finding as an object of trace.py."""
    kind = FINDINGS[row.kind]
    item_bytes = names.item_bytes(row.region) or row.bytes or 1
    detail, of_local = row.detail.decode(errors="replace"), row.region == LOCAL_REGION
    outside = kind == "out_of_bounds" and row.has_index and row.kind != _OUT_OF_REACH
    return Finding(
        kind=kind,
        kernel=names.kernel,
        place=names.place(row.place),
        thread=names.thread(row.block, row.thread),
        access=_KINDS[row.access],
        space=SPACES[row.space] if row.has_index else None,
        bytes=row.bytes,
        other_place=names.place(row.other_place) if row.other_place else None,
        other_thread=(
            None
            if row.other_thread == NO_THREAD
            else names.thread(row.other_block, row.other_thread)
        ),
        other_access=_KINDS[row.other_access],
        buffer=detail if of_local else names.region(row.region),
        index=row.offset // item_bytes if row.has_index == 1 else None,
        beyond=row.beyond if outside else None,
        missing=_MISSING[row.missing],
        detail="" if of_local else detail or names.about(kind, row.region),
        count=row.count,
        by=names.place(row.by) if row.by else None,
        note=row.kind in _NOTES,
    )
