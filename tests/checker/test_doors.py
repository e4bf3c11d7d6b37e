"""Submissions that keep the sanitizer from looking, or look different to it: none passes."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from checking import ROOT, checked, cudalab
from click.testing import CliRunner

from cudalab.checker import verdicts
from cudalab.checker.sandbox import sandbox
from cudalab.checker.sandbox.running import Outcome
from cudalab.checker.submit import stages, views
from cudalab.checker.submit.foreign import CompileFailure
from cudalab.checker.verdicts import Status
from cudalab.cli.app import cli
from cudalab.errors import ExitCode
from tools import attacks

PARAMETERS = """(const T* x, const T*, T* out, unsigned n, int,
                                          unsigned) {"""
RACE = (
    "__shared__ int d; if (threadIdx.x == 0) d = 0; __syncthreads(); RAISE; __syncthreads(); "
    "if (d == -5) out[0] = d;"
)
PROGRAM = """#include <cstdio>
#include <cstdlib>
#include <vector>
__global__ void sum_all(const int* x, int* out, unsigned n) {
    __shared__ int s;
    if (threadIdx.x == 0) s = 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) s = s + x[i];
    __syncthreads();
    if (threadIdx.x == 0) *out = s;
}
int main() {
    std::vector<int> v;
    int t, *d, *o, r = 0;
    if (fread(&t, 4, 1, stdin) != 1) return 1;
    while (fread(&t, 4, 1, stdin) == 1) v.push_back(t);
    GUARD
    cudaMalloc(&d, v.size() * 4 + 4);
    cudaMalloc(&o, 4);
    cudaMemcpy(d, v.data(), v.size() * 4, cudaMemcpyHostToDevice);
    sum_all<<<1, 256>>>(d, o, v.size());
    cudaMemcpy(&r, o, 4, cudaMemcpyDeviceToHost);
    fwrite(&r, 4, 1, stdout);
    cudaFree(d);
    cudaFree(o);
}
"""
IFUNC = """extern "C" {
static int real(int x) { return x; }
static int (*pick())(int) { return real; }
__attribute__((visibility("default"), ifunc("pick"))) int same(int);
}
"""
WATCHED = """import sys
from cudalab.checker.sandbox import sandbox
from cudalab.checker.sandbox.running import Limits
one = sandbox.choose("none")
with one.box() as box:
    outcome, answer = one.capture([sys.executable, sys.argv[1]], box, Limits(seconds=30))
