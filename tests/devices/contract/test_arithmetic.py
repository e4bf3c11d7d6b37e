"""What every device must compute: atomics, vectors, intrinsics, functions."""

from __future__ import annotations

import numpy as np
import pytest
from contract import load, random_ints, run

FULL = 0xFFFFFFFF


@pytest.fixture(scope="module")
def atomics(device):
    return load(device, "atomics.cu")


@pytest.fixture(scope="module")
def arithmetic(device):
    return load(device, "arithmetic.cu")


# Atomics ------------------------------------------------------------------------------------------


TOTALS = np.dtype(
    [
        *((name, "i4") for name in ("sum", "difference", "least", "greatest")),
        *((name, "u4") for name in ("usum", "uleast", "ugreatest", "conjunction")),
        *((name, "u4") for name in ("disjunction", "parity", "up", "down")),
        *((name, "u8") for name in ("wide_sum", "wide_least", "wide_greatest", "wide_parity")),
        *((name, "f4") for name in ("fsum", "fgreatest")),
        ("dsum", "f8"),
    ],
    align=True,
)


@pytest.mark.parametrize("memory", ["global", "shared"])
@pytest.mark.parametrize("n", [1, 100, 5000])
def test_atomic_totals(device, atomics, memory, n):
    array = random_ints(n, -(2**31), 2**31, seed=n)
    totals = device.to_device(np.zeros(TOTALS.itemsize, np.uint8))
    device.launch(atomics["clear_totals"], 1, 1, totals)
    grid = -(-n // 128) if memory == "global" else 1
    device.launch(
        atomics[f"total_in_{memory}_memory"],
        grid,
        128,
        device.to_device(array),
        totals,
        np.int32(n),
    )
    got = device.to_host(totals).view(TOTALS)[0]
    words = array.view(np.uint32)
    wide = words.astype(np.uint64) << np.uint64(20)
    down = 5
    for _ in range(n):
        down = down - 1 if 0 < down <= 12 else 12
    expected = {
        "sum": array.sum(dtype=np.int32),
        "difference": (-array).sum(dtype=np.int32),
        "least": array.min(),
        "greatest": array.max(),
        "usum": words.sum(dtype=np.uint32),
        "uleast": words.min(),
        "ugreatest": words.max(),
        "conjunction": np.bitwise_and.reduce(words),
        "disjunction": np.bitwise_or.reduce(words),
        "parity": np.bitwise_xor.reduce(words),
        "up": n % 10,
        "down": down,
        "wide_sum": wide.sum(),
        "wide_least": wide.min(),
        "wide_greatest": wide.max(),
        "wide_parity": np.bitwise_xor.reduce(wide),
        "fsum": (array & 7).sum(),
        "fgreatest": (array & 1023).max(),
        "dsum": 0.5 * (array & 7).sum(),
    }
    assert {name: got[name] for name in TOTALS.names} == expected


def test_atomics_return_what_was_there(device, atomics):
    n = 4096
    next_, tickets, token, wide_token, tokens, wide_tokens = run(
        device,
        atomics,
        "draw_tickets",
        n // 64,
        64,
        np.zeros(1, np.uint32),
        np.zeros(n, np.uint32),
        np.array([-1], np.int32),
        np.zeros(1, np.uint64),
        np.zeros(n, np.int32),
        np.zeros(n, np.uint64),
    )
    assert next_[0] == n
    np.testing.assert_array_equal(np.sort(tickets), np.arange(n))
    np.testing.assert_array_equal(np.sort([*tokens, token[0]]), np.arange(-1, n))
    handed_on = np.sort(np.concatenate([wide_tokens, wide_token]))
    np.testing.assert_array_equal(handed_on[1:], 2**32 + np.arange(n, dtype=np.uint64))
    assert handed_on[0] == 0


def test_lock_between_blocks(device, atomics):
    _, count = run(
        device, atomics, "count_under_lock", 200, 32, np.zeros(1, np.uint64), np.zeros(1, np.int32)
    )
    assert count[0] == 200


# Arithmetic ---------------------------------------------------------------------------------------


def test_vector_types(device):
    module = load(device, "vectors.cu")
    n = 40
    rng = np.random.default_rng(0)
    given = [
        rng.random((n, 4), np.float32),
        rng.integers(0, 2**32, (n, 4), np.uint32),
        rng.integers(0, 256, (n, 4), np.uint8),
        rng.integers(-5, 5, (n, 2), np.int32),
        rng.random((n, 2)),
    ]
    results = run(
        device, module, "swap_members", 1, n, *given, *(np.zeros_like(array) for array in given)
    )
    f, w, b, p, d = given
    expected = [f[:, ::-1], w[:, [1, 0, 3, 2]], b[:, [3, 0, 1, 2]], p[:, ::-1], d.copy()]
    expected[4][:, 0] += d[:, 1]
    for got, wanted in zip(results[5:], expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    (sizes,) = run(device, module, "store_sizes", 1, 1, np.zeros(10, np.int32))
    assert sizes.tolist() == [2, 8, 12, 4, 16, 16, 16, 4, 123, 321]
    array = random_ints(n)
    _, loaded = run(device, module, "load_through_cache", 1, n, array, np.zeros_like(array))
    np.testing.assert_array_equal(loaded, array)


def bits_reference(x, y):
    def signed(word):
        return word - 2**32 if word >= 2**31 else word

    both = x << 32 | y
    pair = y << 32 | x
    picks = [0x2416 >> 4 * byte & 7 for byte in range(4)]
    permuted = sum((pair >> 8 * pick & 255) << 8 * byte for byte, pick in enumerate(picks))
    shift = y & 31
    return [
        x.bit_count(),
        32 - x.bit_length(),
        (x & -x).bit_length(),
        int(f"{x:032b}"[::-1], 2),
        permuted,
        x * y >> 32,
        signed(x) * signed(y) >> 32 & FULL,
        pair << shift >> 32 & FULL,
        pair >> shift & FULL,
        both.bit_count(),
        64 - both.bit_length(),
        (both & -both).bit_length(),
        int(f"{both:064b}"[::-1], 2) >> 32,
        both * both >> 96,
        min(x, y),
        max(signed(x), signed(y)) & FULL,
    ]


def test_integer_intrinsics(device, arithmetic):
    corners = [0, 1, 2, 31, 32, 0x7FFFFFFF, 0x80000000, FULL, 0x80000001, 0xAAAAAAAA]
    rng = np.random.default_rng(0)
    xs = np.concatenate([np.repeat(corners, 10), rng.integers(0, 2**32, 156)]).astype(np.uint32)
    ys = np.concatenate([np.tile(corners, 10), rng.integers(0, 2**32, 156)]).astype(np.uint32)
    *_, out = run(
        device, arithmetic, "combine_bits", 1, 256, xs, ys, np.zeros((256, 16), np.uint32)
    )
    expected = [bits_reference(x, y) for x, y in zip(xs.tolist(), ys.tolist(), strict=True)]
    np.testing.assert_array_equal(out, np.array(expected, np.uint32))


def test_exact_functions(device, arithmetic):
    rng = np.random.default_rng(0)
    x = np.concatenate([[0.5, 1.5, -2.5, -0.5, 3.0], rng.uniform(-9, 9, 251)]).astype(np.float32)
    y = rng.uniform(0.1, 9, 256).astype(np.float32) * rng.choice([-1, 1], 256).astype(np.float32)
    *_, out = run(
        device, arithmetic, "compute_exactly", 1, 256, x, y, np.zeros((256, 16), np.float32)
    )
    # A product of two float32 is exact in float64; adding the third rounds twice, which shows
    # only where the float64 sum lies within 2^-53 of a float32 tie: not with these numbers.
    fma = (x.astype(np.float64) * y - x).astype(np.float32)
    expected = [
        np.sqrt(np.abs(x)),
        fma,
        np.floor(x),
        np.ceil(x),
        np.rint(x),
        np.trunc(x),
        np.minimum(x, y),
        np.maximum(x, y),
        np.copysign(x, y),
        x + y,
        x * y,
        x / y,
        1 / y,
        np.rint(x) + 0,
        np.trunc(x) + 0,
        -x,
    ]
    np.testing.assert_array_equal(out, np.stack(expected, axis=1))


def test_close_functions(device, arithmetic):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0.01, 8, (2, 256)).astype(np.float32)
    *_, out = run(
        device, arithmetic, "compute_closely", 1, 256, x, y, np.zeros((256, 16), np.float32)
    )
    a, b = x.astype(np.float64), y.astype(np.float64)
    expected = [
        1 / np.sqrt(a),
        np.exp(a),
        np.log(a),
        np.sin(a),
        np.cos(a),
        np.tanh(a),
        a**b,
        np.exp2(a),
        np.log2(a),
        np.arctan2(a, b),
        np.hypot(a, b),
        np.exp(a),
        a / b,
        np.clip(a - b, 0, 1),
        np.sqrt(a),
        np.exp(-a),
    ]
    # CUDA's documented bounds here are at most 4 units in the last place (2^-22 relative), but
    # 2 + floor(1.16 x) <= 11 units for __expf; sin, cos and log also have an absolute part near
    # their zeros, where a unit in the last place of 1 is the natural measure.
    relative = np.full(16, 4 * 2.0**-23)
    relative[11] = 11 * 2.0**-23
    error = np.abs(out - np.stack(expected, axis=1))
    bound = relative * np.maximum(np.abs(np.stack(expected, axis=1)), 1.0)
    bound[:, [0, 15]] = relative[0] * np.abs(np.stack(expected, axis=1))[:, [0, 15]]
    assert (error <= bound).all(), np.argwhere(error > bound)[:5]
