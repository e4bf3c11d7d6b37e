"""`cudalab watch` as a student has it open: one process, and version after version of one file."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import command
import pytest

from cudalab import labs
from cudalab.checker import cases
from cudalab.checker.submit.reports import Reply
from cudalab.microscope.findings import Findings
from cudalab.watch import watching as judging
from cudalab.watch import worker
from cudalab.watch.costs import MAX_ELEMENTS, MAX_ORDER, small_sizes
from cudalab.watch.ladder import Place, distance, place_of, rungs_for
from cudalab.watch.resident import believed

ROOT = Path(labs.__file__).parents[2]
BROKEN = ROOT / "tests" / "broken" / "reduce"
RUNGS = ROOT / "kernels" / "reduce"
LINE = ", line" if shutil.which("addr2line") else ""
END_S = 300.0  # for a verdict, on a machine that is busy


class Watcher:
    """The command, and what it prints."""

    def __init__(self, folder, *words):
        paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cudalab", "watch", *words], cwd=folder,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip
        self.text = ""

    def until(self, *expected):
        """What it prints until all of that has been printed."""
        deadline, pipe = time.monotonic() + END_S, self.process.stdout
        while not all(one in self.text for one in expected):
            assert time.monotonic() < deadline, f"{expected} is missing: {self.text}"
            if select.select([pipe], [], [], 1.0)[0]:
                piece = os.read(pipe.fileno(), 65536)
                assert piece, self.process.stderr.read().decode() + self.text
                self.text += piece.decode()
        seen, self.text = self.text, ""
        return seen

    def leave(self):
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(30)
        return status, self.process.stdout.read().decode(), self.process.stderr.read().decode()


@pytest.fixture
def watching(tmp_path):
    started = []

    def start(*words):
        started.append(Watcher(tmp_path, *words))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()
        one.process.stdout.close()
        one.process.stderr.close()


def test_from_an_empty_file_to_the_ladder(watching, tmp_path):
    path = tmp_path / "my.cu"
    watcher = watching("reduce", "my.cu")  # the file is not there yet
    race = (BROKEN / "missing_barrier.cu").read_text()

    path.write_text(race.replace("combine(values[tid], values[tid + s])", "combine(values[tid])"))
    seen = watcher.until("compile error, line 25", "combine")
    assert "does not compile" in seen

    path.write_text(race)
    seen = watcher.until("of 8 tests; 1 finding", "data race, line 25", "wrong answer", "__sync")
    assert seen.index("data race") < seen.index("wrong answer")  # the cause before what it does
    assert "gone: 2 times compile error, lines 25 and 28" in seen

    # Another line above: the race is still the same one, and is not told again.
    path.write_text(race.replace("extern", "// a comment\nextern"))
    seen = watcher.until("still data race, line 26")
    assert "Put __syncthreads()" not in seen

    other = tmp_path / "other"
    strided = (RUNGS / "interleaved_strided.cu").read_text()
    line = strided[: strided.index("values[left] = combine")].count("\n") + 1
    other.write_text(strided)
    other.replace(path)
    seen = watcher.until(
        "8 of 8 tests", f"bank conflict, line {line}", "next idea: a stride that halves"
    )
    assert "gone: data race, line 26; wrong answer" in seen
    assert "it counts like `interleaved_strided`, rung 3 of 10" in seen

    path.unlink()
    time.sleep(0.3)
    path.write_text((RUNGS / "sequential.cu").read_text())
    seen = watcher.until("gone: bank conflict", "next idea: the first level while loading")
    assert "8 of 8 tests" not in seen  # it was said before

    assert watcher.leave()[:2] == (130, "")


def test_a_kernel_that_kills_its_process_leaves_the_watcher_alive(watching, tmp_path):
    path = tmp_path / "my.cu"
    good = (RUNGS / "sequential.cu").read_text()
    path.write_text((BROKEN / "infinite_loop.cu").read_text())
    watcher = watching("reduce", "my.cu", "--kill-after", "1")
    seen = watcher.until("time limit", "does not end, line")
    # Where the time limit meets it: its head, its body or its barrier.
    assert any(f"loop that does not end, line {line}\n" in seen for line in (23, 24, 25)), seen

    path.write_text((BROKEN / "wild_pointer.cu").read_text())
    watcher.until("access out of bounds, line", "gone: loop that does not end")

    traps = good.replace("__syncthreads();", "__trap();", 1)
    assert traps != good
    path.write_text(traps)
    watcher.until("crash, line 31", "gone: access out of bounds")

    path.write_text(good)
    watcher.until("8 of 8 tests", "rung 4 of 10")


PROGRAM = """#include <cstdio>
__global__ void transpose(float *out, const float *in, int n) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}
int main(int count, char **words) {
    int n = N, given = 0;
    float *in, *out, host[N * N];
    for (int i = 0; i < n * n; ++i) host[i] = i;
    cudaMalloc(&in, sizeof host);
    cudaMalloc(&out, sizeof host);
    cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
    transpose<<<dim3(2, 2), dim3(32, 32)>>>(out, in, n);
    cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    if (scanf("%d", &given) != 1) return 1;
    printf("%g\\n%d %s\\n", host[1], given, words[count - 1]);
    cudaFree(in);
    cudaFree(out);
}
"""


def test_a_whole_program(watching, tmp_path):
    path = tmp_path / "my.cu"
    (tmp_path / "in.txt").write_text("42\n")
    watcher = watching("my.cu", "-D", "N=64", "-lm", "--stdin", "in.txt", "--", "--word")
    path.write_text(PROGRAM)
    seen = watcher.until("exit status 0; no race", "bank conflict, line 8", "42 --word\n")
    assert "prints\n  64\n" in seen

    path.write_text(PROGRAM.replace("    __syncthreads();\n", ""))
    watcher.until("exit status 0; 1 finding", "data race, line 5", "__syncthreads() between")

    path.write_text(PROGRAM.replace("tile[threadIdx.x]", "tile[threadIdx.x"))
    seen = watcher.until("does not compile", "compile error, line 8")
    assert "gone" not in seen  # the race may be there still

    path.write_text(PROGRAM.replace("[32][32]", "[32][33]"))
    seen = watcher.until("compile error, line 8", "42 --word\n")
    assert "bank" not in seen

    path.write_text(PROGRAM.replace("[32][32]", "[32][33]").replace("!= 1", "!= 2"))
    watcher.until("exit status 1; no race", "prints nothing now")
    assert watcher.leave()[:2] == (130, "")


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        (("given = 0;", "given = 0; for (;;);"), 6, "does not end\ntime limit\n"),
        (("int n = N", "int n = *(volatile int *)0"), 3, f"crash of the host's code{LINE}"),
        (("int main", "int not_main"), 125, "it has no main function"),
        (("sizeof host);", "4);"), 3, "exit status 1; 3 findings\n"),
    ],
)
def test_a_program_once(tmp_path, change, status, said):
    (tmp_path / "my.cu").write_text(PROGRAM.replace(*change))
    words = ("watch", "my.cu", "-DN=64", "--once", "--kill-after", "0.5")
    done = command.cudalab(*words, cwd=tmp_path, text=True, env={**os.environ, "COLUMNS": "80"})
    assert said in done.stdout, done.stdout + done.stderr
    assert done.returncode == status
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("end", ["for (unsigned s = 16;", "    __syncthreads();\n    for"])
def test_a_file_that_ends_too_early_is_to_blame_itself(tmp_path, end):
    text = (BROKEN / "missing_barrier.cu").read_text()
    (tmp_path / "my.cu").write_text(text[: text.index(end)])
    done = command.cudalab("watch", "reduce", "my.cu", "--once", cwd=tmp_path, text=True)
    last = text[: text.index(end)].rstrip().count("\n") + 1
    assert f"compile error, line {last}\n  the file ends here" in done.stdout, done.stdout


def test_a_pipe_gets_whole_lines(tmp_path):
    (tmp_path / "my.cu").write_text((BROKEN / "missing_barrier.cu").read_text())
    env = {**os.environ, "COLUMNS": ""}
    done = command.cudalab("watch", "reduce", "my.cu", "--once", cwd=tmp_path, text=True, env=env)
    assert re.search(
        "^  block 0, .* there is no __syncthreads.. between the two[.]$", done.stdout, re.MULTILINE
    )


def test_once_has_the_exit_status_of_check(tmp_path):
    (tmp_path / "my.cu").write_text((RUNGS / "sequential.cu").read_text())
    words = ("watch", "reduce", "my.cu", "--once")
    done = command.cudalab(*words, cwd=tmp_path, text=True, env={**os.environ, "COLUMNS": "80"})
    assert done.returncode == 0, done.stderr
    assert "8 of 8 tests" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    (tmp_path / "my.cu").write_text("int a;\n")
    done = command.cudalab("watch", "reduce", "my.cu", "--once", cwd=tmp_path, text=True)
    assert done.returncode == 5
    assert "header" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reduce"], "cudalab watch reduce FILE.cu"),
        (["reduce", "a.cu", "b.cu"], "one .cu file is watched"),
        (["reduec", "a.cu"], "did you mean reduce?"),
        (["reduce", "a.cu", "--stdin", __file__], "for a whole program"),
        (["a.cu", "--show"], "--show is for a lab's kernel"),
        (["a.cu", "--op", "max"], "No such option"),
        (["reduce", "."], ". is no lab, and no .cu file"),
        ([str(RUNGS / "serial.cu")], "Hint: name its lab: cudalab watch LAB"),
    ],
)
def test_what_is_not_watched(words, message):
    done = command.cudalab("watch", *words, text=True)
    assert done.returncode == 2
    assert message in done.stderr


# The ladder, without a kernel ---------------------------------------------------------------------


def test_the_place_is_that_of_the_closest_counts():
    lab = labs.get("reduce")
    rungs = rungs_for(lab, lab.complete({}))
    low, high = {"barriers": 1000.0, "global requests": 500.0}, {"barriers": 10.0}
    counted = {"sequential": low, "warp_shuffle": {**high, "global requests": 500.0}}
    near = {"barriers": 900.0, "global requests": 520.0}
    place = place_of(near, rungs, counted)
    assert place == Place(
        "sequential", 4, 10, next_rung="first_add_on_load", idea="the first level while loading"
    )
    far = {"barriers": 1e6, "global requests": 1e6}
    assert not place_of(far, rungs, counted).exact
    assert place_of({}, rungs, counted) is None
    assert place_of(near, rungs, {}) is None
    assert distance(low, low) == 0


def test_the_top_of_a_ladder_has_no_next_idea():
    lab = labs.get("transpose")
    rungs = rungs_for(lab, lab.complete({}))
    top = [rung for rung in rungs if not rung.ladder][-1]
    place = place_of({"blocks": 7.0}, rungs, {top.name: {"blocks": 7.0}})
    assert place.words()[-1] == "that is the top of this ladder"


@pytest.mark.parametrize("name", labs.names())
def test_inputs_are_small(name):
    lab = labs.get(name)
    is_order = lab.teaching.sizes(lab.complete({})).is_order
    plan = judging.small(lab, cases.public(lab, {}, None, quick=False))
    sizes = [*small_sizes(lab, lab.complete({})), *(test.size for test in plan.tests)]
    assert sizes
    for one in sizes:
        rows, columns = (one[0], one[-1]) if isinstance(one, tuple) else (one, one * is_order or 1)
        assert 0 <= rows * columns <= max(MAX_ELEMENTS, MAX_ORDER**2 * is_order)


@pytest.mark.parametrize("name", labs.names())
def test_the_inputs_of_a_look_are_apart(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lab = labs.get(name)
    case = lab.complete({})
    for data, size in zip(worker.inputs_of(lab, case, "", 0), small_sizes(lab, case), strict=True):
        lab.write_file(tmp_path / "alone", case, size, lab.distributions[0], 0)
        alone = lab.read_file(tmp_path / "alone", case)
        for key, array in alone.arrays.items():
            assert array.tobytes() == data.inputs.hold(key).tobytes(), (size, key)


def test_a_look_that_does_not_end_proves_nothing():
    nothing = {"lab": "reduce", "variant": "my", "file": "my.cu", "case": {}, "inputs": []}
    clean = Findings(**nothing, clean=True, findings=[])
    found = Findings(**nothing, clean=False, findings=[])
    assert believed(clean, Reply(status=0, loaded=True, peak_bytes=0)) is clean
    for reply in (None, Reply(status=1, loaded=True, peak_bytes=0)):
        assert believed(clean, reply) is None
        assert believed(found, reply) is found
        assert believed(None, reply) is None


def test_a_method_whose_step_needs_a_dominant_matrix_is_looked_at(tmp_path):
    """Among three rungs: to count all of them would take half a minute."""
    kernels = tmp_path / "kernels"
    for folder in ("common", "solve/parts"):
        shutil.copytree(ROOT / "kernels" / folder, kernels / folder)
    for rung in ("gauss_jordan", "jacobi", "richardson"):
        shutil.copy(ROOT / "kernels" / "solve" / f"{rung}.cu", kernels / "solve")
    shutil.copy(kernels / "solve" / "richardson.cu", tmp_path / "my.cu")
    words = ("--kernels", str(kernels), "watch", "solve", "my.cu", "--once")
    done = command.cudalab(*words, cwd=tmp_path, text=True)
    assert "no race" in done.stdout
    assert "it counts like `richardson`" in done.stdout, done.stdout + done.stderr