print(outcome.reason, answer)
"""
LOOKS = """if (FILE* maps = fopen("/proc/self/maps", "r")) {
    char line[4096];
    while (fgets(line, sizeof line, maps))
        for (char* at = line; *at; ++at) if (at[0] == 'c' && at[1] == 'h' && at[2] == 'e' &&
                                             at[3] == 'c' && at[4] == 'k') exit(0);
}"""


def written(tmp_path, before="", item="x[i]", above=""):
    path = tmp_path / "my.cu"
    ends = f"if (i < half) out[i] = {item} + (i + half < n ? x[i + half] : 0);\n"
    path.write_text(attacks.kernel({"above": above, "begins": f"{before}\n", "ends": ends}))
    return path


def judged(path, status):
    quickly = ("--device", "cpu", "--quick", "--no-time")
    report = checked("reduce", "--kernel", path, *quickly, status=status)
    return report, {stage["name"]: stage for stage in report["stages"]}


@pytest.mark.parametrize(
    "condition",
    [
        "defined(CUDALAB_CHECK)",
        "defined(__SANITIZE_THREAD__)",
        "!defined(__OPTIMIZE__)",
        "DEFINED(CUDALAB)",  # the name appears behind the preprocessor alone
    ],
)
def test_code_that_the_sanitizer_would_not_see(tmp_path, condition):
    race = RACE.replace("RAISE", "RAISE(d)")
    above = (
        "#define DEFINED(name) defined(name##_CHECK)\n"
        f"#if {condition}\n#define RAISE(d) atomicAdd(&d, 1)\n"
        "#else\n#define RAISE(d) d = d + 1\n#endif\n"
    )
    report, stages = judged(written(tmp_path, race, above=above), 3)
    assert stages["sanitize"]["says"].startswith("the sanitizer would see other code")
    assert report["points"] == report["max_points"] / 2


@pytest.mark.parametrize("name", ["stacks", "far_apart", "code"])
def test_code_that_tells_the_builds_by_addresses(tmp_path, name):
    told = tomllib.loads(attacks.TELLS.read_text(encoding="utf-8"))["attack"]
    path = tmp_path / "my.cu"
    path.write_text(attacks.kernel(next(one for one in told if one["name"] == name)))
    report, stages = judged(path, 3)
    assert stages["sanitize"]["says"].startswith("its threads do not do there what they do")
    assert "atomic operations" in stages["sanitize"]["details"][0]
    assert report["points"] == report["max_points"] / 2


@pytest.mark.parametrize(
    ("there", "here"),
    [
        ("__syncthreads();", ""),
        ("__syncwarp();", ""),
        ("if (n) { __syncthreads(); }", ""),
        ("atomicCAS(&d, 0, 1);", "d = 1;"),
        ("atomicExch(&d, 0);", "d = 0;"),
        ("if (threadIdx.x < 64) atomicMax(&d, 1);", "d = 1;"),
        ("(void)__syncthreads_or(0);", ""),
    ],
)
def test_what_is_left_out_where_the_sanitizer_does_not_look(tmp_path, there, here):
    above = (
        "__device__ __attribute__((noinline)) void first(int* p) { *p = *p + 1; }\n"
        "__device__ __attribute__((noinline)) void second(int* p) { *p = *p + 2; }\n"
    )
    tells = "const bool told = (size_t)&second - (size_t)&first > 40;"
    race = f"__shared__ int d; if (threadIdx.x == 0) d = 0; {tells} __syncthreads(); "
    race += f"if (told) {{ {there} }} else {{ {here} }} __syncthreads(); if (d == -5) out[0] = d;"
    _, stages = judged(written(tmp_path, race, above=above), 3)
    assert stages["sanitize"]["says"].startswith("its threads do not do there what they do")


@pytest.mark.parametrize(
    "before",
    [
        # Blocks that take tickets, of which no launch begins anew.
        (
            "__shared__ unsigned next; do { __syncthreads(); if (threadIdx.x == 0) "
            "next = atomicAdd(&tickets, 1u); __syncthreads(); } while (next < 7);"
        ),
        # Warps that do.
        (
            "for (;;) { unsigned next = 0; "
            "if (threadIdx.x % 32 == 0) next = atomicAdd(&tickets, 1u); "
            "next = __shfl_sync(~0u, next, 0); if (next > 20) break; __syncwarp(); }"
        ),
        # A leader that adds for all lanes that are there.
        (
            "if (threadIdx.x % 2) { const unsigned here = __activemask(); "
            "if (threadIdx.x % 32 == __ffs(here) - 1) atomicAdd(&tickets, __popc(here)); }"
        ),
        # A maximum, by compare and swap.
        (
            "for (unsigned old = tickets; old < i;) { const unsigned seen = old; "
            "old = atomicCAS(&tickets, seen, i); if (old == seen) break; }"
        ),
    ],
)
def test_what_depends_on_the_order_is_no_difference(tmp_path, before):
    path = written(tmp_path, before, above="__device__ unsigned tickets;\n")
    _, stages = judged(path, 0)
    assert stages["sanitize"]["status"] == "passed"


@pytest.mark.parametrize(
    ("before", "item", "above", "says"),
    [
        ('if (i < half) asm volatile("incl %0" : "+m"(out[i]));', "x[i] - 1", "", "assembly"),
        ('asm volatile("syscall");', "x[i]", "", "assembly"),
        (
            'int z; asm("mov.s32 %0, 0;" : "=r"(z));',
            "x[i] + z",
            "",
            "a GPU's cannot run on the CPU",
        ),
        ("", "x[i]", '#define HIDE a##s##m\n__device__ void f() { as\\\nm("nop"); }\n', "assembly"),
        ("", "__atomic_load_n(&x[i], 0)", "", "__atomic_load_n is a function of a host's"),
        ("if (__builtin_constant_p(n)) return;", "x[i]", "", "__builtin_constant_p"),
        ("", "x[i]", '__attribute__((no_sanitize("thread"))) __device__ void f() {}\n', "sanitize"),
        ("", "x[i]", "[[gnu::optimize(2)]] __device__ void f() {}\n", "the attribute optimize"),
        ("", "x[i]", '#pragma GCC optimize("O2")\n', "#pragma GCC optimize"),
        ("CUDALAB_FENCED(1);", "x[i]", "", "a name of cudalab's own"),
        (
            "",
            "same(x[i])",
            IFUNC,
            "ifunc",
        ),
    ],
)
def test_what_no_kernel_holds(tmp_path, before, item, above, says):
    _, stages = judged(written(tmp_path, before, item, above), 5)
    assert says in "\n".join(stages["compile"]["details"])


def test_what_a_kernel_may_hold(tmp_path):
    above = (
        "__device__ __forceinline__ int f(int x) { return __builtin_expect(x, 1); }\n"
        "struct __attribute__((aligned(8))) Pair { int a, b; };\n"
        '__device__ void keep(int& x) { asm volatile("" : "+r"(x) : : "memory"); }\n'
    )
    before = 'Pair p{0, 0}; keep(p.a); _Pragma("unroll") for (int k : {0, 1}) (void)k;'
    report, _ = judged(written(tmp_path, before, "f(x[i]) + p.a", above), 0)
    assert report["points"] == report["max_points"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("void combine_halves", "void add_halves", "defines no kernel combine_halves"),
        ("BLOCK = 256", "BLOCK = -256", "needs an integer, 1 or more"),
        (
            "const T* x, const T*,",
            "const float* x, const float*,",
            "parameter x of kernel combine_halves is float *, the lab passes int *",
        ),
        (
            "const T* x, const T*,",
            "const double* x, const double*,",
            "parameter x of kernel combine_halves is double *, the lab passes int *",
        ),
        (
            PARAMETERS,  # and the run crashes
            PARAMETERS.replace("const T*", "const double*") + " x += 1ull << 40;",
            "parameter x of kernel combine_halves is double *, the lab passes int *",
        ),
        (
            PARAMETERS,
            "(const T* x, T* out, const T* y, unsigned n, int level, unsigned count) {",
            "kernel combine_halves are x, out, y, n, level, count, the lab passes x, y, out, n,",
        ),
        ('extern "C" __global__', "__global__", 'is not extern "C"'),
        (
            PARAMETERS,
            "(const T* x, const T*, T* out, unsigned n) {",
            "takes 4 parameters, launched with 6",
        ),
    ],
)
def test_a_contract_that_is_not_kept(tmp_path, old, new, says):
    """It counts as what does not compile; the lab's options may stand before its name."""
    name = "\u202emy.cu"
    (tmp_path / name).write_text(written(tmp_path).read_text().replace(old, new))
    words = ("--quick", "reduce", "--dtype", "int32", "--kernel", name, "--device", "cpu")
    done = cudalab("check", *words, "--no-time", "--json", "it.json", cwd=tmp_path, status=5)
    report = json.loads((tmp_path / "it.json").read_text())
    assert {test["why"] for test in report["tests"]} == {"not what the lab launches"}
    assert says in report["tests"][0]["says"]
    assert "no cause found" not in done.stdout
    assert "\u202e" not in done.stdout


