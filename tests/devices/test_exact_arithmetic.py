"""Conversions and shifts in a lab's kernel file that C++ leaves undefined: those of a GPU.

What is expected is written down from the PTX ISA: `shl` and `shr` clamp the places to the width,
`cvt` clamps a number to its type's range, and makes 0 of a NaN, or of one in double the number of
which only the highest bit is set.
"""

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cudalab.backends.cpu import kernels
from cudalab.backends.cpu.check import CheckDevice
from cudalab.backends.cpu.device import CpuDevice
from cudalab.errors import KernelCompileError, KernelError
from cudalab.language import arithmetic, kernel_file
from cudalab.language.source import load

PLACES = (0, 1, 7, 31, 32, 33, 40, 63, 64, 255)
VALUES = (0.0, -0.0, 1.5, -1.5, 3e9, -3e9, 5e9, 1e30, -1e30, math.inf, -math.inf, math.nan)
KERNEL = """
#define BIT(n) (1u << (n))
#define LOWEST(n) (BIT(n) - 1)
struct Digit {
    int places;
    __device__ unsigned of(unsigned key) const { return key >> places; }
};
template <class V>
__device__ V all_bits(V key, int n) {
    return key >> n;
}
extern "C" __global__ void shifts(const int* places, unsigned* words, int* ints) {
    const int i = threadIdx.x, n = places[i];
    words += 6 * i;
    words[0] = BIT(n);
    words[1] = LOWEST(n);
    words[2] = Digit{n}.of(0x80000001u);
    words[3] = all_bits(~0u, n);
    unsigned down = 0x80000001u;
    down >>= n;
    words[4] = down;
    words[5] = 3u << n;
    MEET
    ints[2 * i] = -8 >> n;
    int up = -3;
    up <<= n;
    ints[2 * i + 1] = up;
}
__device__ int truncated(T x) { return x; }
extern "C" __global__ void conversions(const T* values, int* ints, unsigned* words) {
    const int i = threadIdx.x;
    const T x = values[i];
    ints[3 * i] = (int)x;
    ints[3 * i + 1] = truncated(x);
    MEET
    int sum = 1;
    sum += x;
    ints[3 * i + 2] = sum;
    unsigned word = x;
    words[2 * i] = word;
    words[2 * i + 1] = static_cast<unsigned>(x);
}
"""


def left(value, places):
    return (value << places) % 2**32 if places < 32 else 0


def right(value, places):
    return value >> min(places, 40)


def into(value, least, greatest, dtype):
    if math.isnan(value):
        middle = least + 2**31 if least == 0 else least  # only the highest bit
        return middle if dtype == np.float64 else 0
    return int(max(least, min(greatest, value)))


@pytest.fixture(params=["loops", "fibers", "observed"])
def opened(request):
    observed = request.param == "observed"
    loops = request.param == "loops"
    with CheckDevice(detect=True, count=True) if observed else CpuDevice(1, loops=loops) as device:
        yield device


def compiled(device, tmp_path, dtype, *, meets):
    path = Path(tmp_path, "edges.cu")
    path.write_text(KERNEL, encoding="utf-8")
    name = "float" if dtype == np.float32 else "double"
    return device.compile(load(path), {"T": name, "MEET": "__syncthreads();" if meets else ""})


@pytest.mark.parametrize("meets", [True, False])
def test_shifts_by_more_than_there_is(opened, tmp_path, meets):
    module = compiled(opened, tmp_path, np.float32, meets=meets)
    places = opened.to_device(np.array(PLACES, np.int32))
    words = opened.to_device(np.zeros((len(PLACES), 6), np.uint32))
    ints = opened.to_device(np.zeros((len(PLACES), 2), np.int32))
    opened.launch(module["shifts"], 1, len(PLACES), places, words, ints)
    high, ones = 0x80000001, 2**32 - 1
    expected = [
        [left(1, n), (left(1, n) - 1) % 2**32, right(high, n), right(ones, n), right(high, n)]
        for n in PLACES
    ]
    expected = [[*words, left(3, n)] for words, n in zip(expected, PLACES, strict=True)]
    np.testing.assert_array_equal(opened.to_host(words), np.array(expected, np.uint32))
    signed = [[right(-8, n), left(-3, n)] for n in PLACES]
    np.testing.assert_array_equal(
        opened.to_host(ints), np.array(signed, np.int64).astype(np.uint32).view(np.int32)
    )


