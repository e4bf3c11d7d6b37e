"""Items to reduce: integers and floats whose sums and products reveal mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np

from cudalab.labs.inputs import Array, Case, ends, with_nans


def draw(case: Case, count: int, dist: str, seed: int) -> list[Array]:
    """Draw x, and y for a dot product, from PCG64's raw output: the same bytes on every platform.

    Floats are derived from the raw integers by conversions, additions and powers of two, which
    IEEE 754 defines to the bit. uniform: all integers, floats in [-1, 1). cancelling: the second
    half cancels the first except for small remainders. wide-range: magnitudes of all orders. nan:
    uniform, but about one float in 512 is a NaN. sorted, reversed: uniform, and the extremes are
    the first and the last item. ends: those of the type, or the floats nearest to 0. For products,
    integers are odd (a few even ones would make them 0 modulo 2^32), and floats so close to ±1 that
    no order of multiplication leaves the range.
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
    y[half : 2 * half] = y[:half][::-1]  # the factors of cancelling items are equal
    return [x, y]


def _bits(raw: np.random.PCG64, dtype: np.dtype[Any], count: int) -> Array:
    words: Array = raw.random_raw(-(-count * dtype.itemsize // 8)).astype("<u8", copy=False)
    return words.view(f"<u{dtype.itemsize}")[:count]


def _uniform(raw: np.random.PCG64, dtype: np.dtype[Any], count: int) -> Array:
    """Draw integers of all bits, or floats k / 2^23 (2^52) in [-1, 1)."""
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
            reach = 30 if dtype == np.float32 else 200  # the sum of 2^31 squares is in range
            exponents = (spread % spread.dtype.type(2 * reach + 1)).astype(np.int32) - reach
            values = np.ldexp(values + np.copysign(dtype.type(1), values), exponents)
        else:
            values = values >> (spread % spread.dtype.type(8 * dtype.itemsize)).astype(dtype)
    elif dist == "nan" and dtype.kind == "f":
        values = with_nans(values, raw.random_raw(count))
    elif dist in ("sorted", "reversed"):
        values = np.sort(values)[:: 1 if dist == "sorted" else -1].copy()
    elif dist == "ends":
        values = ends(raw.random_raw(count), dtype)
    return values


def _odd_integers(raw: np.random.PCG64, dtype: np.dtype[Any], count: int, dist: str) -> Array:
    values: Array = _draw_one(raw, dtype, count, dist) | dtype.type(1)
    return values


def _float_factors(raw: np.random.PCG64, dtype: np.dtype[Any], count: int, dist: str) -> Array:
    """Draw ±(1 + r / 2^k) with |r| <= 1, and 2^k > count if the mantissa allows it.

    cancelling also has up to 48 pairs of factors 2 and 1/2, wide-range up to 8 factors of up to
    2^±12: at most 2^96 in any order of multiplication.
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
