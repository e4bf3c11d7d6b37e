"""Barriers and positions in methods, operators, functors: what keeps fibers, and why."""

from pathlib import Path

import numpy as np

from cudalab.backends.cpu.device import CpuDevice
from cudalab.language.source import load

FOLDER = Path(__file__).parent.parent / "kernels"
FILE = FOLDER / "hidden_meetings.cu"


def test_a_kernel_may_come_to_a_barrier_in_any_way():
    file = load(FILE, FILE.name)
    inputs = np.random.default_rng(5).integers(-99, 99, 64).astype(np.int32)
    with CpuDevice(2) as device:
        module = device.compile(file, {"T": "int"})
        for name in file.kernels:
            out = device.to_device(np.zeros_like(inputs))
            device.launch(module[name], 1, 64, device.to_device(inputs), out)
            device.synchronize()
            assert (device.to_host(out) == inputs.sum()).all(), name
            assert module[name].how.startswith("fibers: "), name


def test_a_kernel_may_ask_for_its_thread_in_any_way():
    file = load(FOLDER / "hidden_positions.cu", "hidden_positions.cu")
    zeros = np.zeros(64, np.int32)
    with CpuDevice(2) as device:
        module = device.compile(file, {"T": "int"})
        answers = {}
        for name in file.kernels:
            out = device.to_device(zeros)
            device.launch(module[name], 1, 64, device.to_device(zeros), out)
            device.synchronize()
            answers[name] = device.to_host(out).tolist()
    wrong = {name: answer for name, answer in answers.items() if answer != list(range(64))}
    assert wrong == {}


def test_what_a_kernel_does_not_use_costs_no_fibers(tmp_path):
    """Only those that may come to such a barrier lose their loops."""
    text = FILE.read_text(encoding="utf-8").replace("#include <cooperative_groups.h>", "")
    path = tmp_path / "k.cu"
    path.write_text(text.partition('extern "C" __global__ void group(')[0], encoding="utf-8")
    file = load(path, path.name)
    with CpuDevice(2) as device:
        module = device.compile(file, {"T": "int"})
        reasons = {name: module[name].how for name in file.kernels}
    assert reasons.pop("by_name") == "loops over the threads of a block"
    for name, how in reasons.items():
        assert how.startswith("fibers: k.cu:"), (name, how)
