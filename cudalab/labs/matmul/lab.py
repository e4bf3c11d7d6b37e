"""Multiplies matrices of float32"""

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from cudalab.backends.base import Device
from cudalab.errors import InputError, UsageError
from cudalab.formats import InputStream, as_bytes
from cudalab.labs.base import Lab, Option, blocks_for
from cudalab.labs.compare import SHOWN, Mismatches, show
from cudalab.labs.inputs import Array, Case, HostInputs, Inputs, Size, StreamInputs, uniform

# Thresholds of `choose`, measured on an H100: docs/performance/matmul.md.
FEW_ELEMENTS = 21_894  # of C for each multiprocessor: two thirds of a tile of 128 x 256
LONG_SUMS = 768  # elements along k
TENSOR_CORES_FROM = 512  # rows, columns and k
TENSOR_CORES_PRODUCTS = 720**3
SQUARES_FROM = 720  # rows of a matrix multiplied by its transpose
FP16_FROM = 2048  # rows and columns from which two fp16 parts are enough, too
UNIT = 2.0**-24  # u: half the distance from 1 to the next float32
SMALLEST = 2.0**-149  # the smallest positive float32
MIN_NORMAL = 2.0**-126
BF16_UNIT = 2.0**-8  # u of bfloat16, which has 8 bits
BLOCK_ELEMENTS = 2**20  # drawn and compared at once
MIN_ROWS = 64  # of a block: below that the factor B is read too often


