"""What the tests of labs have in common."""

from __future__ import annotations

import pytest

WITH_LOOPS = ("test_variants", "test_huge")


@pytest.fixture(autouse=True)
def fibers(request):
    """Kernels with fibers, which compile in half of the time, where both ways are not the point."""
    uses = "device" in request.fixturenames and request.module.__name__ not in WITH_LOOPS
    device = request.getfixturevalue("device") if uses else None
    loops = getattr(device, "loops", None)
    if loops:
        device.loops = False
    yield
    if loops:
        device.loops = loops
