"""The histogram lab: its classes, data, errors, drawings, and the variants at their edges."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from together import compile_together

from cudalab import labs, runner
from cudalab.backends import facts
from cudalab.cli.work.compare import check_plot
from cudalab.errors import (
    InputError,
    KernelCompileError,
    NoDeviceError,
    UsageError,
    install_command,
)
from cudalab.formats import InputStream
from cudalab.labs import registry
from cudalab.labs.histogram.lab import cumulative, weights
from cudalab.labs.inputs import HostInputs
from cudalab.output import plots

LAB = labs.get("histogram")
VARIANTS = [variant.name for variant in registry.variants(LAB)]
# Bins that no other test reaches: at the edges of tables, copies and ranges.
BINS = {
    "uint8": (1, 2, 3, 63, 64, 65, 100, 255, 256),
    "uint32": (1, 64, 256, 383, 384, 385, 12_286, 12_287, 12_289, 24_577, 65_536),
}


def case(dtype: str = "uint8", bins: int = 256) -> dict[str, object]:
    return LAB.complete({"dtype": dtype, "bins": bins})


def inputs(data: np.ndarray) -> HostInputs:
    return HostInputs({"elements": data}, {"n": len(data), "stream": "stdin"})


def count(device, variant, data, case):
    """The variant's answer, computed on the device, into memory that was not zero."""
    step = runner.prepare(LAB, variant, device, inputs(data), case, watch=runner.Stopwatch())
    device.copy(np.full(step.out.nbytes, 0xA5, np.uint8), step.out)
    step()
    return device.to_host(step.out)


def drawn(case, n, dist, seed=1):
    stream = b"".join(LAB.generate(case, n, dist, seed))
    assert stream[:4] == np.int32(n).tobytes()
    return np.frombuffer(stream[4:], case["dtype"])


# Classes and the reference ---------------------------------------------------------------------


def test_the_course_s_example():
    data = np.array([1, 2, 3, 1, 2, 3, 1, 2, 3, 4], np.uint8)
    counts = LAB.reference(inputs(data), case())
    assert (counts.dtype, counts.shape) == (np.uint32, (256,))
    assert {i: n for i, n in enumerate(counts.tolist()) if n} == {1: 3, 2: 3, 3: 3, 4: 1}
    counts = LAB.reference(inputs(data), case(bins=64))
    assert {i: n for i, n in enumerate(counts.tolist()) if n} == {0: 9, 1: 1}


@given(st.lists(st.integers(0, 255), max_size=50), st.integers(1, 256))
def test_the_reference_against_python_s_counter(data, bins):
    expected = Counter(byte * bins >> 8 for byte in data)
    counts = LAB.reference(inputs(np.array(data, np.uint8)), case(bins=bins)).tolist()
    assert counts == [expected[i] for i in range(bins)]
    assert sum(counts) == len(data)


@given(
    st.integers(1, 65_536).flatmap(
        lambda k: st.tuples(st.just(k), st.lists(st.integers(0, k - 1), max_size=50))
    )
)
def test_the_reference_of_given_classes(bins_and_data):
    bins, data = bins_and_data
    counts = LAB.reference(inputs(np.array(data, np.uint32)), case("uint32", bins))
    assert {i: counts[i] for i in np.flatnonzero(counts)} == Counter(data)


@pytest.mark.parametrize(
    ("dtype", "bins", "classes"),
    [
        ("uint8", 64, "64"),
        ("uint8", 256, "256"),
        ("uint8", 100, "few"),
        ("uint32", 64, "64"),
        ("uint32", 12_286, "few"),
        ("uint32", 12_289, "many"),
    ],
)
def test_kinds_of_classes(dtype, bins, classes):
    found = case(dtype, bins)
    assert found["classes"] == classes
    assert LAB.kernel_defines(found)["NUM_BINS"] == bins
    assert LAB.complete({"dtype": dtype, "classes": classes})["classes"] == classes


def test_defaults():
    assert LAB.complete({}) == {"dtype": "uint8", "classes": "256", "bins": 256}


