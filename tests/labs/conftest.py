"""What the tests of labs have in common."""

from __future__ import annotations

import pytest
from stand_ins import written_out

WITH_LOOPS = ("test_variants", "test_huge", "test_transpose")  # the last one runs for seconds


@pytest.fixture(autouse=True)
def fibers(request):
    """Kernels with fibers, which compile in half of the time, where both ways are not the point."""
    uses = "device" in request.fixturenames and request.path.stem not in WITH_LOOPS
    device = request.getfixturevalue("device") if uses else None
    loops = getattr(device, "loops", None)
    if loops:
        device.loops = False
    yield
    if loops:
        device.loops = loops


@pytest.fixture
def tensor_cores(device, tmp_path, monkeypatch):
    """Tensor cores and the copy engine, written out on the CPU device."""
    if device.name == "cpu":
        headers = ("wgmma.cuh", "fp16.cuh", "bf16.cuh", "bulk_copy.cuh", "tf32_product.cuh")
        written_out(tmp_path, monkeypatch, *headers, "meet_warps.cuh")
    elif "sm_90a" not in device.features:
        pytest.skip("needs compute capability 9.0")
