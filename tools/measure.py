"""Measure the figures of docs/performance/figures.md on this machine; store them in docs/results.

python -m tools.measure cpu      the CPU device; about five minutes
python -m tools.measure cuda     the GPU
"""

import importlib.util
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from cudalab import labs
from cudalab.backends.cuda import nvcc
from cudalab.labs import registry
from cudalab.language import source
from tools import results
from tools.results import ROOT

COMMAND = [sys.executable, "-m", "cudalab"]
# What one would write without cudalab.
CUPY_SORT = """
import sys, cupy, numpy
n = numpy.frombuffer(sys.stdin.buffer.read(4), "<i4")[0]
keys = numpy.frombuffer(sys.stdin.buffer.read(), "<u4", n)
sys.stdout.buffer.write(cupy.asnumpy(cupy.sort(cupy.asarray(keys))))
"""
PEER = [sys.executable, "-c", CUPY_SORT]
RUNS = 5
KERNELS = f"sum of the kernels, as printed by `--time`, median of {RUNS}"


def main(device: str) -> None:
    """Measure, print and store everything that concerns `device`."""
    figures = []
    for figure, target, measured, unit, how in FIGURES[device]():
        print(f"{figure}: {measured} {unit}  ({target or 'no target'})", flush=True)
        figures.append(
            {"figure": figure, "target": target, "measured": measured, "unit": unit, "how": how}
        )
    stored = {**results.machine(device), "figures": figures}
    results.write(results.FOLDER / f"{results.slug(str(stored['device']))}.json", stored, indent=2)


Figure = tuple[str, str, float, str, str]  # name, target, measured, unit, how


def cpu_figures() -> Iterator[Figure]:
    """The figures of the CPU device."""
    how = f"whole process, median of {RUNS}"
    yield "`cudalab --help`", "≤ 0.15", seconds(["--help"]), "s", how
    with tempfile.TemporaryDirectory() as folder:
        small = generated(folder, "radixsort", 10)
        sort = ["radixsort", "--device", "cpu"]
        yield ("`cudalab radixsort`, n = 10", "≤ 0.4", seconds(sort, small), "s", f"{how}, cached")
        for threads in (256, 1024):
            yield (
                f"block barrier, {threads} threads a block, 1 core",
                "≤ 8",
                barrier_ns(threads),
                "ns",
                f"tools/studies/barrier_loop.cu, per thread and barrier, median of {RUNS}",
            )
        for n, limit in ((1_000_000, 0.8), (10_000_000, 4), (128_000_000, 45)):
            keys = generated(folder, "radixsort", n)
            runs = [whole_process(sort, keys) for _ in range(RUNS)]
            name = f"`cudalab radixsort`, n = {n:,}"
            yield name, f"≤ {limit}", median(s for s, _ in runs), "s", how
        peak = max(peak for _, peak in runs) / (4 * n)
        yield f"peak memory of that, n = {n:,}", "≤ 4", round(peak, 2), "times the keys", "resident"
        keys.unlink()
        keys = generated(folder, "radixsort", 1_000_000)
        split = [*sort, "--variant", "split_1bit"]
        yield "`split_1bit`, n = 1,000,000", "≤ 15", seconds(split, keys), "s", how
        for lab, n, limit in (
            ("reduce", 100_000_000, 1.5),
            ("scan", 10_000_000, 1),
            ("histogram", 100_000_000, 1.5),
            ("solve", 1000, 1),
        ):
            data = generated(folder, lab, n)
            name = f"`cudalab {lab}`, n = {n:,}"
            yield name, f"≤ {limit}", seconds([lab, "--device", "cpu"], data), "s", how
            data.unlink()
        data = generated(folder, "matmul", 512)
        tiled = ["matmul", "--device", "cpu", "--variant", "tiled"]
        yield (
            "`cudalab matmul --variant tiled`, n = 512, kernels",
            "≤ 250",
            median(kernel_ms(tiled, data) for _ in range(RUNS)),
            "ms",
            KERNELS,
        )
        yield from program_figures(folder)


