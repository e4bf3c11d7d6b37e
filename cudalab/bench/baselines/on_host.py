"""NumPy on the host's processor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cudalab.bench.baselines import operations
from cudalab.bench.measure import POISON, Candidate
from cudalab.errors import CudalabError, DeviceMemoryError

if TYPE_CHECKING:
    from cudalab.bench.baselines.operations import Compute
    from cudalab.labs.inputs import Array, Case, HostInputs


def candidates(lab: str, inputs: HostInputs, case: Case) -> list[Candidate]:
    """NumPy's way to compute the lab's answer; none where it has no such operation."""
    like = operations.answer_like(lab, inputs, case)
    if like is None:
        return []
    out = np.empty(*like)
    notes = [f"NumPy {np.__version__} on the host's processor"]
    compute = _plan(lab, inputs.arrays, inputs.params, case, out, notes)

    def run() -> None:
        with np.errstate(all="ignore"):  # infinities and NaNs are values like others
            try:
                compute()
            except np.linalg.LinAlgError as error:
                raise CudalabError(f"NumPy: {error}") from None
            except MemoryError as error:
                raise DeviceMemoryError(f"NumPy: out of host memory: {error}") from None

    return [
        Candidate(
            name="numpy",
            kind="baseline",
            run=run,
            answer=out.copy,
            poison=lambda: out.reshape(-1).view(np.uint8).fill(POISON),
            device="cpu",
            notes=notes,
        )
    ]


def _plan(
    lab: str,
    arrays: dict[str, Array],
    params: dict[str, Any],
    case: Case,
    out: Array,
    notes: list[str],
) -> Compute:
    """What NumPy does in another way than the libraries that have its functions."""
    if lab == "histogram":
        return lambda: _count(arrays["elements"], case, out)
    if lab == "scan":
        return _scan(arrays["items"], case, out, notes)
    if lab == "table":
        params = {**params, "step": arrays["step"]}
    plan = operations.PLANS[lab](np, arrays, params, case, out)
    assert plan is not None
    return plan


def _count(elements: Array, case: Case, out: Array) -> None:
    of_bytes = elements.dtype == np.uint8
    counts = np.bincount(elements, minlength=256 if of_bytes else case["bins"])
    if of_bytes and case["bins"] != operations.BYTE_VALUES:
        before = np.concatenate([[0], np.cumsum(counts)])
        counts = np.diff(before[operations.classes_of_bytes(case["bins"])])
    out[...] = counts


def _scan(items: Array, case: Case, out: Array, notes: list[str]) -> Compute:
    """One addition after the other: sums of float32 in float64, or the errors would add up too."""
    operator = {"sum": np.add, "min": np.minimum, "max": np.maximum}[case["op"]]
    exclusive = case["kind"] == "exclusive"
    source, target = (items[:-1], out[1:]) if exclusive else (items, out)
    wide = items.dtype == np.float32 and case["op"] == "sum"
    running = np.empty(len(target), np.float64) if wide else target
    if wide:
        notes.append("adds in float64")

    def scan_items() -> None:
        if exclusive:
            out[:1] = _identity(case["op"], items.dtype)
        operator.accumulate(source, dtype=running.dtype, out=running)
        if wide:
            target[...] = running

    return scan_items


def _identity(op: str, dtype: np.dtype[Any]) -> Any:
    if op == "sum":
        return 0
    if dtype.kind == "f":
        return np.inf if op == "min" else -np.inf
    limits = np.iinfo(dtype)
    return limits.max if op == "min" else limits.min
