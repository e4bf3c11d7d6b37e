"""Runs programs both ways, and finds the kernels that differ from the reference."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.oracle.programs import cuda_program, host_program

WAYS = {"loops": {}, "fibers": {"CUDALAB_LOOPS": "0"}}


def _lines(command: list[str], environment: dict[str, str] | None = None) -> dict[int, str]:
    ran = subprocess.run(
        command,
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    return {int(line.split()[0]): line for line in ran.stdout.splitlines()}


def reference(seeds: list[int], folder: Path) -> dict[int, str]:
    """Compute the lines of these seeds with plain C++ at -O0."""
    source, program = folder / "host.cpp", folder / "host"
    source.write_text(host_program(seeds))
    subprocess.run(["g++", "-O0", "-w", "-fwrapv", "-std=c++17", source, "-o", program], check=True)
    return _lines([str(program)])


def answers(seeds: list[int], folder: Path, way: str) -> dict[int, str]:
    """Compute the lines of these seeds with `cudalab run`; what is refused has its message."""
    source = folder / "kernels.cu"
    source.write_text(cuda_program(seeds))
    command = [sys.executable, "-m", "cudalab", "run", "--device", "cpu", str(source)]
    try:
        return _lines(command, WAYS[way])
    except RuntimeError as error:
        if len(seeds) == 1:
            return {seeds[0]: f"refused: {error}"}
    middle = len(seeds) // 2
    return answers(seeds[:middle], folder, way) | answers(seeds[middle:], folder, way)


def differences(seeds: list[int], ways: list[str]) -> list[tuple[str, int, str]]:
    """Compare, and give the way, the seed and the line of what is not as the reference says."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        right = reference(seeds, folder)
        return [
            (way, seed, line)
            for way in ways
            for seed, line in answers(seeds, folder, way).items()
            if line != right[seed]
        ]