def program_figures(folder: str) -> Iterator[Figure]:
    """Whole programs: `cudalab run`, and `cudalab check` of a small correct one."""
    how = f"whole process, median of {RUNS}"
    run = ["run", "--device", "cpu"]
    report = ROOT / "samples" / "programs" / "radixsort_report.cu"
    lines = f"{report.name}, {len(report.read_text('utf-8').splitlines())} lines"
    small = generated(folder, "radixsort", 10)
    colds = [whole_process([*run, changed(folder, report, i)], small)[0] for i in range(RUNS)]
    name = f"`cudalab run`, {lines}, 10 keys, nothing cached but the runtime"
    yield name, "≤ 1.5", median(colds), "s", how
    empty = Path(folder, "empty.cu")
    empty.write_text("int main() { return 0; }\n", encoding="utf-8")
    yield "`cudalab run`, an empty program", "≤ 0.1", seconds([*run, str(empty)]), "s", how
    keys = generated(folder, "radixsort", 1_000_000)
    name = f"`cudalab run`, {report.name}, n = 1,000,000"
    yield name, "≤ 20", seconds([*run, str(report)], keys), "s", how
    program = ROOT / "samples" / "programs" / "reduce_templates.cu"
    check = ["check", "reduce", "--device", "cpu", "--program"]
    checks = [whole_process([*check, changed(folder, program, i)])[0] for i in range(RUNS)]
    name = f"`cudalab check reduce --program`, {program.name}, default tests"
    yield name, "≤ 5", median(checks), "s", f"{how}, never compiled before"


def changed(folder: str, program: Path, number: int) -> str:
    """A copy of a program that is in no cache."""
    copy = Path(folder, f"{number}-{program.name}")
    first = f"// {time.time_ns()}\n"
    copy.write_text(first + program.read_text(encoding="utf-8"), encoding="utf-8")
    return str(copy)


def cuda_figures() -> Iterator[Figure]:
    """The figures of the GPU."""
    n = 128_000_000
    how = f"whole process, median of {RUNS}"
    sort = ["radixsort", "--device", "cuda"]
    with tempfile.TemporaryDirectory() as folder:
        keys = generated(folder, "radixsort", n)
        whole_process(sort, keys)  # compiles, and brings the file into the page cache
        name = f"`cudalab radixsort`, n = {n:,}"
        yield f"{name}, file to file", "≤ 1.5", seconds(sort, keys), "s", how
        peer = f"read, `cupy.sort`, write, n = {n:,}"
        if importlib.util.find_spec("cupy"):
            yield f"{peer}, file to file", "", seconds([], keys, PEER), "s", how
        report = compiled(folder, ROOT / "samples" / "programs" / "radixsort_report.cu")
        course = f"the course's program, compiled, n = {n:,}"
        yield f"{course}, file to file", "", seconds([], keys, [report]), "s", how
        pipes = f"{how}, between two `cat`"
        yield f"{name}, pipe to pipe", "", seconds_piped([*COMMAND, *sort], keys), "s", pipes
        if importlib.util.find_spec("cupy"):
            yield f"{peer}, pipe to pipe", "", seconds_piped(PEER, keys), "s", pipes
        yield f"{course}, pipe to pipe", "", seconds_piped([report], keys), "s", pipes
        lab = labs.get("radixsort")
        for variant in registry.variants(lab):
            if not variant.computes(lab.complete({})):
                continue
            yield (
                f"`{variant.name}`, n = {n:,}, kernels",
                "≤ 15" if variant.name == "digit_8bit" else "",
                median(kernel_ms([*sort, "--variant", variant.name], keys) for _ in range(RUNS)),
                "ms",
                KERNELS,
            )


