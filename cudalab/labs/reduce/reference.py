"""The exact result of a reduction, and how far an answer in floating point may be from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cudalab.labs.inputs import Array, Case, HostInputs

if TYPE_CHECKING:
    from collections.abc import Callable

# An answer may come from a chain of this many operations, and each adds its rounding error. The
# defaults need far fewer for 2^31 items; 2^17 float32 roundings are less than 1 % of sum|x|.
MAX_CHAIN = 2**17

Parts = tuple[Array, Array]  # an unevaluated sum: the leading part and what it lacks


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
