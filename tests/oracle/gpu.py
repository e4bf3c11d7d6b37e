"""A GPU's answers: measured once, stored by seed, and compared with the host functions.

A file has a line for a hundred seeds: a hash of the text of their program, which says whether the
answers belong to the grammar as it is, and eight digits a seed, the exclusive or of both halves of
the hash that the program prints.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import takewhile
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

import click

from cudalab.bench.results import commit
from tests.oracle.draws import VERSION
from tests.oracle.programs import cuda_program
from tests.oracle.runner import REPOSITORY, RESULTS, batches, reference

FAILED = "-" * 8
SIZE = 100  # kernels in a line
COMPILED = 20  # kernels that nvcc compiles at a time


def short(line: str) -> str:
    """Give the eight digits that are stored for a line "seed hash error"."""
    _, digits, error = line.split()
    return f"{int(digits[:8], 16) ^ int(digits[8:], 16):08x}" if error == "0" else FAILED


def text_hash(seeds: list[int]) -> str:
    """Hash the text of the program of some seeds."""
    return hashlib.sha256(cuda_program(seeds).encode()).hexdigest()[:8]


def _output(*command: str) -> str:
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return ran.stdout.strip()


def _ran(seeds: list[int], folder: Path, arch: str) -> dict[int, str]:
    """Compile and run a program; the digits of its seeds.

    What nvcc refuses, or what fails when it runs, takes the other kernels of its program with it:
    these are looked at again in smaller programs.
    """
    source = folder / f"{seeds[0]}_{len(seeds)}.cu"
    program = source.with_suffix(".exe")
    source.write_text(cuda_program(seeds))
    command = ["nvcc", f"-arch={arch}", "-std=c++17", "-w", str(source), "-o", str(program)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    output = made.stderr
    if not made.returncode:
        try:
            ran = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
            output = ran.stdout
        except subprocess.TimeoutExpired:
            output = ""
    lines = [line.split() for line in output.splitlines()] if not made.returncode else []
    digits = {int(seed): short(f"{seed} {hashed} {error}") for seed, hashed, error in lines}
    if len(seeds) == 1:
        if digits.get(seeds[0], FAILED) == FAILED:
            click.echo(f"{seeds[0]} fails: {output[:1000]}", err=True)
        return {seeds[0]: digits.get(seeds[0], FAILED)}
    if all(digits.get(seed, FAILED) != FAILED for seed in seeds):
        return digits
    middle = len(seeds) // 2
    return _ran(seeds[:middle], folder, arch) | _ran(seeds[middle:], folder, arch)


def measure(folder: Path, first: int, count: int, jobs: int, limit: float = inf) -> Path:
    """Run seeds on the GPU of this machine and store their answers, as many as `limit` allows.

    No program is compiled after so many seconds; what is stored is a whole number of lines.
    """
    folder.mkdir(parents=True, exist_ok=True)
    query = ("nvidia-smi", "--format=csv,noheader", "--id=0")
    name, driver, capability = _output(*query, "--query-gpu=name,driver_version,compute_cap").split(
        ", "
    )
    arch, end = f"sm_{capability.replace('.', '')}", monotonic() + limit

    def ran(seeds: list[int]) -> dict[int, str]:
        return _ran(seeds, folder, arch) if monotonic() < end else {}

    with ThreadPoolExecutor(jobs) as pool:
        parts = list(pool.map(ran, batches(first, count, COMPILED)))
    digits = {seed: each for part in parts for seed, each in part.items()}
    whole = takewhile(lambda seeds: digits.keys() >= set(seeds), batches(first, count, SIZE))
    lines = [f"{text_hash(seeds)} {''.join(digits[seed] for seed in seeds)}" for seeds in whole]
    document = {
        "device": name,
        "driver": driver,
        "compiler": _output("nvcc", "--version").splitlines()[-1],
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "version": VERSION,
        "first": first,
        "count": min(count, len(lines) * SIZE),
        "failed": sum(line.count(FAILED) for line in lines),
        "differ": list[str](),
        "answers": lines,
    }
    _, document["differ"] = compared(document, jobs=jobs)
    after = f"-from-{first}" if first else ""
    path = RESULTS / f"{name.lower().replace(' ', '-')}{after}.json"
    RESULTS.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


def documents() -> list[tuple[Path, dict[str, Any]]]:
    """Read what is stored for the kernels of this grammar."""
    stored = [
        (path, json.loads(path.read_text())) for path in sorted(RESULTS.glob("nvidia-*.json"))
    ]
    return [(path, document) for path, document in stored if document["version"] == VERSION]


def compared(
    document: dict[str, Any], programs: int = 10**6, jobs: int = 1
) -> tuple[int, list[str]]:
    """Compare so many of a document's programs with the host functions.

    Gives the number of seeds, and a line for each that differs. Stale answers are an error.
    """
    batch = batches(document["first"], document["count"], SIZE)
    step = max(1, len(batch) // programs)
    pairs = list(zip(batch, document["answers"], strict=True))[::step][:programs]
    with ThreadPoolExecutor(jobs) as pool:
        wrong = list(pool.map(lambda pair: _differing(*pair), pairs))
    return sum(len(seeds) for seeds, _ in pairs), sum(wrong, list[str]())


def _differing(seeds: list[int], answers: str) -> list[str]:
    hashed, digits = answers.split()
    if hashed != text_hash(seeds):
        raise ValueError(f"seeds from {seeds[0]} belong to another grammar: measure them anew")
    with tempfile.TemporaryDirectory() as folder:
        right = {seed: short(line) for seed, line in reference(seeds, Path(folder)).items()}
    given = {seed: digits[8 * i : 8 * i + 8] for i, seed in enumerate(seeds)}
    return [f"{seed}: {given[seed]}, host {right[seed]}"
            for seed in seeds if given[seed] != right[seed]]  # fmt: skip
