"""Reads of textures by whole programs: all modes at all kinds of coordinates, against NumPy."""

from itertools import product

import numpy as np

from tests.cli.test_run import run

COORDINATES, WIDTH, HEIGHT, DEPTH = 400, 13, 6, 3
WRAP, CLAMP, MIRROR, BORDER = range(4)
MODES = [(WRAP,) * 3, (CLAMP,) * 3, (MIRROR,) * 3, (BORDER,) * 3]
MODES += [(WRAP, BORDER, MIRROR), (MIRROR, CLAMP, WRAP)]
SHAPES = {"line": 1, "plane": 2, "volume": 3, "planes": 2}
FORMATS = [  # texels, channels, what is read
    (np.float32, 1, np.float32),
    (np.float32, 4, np.float32),
    (np.uint8, 4, np.float32),
    (np.int16, 1, np.float32),
    (np.uint8, 1, np.uint8),
    (np.int32, 2, np.int32),
]
BORDER_COLOR = np.array([0.25, -0.5, 2, 0.7], np.float32)
ONE, GUARD_BITS, SLICE_GUARD_BITS = 256, 4, 14


def places(rng):
    """Coordinates inside and outside, on texels' middles and edges, and special values."""
    tiny, huge = np.float32(1e-40), np.float32(3e38)
    special = [0, -0.0, np.nan, np.inf, -np.inf, tiny, -tiny, huge, -huge, 2**30, -(2**31), 1e6]
    special += [1, np.nextafter(np.float32(1), np.float32(0)), -1, 5, 13, 0.5, 12.5, -0.5, 13.5]
    special += [2**-126, -(2**-126), -1e-10, 2**20, 2**20 + 1, 2.0**29 + 64]
    count = COORDINATES * 3 // 8
    values = np.concatenate(
        [
            rng.choice(np.array(special, np.float32), count),
            rng.integers(-30, 60, count) / np.float32(2),
            rng.integers(-300, 600, count) / np.float32(256),
            rng.integers(-13, 39, count).astype(np.float32) / np.float32(13),
            rng.uniform(-1, 14, 2 * count),
            rng.uniform(-1.5, 2.5, 2 * count),
        ]
    ).astype(np.float32)
    rows = np.empty((COORDINATES, 4), np.float32)
    rows[:, :3] = rng.permutation(values).reshape(COORDINATES, 3)
    rows[:, 3] = rng.integers(-1, 5, COORDINATES).astype(np.int32).view(np.float32)
    return rows


def along(axis, size, mode, *, normalized, linear):
    """The indices of two texels along an axis, -1 for the border, and the second one's weight."""
    x = axis.astype(np.float64)
    x[~(np.abs(x) >= 2.0**-126)] = 0  # NaNs, too
    repeats = normalized and mode in (WRAP, MIRROR)
    if repeats:
        x[np.abs(x) > 2.0**30] = 0
    x = np.clip(x, *((-4, 4) if normalized and not repeats else (-(2.0**30), 2.0**30)))
    bits = 21
    position = np.floor(x * 2**bits).astype(np.int64)
    mirrored = (position >> bits & 1 == 1) & (mode == MIRROR) & normalized
    if repeats:
        position &= 2**bits - 1
    if normalized:
        position *= size
    if linear:
        drop = bits - 8
        position = (position + 2 ** (drop - 1) >> drop) - ONE // 2
        if not repeats and mode != BORDER:
            position = np.clip(position, 0, (size - 1) * ONE)
        first, fraction = position >> 8, position & 255
    else:
        first, fraction = position >> bits, np.zeros_like(position)
    indices = []
    for index in (first, first + 1):
        turned = np.where(mirrored, size - 1 - index, index)
        if mode == BORDER:
            indices.append(np.where((turned < 0) | (turned >= size), -1, turned))
        elif repeats and mode == WRAP:
            indices.append(turned % size)
        else:
            indices.append(np.clip(turned, 0, size - 1))
    return indices, fraction


def weights(x, y, total):
    """The weights of four texels, which are `total` together."""
    right = total * x + 128 >> 8
    left = total - right
    below_left, below_right = left * y + 127 >> 8, right * y + 128 >> 8
    return [left - below_left, right - below_right, below_left, below_right]


def blended_float(texels, parts, touched):
    """One weighted sum of floats; the texels come in slices of four."""
    bits = [int(each) for each in np.array(texels, np.float32).view(np.uint32)]
    used = [value for value, counts in zip(bits, touched, strict=True) if counts]
    specials = {value for value in used if value >> 23 & 255 == 255}
    if any(value & 0x7FFFFF for value in specials) or len({v >> 31 for v in specials}) == 2:
        return 0x7FFFFFFF
    if specials:
        return specials.pop()
    sums = []
    for at in range(0, len(bits), 4):
        slice_ = list(zip(bits[at : at + 4], parts[at : at + 4], strict=True))
        counted = [(value, part) for value, part in slice_ if part and value >> 23 & 255]
        greatest = max((value >> 23 & 255 for value, _ in counted), default=0)
        total = 0
        for value, part in counted:
            mantissa = (value & 0x7FFFFF | 0x800000) << GUARD_BITS
            product = (mantissa >> greatest - (value >> 23 & 255)) * int(part)
            total += -product if value >> 31 else product
        sums.append((total, greatest if total else 0))
    negative = all(value >> 31 for value, part in zip(bits, parts, strict=True) if part)
    greatest = max(exponent for _, exponent in sums)
    below = GUARD_BITS + 8
    total = sums[0][0]
    if len(sums) > 1:
        cut = below - SLICE_GUARD_BITS
        shifts = [greatest - exponent + cut for _, exponent in sums]
        total = sum(
            value << -shift if shift < 0 else value >> shift
            for (value, _), shift in zip(sums, shifts, strict=True)
        )
        below = SLICE_GUARD_BITS
    if not total:
        return 0x80000000 if negative else 0
    sign = 0x80000000 if total < 0 else 0
    shift = abs(total).bit_length() - 24
    exponent = greatest + shift - below
    if exponent < 1:
        return sign
    size = abs(total)
    rounded = (size + (1 << shift - 1)) >> shift if shift > 0 else size << -shift
    return sign | min((exponent - 1 << 23) + rounded, 0x7F800000)


