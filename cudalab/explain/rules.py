"""The rules of the memories: what one request of a warp costs, as counts of byte addresses."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WARP = 32
HALF_WARP = 16
WORD = 4  # bytes, the width of a bank
BANKS = 32
BANKS_THEN = 16
SECTOR = 32  # bytes, the least that a request of global memory moves
SEGMENT_THEN = 64


def wavefronts(addresses: Sequence[int], size: int = WORD) -> int:
    """How often shared memory must be read for one request of a warp: 32 banks, 4 bytes each.

    `addresses` are those of the lanes that take part, `size` bytes are read at each. Lanes that
    want the same word get it together; different words of one bank come one after the other. Of 8
    (16) bytes a lane, half (a quarter) of the warp is served at a time.
    """
    together = WARP * WORD // max(size, WORD)
    return sum(
        _fullest_bank(addresses[at : at + together], size)
        for at in range(0, len(addresses), together)
    )


def conflicts(addresses: Sequence[int], size: int = WORD) -> int:
    """Wavefronts beyond those that so many bytes need anyway."""
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
    """The same on compute capability 1.x: the slower of the two half-warps, 16 banks.

    In each step one word is broadcast to all lanes that want bytes of it, and every other bank
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

    One of 64 bytes where lane k of the half reads word k of an aligned segment, else one a lane.
    """
    total = 0
    for half in (addresses[:HALF_WARP], addresses[HALF_WARP:]):
        in_order = all(address == half[0] + WORD * k for k, address in enumerate(half))
        total += 1 if in_order and half[0] % SEGMENT_THEN == 0 else len(half)
    return total
