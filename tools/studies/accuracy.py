"""Measure how exact each variant of matmul and solve is, by scaling and condition number.

python -m tools.studies accuracy cpu      the variants that run on the CPU device
python -m tools.studies accuracy cuda     those that run on the GPU, beside cuBLAS and cuSOLVER

Stores docs/results/accuracy/; tools/generate.py makes the tables of docs/performance/README.md.
"""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cudalab import labs, runner
from cudalab.backends import open_device
from cudalab.backends.base import Device
from cudalab.bench.results import environment
from cudalab.errors import CudalabError
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Array, HostInputs
from tools import results

Rng = np.random.Generator
Errors = tuple[float, float]

SIZES = {"cpu": 256, "cuda": 1024}  # of products
UNKNOWNS = {"cpu": 200, "cuda": 1000}
UNIT = 2.0**-24  # half of the last bit of a float in [1, 2)


def powers(rng: Rng, limit: int, *shape: int) -> Array:
    """Powers of two between 2^-limit and 2^limit."""
    return np.ldexp(1.0, rng.integers(-limit, limit, shape, endpoint=True))


def random_signs(rng: Rng, n: int) -> tuple[Array, Array]:
    return rng.uniform(-1, 1, (n, n)), rng.uniform(-1, 1, (n, n))


def positive(rng: Rng, n: int) -> tuple[Array, Array]:
    return rng.uniform(0, 1, (n, n)), rng.uniform(0, 1, (n, n))


def scaled_outside(rng: Rng, n: int) -> tuple[Array, Array]:
    """Scale each row of A and each column of B by a power of its own."""
    a, b = random_signs(rng, n)
    return a * powers(rng, 30, n, 1), b * powers(rng, 30, n)


def scaled_inside(rng: Rng, n: int) -> tuple[Array, Array]:
    """A D and D^-1 B: each number's weight in the sum is hidden in its factor's size."""
    a, b = random_signs(rng, n)
    d = powers(rng, 20, n)
    return a * d, b / d[:, None]


def own_exponents(rng: Rng, n: int) -> tuple[Array, Array]:
    a, b = random_signs(rng, n)
    return a * powers(rng, 20, n, n), b * powers(rng, 20, n, n)


