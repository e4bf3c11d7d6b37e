"""The magics of `%load_ext cudalab`, in IPython's own shell."""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path

import pytest

pytest.importorskip("IPython", reason="notebooks need IPython")

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from cudalab.python import magics
from cudalab.python.magics import stream

BROKEN = Path(__file__).parents[1] / "broken"
ADD = """
#include <cstdio>
__global__ void add(int *x, int y) { x[threadIdx.x] += y; }
int main() {
    int y = 0, x[2] = {1, 2}, *d;
    if (scanf("%d", &y) != 1) return 9;
    cudaMalloc(&d, sizeof(x));
    cudaMemcpy(d, x, sizeof(x), cudaMemcpyHostToDevice);
    add<<<1, 2>>>(d, y);
    cudaMemcpy(x, d, sizeof(x), cudaMemcpyDeviceToHost);
    printf("%d %d\\n", x[0], x[1]);
    return 0;
}
"""


class Cell:
    """What a cell has written and shown, and how it ended."""

    def __init__(self, shell, code):
        with capture_output() as shown:
            self.result = shell.run_cell(code)
        self.out, self.err = shown.stdout, shown.stderr
        self.shown = [output.data for output in shown.outputs]

    @property
    def error(self):
        return str(self.result.error_in_exec)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a cell in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    config = Config({"HistoryManager": {"hist_file": ":memory:"}})
    shell = InteractiveShell.instance(config=config)
    shell.run_line_magic("load_ext", "cudalab")
    yield lambda code: Cell(shell, code)
    InteractiveShell.clear_instance()


def test_a_line_is_the_shell_s(run):
    cell = run(
        "n = 12\n"
        "%cudalab gen radixsort --n {n} > in.bin\n"
        "%cudalab radixsort --device cpu < in.bin | cudalab verify radixsort in.bin -"
    )
    assert (cell.out, cell.error) == ("correct: 12 elements\n", "None")
    cell = run("%cudalab gen radixsort --n 12")
    assert cell.out == "(52 bytes that are no text: redirect them with > FILE)\n"


def test_a_failure_is_short(run):
    cell = run("%cudalab redcue")
    assert "did you mean reduce" in cell.err
    assert cell.error == "exit status 2: wrong command line"
    assert "Traceback" not in cell.out + cell.err


def test_a_cell_is_a_program(run):
    Path("n.txt").write_text("40\n")
    cell = run(f"%%cu --device cpu --stdin n.txt\n{ADD}")
    assert (cell.out, cell.error) == ("41 42\n", "None")
    cell = run(f"%%cu --device cpu --file add.cu\n{ADD}")
    assert cell.error == "exit status 9"
    assert Path("add.cu").read_text() == f"\n{ADD}"


def test_a_cell_is_a_kernel_of_a_lab(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    code = (BROKEN / "reduce" / "missing_barrier.cu").read_text()
    line = code[: code.index("values[tid + s]")].count("\n") + 2  # the magic is the first
    cell = run(f"%%cu reduce --n 1000 --device cpu --kill-after 60\n{code}")
    assert "FAILED    n = 1000" in cell.out
    assert f"at cell.cu:{line}, thread 0 reads it" in cell.out
    assert cell.error.startswith("exit status 3: ")


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("", "run cell.cu"),
        ("-D N=8 --stdin 'a b.txt' -- --file x", "run -D N=8 cell.cu -- --file x < 'a b.txt'"),
        ("reduce", "check reduce --kernel cell.cu --no-time --quick"),
        ("reduce --op max --file my.cu", "check reduce --kernel my.cu --no-time --quick --op max"),
        ("reduce --sanitize --n 9", "sanitize reduce --kernel cell.cu --n 9"),
        ("reduce --profile --html p.html", "profile reduce --kernel cell.cu --html p.html"),
        ("reduce --bench --n 1Mi", "bench reduce --kernel cell.cu --n 1Mi"),
    ],
)
def test_the_command_that_a_cell_is(run, monkeypatch, line, command):
    lines = []
    monkeypatch.setattr(magics, "stream", lambda line: lines.append(line) or (0, ""))
    assert run(f"%%cu {line}\nint x;").error == "None"
    assert [one.partition(" -m cudalab ")[2] for one in lines] == [command]


def test_a_profile_is_a_page(run):
    shutil.copy(BROKEN / "reduce" / "missing_barrier.cu", "my.cu")
    cell = run("%cudalab profile reduce --kernel my.cu --n 1000")
    assert (cell.out, cell.error) == ("", "None")
    (page,) = cell.shown
    assert page["text/html"].startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    assert page["text/plain"].startswith("reduce: n = 1,000")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("redcue", "Error: there is no lab 'redcue'\nHint: did you mean reduce?"),
        ("--file", "Error: --file needs a value"),
        ("reduce --n '1", "Error: %%cu reduce --n '1: No closing quotation"),
    ],
)
def test_mistakes_in_the_first_line(run, line, message):
    assert run(f"%%cu {line}\nint x;").error.startswith(message)


def test_an_interrupted_cell_ends_its_command(tmp_path):
    def interrupt(_number, _frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            stream(f"sleep 60; touch {tmp_path / 'done'}")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 30
    assert not (tmp_path / "done").exists()