def test_a_word_about_code_for_a_gpu_alone(tmp_path):
    above = "#ifdef CUDALAB_CPU\n#define WAIT __syncthreads()\n#else\n#define WAIT\n#endif\n"
    _, stages = judged(written(tmp_path, "WAIT;", above=above), 0)
    (line,) = stages["compile"]["details"]
    assert "my.cu:16: a GPU gets other code here" in line


def test_a_wrong_answer_by_a_mask_that_names_one_lane(tmp_path):
    before = "const int lanes = __popc(__activemask());"
    report, _ = judged(written(tmp_path, before, "(lanes > 1) * x[i]"), 3)
    assert "__activemask()" in [clue["pattern"] for clue in report["tests"][0]["clues"]]


@pytest.mark.parametrize("guard", ["exit(0);", LOOKS])
def test_a_program_that_ends_where_the_sanitizer_looks(tmp_path, guard):
    above = "" if guard == LOOKS else "#if defined(CUDALAB_CHECK)\n#define GUARD exit(0);\n#else\n"
    above += "" if guard == LOOKS else "#define GUARD\n#endif\n"
    path = tmp_path / "my.cu"
    path.write_text(above + (PROGRAM if above else PROGRAM.replace("GUARD", guard)))
    quickly = ("--device", "cpu", "--quick", "--no-time")
    report = checked("reduce", "--program", path, *quickly, status=3)
    assert report["stages"][-1]["name"] == "sanitize"
    assert report["points"] == report["max_points"] / 2


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Outcome(None, reason="time"), Status.FAILED),
        (Outcome(None, reason="memory"), Status.FAILED),
        (Outcome(None, reason="cancelled"), Status.SKIPPED),
        (Outcome(0), Status.FAILED),
        (Outcome(-9), Status.FAILED),
        (Outcome(ExitCode.COMPILE_ERROR), Status.FAILED),
        (Outcome(ExitCode.TIME_LIMIT), Status.FAILED),
        (Outcome(ExitCode.ERROR, stderr="Error: no space left"), Status.SKIPPED),
        (Outcome(ExitCode.NO_DEVICE), Status.SKIPPED),
    ],
)
def test_whose_doing_an_early_end_is(outcome, status):
    assert stages._ended_early(outcome, "").status is status


