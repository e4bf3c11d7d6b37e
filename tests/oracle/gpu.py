"""A GPU's answers: measured once, stored by seed, and compared with the host functions.

A file has a line for each program of a hundred seeds: a hash of the program's text, which says
whether the answers belong to the grammar as it is, and eight digits a seed, the exclusive or of
both halves of the hash that the program prints.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.oracle.draws import VERSION
from tests.oracle.programs import cuda_program
from tests.oracle.runner import REPOSITORY, batches, reference

RESULTS = REPOSITORY / "docs/results/oracle"
FAILED = "-" * 8
SIZE = 100  # kernels in a program


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


def _measured(seeds: list[int], folder: Path, arch: str) -> str:
    """Compile and run the program of some seeds; its digits, and the messages of a failure."""
    source, program = folder / f"{seeds[0]}.cu", folder / f"{seeds[0]}.exe"
    source.write_text(cuda_program(seeds))
    command = ["nvcc", f"-arch={arch}", "-std=c++17", "-w", str(source), "-o", str(program)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        raise RuntimeError(made.stderr)
    ran = subprocess.run([program], capture_output=True, text=True, timeout=300, check=False)
    lines = {int(line.split()[0]): line for line in ran.stdout.splitlines()}
    digits = "".join(short(lines[seed]) if seed in lines else FAILED for seed in seeds)
    return f"{text_hash(seeds)} {digits}"


def measure(folder: Path, first: int, count: int, jobs: int) -> Path:
    """Run seeds on the GPU of this machine and store their answers."""
    folder.mkdir(parents=True, exist_ok=True)
    query = ("nvidia-smi", "--format=csv,noheader", "--id=0")
    name, driver, capability = _output(*query, "--query-gpu=name,driver_version,compute_cap").split(
        ", "
    )
    arch = f"sm_{capability.replace('.', '')}"
    with ThreadPoolExecutor(jobs) as pool:
        lines = list(pool.map(lambda seeds: _measured(seeds, folder, arch),
                              batches(first, count, SIZE)))  # fmt: skip
    document = {
        "device": name,
        "driver": driver,
        "compiler": _output("nvcc", "--version").splitlines()[-1],
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _output("git", "rev-parse", "--short", "HEAD"),
        "version": VERSION,
        "first": first,
        "count": count,
        "failed": sum(line.count(FAILED) for line in lines),
        "answers": lines,
    }
    path = RESULTS / f"{name.lower().replace(' ', '-')}.json"
    RESULTS.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


def documents() -> list[tuple[Path, dict[str, Any]]]:
    """Read what is stored."""
    return [(path, json.loads(path.read_text())) for path in sorted(RESULTS.glob("nvidia-*.json"))]


_LITERALS = {"'a'": ord("a"), "0x7fffffff": 0x7FFFFFFF}
_SHIFT = re.compile(r"(?:<<|>>)=? \(")
_AMOUNT = re.compile(r"(.*) & (31|63|127)", re.DOTALL)


def is_folded(seed: int) -> bool:
    """Tell whether a kernel has a shift that nvcc knows to be too wide, and may turn to anything.

    The amount, or one side of an `or` in it, is then a literal. The hardware gives 0 or the sign.
    """
    text = cuda_program([seed])
    for shift in _SHIFT.finditer(text):
        depth, end = 1, shift.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        if amount := _AMOUNT.fullmatch(text[shift.end() : end - 1]):
            mask = int(amount[2])
            bits = [_literal(side) & mask for side in _sides(amount[1].strip()[1:-1])]
            if max(bits[0], bits[-1], bits[0] | bits[-1]) > mask // 2:
                return True
    return False


def _sides(text: str) -> list[str]:
    """Split an expression at an `or` outside brackets."""
    depth = 0
    for i, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        if sign == "|" and not depth:
            return [text[:i], text[i + 1 :]]
    return [text]


def _literal(text: str) -> int:
    """Give the value of a literal in brackets; 0 if it is none."""
    word = text.strip().strip("()")
    return _LITERALS.get(word, int(word) if re.fullmatch(r"-?\d+", word) else 0)


def compared(document: dict[str, Any], programs: int) -> tuple[int, int, list[str]]:
    """Compare so many of a document's programs with the host functions.

    Gives the number of seeds, that of those left out, and a line for each that differs. Stale
    answers are an error.
    """
    batch = batches(document["first"], document["count"], SIZE)
    step, wrong, count, left_out = max(1, len(batch) // programs), list[str](), 0, 0
    for seeds, answers in list(zip(batch, document["answers"], strict=True))[::step][:programs]:
        hashed, digits = answers.split()
        if hashed != text_hash(seeds):
            raise ValueError(f"seeds from {seeds[0]} belong to another grammar: measure them anew")
        with tempfile.TemporaryDirectory() as folder:
            right = reference(seeds, Path(folder))
        for i, seed in enumerate(seeds):
            if is_folded(seed):
                left_out += 1
                continue
            count += 1
            if digits[8 * i : 8 * i + 8] != short(right[seed]):
                wrong.append(f"{seed}: {digits[8 * i : 8 * i + 8]}, host {short(right[seed])}")
    return count, left_out, wrong