def cancelling(rng: Rng, n: int) -> tuple[Array, Array]:
    """[X X] [Y; Z / 10^4 - Y]: the sums are small compared with their terms."""
    x, y = rng.uniform(-1, 1, (n, n // 2)), rng.uniform(-1, 1, (n // 2, n))
    rest = 1e-4 * rng.uniform(-1, 1, (n // 2, n))
    return np.hstack([x, x]), np.vstack([y, rest - y])


PRODUCTS: dict[str, Callable[[Rng, int], tuple[Array, Array]]] = {
    "random signs": random_signs,
    "positive": positive,
    "rows and columns scaled by up to 2^±30": scaled_outside,
    "scaled along k by up to 2^±20": scaled_inside,
    "each number by up to 2^±20": own_exponents,
    "cancelling": cancelling,
}


def orthogonal(rng: Rng, n: int) -> Array:
    q: Array = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return q


def conditioned(condition: float) -> Callable[[Rng, int], Array]:
    """Matrices with singular values from 1 down to 1 / condition, in equal proportion."""

    def draw(rng: Rng, n: int) -> Array:
        return orthogonal(rng, n) * np.geomspace(1, 1 / condition, n) @ orthogonal(rng, n)

    return draw


def definite(condition: float) -> Callable[[Rng, int], Array]:
    """Symmetric matrices with eigenvalues from 1 down to 1 / condition, in equal proportion."""

    def draw(rng: Rng, n: int) -> Array:
        q = orthogonal(rng, n)
        a = q * np.geomspace(1, 1 / condition, n) @ q.T
        return (a + a.T) / 2

    return draw


def dominant(rng: Rng, n: int) -> Array:
    return rng.uniform(-1, 1, (n, n)) + 0.7 * n * np.eye(n)


def rows_scaled(rng: Rng, n: int) -> Array:
    return conditioned(10)(rng, n) * powers(rng, 20, n, 1)


def columns_scaled(rng: Rng, n: int) -> Array:
    return conditioned(10)(rng, n) * powers(rng, 20, n)


SYSTEMS: dict[str, Callable[[Rng, int], Array]] = {
    "dominant, not symmetric": dominant,
    **{f"definite, condition 10^{e}": definite(10.0**e) for e in (1, 3, 5)},
    **{f"condition 10^{e}": conditioned(10.0**e) for e in (1, 3, 5, 7)},
    "rows by up to 2^±20": rows_scaled,
    "columns by up to 2^±20": columns_scaled,
}


def main(device: str = "") -> None:
    """Measure both labs on one device and store the errors."""
    if device not in SIZES:
        sys.exit(__doc__)
    with open_device(device) as opened:
        described = environment(device, opened.info(), 0, ())
        tables = {
            "matmul": dict(of_products(opened, SIZES[device])),
            "solve": dict(of_systems(opened, UNKNOWNS[device])),
        }
    name = described.device_name
    stored = {
        "device": name,
        "date": results.today(),
        "commit": described.commit,
        "n": {"matmul": SIZES[device], "solve": UNKNOWNS[device]},
        "errors": tables,
    }
    results.write(results.FOLDER / "accuracy" / f"{results.slug(name)}.json", stored)


def of_products(device: Device, n: int) -> Iterator[tuple[str, dict[str, Errors | str]]]:
    """For each input, each variant's error: its norm, and its maximum in units of UNIT |A| |B|."""
    lab = labs.get("matmul")
    for what, draw in PRODUCTS.items():
        a, b = (x.astype(np.float32) for x in draw(np.random.default_rng(1), n))
        exact = a.astype(np.float64) @ b.astype(np.float64)
        terms = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)

        def errors(c: Array, exact: Array = exact, terms: Array = terms) -> Errors:
            off = c.astype(np.float64) - exact
            norm = np.linalg.norm(off) / np.linalg.norm(exact)
            return float(norm), float((np.abs(off) / terms).max() / UNIT)

        computed = answers(lab, device, HostInputs({"a": a, "b": b}, {"m": n, "k": n, "n": n}))
        row: dict[str, Errors | str] = {
            name: errors(c) if isinstance(c, np.ndarray) else c for name, c in computed
        }
        if device.name == "cuda" and importlib.util.find_spec("cupy"):
            import cupy  # noqa: PLC0415 - a GPU's

            row["cuBLAS"] = errors(cupy.asnumpy(cupy.asarray(a) @ cupy.asarray(b)))
        yield what, row


def of_systems(device: Device, n: int) -> Iterator[tuple[str, dict[str, Errors | str]]]:
    """For each system, each variant's backward error and the relative error of its answer."""
    lab = labs.get("solve")
    for what, draw in SYSTEMS.items():
        rng = np.random.default_rng(1)
        a = draw(rng, n).astype(np.float32)
        f = (a.astype(np.float64) @ rng.uniform(-1, 1, n)).astype(np.float32)
        wide = a.astype(np.float64), f.astype(np.float64)
        solution = np.linalg.solve(*wide)

        def errors(x: Array, wide: tuple[Array, Array] = wide, exact: Array = solution) -> Errors:
            a, f = wide
            size = np.abs(a).sum(axis=1).max() * np.abs(x).max() + np.abs(f).max()
            off = np.abs(x - exact).max() / np.abs(exact).max()
            return float(np.abs(a @ x - f).max() / size), float(off)

        computed = answers(lab, device, HostInputs({"a": a, "f": f}, {"n": n}))
        row: dict[str, Errors | str] = {
            name: errors(x.astype(np.float64)) if isinstance(x, np.ndarray) else x
            for name, x in computed
        }
        if device.name == "cuda" and importlib.util.find_spec("cupy"):
            import cupy  # noqa: PLC0415 - a GPU's

            x = cupy.linalg.solve(cupy.asarray(a), cupy.asarray(f))
            row["cuSOLVER"] = errors(cupy.asnumpy(x).astype(np.float64))
        yield what, row


def answers(lab: Lab, device: Device, inputs: HostInputs) -> Iterator[tuple[str, Array | str]]:
    """Each variant that the device runs, and its answer or the reason why there is none."""
    case = lab.complete({})
    for variant in registry.variants(lab):
        if variant.computes(case) and not variant.missing(device.features):
            yield variant.title, answer(lab, device, variant, inputs)


def answer(lab: Lab, device: Device, variant: Variant, inputs: HostInputs) -> Array | str:
    own = HostInputs(dict(inputs.arrays), dict(inputs.params))  # a plan may leave notes in them
    case = lab.complete({})
    try:
        step = runner.prepare(lab, variant, device, own, case)
        step()
        turned = any("turning to" in note for note in step.notes)
        return "left to another" if turned else device.to_host(step.out)
    except CudalabError as error:
        return f"refused: {error.message}"


def lines(stored: dict[str, Any], lab: str) -> tuple[list[str], list[list[str]]]:
    """The columns and rows of a lab's table: one row per variant, one column per input."""
    inputs = stored["errors"][lab]
    names = dict.fromkeys(name for row in inputs.values() for name in row)
    return [lab, *inputs], [
        [f"`{name}`" if name.islower() else name, *(cell(row.get(name)) for row in inputs.values())]
        for name in names
    ]


def cell(errors: list[float] | str | None) -> str:
    if errors is None:
        return ""
    return errors.split(":")[0] if isinstance(errors, str) else f"{errors[0]:.1e} ({errors[1]:.2g})"