def test_lines_are_those_of_the_file_handed_in():
    text = '#line 7 "other.cu"\nint a;\n  # /* x */ 12 "b"\n#li\\\nne 3\nint b; // #line\n'
    settled = views.settled(text, "my.cu")
    assert [line.strip() for line in settled.splitlines()] == [
        *("", "int a;", "", "", "", "int b; // #line")
    ]


@pytest.mark.parametrize(
    "line",
    [
        '#include "/proc/self/mountinfo"',
        "# include </etc/passwd>",
        '#inc\\\nlude "../a.h"',
        "#include NAME",
        '#if __has_include("/proc/1/environ")',
        '%:include "/etc/passwd"',
    ],
)
def test_includes_stay_in_the_folder(line):
    with pytest.raises(CompileFailure, match=r"my.cu:2: error: "):
        views.settled(f"int a;\n{line}\n", "my.cu")
    views.settled(f'/*\n{line}\n*/\n#include <cstdio>\n#include "parts/a.cuh"\n', "my.cu")


def test_no_message_shows_the_graders_files(tmp_path):
    path = written(tmp_path, above='#include "/proc/self/mountinfo"\n')
    done = cudalab("check", "reduce", "--kernel", path, "--device", "cpu", status=5)
    assert "another folder" in done.stdout
    assert "overlay" not in done.stdout + done.stderr


def test_compilers_and_python_name_no_path_of_the_grader(tmp_path):
    """Errors within cudalab's headers, and a script that prints where it is."""
    above = "struct S { int a; };\n__device__ S s;\n"
    path = written(tmp_path, "atomicAdd(&s, 1);", above=above)
    words = ("--device", "cpu", "--no-time", "--quick", "--json", "it.json")
    cudalab("check", "reduce", "--kernel", path.name, *words, cwd=tmp_path, status=5)
    report = json.loads((tmp_path / "it.json").read_text())
    lines = report["stages"][0]["details"]
    assert any(line.startswith("cudalab/backends/cpu/runtime/") for line in lines)
    assert_no_path(lines)
    script = tmp_path / "my.py"
    script.write_text(
        "import json, os, sys\nprint(os.getcwd(), json.__file__, sys.executable, file=sys.stderr)\n"
        "import numpy\nnumpy.zeros(-1)\n"
    )
    cudalab("check", "reduce", *words, "--", sys.executable, script.name, cwd=tmp_path, status=3)
    report = json.loads((tmp_path / "it.json").read_text())
    said = report["tests"][0]["stderr"]
    assert "json/__init__.py" in said
    assert_no_path(said.replace(f"{tmp_path}/", "").splitlines())


def test_another_installation_may_have_made_the_precompiled_header():
    line = "/opt/other/cudalab/backends/cpu/runtime/kernels/accesses.h:53:14: note: candidate"
    assert verdicts.quotable(f"from {line}") == f"from {line.removeprefix('/opt/other/')}"


def assert_no_path(lines):
    places = (str(ROOT), sys.prefix, sys.base_prefix, tempfile.gettempdir(), str(Path.home()))
    assert not [line for line in lines if any(f"{place}/" in line for place in places)]


def test_the_builds_cannot_be_told_apart_by_the_names_of_their_files():
    text = '#line 1 "my.cu"\n__device__ int f() { return sizeof(__BASE_FILE__); }\n'
    seen = views.of_kernel(text, views.of_kernels(), "my.cu".__eq__)
    assert seen.tells == ["my.cu:1"]
    assert not seen.on_gpu


def test_views_of_a_program_that_hides():
    builds = views.of_programs()
    text = "__attribute__((no_sanitize_thread)) void f() {}\n"
    assert views.of_program(text, "a.cu", builds).tells == ["a.cu:1 (no_sanitize_thread)"]
    text = (
        'void f() { asm("nop"); }\n'
        '__device__ int g(int x) { asm("neg.s32 %0, %0;" : "+r"(x)); return x; }\n'
    )
    (foreign,) = views.of_program(text, "a.cu", builds).foreign
    assert foreign.startswith("a.cu:1: error: inline assembly")


