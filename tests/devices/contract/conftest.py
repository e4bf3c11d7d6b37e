"""The kernels of the contract, compiled once for each file of tests."""

from __future__ import annotations

import pytest
from contract import load


@pytest.fixture(scope="module")
def launches(device):
    return load(device, "launches.cu", T="int", FACTOR=3)
