"""Explains findings: what happened, where, why it is a problem, and what usually cures it."""

from dataclasses import dataclass

from cudalab.backends.trace import Finding, Kind, Place, Thread
from cudalab.microscope import order as ordering
from cudalab.microscope.clues import BIT_FIELDS
from cudalab.microscope.races import Advice, advice_on_race

NULL = "through a null pointer"  # detail of an access
LEFT = "left"  # detail of a barrier: a thread has left the kernel without reaching it


@dataclass(frozen=True)
class Explanation:
    """The explanation of a finding."""

    title: str
    what: str
    why: str
    cure: str


@dataclass(frozen=True)
class _About:
    """The texts that all findings of a kind share."""

    title: str
    why: str
    cure: str


KINDS = {
    # Reported by the instrument while a kernel runs.
    "race": _About(
        "data race",
        "Which of the two comes first is left to the GPU, so the result may change from run to "
        "run, and a right answer today is luck.",
        "Put a barrier between the two, or let each thread use memory of its own.",
    ),
    "lost_update": _About(
        "lost update",
        "x = x + 1 is a read and, later, a write. Threads that read the same old value all write "
        "the same new one, and additions are lost.",
        "Make it one indivisible operation, such as atomicAdd(&x, 1) or atomicMax(&x, y). Or give "
        "each thread (warp, block) a place of its own and combine these afterwards.",
    ),
    "barrier_divergence": _About(
        "barrier that not all threads reach",
        "__syncthreads() waits for all threads of the block. Where some wait at another one or "
        "never come, a GPU may wait for ever, or go on and mix up what the barrier was to keep "
        "apart.",
        "Let idle threads skip the work, not the barrier: no barrier inside a branch or loop that "
        "only some take, and no return before the last barrier.",
    ),
    "deadlock": _About(
        "deadlock",
        "The threads wait for each other, so the kernel never ends.",
        "Every lane that a mask names must reach the same *_sync call, and every thread of the "
        "block the same __syncthreads().",
    ),
    "out_of_bounds": _About(
        "access out of bounds",
        "It reads or changes memory that belongs to something else. Often nothing crashes: another "
        "array is damaged, or the answer is made of rubbish.",
        "Check the index against the size before the access: the last block has more threads than "
        "elements are left (if (i < n), not i <= n).",
    ),
    "misaligned": _About(
        "misaligned access",
        "A GPU reads a word of 2, 4, 8 or 16 bytes only where its address is a multiple of its "
        "size; anything else ends the kernel with an error.",
        "Read wide types such as float4 only from places whose index is a multiple of the width, "
        "and treat the rest of the array element by element.",
    ),
    "uninitialised": _About(
        "read of memory that was never written",
        "Neither shared memory nor a new buffer starts with zeros: the value is what the block or "
        "program before left there.",
        "Write every element before the first read, those past the end of the data too, and wait "
        "for the writers at a barrier.",
    ),
    "not_arrived": _About(
        "read of what an asynchronous copy has not brought yet",
        "The copy runs beside the kernel: until its thread waits for it, the place holds what was "
        "there before. On a GPU the data often come in time, and sometimes not.",
        "Close the group (__pipeline_commit, cp.async.commit_group) and wait for it "
        "(__pipeline_wait_prior, cp.async.wait_group) before the read; then a barrier, where other "
        "threads read. A group that was not closed is not waited for.",
    ),
    "wrong_mask": _About(
        "wrong mask",
        "The mask of a *_sync call names the lanes that take part. All of them must call it, and "
        "nobody else: otherwise the result is undefined, or the warp waits for ever.",
        "Call it where the whole warp takes part, with 0xffffffff; or find the lanes before the "
        "branch: mask = __ballot_sync(0xffffffff, condition).",
    ),
    "after_free": _About(
        "use of memory that a kernel has freed",
        "What malloc or new has given to a thread of a kernel ends for all threads with free or "
        "delete. Behind it the place may belong to something else.",
        "Free it once, behind a barrier that all threads reach when they have used it.",
    ),
    "zero_division": _About(
        "integer division by zero",
        "A GPU neither stops nor complains: the quotient and the remainder have all bits set, "
        "which is -1 or the largest number, and the kernel goes on with that.",
        "Check the divisor before the division: is it 0 in the last block, or for an empty input?",
    ),
    "same_word": _About(
        "lanes of one instruction write the same word",
        "One of them wins, and CUDA does not say which. That is allowed, and right where any "
        "winner will do, as for tags that the lanes read back.",
        "Nothing, if any winner will do.",
    ),
    "same_value": _About(
        "threads that write the same value",
        "Nothing orders them, but whoever comes last leaves the same. GPUs do what is expected; by "
        "the letter of CUDA's memory model it is a data race.",
        "Nothing, if the values are always the same; otherwise atomicExch(&x, value), which may "
        "meet others.",
    ),
    "infinite_loop": _About(
        "loop that does not end",
        "Its condition never becomes false, or it waits for a value that nobody writes: threads "
        "that run later, perhaps, such as those of a block that starts when this one has ended, or "
        "the host, which goes on behind a launch only when that has ended while an instrument "
        "looks.",
        "Check what changes the loop's condition, and whether threads that it waits for can go on. "
        "Read what others write with an atomic: a plain read may be made only once. "
        "Wait for earlier blocks only, or launch all blocks at once with "
        "cudaLaunchCooperativeKernel.",
    ),
    "crash": _About(
        "crash",
        "The kernel cannot go on, and a GPU would end it with an error too.",
        "Look for recursion that does not end, for large local arrays, which belong into shared or "
        "global memory, for a failed assertion or __trap(), and for a pointer that was never set.",
    ),
    "host_crash": _About(
        "crash of the host's code",
        "The program ends here, so nothing behind this line was observed.",
        "Look where the pointer, the index or the divisor of this line comes from: was the memory "
        "made, and is it large enough?",
    ),
    # Detected by running the lab several times.
    "order_dependent": _About(
        "result depends on the order of threads",
        "Blocks and warps run in any order, another one each time. A program must give the same "
        "answer in all of them.",
        "Look for a place that is taken in order of arrival, such as the value an atomicAdd "
        "returns, and compute it from the index instead, by a scan.",
    ),
    "stale_output": _About(
        "output that was never written",
        "A part of the answer is what the memory held before: it looks right when the run before "
        "left the right answer there.",
        "Let every element of the output be written by some thread: is the grid large enough, and "
        "does each block write its whole part, the last one too?",
    ),
    "wrong_answer": _About(
        "wrong answer",
        "The accesses to memory look sound, but what is computed is not what the lab asks for.",
        "Try the smallest n that is wrong, and compare with `cudalab verify`.",
    ),
}

