"""What every device that can be measured must do for `bench`."""

from __future__ import annotations

import math

import numpy as np
import pytest
from contract import random_ints

from cudalab.backends import open_device
from cudalab.backends.base import message
from cudalab.backends.meter import QueueMeter, open_meter
from cudalab.errors import CudalabError


@pytest.fixture
def meter(device):
    return open_meter(device)


@pytest.fixture
def queue(meter):
    """A meter that can hold launches back; a device without a queue has none."""
    if not isinstance(meter, QueueMeter):
        pytest.skip("a launch has ended when it returns: there is no queue to hold")
    return meter


def test_a_device_without_a_meter_says_so():
    class Bare:
        name = "bare"

    with pytest.raises(CudalabError) as caught:
        open_meter(Bare())
    assert caught.value.message == "nothing can be measured on the bare device: it has no meter"


def test_flush_changes_nothing(device, meter):
    array = random_ints(100_000)
    buffer = device.to_device(array)
    for _ in range(3):
        meter.flush()
    np.testing.assert_array_equal(device.to_host(buffer), array)


def test_held_launches_are_done_in_order(device, queue, launches):
    n = 1000
    one, two = device.to_device(random_ints(n)), device.empty(n, "i4")
    timer = queue.timer()
    for _ in range(3):  # a second hold waits for its own end, not for the first one's
        with queue.held() as hold:
            timer.start()
            device.launch(launches["scale"], 4, 256, one, two, np.uint32(n))
            device.launch(launches["scale"], 4, 256, two, two, np.uint32(n))
            timer.stop()
        device.synchronize()
        assert not hold.expired
        assert timer.ms > 0
        np.testing.assert_array_equal(device.to_host(two), 9 * random_ints(n))
        device.copy(np.zeros(n, np.int32), two)


def test_a_message_is_read_while_launches_go_on(device, launches):
    words, ones = message(device, 2), device.to_device(np.ones(2, np.int32))
    assert words.read() == [0, 0]
    for times in (1, 3):
        for _ in range(times):
            device.launch(launches["scale"], 1, 2, ones, ones, np.uint32(2))
        device.launch(launches["scale"], 1, 1, ones, words.buffer, np.uint32(1))
        words.send()
        device.launch(launches["scale"], 1, 2, ones, ones, np.uint32(2))
        assert words.read() == [int(device.to_host(ones)[0]), 0]


def test_flush_inside_a_hold(device, queue):
    with queue.held() as hold:
        queue.flush()
    device.synchronize()
    assert not hold.expired


def test_a_hold_cannot_hang(device, queue, launches):
    """Reading back in the middle waits for the device, which waits for the end: it gives up."""
    array = random_ints(1000)
    buffer = device.to_device(array)
    with queue.held() as hold:
        device.launch(launches["scale"], 4, 256, buffer, buffer, np.uint32(1000))
        np.testing.assert_array_equal(device.to_host(buffer), 3 * array)
        device.launch(launches["scale"], 4, 256, buffer, buffer, np.uint32(1000))
    np.testing.assert_array_equal(device.to_host(buffer), 9 * array)
    assert hold.expired


def test_more_launches_than_the_device_queues(device, queue, launches):
    buffer = device.to_device(np.ones(1, np.int32))
    count = 3000
    with queue.held():
        for _ in range(count):
            device.launch(launches["scale"], 1, 1, buffer, buffer, np.uint32(1))
    assert device.to_host(buffer)[0] == np.int32(np.uint32(pow(3, count, 2**32)))


def test_an_error_ends_a_hold(device, queue, launches):
    buffer = device.to_device(np.ones(1, np.int32))
    holds = []

    def fail_in_the_middle():
        with queue.held() as hold:
            holds.append(hold)
            device.launch(launches["scale"], 1, 1, buffer, buffer, np.uint32(1))
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fail_in_the_middle()
    assert device.to_host(buffer)[0] == 3
    assert not holds[0].expired


def test_clock(device, queue):
    # At rest the clock is lower; no device runs at a tenth of what it declares, or at twice.
    assert 0.1 < queue.clock_mhz() / device.info().clock_mhz < 2


def test_bandwidth(device, meter):
    measured = meter.bandwidth()
    assert 0 < measured < 1e5
    assert measured < 1.05 * (device.info().dram_gbs or math.inf)


def test_the_device_is_free_again_after_measuring(device_name):
    with open_device(device_name) as opened:
        meter = open_meter(opened)
        meter.flush()
        if isinstance(meter, QueueMeter):
            with meter.held():
                pass
            meter.clock_mhz()
    with open_device(device_name) as opened:
        open_meter(opened).flush()
