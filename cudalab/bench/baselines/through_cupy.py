"""The vendor's libraries through CuPy, on the memory and in the stream of the CUDA device.

The only module that imports CuPy, which is an extra and slow to load. Imported only if it is used.
"""

from typing import Any

import numpy as np

from cudalab.backends.base import Buffer
from cudalab.bench.measure import POISON, Candidate, Sampler
from cudalab.errors import CudalabError, DeviceMemoryError, NoDeviceError, install_command
from cudalab.labs.base import Lab
from cudalab.labs.inputs import Case, HostInputs
from cudalab.labs.libraries import Problem, Way


def load() -> Any:
    """The module CuPy. NoDeviceError says how to install it."""
    try:
        import cupy  # noqa: PLC0415 - see above
    except ImportError as error:
        raise NoDeviceError(
            f"the baseline cupy needs CuPy: {error}", hint=install_command("baselines")
        ) from None
    return cupy


class Vendor:
    """Routines of the vendor's libraries that CuPy's array functions do not use."""

    def __init__(self, cupy: Any) -> None:
        """Modules are imported on their first use."""
        self._cupy = cupy

    @property
    def device_histogram(self) -> Any:
        """CUB's histogram."""
        return self._cupy.cuda.cub.device_histogram

    @property
    def cublas(self) -> Any:
        """CuPy's module for cuBLAS."""
        from cupy import cublas  # noqa: PLC0415 - see above

        return cublas

    @property
    def lapack(self) -> Any:
        """CuPy's module for cuSOLVER, with LAPACK's names."""
        from cupyx import lapack  # noqa: PLC0415 - see above

        return lapack

    @property
    def errstate(self) -> Any:
        """The context manager that chooses how errors of linear algebra are treated."""
        from cupyx import errstate  # noqa: PLC0415 - see above

        return errstate

    def solve_refined(self, kind: str, a: Any, b: Any) -> Any:
        """Solve by cuSOLVER: factors in arithmetic of this kind, then refinement to float32.

        `kind` is FP32, TF32 or FP16, as CuPy's names of compute types end.
        """
        from cupy._core import _routines_linalg as routines  # noqa: PLC0415 - has no public name
        from cupyx import cusolver  # noqa: PLC0415 - see above

        before = routines.get_compute_type(np.float32)
        routines.set_compute_type(np.float32, getattr(routines, f"COMPUTE_TYPE_{kind}"))
        try:
            return cusolver.gesv(a, b)
        finally:
            routines.set_compute_type(np.float32, before)

    def compute_in_full_float32(self) -> None:
        """Disable TF32, regardless of environment variables."""
        from cupy._core import _routines_linalg as routines  # noqa: PLC0415 - has no public name

        routines.set_compute_type(np.float32, routines.COMPUTE_TYPE_FP32)


def candidates(
    lab: Lab, sampler: Sampler, inputs: HostInputs, case: Case, buffers: dict[str, Buffer]
) -> list[Candidate]:
    """The candidates of CuPy for the lab."""
    cupy = load()
    cupy.cuda.Stream.null.use()  # the stream of the device's launches
    cupy.get_default_memory_pool().free_all_blocks()  # memory of earlier baselines
    libraries = lab.teaching.libraries
    out = sampler.device.empty(*lab.answer_form(inputs, case))
    problem = Problem(
        xp=cupy,
        arrays={name: array_over(cupy, buffer) for name, buffer in buffers.items()},
        inputs=inputs,
        case=case,
        out=array_over(cupy, out),
        vendor=Vendor(cupy),
    )
    version = f"CuPy {cupy.__version__}"
    return [
        _candidate(sampler, way, ": ".join((version, *way.notes)), out)
        for way in libraries.cupy(problem)
    ]


def array_over(cupy: Any, buffer: Buffer) -> Any:
    """A CuPy array on the buffer's own memory, which it keeps alive."""
    memory = cupy.cuda.UnownedMemory(buffer.address, buffer.nbytes, buffer, 0)
    pointer = cupy.cuda.MemoryPointer(memory, 0)
    return cupy.ndarray(buffer.shape, buffer.dtype, pointer)


def _candidate(sampler: Sampler, way: Way, note: str, out: Buffer) -> Candidate:
    """A candidate, run twice so that everything is compiled and allocated."""
    name = f"cupy ({way.name})" if way.name else "cupy"

    def run() -> None:
        try:
            way.compute()
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
        notes=[note],
    )
