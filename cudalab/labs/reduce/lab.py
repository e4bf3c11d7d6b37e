"""Reduces an array, or each row or column of a matrix, to one value"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cudalab.backends.base import C_TYPES
from cudalab.errors import InputError, UsageError
from cudalab.formats import as_bytes
from cudalab.labs.base import Lab
from cudalab.labs.compare import SHOWN, Mismatches, compare_exact, show
from cudalab.labs.inputs import Array, Case, HostInputs, Inputs, Size, StreamInputs
from cudalab.labs.reduce import plans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cudalab.formats import InputStream

FLOATS = ("float32", "float64")
# Of nothing these have no value; the others give their identity.
UNDEFINED_WHEN_EMPTY = {"min": "minimum", "max": "maximum", "mean": "mean"}
# An answer may come from a chain of this many operations, and each adds its rounding error. The
# defaults need far fewer for 2^31 items; 2^17 float32 roundings are less than 1 % of sum|x|.
MAX_CHAIN = 2**17

Parts = tuple[Array, Array]  # an unevaluated sum: the leading part and what it lacks


class Reduce(Lab):
    """Stream: int32 n, then n items; with --rows or --cols: int32 rows, int32 cols, then a matrix.

    Answer: one value, or one for each row (column), of the items' type and without a header.
    Integers wrap modulo 2^32 (2^64). The dot product reads two arrays of n items. A mean, a dot
    product and a reduction of rows or columns are float32 unless --dtype says otherwise. The sum of
    nothing is 0, its product 1; minimum, maximum and mean of nothing are errors.
    """

    name = "reduce"
    plans: ClassVar = plans
    axes: ClassVar = {
        "dtype": ("int32", "uint32", "int64", "float32", "float64"),
        "op": ("sum", "prod", "min", "max", "sumsq", "mean", "dot"),
        "along": ("all", "rows", "cols"),
    }
    flags: ClassVar = {
        "along": {
            "rows": "Reduce each row of a matrix.",
            "cols": "Reduce each column of a matrix.",
        }
    }
    distributions = ("uniform", "cancelling", "all-ones", "wide-range")

    def complete(self, given: Case) -> Case:
        """float32 for a mean, a dot product, rows and columns; int32 for the rest."""
        named = {name: value for name, value in given.items() if value is not None}
        op, along = named.get("op", "sum"), named.get("along", "all")
        usual = "float32" if op in ("mean", "dot") or along != "all" else "int32"
        case = super().complete({"dtype": usual} | named)
        if op == "mean" and case["dtype"] not in FLOATS:
            raise UsageError(
                f"the mean of {case['dtype']} items is no {case['dtype']}",
                hint=f"--dtype {' or '.join(FLOATS)}, or --op sum",
            )
        if op == "dot" and along != "all":
            raise UsageError(
                f"a dot product is of two vectors: it has no --{along}",
                hint=f"--op sumsq gives each {along[:-1]}'s product with itself",
            )
        return case

    def kernel_defines(self, case: Case) -> dict[str, str | int]:
        """T, the element type in C, and the operation: OP_SUM, OP_PROD, … = 1."""
        return {"T": C_TYPES[case["dtype"]], f"OP_{case['op'].upper()}": 1}

    def read(self, stream: InputStream, case: Case) -> Inputs:
        """Header n or rows, cols; then the items, for a dot product those of x and of y."""
        params: dict[str, Any]
        if case["along"] == "all":
            (n,) = stream.header("n")
            names = ("x", "y") if case["op"] == "dot" else ("x",)
            arrays = {name: stream.payload(name, case["dtype"], n) for name in names}
            params = {"n": n}
        else:
            rows, cols = stream.header("rows", "cols")
            arrays = {"x": stream.payload("x", case["dtype"], rows, cols)}
            params = {"rows": rows, "cols": cols}
        results, items = _counts(params, case)
        if results and not items and case["op"] in UNDEFINED_WHEN_EMPTY:
            counts = ", ".join(f"{name} = {value}" for name, value in params.items())
            raise InputError(
                f"{stream.name}: {counts}: nothing has no {UNDEFINED_WHEN_EMPTY[case['op']]}",
                hint="the sum of nothing is 0, its product 1 (--op)",
            )
        return StreamInputs(arrays, params)

    def read_answer(self, stream: InputStream, inputs: Inputs, case: Case) -> Array:
        """One value, or one a row or column, without a header."""
        results, _ = _counts(inputs.params, case)
        return stream.payload("result", case["dtype"], results).array()

    def empty_answer(self, inputs: Inputs, case: Case) -> Array | None:
        """The identity where nothing is combined; no values where there are no rows (columns)."""
        results, items = _counts(inputs.params, case)
        if results and items:
            return None
        return np.full(results, 1 if case["op"] == "prod" else 0, case["dtype"])

    def generate(self, case: Case, n: Size, dist: str, seed: int) -> Iterator[memoryview | bytes]:
        """For all: n items. For rows and columns: a matrix, rows x cols or of order n."""
        shaped = case["along"] != "all"
        shape = (n,) if isinstance(n, int) else n
        shape = shape * 2 if shaped and len(shape) == 1 else shape
        if len(shape) != 1 + shaped or dist not in self.distributions:
            size = "one size, or rows x cols" if shaped else "one size"
            raise UsageError(
                f"reduce has no data of size {n} and distribution {dist} for this case",
                hint=f"{size}; a distribution of {', '.join(self.distributions)}",
            )
        yield np.array(shape, "<i4").tobytes()
        for data in draw(case, int(np.prod(shape, dtype=np.int64)), dist, seed):
            yield as_bytes(data)

    def reference(self, inputs: HostInputs, case: Case) -> Array:
        """Integers exactly, in their type; floats as the float64 next to the exact result."""
        x, y, axis = operands(inputs, case)
        return expected_and_bound(x, y, axis, case)[0]

    def compare(self, got: Array, inputs: HostInputs, case: Case) -> Mismatches | None:
        """Integers exactly, minima and maxima by value, other floats within the bound."""
        x, y, axis = operands(inputs, case)
        expected, bound = expected_and_bound(x, y, axis, case)
        if bound is None:
            found = compare_exact(got, expected)
        else:
            found = _compare_within(got, expected, bound)
        if found is not None and axis is None:
            found.findings.extend(_likely_mistakes(got, x, y, case))
        return found

    def bounds(self, inputs: HostInputs, case: Case) -> tuple[Array, Array] | None:
        """For floats: the float64 next to the exact result, and the bound."""
        expected, bound = expected_and_bound(*operands(inputs, case), case)
        return None if bound is None else (expected, bound)


LAB = Reduce()


def _counts(params: dict[str, Any], case: Case) -> tuple[int, int]:
    """How many values the answer has, and how many items are combined into each."""
    match case["along"]:
        case "rows":
            return params["rows"], params["cols"]
        case "cols":
            return params["cols"], params["rows"]
        case _:
            return 1, params["n"]


# The reference -----------------------------------------------------------------------------------


def operands(inputs: HostInputs, case: Case) -> tuple[Array, Array | None, int | None]:
    """x, y of a dot product, and the axis that is reduced (None: everything)."""
    arrays = inputs.arrays
    return arrays["x"], arrays.get("y"), {"all": None, "rows": 1, "cols": 0}[case["along"]]


def expected_and_bound(
    x: Array, y: Array | None, axis: int | None, case: Case
) -> tuple[Array, Array | None]:
    """The answer and, for floats, how far one may be from it: infinitely where nothing is sure."""
    if x.dtype.kind != "f":
        return np.atleast_1d(_integers(x, y, axis, case["op"])), None
    with np.errstate(all="ignore"):  # infinities and NaNs are values like others here
        if case["op"] in ("min", "max"):
            extreme = np.min if case["op"] == "min" else np.max
            value: Array = np.atleast_1d(extreme(x, axis=axis)).astype(np.float64)
            return value, np.zeros_like(value)
        if axis is None:
            x, y, axis = x.reshape(1, -1), y if y is None else y.reshape(1, -1), 1
        if case["op"] == "prod":
            return _product(x, axis)
        return _sum(x, y, axis, case["op"])


def _integers(x: Array, y: Array | None, axis: int | None, op: str) -> Array:
    """Reduce integers; sums and products modulo 2^32 (2^64), as unsigned numbers."""
    if op in ("min", "max"):
        extreme: Array = x.min(axis=axis) if op == "min" else x.max(axis=axis)
        return extreme
    words = x.view(f"u{x.itemsize}")
    match op:
        case "sum":
            result = words.sum(axis=axis, dtype=words.dtype)
        case "prod":
            result = words.prod(axis=axis, dtype=words.dtype)
        case _:
            other = words if y is None else y.view(words.dtype)
            result = np.multiply(words, other).sum(axis=axis, dtype=words.dtype)
    return np.atleast_1d(result).view(x.dtype)


def _sum(x: Array, y: Array | None, axis: int, op: str) -> tuple[Array, Array]:
    """Sum, mean, sum of squares or dot product of floats, and the bound.

    Whatever the order, |computed - exact| <= (n - 1) u sum|x| for a sum and <= n u sum|x y| for a
    dot product, u half an epsilon, without higher terms and for any n (Jeannerod and Rump, 2013);
    fused multiply-adds only round less. Chains of more than MAX_CHAIN operations are not expected:
    in a tree of height h, h takes the place of n - 1. Products below the smallest normal number
    lose up to half a subnormal each. A mean rounds twice more: n itself, and the quotient. A sum
    is only sure where no order of additions overflows: sum|x| must be in range.
    """
    limits, n = np.finfo(x.dtype), x.shape[axis]
    terms, rest = _terms(x, y, op)
    finite = np.isfinite(terms)
    magnitude = np.sum(np.abs(terms), axis=axis, where=finite)
    exact = np.sum(terms, axis=axis)
    if x.dtype == np.float64:  # float32 has 29 bits less: there a sum of float64 is exact enough
        leading, lacks = _combine_all((terms, rest), axis, _add)
        exact = np.where(np.isfinite(exact), leading + lacks, exact)

    roundings = min(n if op in ("sumsq", "dot") else n - 1, MAX_CHAIN)
    lost = n * float(limits.smallest_subnormal) if op in ("sumsq", "dot") else 0.0
    sure = magnitude <= float(limits.max) * (1 - MAX_CHAIN * float(limits.eps))
    if op == "mean":
        exact, magnitude, roundings = exact / n, magnitude / n, roundings + 3
        lost = float(limits.smallest_subnormal)
    # The last factor covers the rounding of `magnitude`, and of `exact` in float64.
    bound = (roundings * float(limits.eps) / 2 * magnitude + lost) * (1 + 2.0**-20)
    return exact, np.where(sure, bound, np.inf)


def _terms(x: Array, y: Array | None, op: str) -> Parts:
    """What is summed, in float64: exact products of float32, leading and lower part of float64."""
    if op not in ("sumsq", "dot"):
        terms = x.astype(np.float64, copy=False)
        return terms, np.zeros_like(terms) if x.dtype == np.float64 else terms
    y = x if y is None else y
    if x.dtype == np.float32:
        terms = np.multiply(x, y, dtype=np.float64)
        return terms, terms
    return _two_product(x, y)


def _product(x: Array, axis: int) -> tuple[Array, Array]:
    """Product of floats, and the bound.

    n - 1 roundings, each a factor of 1 + d with |d| <= u: the relative error is at most
    (1 + u)^(n - 1) - 1. That holds while no partial product leaves the range of normal numbers,
    which no order does if the factors above 1 do not, nor those below 1.
    """
    limits, n = np.finfo(x.dtype), x.shape[axis]
    wide = x.astype(np.float64, copy=False)
    ordinary = np.isfinite(wide) & (wide != 0)
    logs = np.log2(np.abs(wide), where=ordinary, out=np.zeros_like(wide))
    above = np.sum(np.maximum(logs, 0), axis=axis)
    below = np.sum(np.minimum(logs, 0), axis=axis)
    sure = (above < limits.maxexp - 1) & (below > limits.minexp + 1)

    exact = np.prod(wide, axis=axis)
    if x.dtype == np.float64:
        leading, lacks = _combine_all((wide, np.zeros_like(wide)), axis, _multiply)
        exact = np.where(np.isfinite(exact), leading + lacks, exact)
    # As for sums; NumPy's own product of float64 is within the last factor for float32.
    relative = np.expm1(min(n - 1, MAX_CHAIN) * float(limits.eps) / 2) * (1 + 2.0**-20)
    return exact, np.where(sure, np.where(np.isfinite(exact), relative * np.abs(exact), 0), np.inf)


def _combine_all(parts: Parts, axis: int, combine: Callable[[Parts, Parts], Parts]) -> Parts:
    """Combine along `axis` in a tree, with twice the digits of float64."""
    leading, lacks = (np.moveaxis(part, axis, 0) for part in parts)
    while len(leading) > 1:
        half = len(leading) // 2
        pairs = combine(
            (leading[:half], lacks[:half]), (leading[half : 2 * half], lacks[half : 2 * half])
        )
        odd = slice(2 * half, None)
        leading, lacks = (
            np.concatenate([pair, part[odd]])
            for pair, part in zip(pairs, (leading, lacks), strict=True)
        )
    return leading[0], lacks[0]


def _add(a: Parts, b: Parts) -> Parts:
    """Knuth's exact sum of the leading parts; the lower parts take what it lacks."""
    total = a[0] + b[0]
    from_b = total - a[0]
    lacks = (a[0] - (total - from_b)) + (b[0] - from_b)
    return total, lacks + (a[1] + b[1])


