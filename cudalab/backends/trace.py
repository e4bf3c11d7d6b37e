"""The observations of an instrumented run: counts by source line, and findings. Plain data.

The CPU device's check mode (backends/cpu/check) and Nsight Compute (microscope/ncu.py) both end
in these classes; `profile.py` and `sanitize.py` turn them into reports.

The values of Finding.kind, and the meaning of its fields besides place and thread:

race                two threads, nothing orders them, at least one writes. other_place, other_thread
                    and other_access are those of the access that came first in this run; buffer,
                    index and space say where; missing is "__syncthreads" or "__syncwarp", or None
                    between blocks, which nothing orders in one launch. detail is "volatile" where
                    both accesses are: the warp-synchronous code of older GPUs
lost_update         a race between loads and stores of the same line: x = x + 1 without an atomic
same_word           (a note) lanes of a warp store to one word in one instruction: one of them wins
same_value          (a note) threads store a value that the word has from another one already
out_of_bounds       buffer, index, beyond, bytes, access, space; buffer is None near no buffer
misaligned          the address is no multiple of `bytes`: buffer, index, access, space
uninitialised       buffer, index, space: nobody has written there. other_place is the line that has
                    copied it from where nobody has written, either, if that is known
not_arrived         the same, where an asynchronous copy was started and nobody has waited for it
barrier_divergence  thread waits at the __syncthreads at `place`, while other_thread waits at
                    another one (other_place), or has gone past it and left the kernel: detail is
                    "left" and other_place the last line it was seen at. A note if it returned early
                    instead, which is allowed since compute capability 7.0
deadlock            place/thread and other_place/other_thread wait for each other; the launch ends
wrong_mask          a *_sync call and its mask: detail says what is wrong, in words
infinite_loop       the launch did not end within `kill_after`: place is a line of the loop
crash               detail: "stack overflow", "division by zero", …; the launch ends
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Literal

Space = Literal["global", "shared", "constant", "local"]
Kind = Literal["load", "store", "atomic"]
Tally = dict[str, int]  # launches, and what their threads did in all: backends/cpu/layout.py
Tallies = dict[str, Tally]  # by kernel


@dataclass(frozen=True)
class Place:
    """A line of a source file, as `#line` names it (1-based)."""

    file: str
    line: int


@dataclass(frozen=True)
class Thread:
    """One thread of a grid: blockIdx and threadIdx."""

    block: tuple[int, int, int]
    thread: tuple[int, int, int]


@dataclass(frozen=True)
class Step:
    """Consecutive requests of one access, between two block barriers, with the same cost."""

    requests: int
    conflict_degree: float  # wavefronts per request, relative to what its width needs: 1 is none
    sectors: float  # 32-byte sectors per request (global memory)


@dataclass(frozen=True, kw_only=True)
class Access:
    """One memory instruction of the source, with its requests from all traced warps.

    A request is one instruction of one warp. Its wavefronts are the passes over the banks that it
    takes; `ideal_wavefronts` is what the same bytes take without a conflict. Its sectors are the
    distinct 32-byte pieces of memory it touches; `ideal_sectors` is what its bytes would fill.
    """

    place: Place
    space: Space
    kind: Kind
    bytes_per_lane: int
    requests: int
    lanes: int  # active lanes, summed over the requests
    buffer: str | None = None  # the kernel's parameter or the shared array, as named in the source
    sectors: int = 0
    ideal_sectors: int = 0
    lines: int = 0  # distinct pieces of 128 bytes, of which L1 serves one at a time
    partial_sectors: int = 0  # those of the sectors of which a request covers a part only
    wavefronts: int = 0
    ideal_wavefronts: int = 0
    conflict_degree_max: int = 0  # 1: none; 0: not shared memory
    conflict_degree_mean: float = 0.0
    same_address_max: int = 0  # atomics: the maximum number of lanes of a request in one word
    same_address_mean: float = 0.0
    steps: tuple[Step, ...] = ()  # of the first traced block, in the order of execution
    # The first request of each step: the byte of the array, less a multiple of 128, by lane.
    addresses: tuple[tuple[int | None, ...], ...] = ()


@dataclass(frozen=True)
class BranchStep:
    """Consecutive executions of one branch, by warps whose lanes went the same ways."""

    executions: int
    ways: tuple[int | None, ...]  # by lane, an index of Branch.lines; None: it took no part


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A conditional of the source: how often a warp reached it, and how often it split there."""

    place: Place
    executions: int  # number of warps that reached it
    divergent: int  # number of those that split
    lanes_first: int  # lanes that took the less frequent side, summed over divergent executions
    lanes_second: int  # lanes that took the other side
    steps: tuple[BranchStep, ...] = ()  # of the first traced block in order, if a warp split
    # Where each way goes on in the compiler's code, by its head if it ends a turn of a loop.
    lines: tuple[int, ...] = ()  # 0: it leaves the function