@pytest.mark.parametrize(
    ("given_case", "message"),
    [
        ({"bins": 0}, "--bins 0: uint8 elements have 1 to 256 classes"),
        ({"bins": 257}, "--bins 257: uint8 elements have 1 to 256 classes"),
        ({"dtype": "uint32", "bins": 65_537}, "--bins 65537: uint32 elements have 1 to 65,536"),
        ({"classes": "many"}, "--bins 65536: uint8 elements have 1 to 256 classes"),
    ],
)
def test_impossible_numbers_of_bins(given_case, message):
    with pytest.raises(UsageError, match=message):
        LAB.complete(given_case)


# Variants on the device ------------------------------------------------------------------------


def computed(variant):
    """The numbers of bins that a variant computes, each with its type."""
    every = [(dtype, bins) for dtype in BINS for bins in BINS[dtype]]
    return [each for each in every if variant.computes(case(*each))]


@pytest.fixture(scope="module")
def kernels_of(device):
    """A function that compiles a variant for all BINS at once."""

    @cache
    def kernels(name):
        variant = registry.find(LAB, name)
        every = computed(variant)
        cases = [case(*each) for each in every]
        return dict(zip(every, compile_together(device, LAB, variant, cases), strict=True))

    return kernels


@pytest.mark.parametrize(
    ("name", "dtype", "bins"),
    [(name, *each) for name in VARIANTS for each in computed(registry.find(LAB, name))],
)
def test_any_number_of_bins(device, kernels_of, monkeypatch, name, dtype, bins):
    chosen, variant = case(dtype, bins), registry.find(LAB, name)
    if facts(device.name).on_host:
        monkeypatch.setattr(LAB, "compiled", lambda *_: kernels_of(name)[dtype, bins])
    for n, dist in ((1, "equal"), (1023, "zipf"), (16_129, "uniform"), (70_003, "one-hot")):
        data = drawn(chosen, n, dist)
        found = LAB.compare(count(device, variant, data, chosen), inputs(data), chosen)
        assert found is None, f"n = {n}, {dist}: {found}"


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("n", [3, 32_773, 9_000_001])
def test_the_ticket_resets_itself(device, n, long):
    """Runs of one step without a batch, with a block more than batches, with more batches."""
    variant, data = registry.find(LAB, "privatized_tickets"), np.arange(n).astype(np.uint8)
    defines = {**variant.defines, "LONG_BATCHES": 0 if long else 2**20}
    variant = dataclasses.replace(variant, defines=defines)
    watch = runner.Stopwatch()
    step = runner.prepare(LAB, variant, device, inputs(data), case(), watch=watch)
    for _ in range(3):
        device.copy(np.full(step.out.nbytes, 0xA5, np.uint8), step.out)
        step()
        np.testing.assert_array_equal(device.to_host(step.out), np.bincount(data, minlength=256))


@pytest.mark.parametrize("name", [name for name in VARIANTS if name.startswith("per_thread_64")])
@pytest.mark.parametrize("byte", [0, 255])
def test_byte_counters_hold_equal_data(device, name, byte):
    """252 equal bytes for every thread of a block: as full as a counter gets."""
    data = np.full(128 * 63 * 4 * 2, byte, np.uint8)
    counts = count(device, registry.find(LAB, name), data, case(bins=64))
    assert counts[byte >> 2] == counts.sum() == len(data)


@pytest.mark.parametrize("name", [name for name in VARIANTS if name.startswith("per_thread_64")])
def test_more_words_than_a_byte_can_count_do_not_compile(device, name):
    variant = registry.find(LAB, name)
    careless = dataclasses.replace(variant, defines={**variant.defines, "WORDS_PER_THREAD": 64})
    with pytest.raises(KernelCompileError, match="a byte counter would overflow"):
        count(device, careless, np.zeros(1, np.uint8), case(bins=64))


def test_all_lanes_of_a_warp_in_one_counter(device):
    """warp_tagged takes 32 rounds for each of these bytes; without its barriers some are lost."""
    data = np.full(6 * 32 * 64 * 4 + 5, 7, np.uint8)
    counts = count(device, registry.find(LAB, "warp_tagged"), data, case())
    assert counts[7] == counts.sum() == len(data)


