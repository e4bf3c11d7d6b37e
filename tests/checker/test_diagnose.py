"""The explanations: each pattern is made on purpose and must be named."""

from __future__ import annotations

import numpy as np
import pytest

from cudalab import labs
from cudalab.checker.explain.diagnose import examine
from cudalab.checker.submit.guard import NAN, POISON
from cudalab.formats import InputStream
from cudalab.labs.evidence import Launches


class Question:
    """An input in a file, with its right answer."""

    def __init__(self, path, lab, size, dist, seed=3, **given):
        self.path, self.lab = path, labs.get(lab)
        self.case = self.lab.complete(given)
        path.write_bytes(b"".join(map(bytes, self.lab.generate(self.case, size, dist, seed))))
        with path.open("rb") as file:
            self.inputs = self.lab.read(InputStream(file.fileno(), "in"), self.case).load().copy()
        self.right = self.lab.reference(self.inputs, self.case)
        if self.right.dtype.kind == "f":
            self.right = self.right.astype(self.case["dtype"])

    def judge(self, answer, launches=None):
        data = answer if isinstance(answer, bytes) else np.ascontiguousarray(answer).tobytes()
        return examine(self.lab, self.case, self.path, data, launches)

    def patterns(self, answer, launches=None):
        verdict = self.judge(answer, launches)
        assert not verdict.right
        return [finding.pattern for finding in verdict.findings]


@pytest.fixture
def ask(tmp_path):
    return lambda *args, **options: Question(tmp_path / "in.bin", *args, **options)


@pytest.mark.parametrize("lab", labs.names())
def test_the_right_answer_is_right(ask, lab):
    question = ask(lab, 40, labs.get(lab).distributions[0])
    assert question.judge(question.right).right


def test_elements_without_a_bound_are_not_among_the_wrong_ones(ask):
    """A sum that may overflow on the way has none: any value will do."""
    question = ask("scan", 4, "uniform")
    items = np.array([1, 3e38, 3e38, 1], np.float32)
    question.path.write_bytes(np.int32(4).tobytes() + items.tobytes())
    right = np.array([0, 1, 3e38, 123], np.float32)
    assert question.judge(right).right
    wrong = question.judge(right + np.array([7, 0, 0, 0], np.float32))
    assert (wrong.wrong, wrong.total) == (1, 4)


# Bytes -------------------------------------------------------------------------------------------


def test_nothing(ask):
    assert ask("radixsort", 10, "uniform").patterns(b"") == ["nothing on stdout"]


def test_text(ask):
    question = ask("radixsort", 10, "uniform")
    text = "\n".join(map(str, question.right.tolist())).encode()
    assert question.patterns(text) == ["text on stdout"]


def test_text_of_the_right_length_is_no_answer(ask):
    assert ask("reduce", 10, "uniform").patterns(b"12 \n")


def test_header_repeated(ask):
    question = ask("radixsort", 10, "uniform")
    answer = question.path.read_bytes()[:4] + question.right.tobytes()
    assert question.patterns(answer) == ["header repeated"]


def test_a_time_printed_behind_the_answer(ask):
    question = ask("radixsort", 10, "uniform")
    assert question.patterns(question.right.tobytes() + b"3.2 ms\n") == ["text behind the answer"]
    assert question.patterns(b"sorting...\n" + question.right.tobytes()) == [
        "text before the answer"
    ]


def test_what_is_left_without_the_text_is_judged(ask):
    def judged(lab, change, **given):
        question = ask(lab, 300, "uniform", **given)
        bare = np.ascontiguousarray(change(question.right)).tobytes()
        for text in (b"time = 211.924 ms\n" + bare, b"n = 300\n" + bare + b"done\n"):
            verdict = question.judge(text)
            assert verdict.bare == bare
            yield verdict.lines[0].partition(" many")[2]

    def rounded(total):
        return np.nextafter(total, np.float32(np.inf))  # within its bound

    assert set(judged("radixsort", np.flip)) == {"; without the text it is wrong as well"}
    assert set(judged("reduce", rounded, dtype="float32")) == {"; without the text it is right"}
    assert set(judged("radixsort", np.copy)) == {""}  # the pattern says that it is right


def test_text_around_a_wrong_answer(ask):
    question = ask("reduce", 10, "uniform")
    wrong = (question.right + 1).tobytes()
    assert question.patterns(b"sum=-12\n" + wrong) == ["text before the answer"]
    assert question.patterns(wrong + b"3.2 ms\n") == ["text behind the answer"]
    assert question.patterns(2 * wrong) == ["elements twice as wide"]


