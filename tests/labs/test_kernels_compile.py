"""Every variant of every lab, for every element type it computes, through nvcc without a warning.

Needs no GPU. The oldest architecture in use and that of consumer GPUs, which have fewer threads a
multiprocessor, see each variant once, for its first element type. One case of each type is
assembled, the rest are only translated to PTX. Nothing is optimized as it is for a run, which takes
nine tenths of the time and changes no warning, but instructions of one architecture alone (wgmma),
whose warnings come from the optimizer. On a GPU, test_variants.py compiles all variants for a run.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from functools import cache

import pytest
from together import one_file

from cudalab import labs
from cudalab.backends.cuda import nvcc
from cudalab.errors import NoDeviceError
from cudalab.labs import registry
from cudalab.language import source

ARCHITECTURE = "sm_90"
ALSO = ("sm_75", "sm_89")
# Of a file: nvcc reads CUDA's headers once for many variants. To translate them takes little time.
LINES = {"optimized": 4_000, "fast": 12_000, "translated": 40_000}


def compilations():
    """Variants with their defines by the ids of cases, an architecture, and how to compile them."""
    pieces = defaultdict(list)
    for name in labs.names():
        lab = labs.get(name)
        for variant in registry.variants(lab):
            required = variant.architecture
            every = [(variant, *found) for found in distinct_defines(lab, variant)]
            target = required if capability(required) >= 90 else ARCHITECTURE
            types = set()
            for piece in every:
                how = "translated" if piece[2].get("T") in types else "fast"
                pieces[target, "optimized" if target.endswith("a") else how].append(piece)
                types.add(piece[2].get("T"))
            for target in ALSO:
                if capability(required) <= capability(target):
                    pieces[target, "fast"].append(every[0])
    for (target, how), wanted in pieces.items():
        for number, some in enumerate(batches(wanted, LINES[how])):
            id_ = f"{target}-{how}-{number}"
            group = pytest.mark.xdist_group(id_)  # each is long
            yield pytest.param(some, target, how, id=id_, marks=group)


def batches(pieces, size):
    """The pieces in batches of about `size` lines."""
    batch, lines = [], 0
    for piece in pieces:
        batch.append(piece)
        lines += lines_of(piece[0].path, piece[0].label)
        if lines >= size:
            yield batch
            batch, lines = [], 0
    if batch:
        yield batch


@cache
def lines_of(path, label):
    return source.load(path, label).text.count("\n")


def capability(architecture):
    """Turn "sm_90a" into 90; nothing required is 0."""
    return int(re.sub(r"\D", "", architecture or "0"))


def distinct_defines(lab, variant):
    """The id of the first case of each kind that a variant computes, and what it defines."""
    found = {}
    for case in filter(variant.computes, lab.cases()):
        chosen = "-".join(str(case[axis]) for axis in lab.axes if axis not in lab.derived)
        defines = lab.kernel_defines(case)
        if defines not in found.values():
            found.setdefault(chosen, defines)
    yield from found.items()


@pytest.fixture(scope="module")
def compiler():
    try:
        return nvcc.find_nvcc()
    except NoDeviceError as error:
        pytest.skip(error.message)


@pytest.fixture(scope="module")
def flags(compiler):
    """Flags for code that is optimized as it is for a run, and for code that need not be.

    What is translated only has the same instructions and as much shared memory as other code of its
    element type.
    """
    every = (*nvcc.FLAGS, "-Werror", "all-warnings")
    manual = subprocess.run([compiler, "--help"], capture_output=True, text=True, check=True).stdout
    fast = ("--Ofast-compile=max",) if "--Ofast-compile" in manual else ()  # from 12.8 on
    return {
        "optimized": ("-cubin", *every),
        "fast": ("-cubin", *every, *fast),
        "translated": ("-ptx", *every, *fast),
    }


@pytest.mark.parametrize(("pieces", "architecture", "how"), list(compilations()))
def test_variants_compile_without_warnings(compiler, flags, tmp_path, pieces, architecture, how):
    kernel = tmp_path / "kernel.cu"
    kernel.write_text(one_file(pieces))
    done = subprocess.run(
        [compiler, f"-arch={architecture}", *flags[how], kernel.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, nvcc.readable(done.stdout + done.stderr)
    assert done.stderr == ""
