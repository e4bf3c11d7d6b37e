"""How the checker's worker ends on a device: what is right, wrong, endless, slow or interrupted.

python -m tools.worker [cuda|cpu]

Hands in kernels and programs of reduce whose verdicts are known, each by a command of its own, a
few at a time. Stores docs/results/worker; tools/generate.py makes a table of docs/checking.md.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from cudalab import labs
from cudalab.errors import ExitCode
from cudalab.labs import registry
from cudalab.language import source
from tools import results

FOLDER = results.FOLDER / "worker"
AT_A_TIME = 3
LIMIT_S = 150
INTERRUPTED_AFTER_S = 12
WAIT = "if (atomicAdd((unsigned*)out, 0u) == 0x12345u) return;"
HOST = """
#include <cstdio>
#include <vector>
__global__ void nothing(int* x) { x[0] = 1; }
int main() {
    int n = 0, *d = nullptr;
    if (fread(&n, 4, 1, stdin) != 1) return 1;
    std::vector<int> x(n);
    if (n && fread(x.data(), 4, n, stdin) != (size_t)n) return 1;
    cudaMalloc(&d, 4);
    nothing<<<1, 1>>>(d);
    cudaDeviceSynchronize();
    unsigned sum = 0;
    for (int one : x) sum += (unsigned)one;
    fwrite(&sum, 4, 1, stdout);
}
"""


class Row(NamedTuple):
    """A submission, the exit statuses that are right for it, and what the report must say."""

    name: str
    statuses: tuple[int, ...]
    says: str
    words: tuple[str, ...]


def rows(folder: Path) -> list[Row]:
    """The submissions, whose files are written to a folder."""
    right = source.whole(source.load(registry.find(labs.get("reduce"), "sequential").path))
    body = right.index("{", right.index('extern "C" __global__')) + 1

    def kernel(name: str, text: str, *words: str) -> tuple[str, ...]:
        path = folder / f"{name}.cu"
        path.write_text(text, encoding="utf-8")
        return (f"--kernel={path}", "--seed=1", *words)

    def begins(line: str) -> str:
        return f"{right[:body]}\n{line}\n{right[body:]}"

    endless = begins(f"for (;;) {{ {WAIT} }}")
    slow = begins(f"for (unsigned k = 0; k < 20000u && n > 500000; ++k) {WAIT}")
    other = right.replace("const T*", "const double*")
    samples = results.ROOT / "samples" / "programs"
    host = folder / "host.cu"
    host.write_text(HOST, encoding="utf-8")
    wrong = (ExitCode.WRONG_ANSWER,)
    stops = (-signal.SIGINT, ExitCode.INTERRUPTED)
    return [
        Row("accepted", (0,), "points", kernel("right", right, "--quick")),
        Row(
            "rejected",
            wrong,
            "wrong answer",
            kernel("wrong", right.replace("i < n", "i + 1 < n"), "--quick"),
        ),
        Row("other type", (ExitCode.COMPILE_ERROR,), "double", kernel("type", other, "--quick")),
        Row(
            "endless",
            (ExitCode.TIME_LIMIT,),
            "stopped after",
            kernel("endless", endless, "--quick", "--kill-after=3"),
        ),
        Row(
            "too slow", (0,), "takes|too slow", kernel("slow", slow, "--quick", "--speed-points=4")
        ),
        Row("interrupted", stops, "", kernel("interrupted", endless, "--kill-after=60")),
        Row("program", (0,), "points", (f"--program={samples / 'reduce_templates.cu'}", "--quick")),
        Row("host computes", wrong, "host", (f"--program={host}", "--quick")),
    ]


def judged(row: Row, device: str, folder: Path) -> results.Json:
    """What `cudalab check` does with a submission, and what it leaves behind."""
    command = [sys.executable, "-m", "cudalab", "check", "reduce", "--device", device, *row.words]
    began = time.monotonic()
    log = folder / f"{row.name}.txt"
    with log.open("w", encoding="utf-8") as out:
        box = folder / results.slug(row.name)  # its temporary files show who is left
        box.mkdir()
        env = {**os.environ, "NO_COLOR": "1", "TMPDIR": str(box)}
        running = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=env)
        if row.name == "interrupted":
            time.sleep(INTERRUPTED_AFTER_S)
            running.send_signal(signal.SIGINT)
        status = running.wait(LIMIT_S)
    text = log.read_text(encoding="utf-8", errors="replace")
    time.sleep(1)
    left = sum(f"TMPDIR={box}".encode() in environment(pid) for pid in Path("/proc").glob("[0-9]*"))
    return {
        "name": row.name,
        "status": status,
        "as wanted": status in row.statuses and bool(re.search(row.says, text)) and not left,
        "left": left,
        "seconds": round(time.monotonic() - began),
    }


def environment(process: Path) -> bytes:
    """The environment of a process; empty if it has ended."""
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""


def main(device: str) -> None:
    """Judge all, a few at a time, and store how each ended."""
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(AT_A_TIME) as pool:
        folder = Path(name)
        ended = []
        for one in pool.map(lambda row: judged(row, device, folder), rows(folder)):
            print(*one.values(), flush=True)
            if not one["as wanted"]:
                print((folder / f"{one['name']}.txt").read_text(errors="replace"), flush=True)
            ended.append(one)
    machine = results.machine(device)
    results.write_rows(FOLDER / f"{results.slug(machine['device'])}.json", machine, ended)


def table() -> str:
    """How each submission ended on each device."""
    runs = results.read_all("worker")
    heads = [f"{run['device']}, {run['date']}, `{run['commit']}`" for run in runs]
    ended = [{row["name"]: shown(row) for row in run["rows"]} for run in runs]
    names = dict.fromkeys(name for of_run in ended for name in of_run)
    lines = [[name, *(of_run.get(name, "") for of_run in ended)] for name in names]
    return results.table(["submission", *heads], lines)


def shown(row: results.Json) -> str:
    """An exit status, and whether it is not the right one."""
    return f"{row['status']}{'' if row['as wanted'] else ', WRONG'}"


if __name__ == "__main__":
    main(*sys.argv[1:] or ["cuda"])
