"""The exact result of a reduction, and the error bound of an answer in floating point."""

from collections.abc import Callable

import numpy as np

from cudalab.labs.inputs import Array, Case, HostInputs

# An answer may be the result of a chain of this many operations, each with its rounding error. The
# defaults need far fewer for 2^31 items; 2^17 float32 roundings are less than 1 % of sum|x|.
MAX_CHAIN = 2**17

Parts = tuple[Array, Array]  # an unevaluated sum: the leading part and the remainder


def operands(inputs: HostInputs, case: Case) -> tuple[Array, Array | None, int | None]:
    """x, y for a dot product (else None), and the axis to reduce (None: everything)."""
    arrays = inputs.arrays
    return arrays["x"], arrays.get("y"), {"all": None, "rows": 1, "cols": 0}[case["along"]]


def expected_and_bound(
    x: Array, y: Array | None, axis: int | None, case: Case
) -> tuple[Array, Array | None]:
    """The right answer and, for floats, the error bound: infinity where overflow is possible."""
    if x.dtype.kind != "f":
        return np.atleast_1d(_integers(x, y, axis, case["op"])), None
    with np.errstate(all="ignore"):  # infinities and NaNs are ordinary values here
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
    """Reduce integers; sums and products are modulo 2^32 (2^64), as of unsigned numbers."""
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
    """Sum, mean, sum of squares or dot product of floats, and the error bound.

    In any order, |computed - exact| <= (n - 1) u sum|x| for a sum and <= n u sum|x y| for a dot
    product, with u half an epsilon, without higher terms and for any n (Jeannerod and Rump, 2013);
    fused multiply-adds only round less. In a tree of height h, h takes the place of n - 1; chains
    of more than MAX_CHAIN operations are not expected. Products below the smallest normal number
    lose up to half a subnormal each. A mean rounds twice more: n itself, and the quotient. There
    is a bound only if no order of additions overflows: sum|x| must be in range.
    """
    limits, n = np.finfo(x.dtype), x.shape[axis]
    terms, rest = _terms(x, y, op)
    finite = np.isfinite(terms)
    magnitude = np.sum(np.abs(terms), axis=axis, where=finite)
    exact = np.sum(terms, axis=axis)
    if x.dtype == np.float64:  # float32 has 29 bits less: for it, a float64 sum is exact enough
        leading, remainder = _combine_all((terms, rest), axis, _add)
        exact = np.where(np.isfinite(exact), leading + remainder, exact)

    roundings = min(n if op in ("sumsq", "dot") else n - 1, MAX_CHAIN)
    lost = n * float(limits.smallest_subnormal) if op in ("sumsq", "dot") else 0.0
    safe = magnitude <= float(limits.max) * (1 - MAX_CHAIN * float(limits.eps))
    if op == "mean":
        exact, magnitude, roundings = exact / n, magnitude / n, roundings + 3
        lost = float(limits.smallest_subnormal)
    # The last factor covers the rounding of `magnitude`, and of `exact` in float64.
    bound = (roundings * float(limits.eps) / 2 * magnitude + lost) * (1 + 2.0**-20)
    return exact, np.where(safe, bound, np.inf)


def _terms(x: Array, y: Array | None, op: str) -> Parts:
    """The terms in float64: products of float32 are exact, those of float64 have two parts."""
    if op not in ("sumsq", "dot"):
        terms = x.astype(np.float64, copy=False)
        return terms, np.zeros_like(terms) if x.dtype == np.float64 else terms
    y = x if y is None else y
    if x.dtype == np.float32:
        terms = np.multiply(x, y, dtype=np.float64)
        return terms, terms
    return _two_product(x, y)


def _product(x: Array, axis: int) -> tuple[Array, Array]:
    """Product of floats, and the error bound.

    n - 1 roundings, each a factor of 1 + d with |d| <= u, make a relative error of at most
    (1 + u)^(n - 1) - 1. That holds if no partial product leaves the range of normal numbers. None
    does, in any order, if neither the product of the factors above 1 nor of those below 1 does.
    """
    limits, n = np.finfo(x.dtype), x.shape[axis]
    wide = x.astype(np.float64, copy=False)
    ordinary = np.isfinite(wide) & (wide != 0)
    logs = np.log2(np.abs(wide), where=ordinary, out=np.zeros_like(wide))
    above = np.sum(np.maximum(logs, 0), axis=axis)
    below = np.sum(np.minimum(logs, 0), axis=axis)
    safe = (above < limits.maxexp - 1) & (below > limits.minexp + 1)

    exact = np.prod(wide, axis=axis)
    if x.dtype == np.float64:
        leading, remainder = _combine_all((wide, np.zeros_like(wide)), axis, _multiply)
        exact = np.where(np.isfinite(exact), leading + remainder, exact)
    # As for sums; NumPy's own product of float64 is within the last factor for float32.
    relative = np.expm1(min(n - 1, MAX_CHAIN) * float(limits.eps) / 2) * (1 + 2.0**-20)
    return exact, np.where(safe, np.where(np.isfinite(exact), relative * np.abs(exact), 0), np.inf)


def _combine_all(parts: Parts, axis: int, combine: Callable[[Parts, Parts], Parts]) -> Parts:
    """Combine along `axis` in a tree, with twice the precision of float64."""
    leading, remainder = (np.moveaxis(part, axis, 0) for part in parts)
    while len(leading) > 1:
        half = len(leading) // 2
        pairs = combine(
            (leading[:half], remainder[:half]),
            (leading[half : 2 * half], remainder[half : 2 * half]),
        )
        odd = slice(2 * half, None)
        leading, remainder = (
            np.concatenate([pair, part[odd]])
            for pair, part in zip(pairs, (leading, remainder), strict=True)
        )
    return leading[0], remainder[0]


def _add(a: Parts, b: Parts) -> Parts:
    """Knuth's exact sum of the leading parts; the lower parts take its remainder."""
    total = a[0] + b[0]
    from_b = total - a[0]
    remainder = (a[0] - (total - from_b)) + (b[0] - from_b)
    return total, remainder + (a[1] + b[1])


def _multiply(a: Parts, b: Parts) -> Parts:
    product, remainder = _two_product(a[0], b[0])
    return product, remainder + (a[0] * b[1] + a[1] * b[0])


def _two_product(x: Array, y: Array) -> Parts:
    """Dekker's exact product of float64: x y = product + remainder."""
    product = x * y
    (xh, xl), (yh, yl) = _halves(x), _halves(y)
    remainder = ((xh * yh - product) + xh * yl + xl * yh) + xl * yl
    # Near the ends of the range the halves overflow; then the product alone is good enough.
    return product, np.where(np.isfinite(remainder), remainder, 0.0)


def _halves(x: Array) -> Parts:
    """Veltkamp's split of 53 bits into 26 and 27."""
    scaled = x * (2.0**27 + 1)
    high = scaled - (scaled - x)
    return high, x - high
