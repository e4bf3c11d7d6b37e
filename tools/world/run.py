"""Compile and run the programs of the table on one device, and record what they print.

Needs nothing but Python, so that it runs on a machine without this package's dependencies, too.
"""

import datetime as dt
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.world import programs
from tools.world.programs import Program

EXECUTABLE = "program.out"
Row = dict[str, object]
WAITS = {"cpu": 4, "cuda": 1}  # times the limit of processor time, as others use the processor
KEPT = 100_000  # characters of what a program prints
MOST = 64 << 20  # bytes that a program may print


def limited(
    command: list[str], folder: Path, seconds: int, longest: int
) -> tuple[int | None, str, str]:
    """Exit status (None: stopped at a limit), stdout and stderr of a command in a folder."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            ["sh", "-c", 'ulimit -c 0; ulimit -t "$0"; exec "$@"', str(seconds), *command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={**os.environ, "CUDALAB_THREADS": "1"},
            start_new_session=True,
        )
        status: int | None
        try:
            status = process.wait(longest)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = None
        if status in {-signal.SIGXCPU, -signal.SIGKILL}:
            status = None
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read(MOST).decode("utf-8", errors="replace"))
    return status, texts[0], texts[1]


def with_cudalab(program: Program, folder: Path, limit_s: int) -> Row:
    """Run a program on the CPU device."""
    command = [sys.executable, "-m", "cudalab", "run", "--device", "cpu", *program.options]
    command += [*program.files, "--", *program.arguments]
    return _outcome(program, folder, command, limit_s, limit_s * WAITS["cpu"])


def with_nvcc(program: Program, folder: Path, limit_s: int) -> Row:
    """Compile a program by nvcc, if its folder has no executable yet, and run it on the GPU."""
    if not (folder / EXECUTABLE).exists():
        arch = os.environ.get("NVCC_ARCH", "native")
        command = ["nvcc", "-w", f"-arch={arch}", *program.options, *program.files]
        command += ["-o", EXECUTABLE, *programs.libraries(folder)]
        status, _, problem = limited(command, folder, 120, 120)
        if status != 0:
            return {"status": "not compiled", "message": problem[-600:]}
    return _outcome(
        program, folder, [f"./{EXECUTABLE}", *program.arguments], limit_s, limit_s * WAITS["cuda"]
    )


def _outcome(
    program: Program, folder: Path, command: list[str], limit_s: int, longest_s: int
) -> Row:
    for name in program.writes:
        (folder / name).unlink(missing_ok=True)
    started = time.monotonic()
    status, printed, problem = limited(command, folder, limit_s, longest_s)
    paths = [folder / name for name in program.writes]
    texts = [path.read_text("utf-8", errors="replace") if path.exists() else "" for path in paths]
    printed = "".join([printed, *texts])
    return {
        "status": "stopped" if status is None else status,
        "limit_s": limit_s,
        "seconds": round(time.monotonic() - started, 1),
        "bytes": len(printed),
        "sha256": hashlib.sha256(printed.encode()).hexdigest(),
        "printed": printed[:KEPT],
        "message": problem[-1500:],
    }


WAYS: dict[str, Callable[[Program, Path, int], Row]] = {"cpu": with_cudalab, "cuda": with_nvcc}


def device_name(device: str) -> str:
    """The GPU's or the processor's name."""
    if device == "cuda":
        if shutil.which("nvidia-smi") is None:
            return "no GPU"
        query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        done = subprocess.run(query, capture_output=True, text=True, check=False)
        return done.stdout.strip()
    models = [
        x for x in Path("/proc/cpuinfo").read_text().splitlines() if x.startswith("model name")
    ]
    return models[0].partition(": ")[2] if models else "CPU"


def run(
    device: str,
    sources: Path,
    record: Path,
    *,
    jobs: int,
    budget_s: float,
    limit_s: int,
    chosen: list[Program],
) -> None:
    """Run the chosen programs, in their order; begin none after `budget_s` seconds."""
    last = time.monotonic() + budget_s
    head = {
        "kind": device,
        "device": device_name(device),
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
    }
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(jobs) as pool:

        def all_runs(group: list[Program]) -> None:
            if time.monotonic() > last:
                return
            folder = programs.copied(group[0], sources, Path(tempfile.mkdtemp(dir=scratch)))
            for program in group:
                outcome = WAYS[device](program, folder, limit_s)
                rows.append({"set": program.set, "name": program.name, **outcome})
                print(outcome["status"], outcome.get("seconds", ""), rows[-1]["name"], flush=True)
            programs.write_rows(record, head, list(rows))

        list(pool.map(all_runs, programs.by_build(chosen)))
    programs.write_rows(record, head, rows)
