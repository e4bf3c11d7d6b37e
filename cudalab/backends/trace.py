"""The observations of an instrumented run: counts by source line, and findings. Plain data.

The CPU device's check mode (backends/cpu/check.py) and Nsight Compute (backends/ncu.py) both end
in these classes; `profile.py` and `sanitize.py` turn them into reports.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

Space = Literal["global", "shared", "constant", "local"]
Kind = Literal["load", "store", "atomic"]
Tally = dict[str, int]  # launches, and what their threads did in all: backends/cpu/tally.py
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
