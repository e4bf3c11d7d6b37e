"""Times the variants that its input names, with the package that is on PYTHONPATH.

A line "LAB VARIANT N" is answered by the least CPU time of a run in ms, or by a reason. The first
time for a variant compiles it. It uses what the package has had since commit f60fc3d.
"""

import sys
import tempfile
from collections.abc import Callable
from time import process_time
from typing import IO

from cudalab import labs, runner
from cudalab.backends.cpu.device import CpuDevice
from cudalab.formats import InputStream
from cudalab.labs import registry

ENOUGH_S = 0.04  # of CPU time, for one measurement
TIMES = 3
OF_MATRICES = 512  # rows and columns, where a lab has vectors and matrices
_files: list[IO[bytes]] = []
_steps: dict[tuple[str, ...], Callable[[], object]] = {}


def _prepared(lab_name: str, variant_name: str, n: str) -> Callable[[], object]:
    lab = labs.get(lab_name)
    variant = next(each for each in registry.variants(lab) if each.name == variant_name)
    case = next(each for each in lab.cases() if variant.computes(each))
    size = int(n) if case.get("along", "all") == "all" else OF_MATRICES
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the lab reads it when it copies its input
    _files.append(file)
    file.writelines(lab.generate(case, size, lab.distributions[0], 1))
    file.seek(0)
    inputs = lab.read(InputStream(file.fileno()), case)
    step = runner.prepare(lab, variant, CpuDevice(1), inputs, case)
    step()
    return step


def least_ms(step: Callable[[], object]) -> float:
    """The least CPU time of a run, in ms."""
    start, count = process_time(), 0
    while process_time() - start < ENOUGH_S:
        step()
        count += 1
    times = []
    for _ in range(TIMES):
        start = process_time()
        for _ in range(count):
            step()
        times.append((process_time() - start) / count)
    return min(times) * 1000


for line in sys.stdin:
    words = tuple(line.split())
    try:
        if words not in _steps:
            _steps[words] = _prepared(*words)
        print(f"{least_ms(_steps[words]):.6g}", flush=True)
    except Exception as error:  # noqa: BLE001 - a row of a table says so
        print(f"{type(error).__name__}: {error}".splitlines()[0], flush=True)
