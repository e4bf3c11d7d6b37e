"""What the tests of labs have in common."""

from __future__ import annotations

import pytest
from stand_ins import written_out

from cudalab.backends.cpu.compiler.flags import QUICK

WITH_LOOPS = ("test_variants", "test_huge", "test_transpose")  # the last one runs for seconds
OPTIMIZED = ("test_radixsort_plans", "test_solve_methods")  # kernels run longer than they compile


@pytest.fixture(autouse=True)
def fibers(request, monkeypatch):
    """Kernels with fibers, and hardly optimized, where both ways and speed are not the point.

    They compile in a third of the time.
    """
    uses = "device" in request.fixturenames and request.path.stem not in WITH_LOOPS
    device = request.getfixturevalue("device") if uses else None
    if getattr(device, "loops", None):
        monkeypatch.setattr(device, "loops", False)
        if request.path.stem not in OPTIMIZED:
            monkeypatch.setenv(QUICK, "1")


@pytest.fixture
def tensor_cores(device, tmp_path, monkeypatch):
    """Tensor cores and the copy engine, written out on the CPU device."""
    if device.name == "cpu":
        headers = ("wgmma.cuh", "fp16.cuh", "bf16.cuh", "bulk_copy.cuh", "tf32_product.cuh")
        written_out(tmp_path, monkeypatch, *headers, "meet_warps.cuh")
    elif "sm_90a" not in device.features:
        pytest.skip("needs compute capability 9.0")
