"""Answers that are compared piece by piece: a wrong element anywhere is found, at its index."""

from __future__ import annotations

import numpy as np
import pytest
from lab_inputs import drawn

from cudalab import labs

CASES = [
    ("scan", {"dtype": "int32"}, 70_001, "uniform"),
    ("scan", {"dtype": "float32"}, 70_001, "all-ones"),
    ("scan", {"dtype": "float32", "kind": "inclusive"}, 70_001, "uniform"),
    ("scan", {"dtype": "float32", "op": "max", "kind": "inclusive"}, 70_001, "uniform"),
    ("segscan", {}, 140_001, "long"),
    ("softmax", {}, (1, 70_001), "uniform"),
    ("softmax", {}, (70_001, 1), "uniform"),
    ("softmax", {}, (300, 233), "uniform"),
    ("table", {}, 70_001, "step"),
]


@pytest.mark.parametrize(("name", "options", "size", "dist"), CASES)
def test_a_wrong_element_anywhere_is_found(name, options, size, dist):
    lab = labs.get(name)
    case = lab.complete(options)
    inputs = drawn(lab, case, size, dist)
    right = lab.reference(inputs, case)
    assert lab.compare(right, inputs, case) is None
    count = right.size
    for at in {0, 1, 32_767, 32_768, 65_535, 65_536, count - 1}:
        wrong = right.copy().reshape(-1)
        wrong[at] += abs(wrong[at]) + 1 if wrong.dtype.kind == "f" else 1
        found = lab.compare(wrong.reshape(right.shape), inputs, case)
        assert found is not None, at
        assert found.count == 1, at
        assert found.first[0][0] == at
        nearest = lab.accuracy(wrong.reshape(right.shape), inputs, case)
        if nearest is not None and nearest.used > 1:
            assert nearest.index == at


@pytest.mark.parametrize("dist", ["short", "long", "one-segment", "each-alone", "returning"])
def test_segments_go_on_from_piece_to_piece(dist):
    lab = labs.get("segscan")
    case = lab.complete({})
    inputs = drawn(lab, case, 140_001, dist)
    keys, items = inputs.arrays["keys"].tolist(), inputs.arrays["items"].tolist()
    total, expected = 0, []
    for i, (key, item) in enumerate(zip(keys, items, strict=True)):
        total = item + (total if i and key == keys[i - 1] else 0)
        expected.append(total % 2**32)
    answer = lab.reference(inputs, case)
    np.testing.assert_array_equal(answer.view(np.uint32), np.array(expected, np.uint32))
