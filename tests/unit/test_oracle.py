"""A sample of the oracle: kernels against plain C++ at -O0, and against a GPU's stored answers."""

import pytest

from tests.oracle.draws import VERSION
from tests.oracle.faults import FAULTS
from tests.oracle.gpu import compared, documents
from tests.oracle.hunts import hunt, stored
from tests.oracle.runner import REPOSITORY, differences


@pytest.mark.parametrize("way", ["loops", "fibers"])
def test_random_kernels_give_what_a_sequential_host_program_gives(way):
    assert differences(list(range(12)), [way]) == []


def test_host_programs_give_what_gpus_have_given():
    stored = documents()
    if not stored:
        pytest.skip(f"no GPU has yet answered the kernels of version {VERSION} of the grammar")
    for path, document in stored:
        assert compared(document, 1) == (100, []), path.name


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_planted_fault_still_applies(fault):
    text = (REPOSITORY / fault.path).read_text()
    assert fault.changed(text) != text


def test_a_planted_fault_is_found():
    fault = next(each for each in FAULTS if each.name == "a wide shift left wraps")
    assert hunt(fault, ["loops"], limit=60).seed


def test_stored_hunts_are_for_faults_that_are_planted():
    assert {each["name"] for each in stored()} <= {each.name for each in FAULTS}