@pytest.mark.parametrize(
    ("name", "bins"),
    [
        (name, bins)
        for name in VARIANTS
        for bins in (256, 1000, 65_536)
        if registry.find(LAB, name).computes(case("uint32", bins))
    ],
)
def test_a_value_that_is_no_class_is_named(device, name, bins):
    chosen, variant = case("uint32", bins), registry.find(LAB, name)
    data = drawn(chosen, 300_007, "uniform").copy()
    for bad in (300_006, 170_001, 65_536, 0):  # each before the ones already there
        data[bad] = bins if bad else 2**32 - 1
        with pytest.raises(InputError) as error:
            count(device, variant, data, chosen)
        assert error.value.message == (
            f"stdin: element {bad:,} (byte {4 + 4 * bad:,}) is {int(data[bad]):,}: "
            f"not below the number of classes, {bins:,}"
        )
        with pytest.raises(InputError, match=f"element {bad:,} "):
            LAB.reference(inputs(data), chosen)


def test_bad_elements_are_looked_for_after_the_launches(device):
    """So that a time is that of the launches, by the device's own clock."""
    chosen = case("uint32", 256)
    data, watch = np.array([1, 2, 300], np.uint32), runner.Stopwatch()
    variant = registry.default(LAB, chosen, device.name, device.features)
    step = runner.prepare(LAB, variant, device, inputs(data), chosen, watch=watch)
    assert not step.reads_back
    step.run()
    for look in (step.check, step):
        with pytest.raises(InputError, match=r"element 2 .* is 300"):
            look()


