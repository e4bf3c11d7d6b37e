"""The rules of memory: the cost of one request of a warp, computed from byte addresses."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

WARP = 32
HALF_WARP = 16
WORD = 4  # bytes, the width of a bank
BANKS = 32
BANKS_THEN = 16
SECTOR = 32  # bytes, the minimum that a global memory request moves
SEGMENT_THEN = 64


def wavefronts(addresses: Sequence[int], size: int = WORD) -> int:
    """The wavefronts of one request of a warp to shared memory with 32 banks of 4 bytes.

    `addresses` are those of the active lanes; `size` bytes are read at each. Lanes that read the
    same word get it together; different words in one bank are read one after the other. With 8
    (16) bytes per lane, half (a quarter) of the warp is served at a time.
    """
    together = WARP * WORD // max(size, WORD)
    return sum(
        _fullest_bank(addresses[at : at + together], size)
        for at in range(0, len(addresses), together)
    )


def conflicts(addresses: Sequence[int], size: int = WORD) -> int:
    """The wavefronts beyond the minimum for this number of bytes."""
    return wavefronts(addresses, size) - max(size, WORD) // WORD


def _fullest_bank(addresses: Iterable[int], size: int) -> int:
    words = {
        byte // WORD
        for address in addresses
        for byte in range(address, address + max(size, 1), WORD)
    }
    banks: defaultdict[int, int] = defaultdict(int)
    for word in words:
        banks[word % BANKS] += 1
    return max(banks.values(), default=0)


def steps_then(addresses: Sequence[int]) -> int:
    """The steps on compute capability 1.x, with 16 banks: those of the slower half-warp.

    In each step one word is broadcast to all lanes that read bytes of it, and every other bank
    serves one lane.
    """
    halves = addresses[:HALF_WARP], addresses[HALF_WARP:]
    return max(_steps_of_half(half) for half in halves)


def _steps_of_half(addresses: Sequence[int]) -> int:
    waiting, steps = list(addresses), 0
    while waiting:
        broadcast = waiting[0] // WORD
        served, busy = [], {broadcast % BANKS_THEN}
        for lane, address in enumerate(waiting):
            word = address // WORD
            if word == broadcast:
                served.append(lane)
            elif word % BANKS_THEN not in busy:
                busy.add(word % BANKS_THEN)
                served.append(lane)
        waiting = [address for lane, address in enumerate(waiting) if lane not in served]
        steps += 1
    return steps


def sectors(addresses: Iterable[int], size: int = WORD) -> list[int]:
    """The sectors of global memory that one request of a warp touches, in order."""
    return sorted(
        {
            sector
            for address in addresses
            for sector in range(address // SECTOR, (address + size - 1) // SECTOR + 1)
        }
    )


def transactions_then(addresses: Sequence[int]) -> int:
    """The transactions of two half-warps on compute capability 1.0, for words of 4 bytes.

    A half-warp takes one transaction of 64 bytes if lane k reads word k of an aligned segment, else
    one for each lane.
    """
    total = 0
    for half in (addresses[:HALF_WARP], addresses[HALF_WARP:]):
        in_order = all(address == half[0] + WORD * k for k, address in enumerate(half))
        total += 1 if in_order and half[0] % SEGMENT_THEN == 0 else len(half)
    return total