KINDS |= {kind: _About(*texts) for kind, texts in ordering.KINDS.items()}
_INNER = Advice(
    "It stays inside of the object that the array is a part of, such as a struct or an array of "
    "rows. In a struct it hits the next member; with rows it is the next row. C++ allows neither.",
    "Check the index, or index the row, too: tile[i / 16][i % 16] instead of tile[0][i].",
)
_NO_VALUE = Advice(
    "A local variable without an initializer has no value: it begins as what its register, or the "
    "place in local memory, had before.",
    "Give it a value where it is declared (float sum = 0;), or on every way to the read.",
)
_NULL = _About(
    "",
    "Nothing lies there: a GPU ends the kernel with an error, and all that the program does "
    "afterwards fails.",
    "Look where the pointer comes from: was the memory made, did cudaMalloc succeed, and is it "
    "this pointer that was handed on?",
)
_DEVICE_POINTER = _About(
    "device pointer that host code follows",
    "The memory of the device is not the host's: on a GPU the program crashes here, too. Nothing "
    "behind this line was observed.",
    "Copy with cudaMemcpy, or allocate with cudaMallocManaged what both sides use.",
)
OTHER_VALUES = _About(
    "lanes of one instruction write different values to the same word",
    "One of them stays, and CUDA does not say whose: the others are lost.",
    "Let one lane write (if (lane == 0)), give each lane a place of its own, or combine the values "
    "first: atomicAdd(&x, value), or a reduction in the warp.",
)
EARLY_RETURN = _About(
    "threads that returned before a barrier",
    "Since compute capability 7.0 a __syncthreads() waits for the threads that are still there. On "
    "older GPUs what happens is undefined, and the lecture's rule is: all threads.",
    "To be right everywhere, let threads without work skip it and go on to the barrier.",
)
_VERBS: dict[Kind, str] = {"load": "reads", "store": "writes", "atomic": "changes (atomically)"}
_NOUNS: dict[Kind, str] = {"load": "read", "store": "write", "atomic": "atomic operation"}