def test_a_bad_element_gives_no_answer_at_all():
    stream = np.array([3, 1, 5, 2], np.uint32).tobytes()
    command = [sys.executable, "-m", "cudalab", "histogram", "--device", "cpu", "--dtype", "uint32"]
    done = subprocess.run(
        [*command, "--bins", "5"], input=stream, capture_output=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert (
        b"Error: stdin: element 1 (byte 8) is 5: not below the number of classes, 5" in done.stderr
    )


# Verdicts --------------------------------------------------------------------------------------


def verdict(got, data):
    found = LAB.compare(np.array(got, np.uint32), inputs(np.array(data, np.uint8)), case(bins=4))
    return None if found is None else str(found)


def test_verdicts():
    assert verdict([2, 0, 1, 0], [0, 1, 128]) is None
    assert verdict([1, 1, 1, 0], [0, 1, 128]) == (
        "2 of 4 elements differ\n"
        "the counts add up to 3, as they must: elements are in wrong classes\n"
        "  [0] expected 2, got 1\n"
        "  [1] expected 0, got 1"
    )
    assert "the counts add up to 2, but there are 3 elements" in verdict([1, 0, 1, 0], [0, 1, 128])


def test_no_elements_give_zeros():
    nothing = LAB.empty_answer(HostInputs({}, {"n": 0}), case(bins=64))
    assert (nothing.tolist(), nothing.dtype) == ([0] * 64, np.uint32)
    assert LAB.empty_answer(HostInputs({}, {"n": 1}), case()) is None


# Data ------------------------------------------------------------------------------------------

DIGESTS = {
    ("uint8", 256, "uniform"): "33ce520bc6bd812bd46dce4791a7c03d",
    ("uint8", 256, "normal"): "d0b21a7cff6be7b1336bcf122b3df292",
    ("uint8", 256, "binomial"): "80155e93eb5709b23283789b0ef1a425",
    ("uint8", 256, "poisson"): "b06f0ba7ce3f644970bfbfdab7bc0b38",
    ("uint8", 256, "exponential"): "06506a265098d73d6eeb65801b5862f0",
    ("uint8", 256, "geometric"): "d6fae6730f7adb1be864feced56f97bc",
    ("uint8", 256, "zipf"): "1ecef7a2d17a812288559f79a104de75",
    ("uint8", 256, "equal"): "894dc14979e279d1dcafe7846370ba86",
    ("uint8", 256, "one-hot"): "8f06d2f1bd7af0b8f4e0fa52ed088793",
    ("uint32", 1_000, "uniform"): "8c96fbc5003823730c5c4d0d8c140dd6",
    ("uint32", 1_000, "zipf:1.5"): "6d0c2a08865c3c2f3e8ff2577e90b9a1",
    ("uint32", 65_536, "normal"): "30907d0e4a43bee6a6e21a2b02befff0",
    ("uint32", 65_536, "poisson"): "c9c63e28e992aea32ce6c10fcd432c93",
}


@pytest.mark.parametrize("key", DIGESTS, ids=lambda key: f"{key[0]}-{key[1]}-{key[2]}")
def test_same_seed_same_bytes(key):
    dtype, bins, dist = key
    stream = b"".join(LAB.generate(case(dtype, bins), 100_000, dist, 42))
    assert hashlib.sha256(stream).hexdigest()[:32] == DIGESTS[key]


def test_bytes_do_not_depend_on_the_number_of_bins():
    one, two = (drawn(case(bins=bins), 1000, "normal") for bins in (64, 256))
    np.testing.assert_array_equal(one, two)


def test_a_longer_stream_starts_like_a_shorter_one():
    short, long = (drawn(case(), n, "poisson") for n in (2**20 - 1, 2**20 + 1))
    np.testing.assert_array_equal(short, long[:-2])


@pytest.mark.parametrize("dist", [*LAB.distributions, "normal:3,7.5", "zipf:2.5", "one-hot:0.9"])
@pytest.mark.parametrize(("dtype", "bins"), [("uint8", 256), ("uint32", 1000)])
def test_frequencies_agree_with_the_probabilities(dist, dtype, bins):
    n = 200_000
    counts = np.bincount(drawn(case(dtype, bins), n, dist), minlength=bins)
    assert len(counts) == bins
    chosen = int(np.random.PCG64(1).random_raw() % bins)
    table = weights(dist, bins, chosen)
    expected = np.array([float(n * weight / sum(table)) for weight in table])
    # Four deviations of a Poisson variable, and one for where they are tiny: 1000 classes of nine
    # distributions stay within (the seed is fixed).
    assert (np.abs(counts - expected) <= 4.5 * np.sqrt(expected) + 2).all()


def shares(dist, values):
    """The probabilities that the thresholds stand for, as multiples of 2^-32."""
    bounds = cumulative(weights(dist, values, 0)).astype(np.int64)
    assert (np.diff(bounds) >= 0).all()
    full = np.concatenate([[0], bounds, np.full(values - len(bounds), 2**32)])
    return np.diff(full)


def test_thresholds_are_exact():
    assert set(shares("uniform", 256).tolist()) == {2**24}
    assert shares("equal:3", 8).tolist() == [0, 0, 0, 2**32, 0, 0, 0, 0]
    assert shares("one-hot", 4).tolist() == [2**31 + 2**29, 2**29, 2**29, 2**29]
    assert shares("geometric:0.5", 3).sum() == 2**32
    binomial = shares("binomial:0.25", 6)
    for v, share in enumerate(binomial.tolist()):
        exact = Fraction(math.comb(5, v) * 3 ** (5 - v), 4**5)
        assert abs(share - exact * 2**32) <= 1
    halves = shares("zipf:1", 3) * 11  # 1, 1/2, 1/3 of 11/6
    assert np.abs(halves - np.array([6, 3, 2]) * 2**32).max() <= 11


def test_normal_data_are_symmetric():
    found = shares("normal", 256)
    assert np.abs(found - found[::-1]).max() <= 1


@pytest.mark.parametrize("dist", ["poisson", "poisson:1", "exponential:0.01", "normal:0.001,9"])
def test_extreme_parameters_have_a_table(dist):
    assert shares(dist, 65_536 if dist == "poisson" else 256).sum() == 2**32


@pytest.mark.parametrize(
    ("dist", "message"),
    [
        ("zipf:x", "--dist zipf:x: expected numbers, separated by commas"),
        ("zipf:0", "--dist zipf:0: 0 is not above 0"),
        ("zipf:nan", "--dist zipf:nan: NaN is not above 0"),
        ("zipf:1,2", "--dist zipf:1,2: at most 1 parameters"),
        ("equal:256", "--dist equal:256: 256 is not above -1 and at most 255"),
        ("equal:1.5", "--dist equal:1.5: 1.5 is not a whole number"),
        ("geometric:1.5", "--dist geometric:1.5: 1.5 is not above 0 and at most 1"),
        ("uniform:1", "--dist uniform:1: at most 0 parameters"),
        ("cauchy", "histogram has no distribution cauchy"),
        ("normal:1e-9,1e9", "no value has a probability above zero"),
    ],
)
def test_parameters_that_make_no_sense(dist, message):
    with pytest.raises(UsageError) as error:
        b"".join(LAB.generate(case(), 10, dist, 0))
    assert error.value.message == message


def test_weights_are_decimals_of_forty_digits():
    assert weights("exponential:1", 2, 0)[1] == Decimal(
        "0.3678794411714423215955237701614608674458"
    )


@pytest.mark.parametrize("dtype", LAB.axes["dtype"])
def test_generated_streams_are_read_back(tmp_path, dtype):
    path = tmp_path / "in.bin"
    path.write_bytes(b"".join(LAB.generate(case(dtype), 1001, "zipf", 1)))
    with path.open("rb") as file:
        announced = LAB.read(InputStream(file.fileno()), case(dtype))
        data = announced.arrays["elements"].array()
    assert announced.params["n"] == len(data) == 1001
    assert path.stat().st_size == 4 + data.nbytes


# Drawings --------------------------------------------------------------------------------------


def bars(counts, bins=None, dtype="uint8"):
    counts = np.array(counts, np.uint32)
    return LAB.show(counts, case(dtype, bins or len(counts)))


def test_a_drawing_in_text():
    assert plots.text(bars([4, 0, 1, 8]), width=30) == (
        "13 elements in 4 classes\n"
        "   byte  count\n"
        "   0-63      4  ███████\n"
        " 64-127      0\n"
        "128-191      1  █▊\n"
        "192-255      8  ██████████████\n"
    )


def test_a_drawing_in_ascii():
    assert plots.text(bars([4, 0, 1, 8], dtype="uint32"), width=22, blocks=False) == (
        "13 elements in 4 classes\n"[:22] + "\n"
        "class  count\n"
        "    0      4  ####\n"
        "    1      0\n"
        "    2      1  #\n"
        "    3      8  ########\n"
    )


@given(
    st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=256),
    st.integers(30, 200),
    st.booleans(),
)
def test_a_drawing_fits(counts, width, blocks):
    lines = plots.text(bars(counts), width, blocks=blocks).splitlines()
    assert len(lines) <= 2 + plots.ROWS
    assert max(map(len, lines)) <= width


