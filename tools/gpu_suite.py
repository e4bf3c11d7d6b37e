"""Run the tests of devices and labs on a GPU, with a process for each core.

python -m tools.gpu_suite [SECONDS]    ended after so long; 600 if absent

Kernels are compiled by the tests that need them first, on all cores, into the cache that the
processes share: none is compiled twice. The tests with arrays of more than 2 GB begin at once, in
four of the processes. Prepends the summary to docs/results/tests-GPU.txt, with the slowest tests
and with each test that fails or did not end.
"""

import os
import re
import signal
import subprocess
import sys

from tools import results

TESTS = ("tests/devices", "tests/labs")
SLOWEST = 15
# Lines of pytest that are stored: failures, durations and the last one.
STORED = re.compile(r"(FAILED|ERROR) .*|\s*[\d.]+s (call|setup) .*|=*( ?\d+ \w+,?)+ in .*")


def run(seconds: float) -> tuple[int, str]:
    """The exit status of pytest and what it printed; it is interrupted after so many seconds."""
    command = [
        *(sys.executable, "-m", "pytest", "-q", "--device", "cuda", "-k", "cuda", *TESTS),
        *("-n", str(os.cpu_count()), "--durations", str(SLOWEST), "-p", "no:cacheprovider"),
        *("-p", "no:benchmark"),  # if installed, it warns that it does not work with -n
    ]
    process = subprocess.Popen(
        command, cwd=results.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
    return process.returncode, output


def stored(machine: dict[str, str], status: int, output: str) -> str:
    """The text of a run as it is stored."""
    lines = [line.strip("= ") for line in output.splitlines() if STORED.fullmatch(line.strip())]
    if status == 2:
        done = re.findall(r"\[ *(\d+)%\]", output)
        lines.append(f"# Ended by its time limit after {done[-1] if done else 0} %.")
    head = [f"{machine['device']}, {machine['driver']}", machine["date"]]
    command = f"$ pytest --device cuda -n {os.cpu_count()} -k cuda {' '.join(TESTS)}"
    return "\n".join([*head, f"commit {machine['commit']}", "", command, *lines]) + "\n"


def main(seconds: str = "600") -> int:
    """Run the tests, print what they printed, and store the summary."""
    machine = results.machine("cuda")
    status, output = run(float(seconds))
    print(output)
    path = results.FOLDER / f"tests-{results.slug(machine['device'])}.txt"
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    text = stored(machine, status, output)
    path.write_text(text + (f"\n# Earlier:\n{before}" if before else ""), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