def blended_integers(kind, total):
    """A weighted sum of small integers, as a number of 16 bits."""
    if kind == np.uint8:
        return np.float32(total + (total + 128 >> 8)) / np.float32(65535)
    return np.clip(total + 128 >> 8, -32767, 32767).astype(np.float32) / np.float32(32767)


def border_texel(kind, channels, read):
    """The border's color as a texel."""
    color = BORDER_COLOR[:channels]
    if read != np.float32:  # the color's first bytes
        return np.array([each.tobytes() for each in color]).view(np.uint32).astype(kind)
    if kind == np.float32:
        return color
    greatest = np.iinfo(kind).max
    scaled = np.clip(color, -1 if kind == np.int16 else 0, 1) * np.float32(greatest)
    whole = np.trunc(np.abs(scaled))
    whole += np.abs(scaled) - whole > 0.5  # halves towards zero
    return (np.sign(scaled) * whole).astype(kind)


def expected(texels, coordinates, formats, shape, mode, normalized, linear):
    """What reads of a texture give: rows of channels."""
    kind, channels, read = formats
    dimensions, depth = SHAPES[shape], DEPTH if shape in ("volume", "planes") else 1
    sizes = [WIDTH, HEIGHT if dimensions > 1 else 1, depth]
    count = WIDTH * sizes[1] * depth * channels
    data = texels.view(kind)[:count].reshape(depth, sizes[1], WIDTH, channels)
    none = ([np.zeros(COORDINATES, np.int64)] * 2, np.zeros(COORDINATES, np.int64))
    axes = [none] * 3
    for i in range(dimensions):
        axes[i] = along(coordinates[:, i], sizes[i], mode[i], normalized=normalized, linear=linear)
    if dimensions == 1 and linear and mode[0] == BORDER:  # half of a border's row lies before
        axes[1] = ([none[0][0] - 1, none[0][0]], none[1] + 128)
    layers = coordinates[:, 3].copy().view(np.int32).astype(np.int64)
    if shape == "planes":
        axes[2] = ([np.where((layers < 0) | (layers >= DEPTH), DEPTH - 1, layers)] * 2, none[1])
    (x, fx), (y, fy), (z, fz) = axes
    border = border_texel(kind, channels, read)

    def at(i):
        column, row, slice_ = x[i & 1], y[i >> 1 & 1], z[i >> 2]
        outside = (column < 0) | (row < 0) | (slice_ < 0)
        return np.where(outside[:, None], border, data[slice_, row, column])

    if not linear:
        result = at(0)
        if read == np.float32 != kind:
            result = result.astype(np.float32) / np.float32(np.iinfo(kind).max)
            return np.maximum(result, np.float32(-1))
        return result.astype(read)
    behind = ONE * fz + 128 >> 8
    corners = [at(i) for i in range(8 if shape == "volume" else 4)]
    parts = weights(fx, fy, ONE - behind)
    if shape == "volume":
        parts += weights(fx, fy, behind)
    if kind != np.float32:
        pairs = zip(corners, parts, strict=True)
        return blended_integers(kind, sum(c.astype(np.int64) * p[:, None] for c, p in pairs))
    total = [ONE - behind] * 4 + [behind] * 4
    touched = [
        (total[i] > 0) & ((not i & 1) | (fx > 0)) & ((not i & 2) | (fy > 0))
        for i in range(len(corners))
    ]
    bits = [
        [
            blended_float(
                [corner[n, channel] for corner in corners],
                [part[n] for part in parts],
                [each[n] for each in touched],
            )
            for channel in range(channels)
        ]
        for n in range(COORDINATES)
    ]
    return np.array(bits, np.uint32).view(np.float32)


def cases():
    """The textures, in the program's order, and how each is read."""
    for formats in FORMATS:
        filters = (False, True) if formats[2] == np.float32 else (False,)
        for shape, mode, normalized, linear in product(SHAPES, MODES, (False, True), filters):
            yield formats, shape, mode, normalized, linear


def test_reads_in_all_modes_are_those_of_a_reference(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    coordinates = places(rng)
    words = rng.integers(0, 2**32, WIDTH * HEIGHT * DEPTH * 4, np.uint32)
    exponents = rng.integers(120, 126, words.size, np.uint32)
    exponents[::50], exponents[7::61], exponents[3::90] = 0, 255, 254
    words = words & 0x807FFFFF | exponents << 23
    words[7::122] &= 0xFF800000  # infinities
    texels = words.astype(np.uint32).view(np.uint8)
    stdin = tmp_path / "in.bin"
    stdin.write_bytes(coordinates.tobytes() + texels.tobytes())
    written = []
    for loops in "10":
        monkeypatch.setenv("CUDALAB_LOOPS", loops)
        with stdin.open("rb") as file:
            done = run("texture_modes.cu", "cpu", stdin=file)
        assert done.returncode == 0, done.stderr.decode()
        written.append(done.stdout)
    assert written[0] == written[1]
    at = 0
    for case in cases():
        want = expected(texels, coordinates, *case).tobytes()
        assert written[0][at : at + len(want)] == want, case
        at += len(want)
    assert at == len(written[0])
