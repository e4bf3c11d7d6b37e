"""Advice on races, which depends on how far apart the threads are and what orders them."""

from dataclasses import dataclass

from cudalab.backends.trace import Finding
from cudalab.microscope.clues import BIT_FIELDS

INDEPENDENT_THREADS = (
    "Up to compute capability 6.x the lanes of a warp ran in step, and code of that time left the "
    "barrier out, often with `volatile`. Since 7.0 every lane has a program counter of its own "
    "(independent thread scheduling), and lanes meet only where a __syncwarp() makes them. "
    "`volatile` makes the compiler read and write each time, but orders nothing."
)


@dataclass(frozen=True)
class Advice:
    """What is particular about a race, and its cure."""

    why: str
    cure: str


_FLAGS = Advice(
    "An atomic operation or a volatile store alone keeps nothing in order: the flag may be seen "
    "before what it announces.",
    "Put __threadfence() between the write and the flag, and another one between the loop that "
    "waits for the flag and the read.",
)
_PLAIN_READ = Advice(
    "The read is no atomic operation, so nothing says which of the values it sees.",
    "If all changes must have been made, put a barrier between them and the read, or read in the "
    "next kernel. If any value will do, read atomically, too: atomicAdd(&x, 0), or a value that "
    "atomicCAS(&x, value, ...) then checks.",
)
# By what is missing and the detail.
_FENCES = {
    (None, "scope"): Advice(
        "The suffix _block promises the GPU that no other block uses the word.",
        "Leave out the suffix _block: atomicAdd instead of atomicAdd_block.",
    ),
    ("__threadfence", ""): _FLAGS,
    ("__threadfence", "volatile"): _FLAGS,
    ("__threadfence", "scope"): Advice(
        "__threadfence_block(), and atomic operations with the suffix _block, order what the "
        "threads of one block see.",
        "Use __threadfence() and atomic operations without a suffix between blocks.",
    ),
    ("__threadfence", "ticket"): Advice(
        "The atomic operation tells another block that it may go on, but keeps nothing in order, "
        "and a fence only what stands before it: the change may be seen before the write.",
        "Put __threadfence() between the write and the atomic operation, behind the one and before "
        "the other, and another one before the read.",
    ),
    ("__syncthreads", "ticket"): Advice(
        "The atomic operation tells another block that this one is done, but the thread that "
        "makes it has not waited for the other threads of its block.",
        "Let each thread write, then __threadfence(), then __syncthreads(), and only then let one "
        "thread make the atomic operation.",
    ),
    ("__threadfence", "unlock"): Advice(
        "The next one that takes the lock by an atomic operation may see it free before it sees "
        "what was written under it: a plain store is neither atomic nor kept behind other writes.",
        "Give the lock back by __threadfence(); atomicExch(lock, 0);",
    ),
    ("__threadfence", "lock"): Advice(
        "An atomic operation alone keeps nothing in order: what stands behind the lock may be done "
        "before the lock is taken.",
        "Put __threadfence() behind the loop that takes the lock, and another one before the lock "
        "is given back.",
    ),
}
_BIT_FIELDS = Advice(
    "Bit fields that share a word have no memory of their own: to write one, the GPU reads the "
    "word, changes the bits and writes the word back, with the old value of the others.",
    "Give each thread a word of its own, or whole bytes instead of bit fields; or set the bits by "
    "atomicOr and atomicAnd on the word.",
)


def advice_on_race(finding: Finding, why: str, cure: str) -> tuple[str, str]:
    """Advice on a race, which depends on how far apart the threads are."""
    among_atomics = {finding.access, finding.other_access} == {"load", "atomic"}
    if among_atomics and finding.missing in (None, "__syncwarp") and not finding.detail:
        return f"{why} {_PLAIN_READ.why}", _PLAIN_READ.cure
    if finding.detail == BIT_FIELDS:
        return f"{why} {_BIT_FIELDS.why}", _BIT_FIELDS.cure
    if _is_among_lanes(finding):
        why = f"{why} {INDEPENDENT_THREADS}"
    if advice := _FENCES.get((finding.missing, finding.detail)):
        return f"{why} {advice.why}", advice.cure
    if finding.missing == "__syncwarp":
        if finding.kind == "race":
            cure = (
                "Put __syncwarp() between the two, where all lanes of the warp reach it; for "
                "x[lane] += x[lane + s] that is one after the reads and one after the writes."
            )
    elif finding.kind == "race" and finding.missing == "__syncthreads":
        cure = (
            "Put __syncthreads() between the two, where all threads of the block reach it. In a "
            "loop there are two gaps: from the write to the read, and from the read to the next "
            "round's write."
        )
    elif (
        finding.kind == "race"
        and finding.other_thread
        and finding.other_thread.block != finding.thread.block
    ):
        why += " No barrier waits for another block."
        cure = (
            "Let blocks write different elements, use atomics where they must meet, or split the "
            "kernel in two: a launch waits for all blocks of the launch before."
        )
    return why, cure


def _is_among_lanes(finding: Finding) -> bool:
    """Whether the threads are lanes of one warp, or may be and rely on `volatile`."""
    if finding.other_thread and finding.other_thread.block != finding.thread.block:
        return False
    return finding.missing == "__syncwarp" or finding.detail == "volatile"
