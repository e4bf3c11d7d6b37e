"""Right programs of the world: those of tools/world that print what they print on a GPU."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.suites.program import RIGHT, Program, Suite
from tools.world import programs

ABOUT = (
    "the programs of [tools/world/programs.toml](../tools/world/programs.toml) that print on the "
    "CPU device what they print on a GPU, exactly or to their tolerance, with the same arguments. "
    "Each kernel is examined for 5 seconds of the processor's time"
)
EXAMINED_S = 5
AGREEING = ("same", "close", "order")

# Programs whose output is right on GPUs, though CUDA does not promise it, or that are wrong.
MISTAKEN = {
    "exercises/hw6/linked_list": "a launch that fails",  # the kernel reads memory of the host
    # On one GPU its arrays have one pointer each, and it uses two.
    "solutions/chapter09/simpleP2P_PingPongDefault": "out of bounds",
    # The last block to add to a counter reads what others wrote, without a fence on either side.
    "Samples/3_CUDA_Features/cdpAdvancedQuicksort/cdpAdvancedQuicksort": "race",
    # Containers read how full they are plainly, while other threads change it by atomicAdd.
    "Samples/3_CUDA_Features/newdelete/newdelete": "race",
    # Blocks of 120 threads write 3 of 32 sums, and read all.
    "Samples/2_Concepts_and_Techniques/shfl_scan/shfl_scan": "uninitialised memory",
    # They warm up with numbers that they have not copied yet.
    "exercises/hw7/overlap_solution": "uninitialised memory",
    "exercises/hw10/streams": "uninitialised memory",
    "exercises/hw10/streams_solution": "uninitialised memory",
    # They copy N bytes of N numbers, and add to y in two streams at once.
    "exercises/hw13/Solutions/axpy_stream_capture_solution": "uninitialised memory",
    "exercises/hw13/axpy_stream_capture_from_scratch": "uninitialised memory",
    "exercises/hw13/axpy_stream_capture_timer": "uninitialised memory",
    # It adds whole rows of images, with what lies behind their ends, which nobody has written.
    "Samples/5_Domain_Specific/HSOpticalFlow/flowCUDA": "uninitialised memory",
    # nvcc knows nothing of its "#pragma acc": the host's loop follows pointers to the device.
    "examples/chapter08/cuda-openacc": "a device pointer in the host's code",
    "Samples/0_Introduction/simpleAssert/simpleAssert": "an assertion fails",
    "dev/cuda/permute": "a kernel that is called as a function",
    "appendix_a/dot": "memory that is freed twice",  # by the destructor of a kernel's argument
    **dict.fromkeys(
        (
            "examples/chapter03/reduceInteger",
            "examples/chapter05/reduceInteger",
            "solutions/chapter03/reduceInteger-sync",
            "solutions/chapter05/reduceInteger",
            "solutions/chapter03/reduceFloatGpu",
            "solutions/chapter03/reduceInteger-16",
            "solutions/chapter03/reduceInteger-8-new",
            "Samples/5_Domain_Specific/dxtc/dxtc",
        ),
        "right, if warps move in step",  # the last 32 threads, or 16, wait for nothing
    ),
}


def world(folder: Path) -> Iterator[Program]:
    """The programs that a GPU has confirmed, each in a copy of its folder."""
    names = {each["repository"].rpartition("/")[2]: key for key, each in programs.sets().items()}
    for repository, key in names.items():
        if (folder / repository).exists() and key != repository:
            (folder / key).symlink_to(folder / repository)
    limits = {(row["set"], row["program"]): row["limit_s"] for row in programs.stored()}
    every = programs.chosen("", list(AGREEING))
    for each in sorted(every, key=lambda each: limits[each.set, each.name]):  # the short ones first
        if (folder / each.set).exists():
            copy = programs.copied(each, folder, Path(tempfile.mkdtemp(dir=folder)))
            yield Program(
                f"{each.set}/{each.name}",
                MISTAKEN.get(each.name, RIGHT),
                each.files,
                folder=copy,
                options=("--kill-after", str(EXAMINED_S), *each.options),
                runs=(each.arguments,),
            )


SUITES = {
    "world": Suite(
        "programs of the world",
        {each["repository"]: "." for each in programs.sets().values()},
        ABOUT,
        programs=world,
    )
}