def explain(finding: Finding) -> Explanation:
    """Explain a finding. KeyError for an unknown kind."""
    about = KINDS[finding.kind]
    if finding.kind == "barrier_divergence" and finding.note:
        about = EARLY_RETURN
    elif finding.kind == "same_word" and not finding.note:
        about = OTHER_VALUES
    elif finding.kind == "host_crash" and "device pointer" in finding.detail:
        about = _DEVICE_POINTER
    what = {
        "race": _race,
        "lost_update": _lost_update,
        "out_of_bounds": _out_of_bounds,
        "misaligned": _misaligned,
        "uninitialised": _uninitialised,
        "not_arrived": _not_arrived,
        "barrier_divergence": _barrier,
        "after_free": _after_free,
        "zero_division": _zero_division,
        "same_word": _same_word,
        "same_value": _same_value,
        "infinite_loop": _endless,
        "host_crash": _host_crash,
    }.get(finding.kind, _otherwise)(finding)
    why, cure = about.why, about.cure
    if finding.kind in ("race", "lost_update"):
        why, cure = advice_on_race(finding, why, cure)
    elif finding.kind == "out_of_bounds" and finding.note:
        why, cure = _INNER.why, _INNER.cure
    elif finding.detail == NULL:
        why, cure = _NULL.why, _NULL.cure
    elif finding.kind == "uninitialised" and finding.space == "local":
        why, cure = _NO_VALUE.why, _NO_VALUE.cure
    elif finding.kind == "out_of_bounds" and finding.space in ("shared", "local"):
        cure = "Make the array as large as the largest index and one more, or check the index."
    return Explanation(about.title, what, why, cure)


def where(place: Place) -> str:
    """A place such as kernels/reduce/sequential.cu:31."""
    return f"{place.file}:{place.line}"


def name_of(thread: Thread) -> str:
    """A text such as "block 3, thread 17", with as many coordinates as are used."""
    return f"block {_index(thread.block)}, {_thread(thread)}"


def _thread(thread: Thread) -> str:
    return f"thread {_index(thread.thread)}"


def _index(at: tuple[int, int, int]) -> str:
    """17, or (17, 2) if the second coordinate is not 0."""
    used = 3 if at[2] else 2 if at[1] else 1
    return str(at[0]) if used == 1 else f"({', '.join(map(str, at[:used]))})"


def _memory(finding: Finding) -> str:
    """The accessed memory, such as "values[6] in shared memory"."""
    element = finding.buffer or "a word"
    if finding.buffer and finding.index is not None:
        element += f"[{finding.index}]"
    return f"{element} in {finding.space} memory" if finding.space else element


def _race(finding: Finding) -> str:
    verb = _VERBS[finding.access or "load"]
    text = f"{name_of(finding.thread)} {verb} {_memory(finding)} at {where(finding.place)}"
    if finding.other_thread and finding.other_place:
        other = _other_name(finding)
        text += f", {other} {_VERBS[finding.other_access or 'load']} it at "
        same = finding.other_place == finding.place
        text += "the same line" if same else where(finding.other_place)
    return f"{text}: {_what_is_missing(finding)}."


def _what_is_missing(finding: Finding) -> str:
    """What keeps the two accesses of a race from being ordered."""
    missing, detail = finding.missing, finding.detail
    if detail == BIT_FIELDS:
        return "the lines use different bit fields, which share a word"
    if finding.by and detail == "unlock":
        return f"the lock is given back by a plain store at {where(finding.by)}"
    if finding.by and missing:
        by = "the atomic operation" if detail == "ticket" else "the flag that is set"
        return f"there is no {missing}() between the write and {by} at {where(finding.by)}"
    if missing == "__threadfence" and detail == "lock":
        return "no __threadfence() follows the lock under which it does so"
    if detail == "scope":
        scope = "what orders the two has block scope, and they are in different blocks"
        return scope if missing else "one of the two is atomic in its own block only"
    return (
        f"there is {f'no {missing}()' if missing else 'nothing that orders them'} between the two"
    )


def _other_name(finding: Finding) -> str:
    assert finding.other_thread is not None
    if finding.other_thread.block == finding.thread.block:
        return _thread(finding.other_thread)
    return name_of(finding.other_thread)


def _lost_update(finding: Finding) -> str:
    text = f"{name_of(finding.thread)}"
    if finding.other_thread:
        text += f" and {_other_name(finding)}"
    return f"{text} read {_memory(finding)}, then write it, at {where(finding.place)}."


