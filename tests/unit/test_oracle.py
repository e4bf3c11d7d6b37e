"""A sample of the oracle: kernels against plain C++ at -O0, and against a GPU's stored answers."""

import shutil

import pytest

from tests.oracle.draws import VERSION
from tests.oracle.faults import FAULTS
from tests.oracle.foreign import Program, answers, verdict
from tests.oracle.gpu import compared, documents
from tests.oracle.hunts import hunt, stored
from tests.oracle.runner import REPOSITORY, differences

with_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ compiles the host programs")


@with_gcc
@pytest.mark.parametrize("way", ["loops", "fibers"])
def test_random_kernels_give_what_a_sequential_host_program_gives(way):
    assert differences(list(range(12)), [way]) == []


@with_gcc
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


@with_gcc
def test_a_planted_fault_is_found():
    fault = next(each for each in FAULTS if each.name == "structured bindings are copies")
    assert hunt(fault, ["loops"], limit=60).seed


def test_stored_hunts_are_for_faults_that_are_planted():
    assert {each["name"] for each in stored()} <= {each.name for each in FAULTS}


FOREIGN = """// ---fake_divergence -g 8,1,1 -l 4,1,1
extern "C" __global__ void entry(long *result, int *sequence_input) {
    __shared__ int s[4];
    s[threadIdx.x] = sequence_input[threadIdx.x];
    __syncthreads();
    result[blockIdx.x * blockDim.x + threadIdx.x] = s[3 - threadIdx.x] << blockIdx.x;
}
"""


@with_gcc
def test_a_kernel_of_another_generator_is_alike_in_all_ways(tmp_path):
    path = tmp_path / "one.cu"
    path.write_text(FOREIGN)
    given = answers(Program(path), ["loops", "fibers"])
    hashed = 7
    for i in range(8):
        hashed = hashed * 1099511628211 % 2**64 ^ 13 - i % 4 << i // 4
    assert given == dict.fromkeys(("plain", "loops", "fibers"), f"0 {hashed:016x}")
    assert verdict(given) == "alike"
    assert verdict({**given, "fibers": "0 1"}) == "differs with fibers"
    assert verdict({**given, "loops": "refused: why"}) == "refused with loops"