def test_the_whole_input(ask):
    question = ask("radixsort", 10, "uniform")
    assert question.patterns(question.path.read_bytes()) == ["the input itself"]


def test_text_mode(ask):
    question = ask("radixsort", 300, "uniform")
    answer = question.right.tobytes()
    assert b"\n" in answer
    assert question.patterns(answer.replace(b"\n", b"\r\n")) == ["line ends translated"]


def test_doubles(ask):
    question = ask("scan", 100, "uniform")
    assert question.patterns(question.right.astype(np.float64)) == ["elements twice as wide"]


def test_bytes_counted_as_elements(ask):
    question = ask("radixsort", 400, "uniform")
    assert question.patterns(question.right.tobytes()[:400]) == ["bytes for elements"]


def test_cut_short(ask):
    question = ask("radixsort", 400, "uniform")
    assert question.patterns(question.right.tobytes()[:1000]) == ["cut short"]


# Places ------------------------------------------------------------------------------------------

BLOCKS = Launches("recursive", {"THREADS_PER_BLOCK": 256, "ITEMS_PER_THREAD": 1})


@pytest.mark.parametrize(
    ("wrong", "pattern"),
    [
        (slice(1279, 1280), "the last element"),
        (slice(0, 1), "the first element"),
        (slice(31, None, 32), "every 32nd"),
        (slice(255, None, 256), "every 256th"),
        (slice(256, None), "only the first block"),
        (slice(512, None), "from 512 on"),
        (slice(0, 512), "up to 511"),
    ],
)
def test_places(ask, wrong, pattern):
    question = ask("scan", 1280, "uniform", dtype="int32")
    answer = question.right.copy()
    answer[wrong] += 12345
    assert question.patterns(answer, BLOCKS)[0] == pattern


@pytest.mark.parametrize("wrong", [slice(2, None), slice(0, 1279)])
def test_a_range_that_ends_within_a_block_means_nothing(ask, wrong):
    question = ask("scan", 1280, "uniform", dtype="int32")
    answer = question.right.copy()
    answer[wrong] += 12345
    assert question.patterns(answer, BLOCKS) == []


def test_a_range_of_a_matrix_means_nothing(ask):
    question = ask("matmul", 32, "integers")
    answer = question.right.copy()
    answer.reshape(-1)[256:] += 1000
    assert "from 256 on" not in question.patterns(answer, Launches("elements", {"TILE": 16}))


def test_a_single_number_that_is_off_by_one_is_not_imprecise(ask):
    question = ask("reduce", 300, "uniform", dtype="float32")
    for factor in (1.01, 1.02):
        assert "too few digits" not in question.patterns(question.right * np.float32(factor))


def test_the_last_partial_block(ask):
    question = ask("scan", 1000, "uniform", dtype="int32")
    answer = question.right.copy()
    answer[768:] ^= 77
    assert question.patterns(answer, BLOCKS)[0] == "the last partial block"


def test_index_block_and_lane_are_named(ask):
    question = ask("scan", 1000, "uniform", dtype="int32")
    answer = question.right.copy()
    answer[300] += 1
    lines = question.judge(answer, BLOCKS).lines
    assert lines[0] == "1 of 1,000 elements differ"
    assert f"expected {question.right[300]}, got {answer[300]}" in lines[1]
    assert "block 1, thread 44 (lane 12 of warp 1)" in lines[1]


def test_never_written(ask):
    question = ask("scan", 1000, "uniform", dtype="int32")
    garbage = np.full(1000, POISON * 0x01010101, np.uint32)
    unwritten = Launches(unwritten=np.ones(1000, bool))
    assert question.patterns(garbage, unwritten) == ["never written"]
    half = question.right.copy()
    half[500:] = garbage[500:].view(np.int32)
    unwritten.unwritten[:500] = False
    assert question.patterns(half, unwritten)[0] == "not all written"


def test_floats_never_written(ask):
    question = ask("matmul", 20, "uniform")
    garbage = np.full(4 * 400, NAN, np.uint8)
    unwritten = Launches(unwritten=np.ones(400, bool))
    assert question.patterns(garbage.tobytes(), unwritten) == ["never written"]
    unwritten.unwritten[:] = False  # a NaN was read and computed with
    assert question.patterns(garbage.tobytes(), unwritten) == ["NaN or infinity"]
    assert question.patterns(garbage.tobytes()) == ["NaN or infinity"]


