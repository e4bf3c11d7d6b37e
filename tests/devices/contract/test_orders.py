"""What every device must do with launches in streams, and with launches that are repeated."""

from __future__ import annotations

import numpy as np
import pytest
from contract import random_ints

from cudalab.backends.base import graph, stream

N = 1000


class Work:
    """Launches in order and beside each other, and copies; each time they do more to `data`."""

    def __init__(self, device, launches):
        self.device, self.scale = device, launches["scale"]
        self.data = device.to_device(random_ints(N))
        self.left, self.right = device.empty(N, np.int32), device.empty(N, np.int32)
        self.streams = [stream(device) for _ in range(2)]

    def launch(self, source, target, count=N):
        self.device.launch(self.scale, -(-count // 256), 256, source, target, np.uint32(count))

    def __call__(self):
        """Multiply the first half of `data` by 27 and copy it to `left`, all of it by 9."""
        one, other = self.streams
        for _ in range(2):
            self.launch(self.data, self.data)
        with one:
            self.launch(self.data, self.left)
        with other:
            self.launch(self.data, self.right)
            self.launch(self.right, self.right)
        self.device.copy(self.left, self.data)
        self.launch(self.right, self.data, N // 2)


def after(data, times):
    for _ in range(times):
        right = data * np.int32(81)
        data = data * np.int32(27)
        data[: N // 2] = right[: N // 2] * np.int32(3)
    return data


def test_streams_begin_and_end_in_the_order_of_launches(device, launches):
    work = Work(device, launches)
    for times in range(1, 4):
        work()
        np.testing.assert_array_equal(device.to_host(work.data), after(random_ints(N), times))


def test_what_is_repeated_is_done_each_time(device, launches):
    work = Work(device, launches)
    repeat = graph(device, work)
    for times in range(1, 6):
        repeat()
        np.testing.assert_array_equal(device.to_host(work.data), after(random_ints(N), times))
        np.testing.assert_array_equal(
            device.to_host(work.right)[0], (after(random_ints(N), times - 1) * np.int32(81))[0]
        )


def test_others_launch_between_repetitions(device, launches):
    work = Work(device, launches)
    repeat, expected = graph(device, work), random_ints(N)
    for _ in range(4):
        repeat()
        work.launch(work.data, work.data)
        expected = after(expected, 1) * np.int32(3)
    np.testing.assert_array_equal(device.to_host(work.data), expected)


def test_launches_that_fail_are_no_graph(device, launches):
    """The error is that of the launch, each time; the device stays usable."""
    work, calls = Work(device, launches), []

    def fail():
        calls.append(len(calls))
        work()
        if len(calls) > 1:
            work.launch(work.data, "no buffer")

    repeat = graph(device, fail)
    repeat()
    for _ in range(2):
        with pytest.raises(TypeError, match="argument 1 of kernel scale is a str"):
            repeat()
    data = device.to_device(random_ints(N))
    work.launch(data, data)
    np.testing.assert_array_equal(device.to_host(data), 3 * random_ints(N))