@dataclass(frozen=True, kw_only=True)
class LaunchTrace:
    """One launch of a kernel in check mode."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    blocks: int
    blocks_traced: int
    warps_traced: int
    accesses: tuple[Access, ...]
    branches: tuple[Branch, ...] = ()
    barriers: dict[Place, int] = field(default_factory=dict)  # __syncthreads, counted by block
    warp_operations: dict[Place, int] = field(
        default_factory=dict
    )  # shuffles and votes, counted by warp
    operations: dict[str, int] = field(
        default_factory=dict
    )  # such as {"float": …}, counted by lane
    shared_bytes: int = 0  # dynamic shared memory of a block
    buffers: dict[str, int] = field(default_factory=dict)  # bytes of each, by its parameter


@dataclass(kw_only=True)
class Looks:
    """The lines whose accesses the instrument has looked at, and those with one that it missed.

    That it has not is known from the code: an instruction has no hook, a header of cudalab's
    reaches memory of the kernel and does not tell, or a hook was called of which nothing was seen.
    """

    at: set[Place] = field(default_factory=set)
    missed: dict[Place, str] = field(default_factory=dict)
    local: set[Place] = field(default_factory=set)  # with an access to a thread's own memory,
    own: set[Place] = field(default_factory=set)  # where nobody knows which variable it is
    unaligned: set[Place] = field(default_factory=set)  # with a structure that may not be aligned

    def add(self, more: Looks) -> None:
        """Add what another launch has shown."""
        self.missed |= more.missed
        self.local |= more.local
        self.own |= more.own
        self.unaligned |= more.unaligned
        self.at = (self.at | more.at) - self.missed.keys()


@dataclass(frozen=True)
class Finding:
    """A problem in a kernel that the instrument has observed. `explanations.py` explains it.

    `kind` is one of explanations.KINDS. The first place is where it happened; the second, if any,
    is the other access of a race, the other barrier, or where the memory comes from.
    """

    kind: str
    kernel: str
    place: Place
    thread: Thread
    _: KW_ONLY
    access: Kind | None = None
    space: Space | None = None
    bytes: int = 0
    other_place: Place | None = None
    other_thread: Thread | None = None
    other_access: Kind | None = None
    buffer: str | None = None  # its name: the kernel's parameter, or the shared array
    index: int | None = None  # element of the buffer
    beyond: int | None = None  # bytes past its end (>= 0) or before its start (< 0)
    missing: str | None = None  # "__syncthreads" or "__syncwarp"
    by: Place | None = None  # the atomic operation or the store that the detail is about
    detail: str = ""  # anything without a field, such as a mask
    count: int = 1  # number of times it was observed
    note: bool = False  # advice, not an error


def needs_more(missing: str | None, known: str | None) -> bool:
    """Whether a race needs a stronger barrier than an equal one that was seen before.

    Within a warp either barrier cures it, between warps only the block's.
    """
    return (known, missing) == ("__syncwarp", "__syncthreads")


def merge_findings(known: list[Finding], new: list[Finding]) -> None:
    """Add findings; those that differ only in thread or time increase a finding's count."""
    index = {_identity(finding): i for i, finding in enumerate(known)}
    for finding in new:
        at = index.setdefault(_identity(finding), len(known))
        if at == len(known):
            known.append(finding)
        else:
            count = known[at].count + finding.count
            shown = finding if needs_more(finding.missing, known[at].missing) else known[at]
            known[at] = replace(shown, count=count)
    for finding in list(known):  # one after another: of two that follow from each other one stays
        if _follows(finding, known):
            known.remove(finding)


def _identity(finding: Finding) -> tuple[object, ...]:
    f = finding
    return f.kind, f.kernel, f.place, f.other_place, f.buffer, f.access, f.other_access, f.note


def is_of_type(finding: Finding) -> bool:
    """Whether an index is beyond what the type of its array says."""
    return finding.kind == "out_of_bounds" and finding.detail.startswith("index")


def _follows(finding: Finding, known: list[Finding]) -> bool:
    """Whether another finding is the cause of this one."""
    f = finding
    same = [k for k in known if k.kernel == f.kernel and k.buffer == f.buffer and not k.note]
    if f.kind in ("race", "same_word") and f.other_place in (None, f.place):
        causes = ("lost_update", f.kind) if f.note else ("lost_update",)
        return any(k.kind in causes and k.place == f.place for k in same)
    if f.kind in ("same_value", "uninitialised"):  # the values differ elsewhere; a writer is late
        races = ("race", "lost_update") if f.kind == "same_value" else ("race",)
        other = known if f.kind == "uninitialised" and f.other_place else []  # of what it copied
        at = [(k, f.place) for k in same] + [(k, f.other_place) for k in other if not k.note]
        return any(k.kind in races and place in (k.place, k.other_place) for k, place in at)
    if f.kind == "out_of_bounds" and f.note:  # past the end of the object, too
        return any(k.kind == f.kind and not k.note and k.place == f.place for k in known)
    if f.kind == "barrier_divergence" and f.note:
        return any(k.kind == f.kind and k.place == f.place for k in same)
    if f.kind == "out_of_bounds" and f.buffer is None and not is_of_type(f):
        return any(k.place == f.place and is_of_type(k) and not k.note for k in known)
    return False