# Labs --------------------------------------------------------------------------------------------


def test_signed(ask):
    question = ask("radixsort", 1000, "uniform")
    signed = np.sort(question.inputs.arrays["keys"].view(np.int32))
    assert question.patterns(signed) == ["sorted as signed"]


def test_unsigned(ask):
    question = ask("radixsort", 1000, "uniform", dtype="int32")
    unsigned = np.sort(question.inputs.arrays["keys"].view(np.uint32))
    assert question.patterns(unsigned)[0] == "sorted as unsigned"


def test_descending(ask):
    question = ask("bitonic", 1000, "uniform")
    assert question.patterns(question.right[::-1])[0] == "descending"


def test_blocks_that_are_not_merged(ask):
    question = ask("radixsort", 1000, "uniform")
    keys = question.inputs.arrays["keys"].copy()
    for start in range(0, 1000, 256):
        keys[start : start + 256].sort()
    assert question.patterns(keys, BLOCKS) == ["only within blocks"]


def test_keys_lost(ask):
    question = ask("radixsort", 1000, "uniform")
    answer = question.right.copy()
    answer[500] = answer[499]
    assert question.patterns(answer)[0] == "keys lost"


def test_padding_that_sorts_to_the_front(ask):
    question = ask("radixsort", 1000, "uniform")
    answer = np.concatenate([np.zeros(24, np.uint32), question.right])[:1000]
    assert question.patterns(answer) == ["padding among the keys"]


@pytest.mark.parametrize(
    ("special", "changed", "pattern"),
    [
        (-0.0, np.abs, "-0.0 lost"),
        (np.float32("-nan"), np.abs, "NaN with a sign lost"),
        (np.float32("nan"), np.nan_to_num, "NaN lost"),
    ],
)
def test_keys_that_are_special_floats(tmp_path, ask, special, changed, pattern):
    question = ask("radixsort", 1000, "uniform", dtype="float32")
    keys = np.linspace(1, 2, 1000, dtype=np.float32)
    keys[::100] = special
    (tmp_path / "in.bin").write_bytes(np.int32(1000).tobytes() + keys.tobytes())
    answer = np.sort(changed(keys))
    answer[500:510] = np.uint32(0xFFFFFFFF).view(np.float32)  # garbage: a consequence
    assert question.patterns(answer) == [pattern]


def test_passes_missing(ask):
    question = ask("radixsort", 1000, "uniform")
    keys = question.inputs.arrays["keys"]
    low = keys[np.argsort(keys & np.uint32(0xFFFFFF), kind="stable")]
    high = keys[np.argsort(keys >> np.uint32(24), kind="stable")]
    assert question.patterns(low)[0] == "passes missing"
    assert question.patterns(high)[0] == "passes missing"


def test_bit_31_first(ask):
    """A mistake of the course's own text: passes from bit 31 down to 0 do not sort."""
    question = ask("radixsort", 1000, "uniform")
    keys = question.inputs.arrays["keys"].copy()
    for bit in reversed(range(32)):
        keys = keys[np.argsort(keys >> np.uint32(bit) & np.uint32(1), kind="stable")]
    assert question.patterns(keys)[0] == "most significant bit first"


def test_unchanged(ask):
    question = ask("radixsort", 1000, "uniform")
    assert question.patterns(question.inputs.arrays["keys"])[0] == "the input itself"


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_inclusive(ask, dtype):
    question = ask("scan", 1000, "uniform", dtype=dtype)
    inclusive = np.cumsum(question.inputs.arrays["items"], dtype=dtype)
    assert question.patterns(inclusive)[0] == "inclusive instead of exclusive"


def test_exclusive(ask):
    question = ask("scan", 1000, "uniform", dtype="int32", kind="inclusive")
    items = question.inputs.arrays["items"]
    exclusive = np.cumsum(items, dtype=np.int32) - items
    assert question.patterns(exclusive)[0] == "exclusive instead of inclusive"


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_scan_of_blocks_alone(ask, dtype):
    question = ask("scan", 1000, "uniform", dtype=dtype)
    items = question.inputs.arrays["items"]
    blocks = [items[at : at + 256] for at in range(0, 1000, 256)]
    sums = [np.cumsum(block, dtype=dtype) - block for block in blocks]
    answer = np.concatenate(sums).astype(dtype)
    assert question.patterns(answer, BLOCKS)[0] == "only within blocks"