def _out_of_bounds(finding: Finding) -> str:
    if finding.detail.startswith("index"):  # as the array's type says
        return f"{name_of(finding.thread)}: {finding.detail}, at {where(finding.place)}."
    noun = _NOUNS[finding.access or "load"]
    text = f"{name_of(finding.thread)}: {noun} of {_bytes(finding.bytes)} at {where(finding.place)}"
    if finding.beyond is None and finding.index is not None:
        return f"{text}, in memory that no argument of the launch leads to."
    if finding.detail == NULL:
        return f"{text}, {NULL}."
    if finding.beyond is None:
        return f"{text}, outside of every buffer{_detail(finding)}."
    buffer = f"'{finding.buffer}'" if finding.buffer else "a buffer"
    if finding.space:
        buffer += f" in {finding.space} memory"
    if finding.index is not None:
        text += f", element {finding.index:,}"
    if finding.beyond < 0:
        return f"{text}: {_bytes(-finding.beyond)} before the start of {buffer}{_detail(finding)}."
    past = f"{_bytes(finding.beyond)} past" if finding.beyond else "just past"
    return f"{text}: {past} the end of {buffer}{_detail(finding)}."


def _misaligned(finding: Finding) -> str:
    return (
        f"{name_of(finding.thread)}: {_NOUNS[finding.access or 'load']} of "
        f"{_bytes(finding.bytes)} of {_memory(finding)} at {where(finding.place)}: the address "
        f"is no multiple of {finding.bytes}{_detail(finding)}."
    )


def _uninitialised(finding: Finding) -> str:
    unused = ", and the thread stores nothing behind it" if finding.note else ""
    return (
        f"{name_of(finding.thread)} reads {_memory(finding)} at {where(finding.place)}; nobody "
        f"has written it{unused}{_detail(finding)}."
    )


def _not_arrived(finding: Finding) -> str:
    return (
        f"{name_of(finding.thread)} reads {_memory(finding)} at {where(finding.place)}; the copy "
        f"that writes it has been started, and nobody has waited for it{_detail(finding)}."
    )


def _barrier(finding: Finding) -> str:
    text = f"{name_of(finding.thread)} waits at {where(finding.place)}"
    if finding.other_thread:
        other, at = _thread(finding.other_thread), finding.other_place
        if finding.detail == LEFT or finding.note:
            text += f", but {other} has left the kernel"
            text += f", last seen at {where(at)}" if at else ""
        elif at:
            text += f", but {other} at {where(at)}"
    return f"{text}."


def _zero_division(finding: Finding) -> str:
    return f"{name_of(finding.thread)} divides by zero at {where(finding.place)}."


def _after_free(finding: Finding) -> str:
    text = f"{name_of(finding.thread)}"
    freed = f", freed at {where(finding.other_place)}" if finding.other_place else ""
    at = where(finding.place)
    if finding.access:
        noun = f"{_NOUNS[finding.access]} of {_bytes(finding.bytes)}"
        return f"{text}: {noun} at {at} in memory that a kernel has allocated{freed}."
    if finding.other_place:
        return f"{text} frees memory at {at} that has been{freed.removeprefix(',')}."
    return f"{text} frees at {at} what no malloc or new of a kernel has given."


def _same_word(finding: Finding) -> str:
    text = f"{name_of(finding.thread)}"
    if finding.other_thread:
        text += f" and {_other_name(finding)}"
    return f"{text} write {_memory(finding)} at {where(finding.place)} in one instruction."


def _same_value(finding: Finding) -> str:
    text = f"{name_of(finding.thread)} writes {_memory(finding)} at {where(finding.place)}"
    if finding.other_thread and finding.other_place:
        same = finding.other_place == finding.place
        at = "the same line" if same else where(finding.other_place)
        text += f", as {_other_name(finding)} does at {at}"
    return f"{text}, and the value does not change."


def _endless(finding: Finding) -> str:
    if not finding.place.line:
        return _otherwise(finding)
    at = f"{name_of(finding.thread)} was at {where(finding.place)}"
    return f"{at} when the time limit was reached{_detail(finding)}."


def _host_crash(finding: Finding) -> str:
    at = f" at {where(finding.place)}" if finding.place.line else ""
    return f"{finding.detail.replace('host code', f'Host code{at}', 1)}."


def _otherwise(finding: Finding) -> str:
    text = finding.detail or KINDS[finding.kind].title
    if finding.place.line and finding.kind not in ordering.KINDS:
        text = f"{name_of(finding.thread)} at {where(finding.place)}: {text}"
    return text if text.endswith(".") else f"{text}."


def _detail(finding: Finding) -> str:
    return f" ({finding.detail})" if finding.detail else ""


def _bytes(count: int) -> str:
    return f"{count:,} byte" + ("" if count == 1 else "s")