@pytest.mark.parametrize("meets", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_that_do_not_fit(opened, tmp_path, dtype, meets):
    module = compiled(opened, tmp_path, dtype, meets=meets)
    values = np.array(VALUES, dtype)
    ints = opened.to_device(np.zeros((len(VALUES), 3), np.int32))
    words = opened.to_device(np.zeros((len(VALUES), 2), np.uint32))
    opened.launch(module["conversions"], 1, len(VALUES), opened.to_device(values), ints, words)
    expected_ints, expected_words = [], []
    for value in values.tolist():
        whole = into(value, -(2**31), 2**31 - 1, dtype)
        after = into(float(dtype(1) + dtype(value)), -(2**31), 2**31 - 1, dtype)
        expected_ints.append([whole, whole, after])
        expected_words.append([into(value, 0, 2**32 - 1, dtype)] * 2)
    np.testing.assert_array_equal(opened.to_host(ints), np.array(expected_ints, np.int32))
    np.testing.assert_array_equal(opened.to_host(words), np.array(expected_words, np.uint32))


TRUTHS = """
extern "C" __global__ void load(const int* a, const int* b, const int* table, int* out) {
    const int i = threadIdx.x;
    out[4 * i] = table[!a[i]];
    out[4 * i + 1] = table[a[i] == b[i]];
    out[4 * i + 2] = table[(a[i] > 1) & (b[i] < 2)];
    out[4 * i + 3] = table[8 + (a[i] < b[i])];
}
"""


def test_a_truth_value_counts_as_one_in_an_address(opened, tmp_path):
    path = tmp_path / "truths.cu"
    path.write_text(TRUTHS, encoding="utf-8")
    a, b = np.indices((8, 8), np.int32).reshape(2, -1) % 3
    table, out = np.arange(100, 110, dtype=np.int32), np.zeros((64, 4), np.int32)
    device_out = opened.to_device(out)
    launch = opened.compile(load(path), {})["load"]
    opened.launch(launch, 1, 64, *map(opened.to_device, (a, b, table)), device_out)
    indices = np.stack([a == 0, a == b, (a > 1) & (b < 2), 8 + (a < b)], axis=1)
    np.testing.assert_array_equal(opened.to_host(device_out), table[indices.astype(int)])


FIELDS = """
struct Narrow { int field : 7; };
template <class S>
__device__ void add(S& narrow, float x) { narrow.field += x; }
extern "C" __global__ void fields(int* ints) {
    Narrow narrow = {3};
    add(narrow, 3e9f);
    ints[0] = narrow.field;
}
"""


def test_a_field_of_bits_that_only_a_template_knows(opened, tmp_path):
    """2,147,483,647 in seven bits is -1; no reference can be bound to the field."""
    path = Path(tmp_path, "fields.cu")
    path.write_text(FIELDS, encoding="utf-8")
    ints = opened.to_device(np.zeros(1, np.int32))
    opened.launch(opened.compile(load(path), {})["fields"], 1, 1, ints)
    assert opened.to_host(ints)[0] == -1


def test_what_cannot_have_a_gpus_values_refuses_to_run_and_changes_nothing_else(
    monkeypatch, opened, tmp_path
):
    """No statement is known to which this happens: the edits of two are made wrong on purpose."""
    real = arithmetic.groups

    def wrong(node, words, *, divisions):
        for group in real(node, words, divisions=divisions):
            if "truncated" in words.text(group.statement.first, group.statement.last):
                yield replace(group, edits=[(*each[:2], "no_such_name") for each in group.edits])
            else:
                yield group

    text = KERNEL.replace("return x;", "const int truncated = x; return truncated;")
    path = Path(tmp_path, "edges.cu")
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(arithmetic, "groups", wrong)
    kernel_file.read.cache_clear()
    kernels.for_host.cache_clear()
    line = 1 + text[: text.index("const int truncated")].count("\n")
    for _ in range(2):  # compiled, and from the cache
        module = opened.compile(load(path), {"T": "float", "MEET": ""})
        words = opened.to_device(np.zeros(6, np.uint32))
        places, ints = opened.to_device(np.array([33], np.int32)), opened.empty(12, np.int32)
        opened.launch(module["shifts"], 1, 1, places, words, ints)
        opened.synchronize()
        assert opened.to_host(words)[0] == 0
        values = opened.to_device(np.array([3e9], np.float32))
        with pytest.raises(KernelError, match=f"edges.cu:{line}: .* cannot be given a GPU's"):
            opened.launch(module["conversions"], 1, 1, values, ints, words)


def test_a_mistake_of_the_program_is_told_in_its_own_words(opened, tmp_path):
    path = Path(tmp_path, "wrong.cu")
    path.write_text('extern "C" __global__ void f(int* p, int n) { p[0] = (1 << n) + m; }\n')
    with pytest.raises(KernelCompileError) as error:
        opened.compile(load(path), {})
    assert re.search(r"'m'|\u2018m\u2019", error.value.message)
    assert "cudalab_" not in error.value.message


def test_no_conversion_without_a_cast_is_silently_the_processors(opened, tmp_path):
    """As in whole programs: a GPU's value, or an error with the line."""
    program = (Path(__file__).parents[1] / "programs/unfitting.cu").read_text(encoding="utf-8")
    kernel = program[program.index("template") : program.index("int main")]
    path = Path(tmp_path, "unfitting.cu")
    path.write_text(kernel.replace("__global__", 'extern "C" __global__'), encoding="utf-8")
    module = opened.compile(load(path), {})
    values, refused = opened.to_device(np.array([3e9], np.float32)), []
    for way in range(26):
        result = opened.to_device(np.zeros(1, np.int32))
        try:
            opened.launch(module["convert"], 1, 1, np.int32(way), values, result)
        except KernelError as error:
            refused.append(error.message)
        else:
            assert opened.to_host(result)[0] == 2147483647, way
    assert not [message for message in refused if "unfitting.cu:" not in message]
    assert len(refused) < 20
