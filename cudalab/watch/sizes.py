"""The inputs that a watcher looks at on each save: those that take no time."""

from cudalab.labs.base import Lab
from cudalab.labs.inputs import Case, Size

MAX_ELEMENTS = 4096  # of an input
# What is counted, the same for each version, unlike what a budget allows: blocks of a launch, and
# launches of a kernel before only every fourth is.
BLOCKS, LAUNCHES = 4, 8
MAX_ORDER = 65  # of a square matrix: one more than whole warps and tiles have


def small_sizes(lab: Lab, case: Case) -> tuple[Size, ...]:
    """The sizes that a watcher looks at: the first is sanitized, the last is counted.

    They are the sanitizer's own, as far as they are small, and for most labs a larger one.
    """
    sizes = lab.teaching.sizes(case)
    small = [one for one in sizes.sanitized if is_small(one, is_order=sizes.is_order)]
    if not sizes.is_order and len(small) < len(sizes.sanitized):
        small.append(MAX_ELEMENTS)
    return tuple(small or sizes.sanitized[:1])


def is_small(size: Size, *, is_order: bool) -> bool:
    """Whether inputs of a size are looked at on each save; it may be the order of a matrix."""
    if isinstance(size, int):
        return size <= (MAX_ORDER if is_order else MAX_ELEMENTS)
    return size[0] * size[-1] <= MAX_ELEMENTS
