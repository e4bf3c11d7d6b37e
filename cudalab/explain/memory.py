"""The kinds of memory: who can access them, how long they last, their speed and location"""

from collections.abc import Iterator

from cudalab.output.page import Part, commands, table, text

COLUMNS = ("kind", "access", "scope", "lasts", "speed", "place")
KINDS = (
    ("register", "read, write", "a thread", "the thread", "high", "multiprocessor"),
    ("local", "read, write", "a thread", "the thread", "low", "device memory"),
    ("shared", "read, write", "a block", "the block", "high", "multiprocessor"),
    ("global", "read, write", "all, and the host", "the program", "low", "device memory"),
    ("constant", "read", "all, and the host", "the program", "cached", "device memory"),
    ("texture", "read", "all, and the host", "the program", "cached", "device memory"),
)
WRITTEN = (
    ("register", "float sum;", "what a thread computes with"),
    ("local", "float a[100]; a[i]", "arrays with indices known only at run time; spills"),
    ("shared", "__shared__ float tile[16][17];", "what threads of a block pass to each other"),
    ("global", "const float* a", "inputs and outputs"),
    ("constant", "__constant__ float step;", "what all threads read at the same place"),
    ("texture", "tex2D<float>(t, x, y)", "pictures: neighbours in two dimensions"),
)


def page() -> Iterator[Part]:
    """The course's table, and the changes since."""
    yield table(COLUMNS, KINDS)
    yield text(
        """
        "Device memory" is the memory of the graphics card. Local memory is local only in scope: it
        also lies in device memory, and a kernel that uses it because registers ran out ("spills")
        pays for every access. Constant memory is fast if all lanes of a warp read the same address,
        which the cache then broadcasts; different addresses are read one after the other.

        Since the course, caches have changed: on compute capability 1.x global and local memory
        were not cached; now a multiprocessor keeps lines of both in its L1 cache, which shares its
        space with shared memory and textures, and all multiprocessors share an L2 cache. Shared
        memory is still the only fast memory whose contents the program controls.
        """
    )
    yield table(("kind", "in a kernel", "good for"), WRITTEN)
    yield commands(
        "cudalab device                   # how much of each there is",
        "cudalab list matmul              # from global memory to registers",
        "cudalab show table accurate      # a step in constant memory",
        "cudalab exercises                # global and shared memory compared",
        "cudalab bench matmul --variants naive,tiled,register_tiled_2d",
    )