FIGURES = {"cpu": cpu_figures, "cuda": cuda_figures}


def generated(folder: str, lab: str, n: int, *options: str) -> Path:
    """The path of an input of size n."""
    path = Path(folder) / f"{lab}-{n}.bin"
    subprocess.run([*COMMAND, "gen", lab, "--n", str(n), *options, "-o", path], check=True)
    return path


def compiled(folder: str, program: Path) -> str:
    """The path of a program compiled by nvcc."""
    target = str(Path(folder, program.stem))
    subprocess.run([nvcc.find_nvcc(), "-O3", "-o", target, program], check=True)
    return target


def whole_process(
    args: list[str], stdin: Path | None = None, command: list[str] = COMMAND
) -> tuple[float, int]:
    """Seconds and peak resident bytes of one run, from a file into a new file."""
    with (
        tempfile.NamedTemporaryFile() as out,
        Path(stdin or os.devnull).open("rb") as data,
        subprocess.Popen([*command, *args], stdin=data, stdout=out, cwd=ROOT) as process,
    ):
        began = time.perf_counter()
        _, status, usage = os.wait4(process.pid, 0)
        elapsed = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{[*command, *args]} failed with status {process.returncode}")
    return elapsed, usage.ru_maxrss * 1024


def seconds(args: list[str], stdin: Path | None = None, command: list[str] = COMMAND) -> float:
    """Median seconds of whole processes."""
    whole_process(args, stdin, command)
    return median(whole_process(args, stdin, command)[0] for _ in range(RUNS))


def seconds_piped(command: list[str], data: Path) -> float:
    """Median seconds of whole processes from one `cat` into another."""
    pipeline = f"cat {shlex.quote(str(data))} | {shlex.join(command)} | cat > /dev/null"

    def elapsed() -> float:
        began = time.perf_counter()
        subprocess.run(pipeline, shell=True, check=True, cwd=ROOT)  # noqa: S602 - the pipe is what is measured
        return time.perf_counter() - began

    return median(elapsed() for _ in range(RUNS))


def kernel_ms(args: list[str], data: Path) -> float:
    """Milliseconds of all kernels, as printed by `--time`."""
    with data.open("rb") as stdin:
        done = subprocess.run(
            [*COMMAND, *args, "--time"], stdin=stdin, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, check=True, cwd=ROOT,
        )  # fmt: skip
    times = re.findall(r"^\w+ x \d+\s+([\d,.]+) ms$", done.stderr, re.MULTILINE)
    return sum(float(ms.replace(",", "")) for ms in times)


def barrier_ns(threads: int) -> float:
    """Nanoseconds for each thread and barrier on one core, in a process of its own."""
    program = f"from tools.measure import time_barriers; print(time_barriers({threads}))"
    runs = [
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout
        for _ in range(RUNS)
    ]
    return median(map(float, runs))


def time_barriers(threads: int, blocks: int = 64, barriers: int = 1000) -> float:
    """Run tools/studies/barrier_loop.cu on one OS thread."""
    from cudalab.backends.cpu.device import CpuDevice  # noqa: PLC0415 - in the measured process only

    with CpuDevice(1) as device:
        module = device.compile(source.load(ROOT / "tools" / "studies" / "barrier_loop.cu"), {})
        out = device.empty(blocks * threads, np.int32)
        device.launch(module["barrier_loop"], 1, threads, out, np.int32(1))
        timer = device.meter().timer()
        timer.start()
        device.launch(module["barrier_loop"], blocks, threads, out, np.int32(barriers))
        timer.stop()
    return 1e6 * timer.ms / (blocks * threads * barriers)


def median(values: Iterable[float]) -> float:
    """The median, rounded to three significant digits."""
    return float(f"{statistics.median(values):.3g}")


if __name__ == "__main__":
    if sys.argv[1:] not in (["cpu"], ["cuda"]):
        sys.exit(__doc__)
    main(sys.argv[1])
