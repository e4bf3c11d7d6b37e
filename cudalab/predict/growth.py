"""The counts of a variant at any size: from the cache, or extrapolated from small sizes."""

from contextlib import suppress
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import Any

from cudalab.backends import host_device, host_features
from cudalab.backends.trace import LaunchTrace
from cudalab.labs import registry
from cudalab.labs.inputs import HostInputs, Size
from cudalab.language import source
from cudalab.predict import counts as counting
from cudalab.predict import kept

MAX_BYTES, MAX_FLOPS = 1 << 28, 1 << 30  # of an input whose kernels are counted at its own size
WHOLE_BYTES = 1 << 21  # of one whose blocks are all traced
PACKAGE = Path(__file__).parents[1]
LAUNCH = (
    "kernel", "grid", "block", "blocks", "blocks_traced", "warps_traced", "shared_bytes", "buffers",
)  # fmt: skip
COUNTING = ("backends/cpu/**/*", "labs/*.py", "predict/counts.py", "predict/growth.py")


def counts_of(subject: counting.Subject, size: Size, data: counting.Generated) -> counting.Counts:
    """The counts of a variant's kernels at a size, from the user's cache if they are there."""
    registry.check_features(subject.variant, host_device(), host_features())
    lab, variant = subject.lab, subject.variant
    text = source.load(variant.path, variant.label).text
    header = variant.dispatch, sorted(variant.defines.items())
    defines = sorted(lab.kernel_defines(subject.case).items())
    name = kept.key(_counting(lab.name), *_inputs(data, size), text, header, defines)
    one_gpu = f"{name}-{subject.multiprocessors}"  # if the launch plan depends on them
    with suppress(KeyError, TypeError, ValueError):
        document = kept.load(name) or kept.load(one_gpu)
        return {one["kernel"]: _read(one) for one in document}
    counts = counts_at(subject, size, data)
    written = [
        {
            "kernel": kernel,
            "launches": [{key: getattr(one, key) for key in LAUNCH} for one in each.launches],
            "rows": [[*row.key, row.buffer, row.bytes, astuple(x)] for row, x in each.rows.items()],
            "barriers": [[*key, executions] for key, executions in each.barriers.items()],
        }
        for kernel, each in counts.items()
    ]
    kept.save(one_gpu if subject.depends else name, written)
    return counts


def counts_at(subject: counting.Subject, size: Size, data: counting.Generated) -> counting.Counts:
    """Count a variant's kernels at a size, or extrapolate from two smaller ones."""
    blocks: int | None = counting.SAMPLE
    fits = _halvings(subject, size, data.of(size), MAX_BYTES)
    wholly = _halvings(subject, size, data.of(size), WHOLE_BYTES)
    if counting.draws_work(subject, data.of(smaller(size, wholly))):
        fits, blocks = wholly, None
    last = counting.counted(counting.traced(subject, data.of(smaller(size, fits)), blocks))
    if not fits:
        return last
    first = counting.counted(counting.traced(subject, data.of(smaller(size, fits + 1)), blocks))
    return counting.grown(first, last, 2, 2.0**fits, counting.recorded(subject, data.of(size)))


def _halvings(subject: counting.Subject, size: Size, inputs: HostInputs, max_bytes: int) -> int:
    """How often a size is halved until its inputs, and the work on them, are small enough."""
    teaching, case = subject.lab.teaching, subject.case
    dims = len(size) if isinstance(size, tuple) else 1 + teaching.sizes(case).is_order
    num_bytes = sum(array.nbytes for array in inputs.arrays.values())
    flops, halvings = teaching.flops(inputs.params), 0
    while num_bytes > max_bytes or flops > MAX_FLOPS:
        num_bytes, flops, halvings = num_bytes >> dims, flops >> dims + 1, halvings + 1
    return halvings


def smaller(size: Size, halvings: int) -> Size:
    """A size with each dimension halved so many times."""
    if isinstance(size, tuple):
        return tuple(max(1, dim >> halvings) for dim in size)
    return max(1, size >> halvings)


def amount(data: counting.Generated, size: Size) -> tuple[int, int]:
    """The elements that are computed at a size, and the floating-point operations."""
    lab, case = data.lab, data.case
    name = kept.key("amount", _counting(lab.name), *_inputs(data, size))
    stored = kept.load(name)
    if stored is None:
        inputs = data.of(size)
        stored = [lab.teaching.items(inputs, case), lab.teaching.flops(inputs.params)]
        kept.save(name, stored)
    items, flops = stored
    return items, flops


# In the cache ------------------------------------------------------------------------------------


def _inputs(data: counting.Generated, size: Size) -> tuple[object, ...]:
    return data.lab.name, sorted(data.case.items()), size, data.dist, data.seed


@cache
def _counting(lab: str) -> str:
    """What the counts depend on besides the variant: the product's own code."""
    patterns = (*COUNTING, f"labs/{lab}/*.py")
    paths = sorted(path for pattern in patterns for path in PACKAGE.glob(pattern))
    code = (path for path in paths if path.suffix in (".py", ".cpp", ".h"))
    return kept.key(*(path.read_text(encoding="utf-8") for path in code))


def _read(written: dict[str, Any]) -> counting.KernelCounts:
    counts = counting.KernelCounts()
    for launch in written["launches"]:
        shape = {name: tuple(launch[name]) for name in ("grid", "block")}
        counts.launches.append(LaunchTrace(**launch | shape, accesses=()))
    for file, line, space, kind, buffer, num_bytes, cost in written["rows"]:
        requests, sectors, lines, partial, wavefronts = cost
        counts.rows[counting.Row((file, line, space, kind), buffer, num_bytes)] = counting.Cost(
            requests=requests, sectors=sectors, lines=lines, partial=partial, wavefronts=wavefronts
        )
    for file, line, space, kind, executions in written["barriers"]:
        counts.barriers[file, line, space, kind] = executions
    return counts