class MatMul(Lab):
    """Stream: int32 n, then A and B, n x n each, row by row. Answer: C = A B without a header.

    With --aat the stream has one matrix and the answer is A times its transpose; with --abt the
    answer is A times the transpose of B. With --shape the stream starts with int32 m, k, n (with
    --aat: m, k), A is m x k, B k x n (with --abt: n x k), C m x n. All variants compute with full
    float32 accuracy unless they name another precision.
    """

    name = "matmul"
    answer = "C"
    axes: ClassVar = {"product": ("ab", "aat", "abt"), "dtype": ("float32",)}
    flags: ClassVar = {
        "product": {
            "aat": "One matrix in, A times its transpose out.",
            "abt": "A times the transpose of B.",
        }
    }
    options = (Option("--shape", bool, "The header is m, k, n (with --aat: m, k)."),)
    precisions = ("bf16",)
    taken: ClassVar = {
        **dict.fromkeys(
            ("split_k", "group_split_k", "group_split_k_80", "group_split_k_wide"), "few elements"
        ),
        **dict.fromkeys(
            ("tensor_cores_bf16x6", "tensor_cores_cluster", "tensor_cores_wide"),
            "720 x 720 and larger",
        ),
        "aat_tensor_cores": "720 x 720 and larger",
        **dict.fromkeys(
            ("tensor_cores_fp16x3", "tensor_cores_fp16x3_wide", "aat_tensor_cores_fp16x3"),
            "2,048 x 2,048 and larger",
        ),
    }
    example_size = "500"
    distributions = ("uniform", "integers", "positive", "wide", "cancelling", "special")

    def options_of(self, arrays: Sequence[Array]) -> Case:
        """Matrices in memory may have any shape."""
        return {**super().options_of(arrays), "shape": True}

    def header_of(self, arrays: Sequence[Array], case: Case) -> tuple[int, ...]:
        """m, k, n; or m, k for one matrix."""
        for name, array in zip("AB", arrays, strict=False):
            if array.ndim != 2:
                raise InputError(
                    f"{self.name}: {name}: expected a matrix, got an array of "
                    f"{array.ndim} dimension{'s' * (array.ndim != 1)}",
                    hint="array.reshape(rows, columns)",
                )
        a = super().header_of(arrays, case)
        if case["product"] == "aat" or len(arrays) == 1:
            return a
        b = arrays[1].shape
        return (*a, *(b[-1:] if case["product"] == "ab" else b[:1]))

    def kernel_defines(self, case: Case) -> dict[str, str | int]:
        """T, and B_TRANSPOSED: 1 if b is stored n x k (with --aat, b is a itself)."""
        return {"T": "float", "B_TRANSPOSED": int(case["product"] != "ab")}

    def choose(self, inputs: Inputs, case: Case, device: Device) -> list[str] | None:
        """On a GPU, choose tiles that suit the sizes, on tensor cores for large products.

        Tensor cores are used only where their errors were measured to be like those of a float32
        product, or smaller (docs/performance/matmul.md); the inputs' parameter `policy` then tells
        the user. Other variants follow, for devices that lack what the first ones require.
        """
        if not device.facts.many_threads:
            return None
        m, k, n = (inputs.params[name] for name in "mkn")
        at_once = device.multiprocessors
        names = []
        if on_tensor_cores(m, k, n, case["product"]):
            if case["product"] != "aat":
                names.append(tensor_core_tiles(m, k, n, at_once))
            elif m >= FP16_FROM:
                names.append("aat_tensor_cores_fp16x3")
            else:
                names.append("aat_tensor_cores")
            inputs.params["policy"] = (
                f"auto: {names[0]}: float32 emulated on tensor cores, with errors like those "
                "of float32 arithmetic"
            )
        if k >= 128 and m * n <= FEW_ELEMENTS * at_once:
            names += dict.fromkeys((small_tiles(m, k, n, at_once), "group_split_k"))
        return names or None

    def read(self, stream: InputStream, case: Case) -> Inputs:
        """Read the header n, or the shape; then A, and B unless A is multiplied by itself."""
        if not case.get("shape"):
            (n,) = stream.header("n")
            m, k = n, n
        elif case["product"] == "aat":
            m, k = stream.header("m", "k")
            n = m
        else:
            m, k, n = stream.header("m", "k", "n")
        arrays = {"a": stream.payload("A", np.float32, m, k)}
        if case["product"] != "aat":
            shape = (k, n) if case["product"] == "ab" else (n, k)
            arrays["b"] = stream.payload("B", np.float32, *shape)
        return StreamInputs(arrays, {"m": m, "k": k, "n": n})

    def answer_form(self, inputs: Inputs, case: Case) -> tuple[tuple[int, ...], str]:
        """C, m x n."""
        del case
        return (inputs.params["m"], inputs.params["n"]), "float32"

    def empty_answer(self, inputs: Inputs, case: Case) -> Array | None:
        """C if it has no elements, or if they are empty sums (k = 0)."""
        del case
        m, k, n = (inputs.params[name] for name in "mkn")
        if m and k and n:
            return None
        for name in inputs.arrays:  # one factor may have elements nevertheless
            inputs.hold(name)
        return np.zeros((m, n), np.float32)

    def generate(self, case: Case, n: Size, dist: str, seed: int) -> Iterator[memoryview | bytes]:
        """Generate square matrices of order n, or with --shape those of (m, k, n) or (m, k)."""
        one_matrix = case["product"] == "aat"
        if isinstance(n, int):
            m = k = n
        else:
            dimensions = 2 if one_matrix else 3
            if not case.get("shape") or len(n) != dimensions:
                raise UsageError(
                    f"matmul: the size {'x'.join(map(str, n))} has {len(n)} dimensions",
                    hint="--n ORDER, or with --shape --n MxKxN (with --aat: MxK)",
                )
            m, k, n = (*n, n[0])[:3]
        header = ([m, k] if one_matrix else [m, k, n]) if case.get("shape") else [n]
        yield np.array(header, "<i4").tobytes()
        a, b = draw(m, k, n, dist, seed)
        yield as_bytes(a)
        if not one_matrix:
            yield as_bytes(b if case["product"] == "ab" else np.ascontiguousarray(b.T))

    def reference(self, inputs: HostInputs, case: Case) -> Array:
        """Multiply with NumPy in float64."""
        a, b = factors(inputs, case)
        with np.errstate(all="ignore"):
            product: Array = a @ b
        return product

    def compare(self, got: Array, inputs: HostInputs, case: Case) -> Mismatches | None:
        """Compare by element: |C - C64| <= (k + 2) u (|A||B|); infinities and NaNs must agree.

        `relative_bound` derives this. Results below the normal range are rounded to multiples of
        2^-149, with an error of up to half of that in each of the 2 k operations.
        """
        return self.compare_at("", got, inputs, case)

    def compare_at(
        self, precision: str, got: Array, inputs: HostInputs, case: Case
    ) -> Mismatches | None:
        """Compare by element within `relative_bound`; infinities and NaNs must agree."""
        k = inputs.params["k"]
        got = got.reshape(inputs.params["m"], inputs.params["n"])
        overflow = (1 + 2 * UNIT - relative_bound(k, precision)) * 2.0**128
        count, first, greatest = 0, list[tuple[int, str, str]](), math.nan
        for rows, expected, magnitude, allowed in _blocks(inputs, case, precision):
            block = got[rows]
            with np.errstate(all="ignore"):
                errors = np.abs(block - expected)
            finite = np.isfinite(expected)
            right = finite & (errors <= allowed)
            # NaNs and infinities must be the same. A sum whose terms exceed float32 may become
            # infinite on the way, or NaN if that happens in both directions.
            right |= np.isnan(expected) & np.isnan(block)
            right |= np.isinf(expected) & (block == expected)
            right |= finite & ~np.isfinite(block) & (magnitude >= overflow)
            wrong = np.flatnonzero(~right)
            if not len(wrong):
                continue
            count += len(wrong)
            offset = rows.start * got.shape[1]
            first += [
                (offset + int(i), show(expected.flat[i]), show(block.flat[i]))
                for i in wrong[: SHOWN - len(first)]
            ]
            with np.errstate(all="ignore"):
                shares = errors / np.where(allowed > 0, allowed, np.nan)
            if np.isfinite(shares).any():
                greatest = float(np.fmax(greatest, np.nanmax(shares)))
        if not count:
            return None
        mismatches = Mismatches(count, got.size, first)
        row, col = divmod(first[0][0], got.shape[1])
        mismatches.findings.append(f"the first is row {row}, column {col} of {got.shape[0]} rows")
        if not math.isnan(greatest):
            bound = f"{precision} allows" if precision else "(k + 2) 2^-24 |A||B| allows"
            mismatches.findings.append(
                f"the greatest error is {greatest:.3g} times what {bound}, k = {k}"
            )
        return mismatches

    def bounds(self, inputs: HostInputs, case: Case) -> tuple[Array, Array] | None:
        """The product in float64, and the bound of `compare`."""
        expected, _, allowed = _within(*factors(inputs, case))
        return expected, allowed


