"""A small input of a lab and its right answer, for a report."""

import tempfile

import numpy as np

from cudalab.bench.document import Table
from cudalab.bench.report.blocks import Block, Code, Heading, Text
from cudalab.formats import InputStream, write_all
from cudalab.labs.base import Lab
from cudalab.labs.inputs import Array, Case, HostInputs

SAMPLE_SEED = 1
SHOWN_BYTES = 64
SHOWN_ELEMENTS = 32


def samples(lab: Lab, table: Table) -> list[Block]:
    """A small input and its right answer, as bytes and as numbers."""
    case = lab.complete(dict(table.case))
    dist = table.dist
    size = lab.teaching.sizes(case).sample
    stream = b"".join(bytes(piece) for piece in lab.generate(case, size, dist, SAMPLE_SEED))
    inputs = read_back(lab, case, stream)
    answer = lab.reference(inputs, case)
    first = next(iter(inputs.arrays.values()))
    if answer.dtype.kind == "f" and answer.dtype != first.dtype:
        answer = answer.astype(first.dtype)  # the reference is more accurate than an answer
    numbers = [f"{name} = {value}" for name, value in inputs.params.items() if name != "stream"]
    arrays = [
        f"{name} =" + ("\n" if array.ndim > 1 else " ") + shown(array)
        for name, array in inputs.arrays.items()
    ]
    return [
        Heading(2, "Samples of input and output"),
        Text(
            f"An input of {len(stream)} bytes, distribution {dist}, seed {SAMPLE_SEED}; the first "
            "bytes, then what they mean:"
        ),
        Code("\n".join([dump(stream), "", *numbers, *arrays])),
        Text(f"The right answer, {answer.nbytes} bytes without a header:"),
        Code("\n".join([dump(answer.tobytes()), "", shown(answer)])),
    ]


def read_back(lab: Lab, case: Case, stream: bytes) -> HostInputs:
    """The inputs that a lab reads from a stream."""
    with tempfile.TemporaryFile() as file:
        write_all(file.fileno(), [stream], "sample")
        file.seek(0)
        return lab.read(InputStream(file.fileno(), "sample"), case).load().copy()


def dump(data: bytes) -> str:
    """The first bytes in hexadecimal, 16 a line, with their offsets."""
    lines = [
        f"{at:04x}  {data[at : at + 16].hex(' ')}"
        for at in range(0, min(len(data), SHOWN_BYTES), 16)
    ]
    if len(data) > SHOWN_BYTES:
        lines.append(f"...   {len(data) - SHOWN_BYTES:,} more")
    return "\n".join(lines)


def shown(array: Array) -> str:
    """All elements of a small array, or the nonzero elements of a large one if they are few."""
    flat = array.reshape(-1)
    if flat.size > SHOWN_ELEMENTS:
        places = np.flatnonzero(flat)
        if len(places) <= SHOWN_ELEMENTS:
            listed = ", ".join(f"[{i}] = {flat[i]}" for i in places)
            return f"{listed}; the others of {flat.size} are 0"
    return np.array2string(array, separator=", ", threshold=SHOWN_ELEMENTS, max_line_width=96)
