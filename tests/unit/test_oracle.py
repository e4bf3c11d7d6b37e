"""A sample of the oracle: kernels against plain C++ at -O0, and against a GPU's stored answers."""

import pytest

from tests.oracle.gpu import compared, documents
from tests.oracle.runner import differences


@pytest.mark.parametrize("way", ["loops", "fibers"])
def test_random_kernels_give_what_a_sequential_host_program_gives(way):
    assert differences(list(range(12)), [way]) == []


def test_host_programs_give_what_gpus_have_given():
    for path, document in documents():
        assert compared(document, 2) == (200, []), path.name