def test_a_stopped_watcher_is_noticed(tmp_path):
    """By a program that runs as the grader does, where nothing isolates it."""
    path = tmp_path / "stops.py"
    path.write_text(
        "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\nos.write(1, b'\\0\\0\\0\\0')\n"
    )
    done = subprocess.run(  # a grader that waits for ever is ended
        [sys.executable, "-c", WATCHED, str(path)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.stdout == "lost b''\n", done.stderr


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_python_behind_links(tmp_path):
    """As uv and Homebrew install it: a link in an environment, a linked folder, a version."""
    real = tmp_path / "store" / "cpython-3.real"
    (real / "bin").mkdir(parents=True)
    base = Path(sys.base_prefix)
    name = f"python3.{sys.version_info.minor}"
    shutil.copy(Path(sys.executable).resolve(), real / "bin" / name)
    (real / "lib").mkdir()
    for library in (base / "lib").glob("libpython*"):
        shutil.copy(library, real / "lib" / library.name)
    shutil.copytree(
        Path(os.__file__).parent, real / "lib" / name,
        ignore=shutil.ignore_patterns("site-packages", "dist-packages", "test", "__pycache__"),
    )  # fmt: skip
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt" / "python").symlink_to("../store/cpython-3.real")
    made = tmp_path / "env"
    (made / "bin").mkdir(parents=True)
    (made / "bin" / "python").symlink_to("python3")
    (tmp_path / "brew" / "bin").mkdir(parents=True)
    (tmp_path / "brew" / "bin" / "python3").symlink_to(f"../../opt/python/bin/{name}")
    (made / "bin" / "python3").symlink_to("../../brew/bin/python3")
    (made / "pyvenv.cfg").write_text(f"home = {tmp_path}/opt/python/bin\n")
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    script = "from cudalab.checker.sandbox import sandbox; print(sandbox.choose('bwrap').kind)"
    done = subprocess.run(
        [made / "bin" / "python", "-c", script],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{packages}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "bwrap\n", done.stderr


def test_a_class_without_a_sandbox(tmp_path, monkeypatch):
    """The reason is named, and no submission runs unless that is asked for."""
    monkeypatch.setattr(sandbox, "_bubblewrap", lambda: "there is no bwrap on PATH")
    monkeypatch.setattr(sandbox, "_other_users", lambda: "only root can")
    chosen = sandbox.choose()
    assert chosen.kind == "none"
    assert "(bwrap: there is no bwrap on PATH; user: only root can)" in chosen.words
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "ann.cu").write_text("")
    words = ["grade", str(tmp_path / "class"), "--lab", "reduce", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code != 0
    assert not (tmp_path / "out").exists()


def test_odd_entries_of_a_class(tmp_path):
    entries, out = tmp_path / "class", tmp_path / "out"
    entries.mkdir()
    (entries / "everything").symlink_to("/")
    (entries / ("l" * 252 + ".cu")).write_text("no kernel")
    (entries / "two\nlines.cu").write_text("no kernel")
    (entries / "\u202eright.cu").write_text("no kernel")
    with zipfile.ZipFile(entries / "twice.zip", "w") as archive:
        archive.writestr("my.cu", "no kernel")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("my.cu", "no kernel either")
    (entries / "zipped.cu").write_bytes((entries / "twice.zip").read_bytes())
    (entries / "none.cu").write_text("")
    (entries / "several").mkdir()
    for name in ("a.cu", "b.cu"):
        (entries / "several" / name).write_text("// /// cudalab\n// ///\n")
    words = ("--lab", "reduce", "--out", out, "--no-time", "--quick", "--device", "cpu")
    done = cudalab("grade", entries, *words, status=0)
    assert "\u202e" not in done.stdout + done.stderr
    with (out / "results.csv").open() as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    assert len(rows) == 8
    assert all(name.isprintable() for name in rows)
    assert {row["max_points"] for row in rows.values()} == {rows["twice"]["max_points"]} != {"0"}
    assert rows["everything"]["cause"] == "everything is a link"
    assert rows["zipped"]["cause"] == "zipped.cu is a zip"
    assert rows["none"]["cause"] == "none.cu is empty"
    assert rows["twice"]["cause"] == "it has two files of one name: my.cu"
    assert rows["several"]["cause"].startswith("several kernel files: a.cu, b.cu")
    assert str(tmp_path) not in (out / "summary.html").read_text()
    (tmp_path / "file").write_text("")
    done = cudalab("grade", entries, *words[:2], "--out", tmp_path / "file" / "out", status=1)
    assert "the results cannot be stored there" in done.stderr
