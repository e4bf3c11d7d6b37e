"""The vendor's libraries through CuPy, on the memory and in the stream of the CUDA device.

The only module that imports CuPy. It is imported when it is asked for: an extra, and slow to load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cudalab.bench.baselines import operations
from cudalab.bench.measure import POISON, Candidate
from cudalab.errors import CudalabError, DeviceMemoryError, NoDeviceError

if TYPE_CHECKING:
    from cudalab.backends.base import Buffer
    from cudalab.bench.baselines.operations import Compute
    from cudalab.bench.measure import Sampler
    from cudalab.labs.inputs import Case, HostInputs


def load() -> Any:
    """The module. NoDeviceError says how to get it."""
    try:
        import cupy  # noqa: PLC0415 - see above
    except ImportError as error:
        raise NoDeviceError(
            f"the baseline cupy needs CuPy: {error}", hint="pip install 'cudalab[baselines]'"
        ) from None
    return cupy


def candidates(
    lab: str, sampler: Sampler, inputs: HostInputs, case: Case, buffers: dict[str, Buffer]
) -> list[Candidate]:
    """What CuPy offers for the lab; none where it has no such operation."""
    like = operations.answer_like(lab, inputs, case)
    if like is None:
        return []
    cupy = load()
    cupy.cuda.Stream.null.use()  # where the device launches, too
    cupy.get_default_memory_pool().free_all_blocks()  # what earlier baselines have left behind
    out = sampler.device.empty(*like)
    arrays = {name: array_over(cupy, buffer) for name, buffer in buffers.items()}
    plans = _plans(cupy, lab, arrays, inputs, case, array_over(cupy, out))
    return [_candidate(sampler, name, run, out, notes) for name, run, notes in plans]


def array_over(cupy: Any, buffer: Buffer) -> Any:
    """A CuPy array on the buffer's own memory, which it keeps alive."""
    memory = cupy.cuda.UnownedMemory(buffer.address, buffer.nbytes, buffer, 0)
    pointer = cupy.cuda.MemoryPointer(memory, 0)
    return cupy.ndarray(buffer.shape, buffer.dtype, pointer)


def _candidate(
    sampler: Sampler, name: str, compute: Compute, out: Buffer, notes: list[str]
) -> Candidate:
    """Run twice, so that all is compiled and allocated."""

    def run() -> None:
        try:
            compute()
        except MemoryError as error:
            raise DeviceMemoryError(f"{name}: {error}") from None
        except RuntimeError as error:  # of CUDA and of all its libraries
            raise CudalabError(f"{name}: {error}") from None

    device, meter = sampler.device, sampler.meter
    run()
    run()
    device.synchronize()
    return Candidate(
        name=name,
        kind="baseline",
        run=run,
        answer=lambda: device.to_host(out),
        poison=lambda: meter.fill(out, POISON),
        device=device.name,
        notes=notes,
    )


def _plans(
    cupy: Any, lab: str, arrays: dict[str, Any], inputs: HostInputs, case: Case, out: Any
) -> list[tuple[str, Compute, list[str]]]:
    """Name, computation and notes of each way that the libraries offer."""
    version = f"CuPy {cupy.__version__}"
    match lab:
        case "histogram":
            counts = _count(cupy, arrays["elements"], case, out)
            return [("cupy", counts, [f"{version}: CUB's HistogramEven"])]
        case "solve":
            return _solvers(cupy, arrays, out, version)
        case "transpose" if out.dtype.kind == "f":
            return [("cupy", _geam(arrays["matrix"], out), [f"{version}: cuBLAS geam"])]
        case "matmul":
            _full_float32()
    params = inputs.params
    if lab == "table":
        params = {**params, "step": inputs.arrays["step"]}
    plan = operations.PLANS[lab](cupy, arrays, params, case, out)
    if plan is None:
        return []
    library = {"matmul": ": cuBLAS, no TF32", "radixsort": ": CUB", "bitonic": ": CUB"}
    return [("cupy", plan, [version + library.get(lab, "")])]


def _full_float32() -> None:
    """No TF32, whatever the environment says."""
    from cupy._core import _routines_linalg as routines  # noqa: PLC0415 - has no public name

    routines.set_compute_type(np.float32, routines.COMPUTE_TYPE_FP32)


def _count(cupy: Any, elements: Any, case: Case, out: Any) -> Compute:
    """Classes of equal width, compared as integers; `cupy.histogram` compares in float64.

    `cupy.bincount` takes this path too, after two more passes for the least and the greatest value.
    """
    bins = case["bins"]
    of_bytes = elements.dtype == np.uint8
    width = operations.BYTE_VALUES if of_bytes else bins
    counts = cupy.zeros(width, np.int64)
    firsts = cupy.asarray(operations.classes_of_bytes(bins)) if of_bytes else None
    before = cupy.zeros(width + 1, np.int64)

    def count() -> None:
        counted = cupy.cuda.cub.device_histogram(elements, counts, width + 1)
        if firsts is None or bins == operations.BYTE_VALUES:
            out[...] = counted
        else:
            cupy.cumsum(counted, out=before[1:])
            out[...] = cupy.diff(before[firsts])

    return count


def _geam(matrix: Any, out: Any) -> Compute:
    """To cuBLAS, which counts columns first, the transpose is a copy into the other order."""
    from cupy import cublas  # noqa: PLC0415 - see above

    target = out.T  # rows x cols, columns first
    return lambda: cublas.geam("N", "N", 1.0, matrix, 0.0, matrix, out=target)


def _solvers(
    cupy: Any, arrays: dict[str, Any], out: Any, version: str
) -> list[tuple[str, Compute, list[str]]]:
    """LU factors and, for a positive definite matrix, its Cholesky factor, by cuSOLVER."""
    from cupyx import errstate, lapack  # noqa: PLC0415 - see above

    a, f = arrays["a"], arrays["f"]
    factors = cupy.empty_like(a)

    def solve_lu() -> None:
        cupy.copyto(factors, a)  # both are overwritten
        cupy.copyto(out, f)
        lapack.gesv(factors, out)

    def solve_cholesky() -> None:
        out[...] = lapack.posv(a, f)

    found = [("cupy", solve_lu, [f"{version}: cuSOLVER's LU factors"])]
    if bool((a == a.T).all()):
        try:
            with errstate(linalg="raise"):
                solve_cholesky()
        except np.linalg.LinAlgError:
            return found
        notes = [f"{version}: cuSOLVER's Cholesky factor; only for positive definite matrices"]
        found.append(("cupy (Cholesky)", solve_cholesky, notes))
    return found
