"""Sorts n keys by their digits"""

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from cudalab.backends.base import Device
from cudalab.errors import UsageError
from cudalab.formats import InputStream, as_bytes
from cudalab.labs.compare import Mismatches, compare_exact
from cudalab.labs.inputs import Array, Case, HostInputs, Inputs, Size, StreamInputs
from cudalab.labs.keys import KeySort, ordered_bits
from cudalab.labs.radixsort.parts import VALUE_BYTES, is_pairs

MAX_SPLIT = 1 << 28  # keys: with more, buckets are larger than a block can sort
MIN_SPLIT_PAIRS, MAX_SPLIT_PAIRS = 1 << 22, 1 << 27  # sweeps are as quick for fewer


class RadixSort(KeySort):
    """Stream: int32 n, then n keys. Answer: the keys in ascending order, without a header.

    With --pairs, n uint32 values follow the keys in the stream and in the answer; each value goes
    where its key goes, and equal keys keep their order.
    """

    name = "radixsort"
    axes: ClassVar = {
        "dtype": ("uint32", "int32", "float32", "uint64", "float64"),
        "layout": ("keys", "pairs"),
    }
    flags: ClassVar = {"layout": {"pairs": "Each key carries a uint32 value."}}

    def complete(self, options: Case) -> Case:
        """Raise UsageError for pairs whose keys are not as wide as their values."""
        case = super().complete(options)
        if is_pairs(case) and np.dtype(case["dtype"]).itemsize != VALUE_BYTES:
            raise UsageError(
                f"--pairs sorts keys of {VALUE_BYTES} bytes, not {case['dtype']}",
                hint="--dtype uint32, int32 or float32",
            )
        return case

    def header_of(self, arrays: Sequence[Array], case: Case) -> tuple[int, ...]:
        """The number of keys; pairs are the two rows of one array."""
        shape = super().header_of(arrays, case)
        return shape[1:] if is_pairs(case) else shape

    def kernel_defines(self, case: Case) -> dict[str, str | int]:
        """T, the C type of the keys, and PAIRS, whether values follow them."""
        return super().kernel_defines(case) | {"PAIRS": int(is_pairs(case))}

    taken: ClassVar = {"onesweep": "over 2^28 keys; few pairs"}

    def choose(self, inputs: Inputs, case: Case, device: Device) -> Sequence[str] | None:
        """On a GPU, sweeps for more keys or pairs than can be split, and for few pairs."""
        min_n, max_n = (MIN_SPLIT_PAIRS, MAX_SPLIT_PAIRS) if is_pairs(case) else (0, MAX_SPLIT)
        split = min_n <= inputs.params["n"] <= max_n
        return None if split or not device.facts.many_threads else ("onesweep",)

    def read(self, stream: InputStream, case: Case) -> Inputs:
        """Header int32 n ≥ 0, then n keys and, with pairs, n values as a second row."""
        if not is_pairs(case):
            return super().read(stream, case)
        (n,) = stream.header("n")
        payload = stream.payload("keys and values", case["dtype"], 2, n)
        return StreamInputs({"keys and values": payload}, {"n": n})

    def answer_form(self, inputs: Inputs, case: Case) -> tuple[tuple[int, ...], str]:
        """The keys and, with pairs, the values as a second row."""
        n = inputs.params["n"]
        return (2, n) if is_pairs(case) else (n,), case["dtype"]

    def read_answer(self, stream: InputStream, inputs: Inputs, case: Case) -> Array:
        """The keys and, with pairs, the values, without a header."""
        if not is_pairs(case):
            return super().read_answer(stream, inputs, case)
        shape, dtype = self.answer_form(inputs, case)
        return stream.payload("sorted keys and values", dtype, *shape).array()

    def generate(self, case: Case, n: Size, dist: str, seed: int) -> Iterator[memoryview | bytes]:
        """The keys; the values of pairs are 0, 1, 2, ..., each key's place in the input."""
        yield from super().generate(case, n, dist, seed)
        if is_pairs(case) and isinstance(n, int):
            yield as_bytes(np.arange(n, dtype="<u4"))

    def reference(self, inputs: HostInputs, case: Case) -> Array:
        """NumPy's sort of the keys' bits, a stable one for pairs."""
        if not is_pairs(case):
            return super().reference(inputs, case)
        pairs = inputs.arrays["keys and values"]
        order = stable_order(ordered_bits(pairs[0]))
        sorted_pairs: Array = pairs.view(np.uint32)[:, order].view(pairs.dtype)
        return sorted_pairs

    def compare(self, got: Array, inputs: HostInputs, case: Case) -> Mismatches | None:
        """Compare exactly, first the keys by themselves, then the values."""
        if not is_pairs(case):
            return super().compare(got, inputs, case)
        expected = self.reference(inputs, case)
        pairs = inputs.arrays["keys and values"]
        keys = HostInputs({"keys": pairs[0]}, inputs.params)
        wrong_keys = super().compare(got[0], keys, case | {"layout": "keys"})
        if wrong_keys is not None:
            wrong_keys.findings.insert(0, "the keys are wrong; values were not compared")
            return wrong_keys
        wrong_values = compare_exact(got[1].view(np.uint32), expected[1].view(np.uint32))
        if wrong_values is None:
            return None
        same_pairs = sorted_by_pair(got) == sorted_by_pair(expected)
        wrong_values.findings.append(
            "the keys are right; every value is with a key it came with: equal keys changed order"
            if same_pairs
            else "the keys are right; values went astray"
        )
        return wrong_values


LAB = RadixSort()


def stable_order(bits: Array) -> Array:
    """The places in the input of the sorted 4-byte keys; equal keys keep their order.

    Sorting key and place as one number takes a third of the time of `np.argsort`.
    """
    placed = bits.astype(np.uint64) << np.uint64(32)
    placed |= np.arange(len(bits), dtype=np.uint64)
    placed.sort()
    return placed & np.uint64(0xFFFFFFFF)


def sorted_by_pair(pairs: Array) -> bytes:
    """Keys and values as sorted 64-bit numbers, which are equal for equal sets of pairs."""
    keys, values = pairs.view(np.uint32).astype(np.uint64)
    return np.sort(keys << np.uint64(32) | values).tobytes()