def _multiply(a: Parts, b: Parts) -> Parts:
    product, lacks = _two_product(a[0], b[0])
    return product, lacks + (a[0] * b[1] + a[1] * b[0])


def _two_product(x: Array, y: Array) -> Parts:
    """Dekker's exact product of float64: x y = product + lacks."""
    product = x * y
    (xh, xl), (yh, yl) = _halves(x), _halves(y)
    lacks = ((xh * yh - product) + xh * yl + xl * yh) + xl * yl
    # Near the ends of the range the halves overflow: the product alone is then good enough.
    return product, np.where(np.isfinite(lacks), lacks, 0.0)


def _halves(x: Array) -> Parts:
    """Veltkamp's split of 53 bits into 26 and 27."""
    scaled = x * (2.0**27 + 1)
    high = scaled - (scaled - x)
    return high, x - high


# Comparing ---------------------------------------------------------------------------------------


def _compare_within(got: Array, expected: Array, bound: Array) -> Mismatches | None:
    """Compare floats as values: NaN agrees with NaN only, an infinity with itself only."""
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(got.astype(np.float64) - expected)
        right = (got == expected) | (error <= bound) | np.isinf(bound)
        right |= np.isnan(got) & np.isnan(expected)
    wrong = np.flatnonzero(~right)
    if len(wrong) == 0:
        return None
    first = [
        (int(i), f"{expected[i]:.17g} within {bound[i]:.3g}", show(got[i])) for i in wrong[:SHOWN]
    ]
    return Mismatches(len(wrong), len(expected), first)