LAB = MatMul()


def relative_bound(k: int, precision: str = "") -> float:
    """The error bound of a sum of k products, relative to the sum of their magnitudes.

    float32, in any order, fused or not: each product passes at most k roundings, and
    (1 + u)^k - 1 <= (k + 1) u while k u < 0.1. One more u covers the rounding of C64 to float32.

    bf16: both factors are rounded to 8 bits, |x' - x| <= v |x| with v = 2^-8, so a product is off
    by at most (1 + v)^2 - 1 = 2 v + v^2. It has 16 bits and is exact in float32. Tensor cores add
    16 products and the running sum at a time, in an order of their own, and may truncate what lies
    below the last bit of the largest: less than 2^-23 = 2 u of the sum of magnitudes for each
    product, for the sum before and for the sum after. That is (k + 2 (k / 16 + 1)) 2 u < 4 (k + 1)
    u. One more u, as above, and the terms of second order give 4 (k + 2) u.
    """
    if precision == "bf16":
        return 2 * BF16_UNIT + BF16_UNIT**2 + 4 * (k + 2) * UNIT
    return (k + 2) * UNIT


def on_tensor_cores(m: int, k: int, n: int, product: str) -> bool:
    """Whether tensor cores were measured to be as accurate as cuBLAS in float32, and faster.

    cuBLAS is especially accurate where it splits the long sums of few elements, and, with --aat,
    on the diagonal, whose elements are sums of squares.
    """
    shorter = min(m, n)
    if min(shorter, k) < TENSOR_CORES_FROM or m * k * n < TENSOR_CORES_PRODUCTS:
        return False
    if product == "aat":
        return m >= 2048 or (SQUARES_FROM <= m <= 1024 and k <= 2 * m)
    return k <= 3 * shorter or shorter >= 720


def tensor_core_tiles(m: int, k: int, n: int, at_once: int) -> str:
    """The tensor-core variant whose waves of `at_once` blocks take the least time.

    Costs are in steps along k of a 128 x 128 tile. A 128 x 192 tile costs somewhat less than 1.5
    times as much; sharing a tile between two blocks costs 200 more. Two fp16 parts are for large
    products: smaller ones have few elements, whose sums cuBLAS splits, and it is then more exact
    than two parts, though not than three (docs/performance/matmul.md).
    """
    rows, square, wide = blocks_for(m, 128), blocks_for(n, 128), blocks_for(n, 192)
    waves, wide_waves = blocks_for(rows * square, at_once), blocks_for(rows * wide, at_once)
    if min(m, n) >= FP16_FROM:
        return (
            "tensor_cores_fp16x3"
            if waves <= 1.5 * 0.97 * wide_waves
            else "tensor_cores_fp16x3_wide"
        )
    costs = {
        "tensor_cores_bf16x6": waves * k,
        "tensor_cores_cluster": blocks_for(2 * rows * square, at_once) * (k / 2 + 200),
        "tensor_cores_wide": wide_waves * 1.5 * 0.96 * k,
    }
    return min(costs, key=costs.__getitem__)