@pytest.mark.parametrize(
    ("part", "pattern"),
    [
        (slice(0, 999), "the last item is missing"),
        (slice(1, 1000), "the first item is missing"),
        (slice(0, 768), "the last partial block"),
        (slice(0, 256), "only the first block"),
        (slice(0, 1000, 2), "every other item"),
    ],
)
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_sums_of_a_part(ask, dtype, part, pattern):
    question = ask("reduce", 1000, "uniform", dtype=dtype)
    answer = np.atleast_1d(question.inputs.arrays["x"][part].sum(dtype=dtype))
    assert question.patterns(answer, BLOCKS)[0] == pattern


def test_counted_twice(ask):
    question = ask("reduce", 1000, "uniform")
    assert question.patterns(2 * question.right)[0] == "twice the sum"
    assert question.patterns(question.right + np.int32(1000))[0] == "the header added"


def test_mean_not_divided(ask):
    question = ask("reduce", 1000, "uniform", op="mean")
    assert question.patterns(question.right * np.float32(1000))[0] == "not divided"


def test_maximum_from_zero(ask):
    question = ask("reduce", 100, "uniform", op="max")
    header = np.array([100], "<i4").tobytes()
    question.path.write_bytes(header + np.arange(-200, -100, dtype="<i4").tobytes())
    assert question.patterns(np.zeros(1, np.int32))[0] == "maximum from 0"


def test_byte_counters(ask):
    question = ask("histogram", 5000, "equal")
    assert question.patterns(question.right % 256)[0] == "byte counters overflow"


def test_lost_counts(ask):
    question = ask("histogram", 5000, "uniform")
    answer = question.right.copy()
    answer[3:40] -= 2
    assert question.patterns(answer)[0] == "counts lost"


def test_counts_of_no_whole_word(ask):
    question = ask("histogram", 1023, "uniform")
    data = question.inputs.arrays["elements"][:1020]
    answer = np.bincount(data, minlength=256).astype(np.uint32)
    assert question.patterns(answer)[0] == "the last partial block"


def test_classes_off_by_one(ask):
    question = ask("histogram", 5000, "zipf")
    assert question.patterns(np.roll(question.right, 1))[0] == "off by one class"


def test_counters_not_cleared(ask):
    question = ask("histogram", 5000, "uniform")
    assert question.patterns(question.right + np.uint32(1))[0] == "counted twice"


@pytest.mark.parametrize(
    ("mistake", "pattern"),
    [
        (lambda a, b: (a @ b).T, "transposed"),
        (lambda a, b: b @ a, "another product"),
        (lambda a, b: a @ b.T, "another product"),
        (lambda a, b: a[:, :16] @ b[:16], "only the first tile along k"),
        (lambda a, b: a[:, :32] @ b[:32], "the last partial tile along k"),
    ],
)
def test_other_products(ask, mistake, pattern):
    question = ask("matmul", 40, "uniform")
    answer = mistake(question.inputs.arrays["a"], question.inputs.arrays["b"])
    tiles = Launches("elements", {"TILE": 16})
    assert question.patterns(answer.astype(np.float32), tiles)[0] == pattern


def test_tiles_that_are_not_whole(ask):
    question = ask("matmul", 40, "uniform")
    answer = question.right.copy()
    answer[32:] = 0
    tiles = Launches("elements", {"TILE": 16})
    found = question.judge(answer, tiles)
    assert "the last partial tile" in [finding.pattern for finding in found.findings]
    assert "row 32, column 0, tile (2, 0)" in found.lines[1]


def test_half_precision(ask):
    question = ask("matmul", 40, "uniform")
    a, b = (question.inputs.arrays[name].astype(np.float16) for name in "ab")
    answer = a.astype(np.float32) @ b.astype(np.float32)
    assert question.patterns(answer)[0] == "too few digits"


def test_transpose_untouched(ask):
    question = ask("transpose", (64, 64), "uniform")
    assert question.patterns(question.inputs.arrays["matrix"])[0] == "the input itself"


def test_tiles_moved_but_not_transposed(ask):
    question = ask("transpose", (64, 64), "uniform")
    tiles = question.inputs.arrays["matrix"].reshape(2, 32, 2, 32).transpose(2, 1, 0, 3)
    plan = Launches("tiles", {"TILE_DIM": 32})
    assert question.patterns(tiles, plan)[0] == "tiles moved, not transposed"


