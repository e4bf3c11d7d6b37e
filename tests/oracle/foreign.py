"""Kernels of another generator, which shares nothing with ours: CUDAsmith's.

`python -m tests.oracle foreign FOLDER` runs each of the folder's kernels on the CPU device in our
ways, and as plain C++ in which one thread runs at a time (texts/threads.h), and compares a hash of
all that a kernel computes. Neither the generator nor its kernels are a part of this repository; a
kernel begins with a comment that says its threads, and has the function `entry`.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING

from tests.oracle.programs import TEXTS
from tests.oracle.runner import RESULTS, Package, measured

if TYPE_CHECKING:
    from collections.abc import Iterator

STORED = RESULTS / "foreign.json"
HEADERS = ("cuda.h", "cuda_runtime.h", "device_launch_parameters.h")  # of CUDA
OF_DEVICE = "sm_35_atomic_functions.h"  # CUDA includes it by itself
PLAIN = ("g++", "-std=c++17", "-O0", "-w", "-fpermissive", "-fwrapv")
NVCC = ("nvcc", "-std=c++17", "-arch=native", "-w")
EMPTY = "    int ;\n"  # which CUDAsmith declares at times, and g++ refuses
SECONDS = 60  # at which a kernel hangs
LIMITED = Package(seconds=3 * SECONDS)


@dataclass
class Program:
    """One kernel of another generator."""

    path: Path

    def __post_init__(self) -> None:
        """Read the comment that says its threads, and the parameters."""
        self.text = self.path.read_text(encoding="utf-8").replace(EMPTY, "")
        first = self.text.splitlines()[0]
        self.counters = int((re.findall(r"--atomics (\d+)", first) or [0])[0])
        self.all = self._sizes(first, "-g")
        self.block = self._sizes(first, "-l")
        self.grid = [n // block for n, block in zip(self.all, self.block, strict=True)]
        head = self.text.partition("void entry(")[2].partition(")")[0]
        self.parameters = [each.split("*")[-1].strip() for each in head.split(",")]

    def _sizes(self, line: str, option: str) -> list[int]:
        sizes = re.findall(rf" {option} ([\d,]+)", line)[0].split(",")
        return [*map(int, sizes), 1, 1][:3]

    def main(self) -> str:
        """Write the program that runs the kernel and prints a hash, for CUDA and for plain C++."""
        threads, blocks = self.all[0] * self.all[1] * self.all[2], 1
        for each in self.grid:
            blocks *= each
        # of each parameter: its type, its length, its first value and the step to the next
        given = {
            "result": ("long", threads, 0, 0),
            "g_atomic_input": ("int", max(1, self.counters * blocks), 0, 0),
            "g_special_values": ("int", max(1, self.counters * blocks), 0, 0),
            "g_atomic_reduction": ("int", blocks, 0, 0),
            "emi_input": ("int", 1024, 0, 1),
            "tg_input": ("int", 1024, 1024, -1),
            "sequence_input": ("int", max(self.all), 10, 1),
            "g_comm_values": ("long", threads, 1, 0),
        }
        filled = "".join(f"    {kind}* {name} = filled<{kind}>({n}, {start}, {step});\n"
                         for name, (kind, n, start, step) in given.items())  # fmt: skip
        grid, block = (", ".join(f"{n}u" for n in each) for each in (self.grid, self.block))
        return (
            f"{self.text}\n#include <cstdio>\n"
            "template <class T> T* filled(long n, int first, int step) {\n"
            "    T* all = nullptr;\n    cudaMallocManaged(&all, n * sizeof(T));\n"
            "    for (long i = 0; i < n; ++i) all[i] = first + step * i;\n    return all;\n}\n"
            f"int main() {{\n{filled}    const dim3 grid{{{grid}}}, block{{{block}}};\n"
            f"    LAUNCH(entry, grid, block, {', '.join(self.parameters)});\n"
            "    const int error = (int)cudaDeviceSynchronize();\n    unsigned long hash = 7;\n"
            f"    for (long i = 0; i < {threads}; ++i) hash = hash * 1099511628211ul ^ result[i];\n"
            '    printf("%d %016lx\\n", error, hash);\n}\n'
        )


LAUNCH = "#define LAUNCH(kernel, grid, block, ...) kernel<<<grid, block>>>(__VA_ARGS__)\n"


def answers(program: Program, ways: list[str]) -> dict[str, str]:
    """Give what the program prints as plain C++, in our ways, and perhaps on a GPU (way "nvcc").

    A refusal has its message. Nobody is asked what plain C++ refuses, or does not end in time.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for header in program.path.parent.glob("*.h"):
            copyfile(header, folder / header.name)
        (folder / OF_DEVICE).write_text("")
        source = folder / f"{program.path.stem}.cu"
        source.write_text(LAUNCH + program.main(), encoding="utf-8")
        given = {"plain": _plain(program, folder)}
        for way in ways if not given["plain"].startswith("refused") else []:
            if way == "nvcc":
                given[way] = _made([*NVCC, source], folder / "gpu")
            else:
                ran = LIMITED.run(way, "--device", "cpu", str(source))
                given[way] = ran.stdout.strip() if not ran.returncode else f"refused: {ran.stderr}"
        return given


def _plain(program: Program, folder: Path) -> str:
    """Run it as plain C++."""
    for header in HEADERS:
        (folder / header).write_text("")
    copyfile(TEXTS / "threads.h", folder / "threads.h")
    source = folder / "plain.cpp"
    source.write_text(f'#include "threads.h"\n{program.main()}', encoding="utf-8")
    return _made([*PLAIN, "-I", folder, source], folder / "plain")


def _made(command: list[str | Path], program: Path) -> str:
    """Compile and run; what the compiler or the time limit refuses has its message."""
    try:
        subprocess.run([*command, "-o", program], check=True, capture_output=True, timeout=SECONDS)
        ran = subprocess.run([program], check=True, capture_output=True, text=True, timeout=SECONDS)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        return f"refused: {error} {str(error.stderr)[-300:]}"
    return ran.stdout.strip()


def verdict(given: dict[str, str]) -> str:
    """Say what became of a program: alike, a way that differs, or who refuses it."""
    if given["plain"].startswith("refused"):
        return "no reference"
    wrong = [way for way, answer in given.items() if answer != given["plain"]]
    refused = [way for way in wrong if given[way].startswith("refused")]
    if refused:
        return f"refused with {', '.join(refused)}"
    return f"differs with {', '.join(wrong)}" if wrong else "alike"


def compare(folder: Path, ways: list[str], jobs: int) -> Iterator[tuple[str, str, str]]:
    """Give each program's name, its verdict, and the messages of those who refuse it."""
    with ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(answers, Program(path), ways): path.stem
                   for path in sorted(folder.glob("*.cu"))}  # fmt: skip
        for done in as_completed(waiting):
            said = [answer for answer in done.result().values() if answer.startswith("refused")]
            yield waiting[done], verdict(done.result()), "\n".join(said)


def store(verdicts: dict[str, str], generator: str, ways: list[str]) -> None:
    """Store how many programs there are of each verdict, and the names of those that differ."""
    document = {
        **measured(),
        "generator": generator,
        "ways": ways,
        "count": len(verdicts),
        "verdicts": dict(Counter(verdicts.values()).most_common()),
        "differ": [name for name, each in verdicts.items() if each.startswith("differs")],
    }
    STORED.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