def small_tiles(m: int, k: int, n: int, at_once: int) -> str:
    """The variant for few elements whose busiest of `at_once` multiprocessors has the least work.

    Work is counted in elements of C; in tiles of 32 x 64 and 64 x 80 an element takes a thirtieth
    and a tenth longer. Blocks share a tile if few elements with long sums would leave most
    multiprocessors idle, and if a row of B is shorter than a copy.
    """
    tiles = {
        "group_split_k": blocks_for(m, 32) * blocks_for(n, 64),
        "group_split_k_80": blocks_for(m, 64) * blocks_for(n, 80),
        "group_split_k_wide": blocks_for(m, 64) * blocks_for(n, 128),
    }
    if n < 4 or (k >= LONG_SUMS and tiles["group_split_k"] <= at_once // 2):
        return "split_k"
    each = {"group_split_k": 32 * 66, "group_split_k_80": 64 * 88, "group_split_k_wide": 64 * 128}
    return min(tiles, key=lambda name: blocks_for(tiles[name], at_once) * each[name])


def factors(inputs: HostInputs, case: Case) -> tuple[Array, Array]:
    """Both factors of the product in float64, m x k and k x n."""
    return inputs.arrays["a"].astype(np.float64), _second_factor(inputs, case)


def _second_factor(inputs: HostInputs, case: Case) -> Array:
    b = inputs.arrays.get("b", inputs.arrays["a"])
    return (b if case["product"] == "ab" else b.T).astype(np.float64)


def _blocks(
    inputs: HostInputs, case: Case, precision: str
) -> Iterator[tuple[slice, Array, Array, Array]]:
    """The product in float64, that of the magnitudes and the error bound, by blocks of rows.

    A block stays within the processor's caches, where the whole product may not fit in memory.
    """
    a, b = inputs.arrays["a"], _second_factor(inputs, case)
    step = max(MIN_ROWS, BLOCK_ELEMENTS // max(1, *b.shape))
    for start in range(0, len(a), step):
        rows = slice(start, start + step)
        yield rows, *_within(a[rows].astype(np.float64), b, precision)


def _within(a: Array, b: Array, precision: str = "") -> tuple[Array, Array, Array]:
    """The product, that of the magnitudes, and the error bound."""
    k = len(b)
    with np.errstate(all="ignore"):
        magnitude = np.abs(a) @ np.abs(b)
        allowed = relative_bound(k, precision) * magnitude + k * SMALLEST
        if precision:  # rounding may turn a subnormal factor into 0
            sums = np.abs(a).sum(axis=1)[:, None] + np.abs(b).sum(axis=0)
            allowed += MIN_NORMAL * sums
        return a @ b, magnitude, allowed


def draw(m: int, k: int, n: int, dist: str, seed: int) -> tuple[Array, Array]:
    """Draw A (m x k) and B (k x n) from PCG64's raw output, by exact arithmetic only."""
    raw = np.random.PCG64(seed)

    def drawn(rows: int, cols: int) -> Array:
        out = np.empty(rows * cols, np.float32)
        for start in range(0, len(out), BLOCK_ELEMENTS):
            block = out[start : start + BLOCK_ELEMENTS]
            block[:] = uniform(raw.random_raw(len(block)), out.dtype)
        return out.reshape(rows, cols)

    a, b = drawn(m, k), drawn(k, n)
    match dist:
        case "uniform":
            pass
        case "integers":  # -8 to 7: sums of 2^17 products are exact
            a, b = np.floor(a * np.float32(8)), np.floor(b * np.float32(8))
        case "positive":
            a, b = np.abs(a), np.abs(b)
        case "wide":  # each element has its own exponent, -20 to 11
            a, b = (
                np.ldexp(part, np.floor(drawn(*part.shape) * np.float32(16)).astype(np.int32) - 4)
                for part in (a, b)
            )
        case "cancelling":  # A = [X X], B = [Y; -Y + Z / 8192]: the sums nearly vanish
            half = k // 2
            a[:, half : 2 * half] = a[:, :half]
            b[half : 2 * half] = b[half : 2 * half] / np.float32(8192) - b[:half]
        case "special":  # zeros in A meet infinities and NaNs in B, whose product is NaN
            a[drawn(m, k) < np.float32(-0.75)] = 0
            place = drawn(k, n)
            b[place > np.float32(0.99)] = np.inf
            b[place < np.float32(-0.99)] = np.nan
        case _:
            raise ValueError(f"unknown distribution {dist!r}")
    return a, b