def _likely_mistakes(got: Array, x: Array, y: Array | None, case: Case) -> Iterator[str]:
    """The wrong answers that forgotten items give, recognised by their value."""
    n = x.size
    for block in (32, 64, 128, 256, 512, 1024, 2048):
        for kept in (n - n % block, block):
            if 0 < kept < n:
                part = expected_and_bound(x[:kept], None if y is None else y[:kept], None, case)[0]
                if got.tobytes() == part.astype(got.dtype).tobytes():
                    yield (
                        f"the answer for the first {kept:,} of {n:,} items: "
                        "is the tail left out, or are the blocks' results not combined?"
                    )
                    return


# Data --------------------------------------------------------------------------------------------


def draw(case: Case, count: int, dist: str, seed: int) -> list[Array]:
    """Draw x, and y of a dot product, from PCG64's raw output: the same bytes on every platform.

    Floats are made of the raw integers by conversions, additions and powers of two, which IEEE 754
    defines to the bit. uniform: all integers, floats in [-1, 1). cancelling: the second half undoes
    the first but for small rests. wide-range: magnitudes of all orders. For products integers are
    odd (a few even ones make 0 modulo 2^32) and floats so close to ±1 that no order of
    multiplication leaves the range.
    """
    raw, dtype, op = np.random.PCG64(seed), np.dtype(case["dtype"]), case["op"]
    if dist == "all-ones":
        return [np.ones(count, dtype)] * (2 if op == "dot" else 1)
    if op == "prod":
        factors = _float_factors if dtype.kind == "f" else _odd_integers
        return [factors(raw, dtype, count, dist)]
    x = _draw_one(raw, dtype, count, dist)
    if op != "dot":
        return [x]
    if dist != "cancelling":
        return [x, _draw_one(raw, dtype, count, dist)]
    y = _uniform(raw, dtype, count)
    half = count // 2
    y[half : 2 * half] = y[:half][::-1]  # the factors of what cancels are equal
    return [x, y]


