"""The numbers of the GPU at hand, measured by the kernels of measure.cu: `device --measure`."""

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cudalab.backends.base import Buffer, Device, DeviceInfo
from cudalab.backends.meter import QueueMeter
from cudalab.language import source
from cudalab.predict.gpus import Gpu

Array = np.ndarray[Any, Any]

SAMPLES = 5  # of each measurement; the median counts
STEPS = 4096  # of a chain
CHAINS = 4  # in a thread, as in measure.cu
NEAR_LINKS, LINKS = 64, 4096  # fit in L1; are spread over L2, or over DRAM
LINE = 16  # links in 128 bytes
LANES, SECTOR_WORDS = 32, 8
THREADS, PIECE_BYTES = 256, 16
COPY_TURNS, ADD_TURNS, LAUNCHES = 100, 32, 200
# KB that L1 and shared memory of a multiprocessor have together, by compute capability.
L1_KB = {70: 128, 75: 96, 80: 192, 86: 128, 87: 192, 89: 128, 90: 256, 100: 256, 110: 256, 120: 128}
L1_SOURCE = "CUDA C++ Programming Guide, technical specifications per compute capability"
REPORTED = "as its driver reports"
MEASURED = "by cudalab device --measure"


class Bench:
    """The kernels of measure.cu on a device."""

    def __init__(self, device: Device) -> None:
        """Compile them."""
        path = Path(__file__).with_name("measure.cu")
        self.device, self.blocks = device, device.multiprocessors
        self.kernels = device.compile(source.load(path, path.name), {})
        self.stored = device.empty(self.blocks, np.uint64)

    def launch(self, name: str, blocks: int, threads: int, *args: Buffer | np.generic) -> None:
        self.device.launch(self.kernels[name], blocks, threads, *args)

    def cycles(self, blocks: int = 1) -> float:
        """The cycles that the last kernel has stored: the median of its blocks."""
        return float(np.median(self.device.to_host(self.stored)[:blocks]))

    def links(self, count: int, stride: int) -> Buffer:
        """A chain through `count` links in random order, which are `stride` links apart."""
        order = np.random.default_rng(0).permutation(np.arange(1, count, dtype=np.uint32))
        after = np.zeros(count, np.uint32)  # the last one leads to the first
        after[np.concatenate(([0], order[:-1]))] = order
        links, after_here = (
            self.device.empty(count * stride, np.uint64),
            self.device.to_device(after),
        )
        numbers = np.uint32(count), np.uint32(stride)
        self.launch("link", -(-count // THREADS), THREADS, links, after_here, *numbers)
        return links

    def follow(self, level: str, links: Buffer, steps: int) -> int:
        """Follow a chain; returns where it ends."""
        end = self.device.empty(1, np.uint64)
        self.launch(f"follow_{level}", 1, 1, links, self.stored, end, np.uint32(steps))
        return int(self.device.to_host(end)[0])

    def chain(self, name: str, *numbers: np.generic, steps: int = STEPS) -> Array:
        """Run the chain of one warp; returns each lane's result."""
        ends = self.device.empty(LANES, numbers[0].dtype if numbers else np.uint32)
        self.launch(name, 1, LANES, self.stored, ends, *numbers, np.uint32(steps))
        return self.device.to_host(ends)

    def rate(self, name: str, *numbers: np.generic, threads: int, steps: int) -> Array:
        """Run the chains of one block for each multiprocessor; returns each thread's result."""
        ends = self.device.empty(self.blocks * threads, numbers[0].dtype)
        self.launch(name, self.blocks, threads, self.stored, ends, *numbers, np.uint32(steps))
        return self.device.to_host(ends)


def measure(device: Device, meter: QueueMeter, info: DeviceInfo) -> Gpu:
    """The file of an open GPU."""
    reported = _reported(info)
    known = {"l1_kb": L1_KB[max(each for each in L1_KB if each <= _capability(info))]}
    bench = Bench(device)
    measured = {
        **_rates(bench, meter, info.max_threads or 1024),
        **_latencies(bench, meter, info.l2_bytes or 0),
    }
    threads = device.multiprocessors * (info.max_threads_per_core or 1024)
    measured |= _shared_memories(bench, meter, info.l2_bytes or 0, threads, measured["clock_mhz"])
    sources = {
        **dict.fromkeys(reported, f"measured: {REPORTED}"),
        **dict.fromkeys(known, f"documented: {L1_SOURCE}"),
        **dict.fromkeys(measured, f"measured: {MEASURED}"),
    }
    rounded = {name: float(f"{value:.4g}") for name, value in measured.items()}
    values = {**reported, **known, **rounded}
    architecture = f"sm_{_capability(info)}"
    return Gpu(name=info.name, architecture=architecture, **values, sources=sources)


def _capability(info: DeviceInfo) -> int:
    major, minor = info.capability or (7, 0)
    return 10 * major + minor


def _reported(info: DeviceInfo) -> dict[str, float]:
    """The sizes that the driver knows."""
    return {
        "multiprocessors": info.cores,
        "l2_mb": round((info.l2_bytes or 0) / 1e6, 1),
        "shared_kb": (info.shared_core_bytes or 0) / 1024,
        "warps": (info.max_threads_per_core or 0) / LANES,
        "blocks": info.max_blocks_per_core or 0,
        "registers": info.registers_per_block or 0,
    }


def _median(work: Callable[[], float]) -> float:
    work()  # the first time loads the kernel
    return statistics.median(work() for _ in range(SAMPLES))


def _rates(bench: Bench, meter: QueueMeter, threads: int) -> dict[str, float]:
    """Lanes that execute an instruction in each cycle, and the clock while they do."""

    def lanes(name: str, *numbers: np.generic, steps: int, instructions: int = 1) -> float:
        def work() -> float:
            bench.rate(name, *numbers, threads=threads, steps=steps)
            return threads * CHAINS * steps * instructions / bench.cycles(bench.blocks)

        return _median(work)

    one, half = np.float32(1), np.float32(0.5)
    result = {
        "float_lanes": lanes("rate_of_floats", one, half, steps=STEPS),
        "integer_lanes": lanes("rate_of_integers", np.uint32(5), steps=STEPS, instructions=2),
        "slow_lanes": lanes("rate_of_slow", np.uint32(5), steps=STEPS // 4),
        "double_lanes": lanes("rate_of_doubles", np.float64(1), np.float64(0.5), steps=STEPS // 8),
    }

    def clock() -> float:
        bench.rate("rate_of_floats", one, half, threads=threads, steps=64 * STEPS)
        return meter.clock_mhz()

    return {"clock_mhz": _median(clock), **result}


def _latencies(bench: Bench, meter: QueueMeter, l2_bytes: int) -> dict[str, float]:
    """Cycles until a result can be used."""

    def cycles(name: str, *numbers: np.generic) -> float:
        def work() -> float:
            bench.chain(name, *numbers)
            return bench.cycles() / STEPS

        return _median(work)

    def steps(level: str, links: Buffer, count: int, *, cold: bool = False) -> float:
        def work() -> float:
            if cold:
                meter.flush()
            bench.follow(level, links, count)
            return bench.cycles() / count

        return _median(work)

    apart = LINE * (4 * l2_bytes // (8 * LINE * LINKS) | 1)  # an odd number of lines
    return {
        "issue_latency": cycles("chain_floats", np.float32(1), np.float32(0.5)),
        "shared_latency": cycles("follow_shared"),
        "shuffle_latency": cycles("pass_round"),
        "l1_latency": steps("l1", bench.links(NEAR_LINKS, 1), STEPS),
        "l2_latency": steps("l2", bench.links(LINKS, LINE), LINKS),
        "dram_latency": steps("l2", bench.links(LINKS, apart), LINKS, cold=True),
    }


def _shared_memories(
    bench: Bench, meter: QueueMeter, l2_bytes: int, threads: int, clock_mhz: float
) -> dict[str, float]:
    """Rates of what all multiprocessors share, and of launches."""
    pieces = l2_bytes // 4 // PIECE_BYTES
    device, blocks = bench.device, threads // THREADS
    words = device.to_device(np.zeros(LANES * SECTOR_WORDS, np.uint32))
    one, other = (device.empty((pieces, 4), np.uint32) for _ in range(2))

    def ms(*args: Any, times: int = 1) -> float:
        def work() -> float:
            timer = meter.timer()
            with meter.held():
                timer.start()
                for _ in range(times):
                    bench.launch(*args)
                timer.stop()
            device.synchronize()
            return timer.ms

        return _median(work)

    copied = 2 * pieces * PIECE_BYTES * COPY_TURNS
    numbers = np.uint32(pieces), np.uint32(COPY_TURNS)
    added = blocks * THREADS * ADD_TURNS
    adding = ms("add_turns", blocks, THREADS, words, np.uint32(ADD_TURNS))
    return {
        "dram_gb_per_s": meter.bandwidth(),
        "l2_gb_per_s": copied / ms("copy_turns", blocks, THREADS, one, other, *numbers) / 1e6,
        "atomics_per_cycle": added / (1e3 * clock_mhz * adding),
        "launch_us": 1e3 * ms("do_nothing", bench.blocks, LANES, times=LAUNCHES) / LAUNCHES,
    }
