"""A traced launch put together by hand: the reduction with strided indices, and findings."""

from cudalab import labs
from cudalab.backends.trace import Access, Branch, Finding, LaunchTrace, Place, Step, Thread
from cudalab.labs import registry
from cudalab.language import source
from cudalab.microscope import profile, subject

LAB = labs.get("reduce")
VARIANT = registry.find(LAB, "interleaved_strided")
FILE = VARIANT.label
LOADED = source.load(VARIANT.path, FILE)
TEXT = VARIANT.path.read_text(encoding="utf-8").splitlines()
LADDER = (2, 4, 8, 8, 8, 4, 2, 1)


def line_of(text):
    """The line of the variant's file that holds `text`."""
    return next(number for number, line in enumerate(TEXT, 1) if text in line)


STORE, TREE, OUT = (
    line_of("values[tid] = i < n"),
    line_of("if (left <"),
    line_of("if (tid == 0) out"),
)
BARRIER = line_of("__syncthreads();  // the next level")


def shared(line, kind, requests, wavefronts, degree=1, steps=()):
    return Access(
        place=Place(FILE, line),
        space="shared",
        kind=kind,
        bytes_per_lane=4,
        requests=requests,
        lanes=32 * requests,
        buffer="values",
        wavefronts=wavefronts,
        ideal_wavefronts=requests,
        conflict_degree_max=degree,
        conflict_degree_mean=wavefronts / requests,
        steps=tuple(Step(8, step, 0) for step in steps),
    )


def memory(line, kind, requests, sectors, ideal, buffer="x", file=FILE):
    return Access(
        place=Place(file, line),
        space="global",
        kind=kind,
        bytes_per_lane=4,
        requests=requests,
        lanes=32 * requests,
        buffer=buffer,
        sectors=sectors,
        ideal_sectors=ideal,
    )


def trace(**changed):
    """One launch, 64 of 4096 blocks of it traced."""
    fields = {
        "kernel": "reduce_blocks",
        "grid": (4096, 1, 1),
        "block": (256, 1, 1),
        "blocks": 4096,
        "blocks_traced": 64,
        "warps_traced": 512,
        "accesses": (
            shared(STORE, "store", 512, 512),
            memory(STORE, "load", 512, 2048, 2048),
            shared(TREE, "load", 960, 2816, 8, LADDER),
            shared(TREE, "load", 960, 2816, 8, LADDER),
            shared(TREE, "store", 960, 2816, 8, LADDER),
            shared(OUT, "load", 64, 64),
            memory(OUT, "store", 64, 64, 64, "out"),
        ),
        "branches": (
            Branch(
                place=Place(FILE, TREE),
                executions=4096,
                divergent=320,
                lanes_first=2048,
                lanes_second=8192,
            ),
            Branch(
                place=Place(FILE, OUT),
                executions=512,
                divergent=64,
                lanes_first=64,
                lanes_second=64 * 31,
            ),
        ),
        "barriers": {Place(FILE, BARRIER): 512},
        "operations": {"float": 2048},
    }
    return LaunchTrace(**{**fields, **changed})


def profiled(*traces, **changed):
    """The profile of one variant on the CPU device."""
    variant = profile.VariantProfile(
        name=VARIANT.name,
        summary=VARIANT.summary,
        label=FILE,
        order=VARIANT.order,
        kernels=profile.merged(traces or [trace()]),
        texts=subject.texts_of(LOADED),
    )
    fields = {
        "device": "cpu",
        "device_name": "a processor",
        "banks": 32,
        "lab": "reduce",
        "case": {"dtype": "int32"},
        "input": "n = 1,048,576, uniform, seed 0",
        "variants": [variant],
    }
    return profile.Profile(**{**fields, **changed})


def finding(kind, **changed):
    """A finding at line 31 of the variant's file."""
    fields = {
        "kernel": "reduce_blocks",
        "place": Place(FILE, 31),
        "thread": Thread((3, 0, 0), (17, 0, 0)),
    }
    return Finding(kind, **{**fields, **changed})