def _bits(raw: np.random.PCG64, dtype: np.dtype[Any], count: int) -> Array:
    words: Array = raw.random_raw(-(-count * dtype.itemsize // 8)).astype("<u8")
    return words.view(f"<u{dtype.itemsize}")[:count]


def _uniform(raw: np.random.PCG64, dtype: np.dtype[Any], count: int) -> Array:
    """Integers of all bits; floats k / 2^23 (2^52) in [-1, 1)."""
    bits = _bits(raw, dtype, count)
    if dtype.kind != "f":
        return bits.view(dtype)
    digits = np.finfo(dtype).nmant
    signed = bits.view(f"i{dtype.itemsize}") >> (8 * dtype.itemsize - digits - 1)
    fractions: Array = np.ldexp(signed.astype(dtype), -digits)
    return fractions


def _draw_one(raw: np.random.PCG64, dtype: np.dtype[Any], count: int, dist: str) -> Array:
    values = _uniform(raw, dtype, count)
    if dist == "cancelling":
        half = count // 2
        first, second = values[:half], values[half : 2 * half]
        if dtype.kind == "f":
            first[:] = np.ldexp(first, 20)
            second[:] = second - first[::-1]
        else:
            words = values.view(f"u{dtype.itemsize}")
            small = words[half : 2 * half] & words.dtype.type(0xFF)
            words[half : 2 * half] = small - words[:half][::-1]
    elif dist == "wide-range":
        spread = _bits(raw, dtype, count)
        if dtype.kind == "f":
            reach = 30 if dtype == np.float32 else 200  # squares, and 2^31 of them, in range
            exponents = (spread % spread.dtype.type(2 * reach + 1)).astype(np.int32) - reach
            values = np.ldexp(values + np.copysign(dtype.type(1), values), exponents)
        else:
            values = values >> (spread % spread.dtype.type(8 * dtype.itemsize)).astype(dtype)
    return values


def _odd_integers(raw: np.random.PCG64, dtype: np.dtype[Any], count: int, dist: str) -> Array:
    values: Array = _draw_one(raw, dtype, count, dist) | dtype.type(1)
    return values


def _float_factors(raw: np.random.PCG64, dtype: np.dtype[Any], count: int, dist: str) -> Array:
    """±(1 + r / 2^k) with |r| <= 1 and 2^k > count where the mantissa allows it.

    cancelling has up to 48 pairs of factors 2 and 1/2 as well, wide-range up to 8 factors of up to
    2^±12: 2^96 at most, whatever is multiplied first.
    """
    closeness = min(count.bit_length(), np.finfo(dtype).nmant - 1)
    values: Array = np.ldexp(_uniform(raw, dtype, count), -closeness) + dtype.type(1)
    values[_bits(raw, dtype, count) & 1 == 1] *= -1
    if dist == "cancelling":
        factors = np.tile(np.array([2, 0.5], dtype), min(count // 2, 48))
    elif dist == "wide-range":
        exponents = _bits(raw, np.dtype(np.uint32), min(count, 8)) % np.uint32(25)
        factors = np.ldexp(np.ones(len(exponents), dtype), exponents.astype(np.int32) - 12)
    else:
        return values
    if len(factors):
        values[np.arange(len(factors)) * count // len(factors)] *= factors
    return values
