"""The labs' computations in the words of an array library: `xp` is NumPy, or has its functions.

Each plan computes into `out`, whose memory is there already, like a lab's own step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cudalab.labs.keys import from_ordered_bits, ordered_bits

if TYPE_CHECKING:
    from collections.abc import Callable

    from cudalab.labs.inputs import Case, HostInputs

    Compute = Callable[[], None]
    # xp, arrays by name, params, case, out
    Plan = Callable[[Any, dict[str, Any], dict[str, Any], Case, Any], Compute | None]

BYTE_VALUES = 256


def answer_like(
    lab: str, inputs: HostInputs, case: Case
) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
    """Shape and type of a lab's answer; None for a lab that no library is compared with."""
    params = inputs.params
    first = next(iter(inputs.arrays.values()))
    shape: tuple[int, ...]
    match lab:
        case "radixsort" | "bitonic" | "scan":
            shape = first.shape
        case "reduce":
            shape = (1 if case["along"] == "all" else params[case["along"]],)
        case "histogram":
            return (case["bins"],), np.dtype(np.uint32)
        case "matmul":
            shape = (params["m"], params["n"])
        case "solve" | "table":
            shape = (params["n"],)
        case "transpose":
            shape = (params["cols"], params["rows"])
        case _:
            return None
    return shape, first.dtype


def sort(xp: Any, arrays: dict[str, Any], params: dict[str, Any], case: Case, out: Any) -> Compute:
    """Keys, floats by their bits; pairs through a stable argsort."""
    del params
    (given,) = arrays.values()
    if case.get("layout") == "pairs":

        def sort_pairs() -> None:
            keys = given[0] if given.dtype.kind == "u" else _ordered(xp, given[0])
            order = xp.argsort(keys, kind="stable")
            xp.take(given[0], order, out=out[0])
            xp.take(given[1], order, out=out[1])

        return sort_pairs
    if given.dtype.kind == "f":

        def sort_floats() -> None:
            bits = _ordered(xp, given)
            bits.sort()
            out[...] = _from_ordered(xp, bits, given.dtype)

        return sort_floats

    def sort_keys() -> None:
        xp.copyto(out, given)
        out.sort()

    return sort_keys


def _ordered(xp: Any, keys: Any) -> Any:
    """The keys' bits in unsigned order, as `ordered_bits` of the lab."""
    if xp is np:
        return ordered_bits(keys)
    bits = keys.view(f"u{keys.itemsize}")
    sign = bits.dtype.type(1 << (8 * keys.itemsize - 1))
    return xp.where(bits & sign, ~bits, bits | sign) if keys.dtype.kind == "f" else bits ^ sign


def _from_ordered(xp: Any, bits: Any, dtype: Any) -> Any:
    if xp is np:
        return from_ordered_bits(bits, dtype)
    sign = bits.dtype.type(1 << (8 * bits.itemsize - 1))
    return xp.where(bits & sign, bits ^ sign, ~bits).view(dtype)


def reduce(
    xp: Any, arrays: dict[str, Any], params: dict[str, Any], case: Case, out: Any
) -> Compute:
    """One call: a reduction of the whole array, of rows or of columns; products by BLAS."""
    del params
    x, y = arrays["x"], arrays.get("y", arrays["x"])
    op, dtype = case["op"], x.dtype
    axis = {"all": None, "rows": 1, "cols": 0}[case["along"]]
    target = out.reshape(()) if axis is None else out
    if op in ("sumsq", "dot"):
        if axis is None:
            return lambda: xp.dot(x, y, out=target)
        subscripts = "ij,ij->i" if axis == 1 else "ij,ij->j"

        def sum_squares() -> None:
            target[...] = xp.einsum(subscripts, x, x)

        return sum_squares
    if op == "max":
        return lambda: xp.max(x, axis=axis, out=target)
    if op == "min":  # CuPy 14.2 takes `out` of its own `min` for a dtype

        def minimum() -> None:
            target[...] = xp.min(x, axis=axis)

        return minimum
    combine = {"sum": xp.sum, "prod": xp.prod, "mean": xp.mean}[op]
    return lambda: combine(x, axis=axis, dtype=dtype, out=target)


def scan(
    xp: Any, arrays: dict[str, Any], params: dict[str, Any], case: Case, out: Any
) -> Compute | None:
    """A cumulative sum, one place further where the scan is exclusive."""
    del params
    x = arrays["items"]
    exclusive = case["kind"] == "exclusive"
    source, target = (x[:-1], out[1:]) if exclusive else (x, out)
    if case["op"] != "sum":
        return None

    def scan_items() -> None:
        if exclusive:
            out[:1] = 0
        xp.cumsum(source, dtype=x.dtype, out=target)

    return scan_items


def matmul(
    xp: Any, arrays: dict[str, Any], params: dict[str, Any], case: Case, out: Any
) -> Compute:
    """BLAS; a transpose costs nothing."""
    del params
    a = arrays["a"]
    b = arrays.get("b", a)
    right = b if case["product"] == "ab" else b.T
    return lambda: xp.matmul(a, right, out=out)


def solve(xp: Any, arrays: dict[str, Any], params: dict[str, Any], case: Case, out: Any) -> Compute:
    """LU factors with pivoting by LAPACK."""
    del params, case

    def solve_system() -> None:
        out[...] = xp.linalg.solve(arrays["a"], arrays["f"])

    return solve_system


def transpose(
    xp: Any, arrays: dict[str, Any], params: dict[str, Any], case: Case, out: Any
) -> Compute:
    """A copy of the array seen from the other side."""
    del params, case
    return lambda: xp.copyto(out, arrays["matrix"].T)


def table(xp: Any, arrays: dict[str, Any], params: dict[str, Any], case: Case, out: Any) -> Compute:
    """Three passes over the array."""
    del case
    n, step = params["n"], np.float32(np.asarray(params["step"]).item())
    del arrays

    def tabulate() -> None:
        x = xp.arange(n, dtype=np.float32)
        x *= step
        xp.sqrt(x, out=x)
        xp.sin(x, out=out)

    return tabulate


def classes_of_bytes(bins: int) -> list[int]:
    """The first byte of each class, class = byte * bins >> 8, and then 256."""
    return [-(-BYTE_VALUES * c // bins) for c in range(bins + 1)]


PLANS: dict[str, Plan] = {
    "bitonic": sort,
    "matmul": matmul,
    "radixsort": sort,
    "reduce": reduce,
    "scan": scan,
    "solve": solve,
    "table": table,
    "transpose": transpose,
}
