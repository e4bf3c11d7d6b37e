"""A sample of the oracle: kernels as loops and with fibers against plain C++ at -O0."""

import pytest

from tests.oracle.runner import WAYS, differences


@pytest.mark.parametrize("way", WAYS)
def test_random_kernels_give_what_a_sequential_host_program_gives(way):
    assert differences(list(range(40)), [way]) == []