def test_neighbouring_classes_share_a_line():
    text = plots.text(bars(np.arange(256)), width=60)
    assert text.splitlines()[2].startswith("    0-7     28")
    assert text.splitlines()[-1].startswith("248-255  2,012")


def test_values_of_classes_that_do_not_divide_the_bytes():
    found = bars(np.ones(100))
    assert (found.firsts[0], found.firsts[-1], len(found.firsts)) == (0, 256, 101)
    for byte in range(256):
        assert found.firsts[byte * 100 >> 8] <= byte < found.firsts[(byte * 100 >> 8) + 1]


def test_other_files_than_pictures_are_refused_at_once():
    names = r"cannot draw into a.txt: .* \.svg, \.png, \.pdf"
    with pytest.raises(UsageError, match=names) as caught:
        LAB.complete({"plot": "a.txt"})
    assert caught.value.hint == "--plot without a name draws in the terminal"
    with pytest.raises(UsageError, match="cannot draw") as caught:
        check_plot(Path("a.txt"))  # of bench, which draws in no terminal
    assert caught.value.hint is None
    assert LAB.complete({"plot": plots.TERMINAL})["plot"] == plots.TERMINAL


def test_a_picture_that_cannot_be_written_is_refused_at_once(tmp_path):
    folder = tmp_path / "gone"
    with pytest.raises(UsageError, match=f"there is no folder {folder}"):
        LAB.complete({"plot": str(folder / "a.png")})
    (tmp_path / "a.png").mkdir()
    with pytest.raises(UsageError, match=r"a\.png: is a folder"):
        LAB.complete({"plot": str(tmp_path / "a.png")})


def test_pictures_need_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(NoDeviceError) as error:
        LAB.complete({"plot": "a.png"})
    assert install_command("plot") in error.value.hint


@pytest.mark.parametrize(("suffix", "magic"), [(".png", b"\x89PNG"), (".svg", b"<svg")])
def test_pictures(tmp_path, suffix, magic):
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install -e '.[plot]'")
    path = tmp_path / f"histogram{suffix}"
    plots.draw(bars(np.arange(256)), str(path))
    first = path.read_bytes()
    assert first.startswith(magic)
    plots.draw(bars(np.arange(256)), str(path))
    assert path.read_bytes() == first


def test_a_drawing_goes_to_stderr(capsys):
    plots.draw(bars([1, 2]), plots.TERMINAL)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("3 elements in 2 classes\n")