def test_systems(ask):
    question = ask("solve", 40, "dominant")
    assert question.patterns(-question.right)[0] == "the sign"
    diagonal = np.diag(question.inputs.arrays["a"])
    assert question.patterns(question.inputs.arrays["f"] / diagonal)[0] == "one iteration"
    assert question.patterns(np.zeros(40, np.float32))[0] == "zeros"
    assert question.patterns(question.right * np.float32(1.01))[0] == "not converged"


def test_a_system_is_judged_by_its_residual(ask):
    question = ask("solve", 40, "dominant")
    verdict = question.judge(question.right * np.float32(1.01))
    assert "backward error" in verdict.lines[0]
    assert verdict.accuracy.used > 1


@pytest.mark.parametrize("given", [{}, {"text": True}, {"tol": 1e-3}])
def test_the_bound_of_a_system_is_the_one_that_it_is_judged_by(ask, given):
    question = ask("solve", 40, "dominant", **given)
    seen = set()
    for change in 10.0 ** np.arange(-13, 0):
        x = (question.right * (1 + change)).astype(question.case["dtype"])
        text = "".join(f"{value:.10e}\n" for value in x).encode()
        verdict = question.judge(text if given.get("text") else x)
        assert verdict.right == (verdict.accuracy.used <= 1)
        seen.add(verdict.right)
    assert seen == {True, False}


def test_nan_is_no_solution(ask):
    question = ask("solve", 40, "dominant")
    answer = question.right.copy()
    answer[7] = np.nan
    assert not question.judge(answer).right


def test_other_functions(ask):
    question = ask("table", 1000, "step")
    x = np.arange(1000) * 0.01
    assert question.patterns(np.sin(x).astype(np.float32))[0] == "sine without the root"
    ahead = np.sin(np.sqrt(x + 0.01)).astype(np.float32)
    assert question.patterns(ahead)[0] == "off by one"


# Accuracy ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lab", "size"), [("scan", 1000), ("matmul", 40), ("table", 100)])
def test_a_right_answer_tells_how_much_of_its_bound_it_uses(ask, lab, size):
    question = ask(lab, size, labs.get(lab).distributions[0])
    accuracy = question.judge(question.right).accuracy
    assert 0 <= accuracy.used < 1
    assert "%" in str(accuracy)


def test_the_error_is_measured_and_not_only_compared(ask):
    question = ask("matmul", 40, "positive")
    expected, allowed = question.lab.bounds(question.inputs, question.case)
    answer = (expected + allowed / 2).astype(np.float32)
    accuracy = question.judge(answer).accuracy
    assert 0.4 < accuracy.used < 0.6


def test_nan_and_infinity_are_wrong(ask):
    question = ask("matmul", 20, "uniform")
    for value in (np.nan, np.inf):
        answer = question.right.copy()
        answer[3, 4] = value
        verdict = question.judge(answer)
        assert not verdict.right
        assert "NaN or infinity" in [finding.pattern for finding in verdict.findings]


def test_every_finding_names_a_cause(ask):
    question = ask("radixsort", 1000, "uniform")
    for answer in (b"", b"1 2 3", question.right[::-1], question.right + np.uint32(1)):
        for finding in question.judge(answer).findings:
            assert finding.says
            assert finding.cause


# Strange answers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("lab", labs.names())
def test_no_answer_is_too_strange(ask, lab):
    """Whatever a submission writes there is a verdict, and the search for patterns survives it."""
    lab_object = labs.get(lab)
    chance = np.random.default_rng(5)
    for size in ((5, 7), (40, 33)) if lab == "transpose" else (1, 2, 7, 40):
        question = ask(lab, size, lab_object.distributions[0])
        length = question.right.nbytes
        strange = [
            chance.bytes(length),
            bytes(length),
            b"\xff" * length,
            b"\x7f\x80\x00\x00"[::-1] * (length // 4),
            question.right.tobytes()[::-1],
            b"1" * length,
            b"",
            chance.bytes(length + 3),
            chance.bytes(max(length - 1, 0)),
        ]
        for defines in ({}, {"TILE": 16}, {"THREADS_PER_BLOCK": -4, "TILE": 10**30}):
            for answer in strange:
                verdict = question.judge(answer, Launches("x", defines))
                if answer != question.right.tobytes():
                    assert not verdict.right or lab in ("solve", "table")
                    assert "no explanation" not in [f.pattern for f in verdict.findings]
