"""The command line from outside: bytes, exit statuses, words."""

import errno
import os
import pty
import re
import resource
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import time
from contextlib import suppress
from itertools import groupby
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from command import cudalab

from cudalab import labs
from cudalab.backends import DEVICES, facts
from cudalab.cli.app import cli
from cudalab.cli.failures import report_errors
from cudalab.cli.inventory import by_ladder
from cudalab.cli.options import size
from cudalab.errors import install_command
from cudalab.labs import registry

COMMAND = [sys.executable, "-m", "cudalab"]
LAB = labs.get("radixsort")
KEYS = [5, 2**31, 0, 2**32 - 1, 7, 7, 1]
INPUT = struct.pack("<i7I", 7, *KEYS)
ANSWER = struct.pack("<7I", *sorted(KEYS))

OWN_KERNEL = """\
// /// cudalab
// summary  = "A student's file"
// order    = 1
// dispatch = "digits"
//
// [defines]
// THREADS_PER_BLOCK = 64
// TILE_ITEMS        = 64
// RADIX_BITS        = 8
// SCAN_THREADS      = 32
// ITEMS_PER_BLOCK   = 64
// ///
extern "C" __global__ void count_digits(const T* keys, unsigned* counts, unsigned n, int shift) {
    BODY
}
extern "C" __global__ void scan_blocks(unsigned* data, unsigned* block_sums, unsigned n) {}
extern "C" __global__ void add_block_sums(unsigned* d, const unsigned* block_sums, unsigned n) {}
extern "C" __global__ void scatter(const T* in, T* out, const unsigned* o, unsigned n, int shift) {}
"""
SPIN = "for (volatile unsigned i = 0;; i = i + 1) {}"
CRASH = "*(volatile unsigned*)(unsigned long long)(8 * threadIdx.x) = n;"


def run(*args, stdin=b"", env=None, **options):
    """The finished command."""
    if isinstance(stdin, bytes):
        options["input"] = stdin
    else:
        options["stdin"] = stdin
    return cudalab(*args, env=os.environ | (env or {}), timeout=120, **options)


STARTED = []


@pytest.fixture(autouse=True)
def no_process_is_left():
    """A test that fails while its process runs would leave it behind."""
    yield
    while STARTED:
        process = STARTED.pop()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(OSError), process:
            pass


def start(*args, **options):
    process = subprocess.Popen(
        [*COMMAND, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        **options,
    )
    STARTED.append(process)
    return process


def sort(*args, device="cpu", **options):
    return run("radixsort", "--device", device, *args, **{"stdin": INPUT, **options})


def expect(done, status, *words, stdout=b""):
    """Exit status, stdout and words on stderr, one error at a time."""
    stderr = done.stderr.decode()
    assert (status, stdout) == (done.returncode, done.stdout), stderr
    for word in words:
        assert word in stderr
    assert "Traceback" not in stderr


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def own(tmp_path):
    """Write a student's file whose first kernel has this body."""

    def write(body):
        path = tmp_path / "my.cu"
        path.write_text(OWN_KERNEL.replace("BODY", body), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="module")
def big_input(tmp_path_factory):
    """Enough keys to fill any pipe."""
    path = tmp_path_factory.mktemp("big") / "in.bin"
    run("gen", "radixsort", "--n", "1Mi", "-o", path)
    return path


@pytest.fixture
def no_gpu():
    """An environment in which the driver shows no device."""
    return {"CUDA_VISIBLE_DEVICES": ""}


# Help --------------------------------------------------------------------------------------------


def commands(group=cli, path=()):
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


@pytest.mark.parametrize("path", [path for path, _ in commands()], ids=" ".join)
def test_every_command_has_help_with_an_example(path):
    done = run(*path, "-h", env={"COLUMNS": "80"})
    expect(done, 0, stdout=done.stdout)
    assert max(map(len, done.stdout.decode().splitlines())) <= 80
    assert b"Usage: cudalab " in done.stdout
    assert b"\n  Example:\n    cudalab " in done.stdout


@pytest.mark.parametrize(("path", "command"), list(commands()), ids=str)
def test_every_option_has_help(path, command):
    del path
    for param in command.params:
        if isinstance(param, click.Option):
            assert param.help, param.name


@pytest.mark.parametrize("path", ["check", "grade", "check reduce"])
def test_the_help_of_judging_is_in_sections(path):
    """Each option stands in one of them, and few in the last one."""
    name, *lab = path.split()
    shown = run(name, *lab, "--help").stdout.decode()
    sections = re.split(r"^(\S.*):\n", shown.partition("Example:")[0], flags=re.MULTILINE)
    found = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert {"Tests", "Limits", "Rules", "Speed", "Results"} <= found.keys()
    assert ("Case of reduce" in found) == bool(lab)
    option = re.compile(r"^  (?:-\w, )?--([\w-]+)", re.MULTILINE)
    assert option.findall(found["Other"]) == ["quiet", "help"]
    listed = option.findall("".join(found.values()))
    assert len(set(listed)) == len(listed) > 20


def test_help_imports_neither_numpy_nor_rich():
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *COMMAND[1:], "--help"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert "radixsort  Sorts n keys" in done.stdout
    for module in ("numpy", "rich", "tomllib", "ctypes"):
        assert not re.search(rf"\| +{module}$", done.stderr, re.MULTILINE)


def test_a_run_does_not_import_rich():
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *COMMAND[1:], "radixsort", "--device", "cpu"],
        capture_output=True,
        check=True,
        input=INPUT,
    )
    assert done.stdout == ANSWER
    assert b" rich" not in done.stderr


def test_version():
    assert re.fullmatch(rb"cudalab \d+\.\d+\.\d+\n", run("--version").stdout)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["radixsrot"], "No such command 'radixsrot': did you mean radixsort?"),
        (["verfy"], "did you mean verify?"),
        (["gen", "radix"], "did you mean radixsort?"),
        (["zzz"], "No such command 'zzz': expected one of bitonic"),
        (["radixsort", "--variant", "digit_8bits"], "did you mean digit_8bit"),
        (["radixsort", "--variant", "../x"], "radixsort has no variant '../x'"),
        (["show", "radixsort", "split"], "split_1bit"),
        (["list", "radix"], "'radix' is unknown: did you mean radixsort?"),
        (["show", "transpose"], "missing: cudalab show transpose VARIANT\nHint: naive, tiled"),
        (["gen", "solve"], "--n is missing: the size of the input\nHint: cudalab gen solve --n "),
        (["radixsort", "--dtype", "int8"], "'int8' is unknown: did you mean int32"),
        (["radixsort", "--threads", "0"], "--threads"),
        (["radixsort", "--kill-after", "0"], "--kill-after"),
        (["radixsort", "--kill-after", "nan"], "'nan' is not a finite number"),
        (["radixsort", "--kill-after", "inf"], "--kill-after"),
        (["radixsort", "--kill-after", "1e10"], "--kill-after"),
        (["bench", "reduce", "--time-limit", "nan"], "'nan' is not a finite number"),
        (["bench", "--compare", __file__, __file__, "--threshold", "nan"], "'nan' is not a finite"),
        (["bench", "--compare", __file__, __file__, "--threshold", "inf"], "'inf' is not a finite"),
        (["bench", "reduce", "--hot", "all", "--op", "max"], "No such option '--op'"),
        (
            ["bench", "reduce", "--baseline", "numpy", "--sweep", "THREADS_PER_BLOCK=64"],
            "--baseline and --sweep exclude each other",
        ),
        (["histogram", "--plot", "nowhere/x.png"], "there is no folder nowhere"),
        (["radixsort", "--kernel", "/nowhere/my.cu"], "'/nowhere/my.cu' does not exist"),
        (["radixsort", "-i", "/nowhere/in.bin"], "'/nowhere/in.bin' does not exist"),
        (["radixsort", "-i", "/"], "is a directory"),
        (["--kernels", "/nowhere", "list"], "'/nowhere' does not exist"),
    ],
    ids=" ".join,
)
def test_usage_errors(args, words):
    expect(run(*args, stdin=INPUT), 2, "Error: ", words)


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        ("bench redcue", "did you mean reduce?"),
        ("explain bank", "did you mean banks"),
        ("profile reduce --dist unform", "did you mean uniform?"),
        ("bench reduce --dist unform", "did you mean uniform?"),
        ("gen reduce --n 1 --dist unform", "did you mean uniform?"),
        ("bench reduce --dtype int3", "did you mean int32"),
        ("bench reduce --baseline nunpy", "did you mean numpy or cupy?"),
        ("bench reduce --sweep THREADS=1,2", "did you mean THREADS_PER_BLOCK"),
        ("scan --variants warp_shufle", "did you mean warp_shuffle"),
        ("bench scan --variants warp_shufle", "did you mean warp_shuffle"),
        ("bench scan --variant warp_shufle", "did you mean warp_shuffle"),
        ("report scan --variant warp_shufle", "did you mean warp_shuffle"),
        ("profile scan --variant warp_shufle", "did you mean warp_shuffle"),
        ("sanitize scan --variants warp_shufle", "did you mean warp_shuffle"),
        ("check scan --variants warp_shufle", "did you mean warp_shuffle"),
        ("scan --device gpu", "expected one of auto, cuda, cpu"),
    ],
)
def test_names_are_suggested_everywhere(args, hint, capsys):
    words = args.split()
    if {"bench", "report"} & set(words):
        words += ["--device", "cpu"]
    assert report_errors(lambda: cli.main(words, standalone_mode=False)) == 2
    assert hint in capsys.readouterr().err


def test_variant_and_kernel_exclude_each_other(own):
    expect(sort("--variant", "split_1bit", "--kernel", own("")), 2, "exclude each other")


# One lab: bytes ----------------------------------------------------------------------------------


OF_KEYS = [v.name for v in registry.variants(LAB) if v.computes(LAB.complete({}))]


@pytest.mark.parametrize("variant", [None, *OF_KEYS])
def test_every_variant_answers(variant, device_name):
    if variant is None:
        done = sort(device=device_name)
    else:  # fibers compile in half of the time; tests/labs runs each variant as loops
        done = sort("--variant", variant, device=device_name, env={"CUDALAB_LOOPS": "0"})
    expect(done, 0, stdout=ANSWER)
    assert done.stderr == b""


@pytest.mark.parametrize("piece", [1, 3, 7, 4096, 65_537])
def test_pipe_of_odd_pieces(piece, device_name):
    n = 200 if piece == 1 else 50_000
    stream = run("gen", "radixsort", "--n", n).stdout
    process = start("radixsort", "--device", device_name)
    for at in range(0, len(stream), piece):
        process.stdin.write(stream[at : at + piece])
        process.stdin.flush()
    stdout, stderr = process.communicate()
    keys = sorted(struct.unpack(f"<{n}I", stream[4:]))
    assert (0, struct.pack(f"<{n}I", *keys), b"") == (process.returncode, stdout, stderr)


def test_files_instead_of_streams(tmp_path):
    (tmp_path / "in.bin").write_bytes(INPUT)
    out = tmp_path / "out.bin"
    expect(sort("-i", tmp_path / "in.bin", "-o", out, stdin=subprocess.DEVNULL), 0)
    assert out.read_bytes() == ANSWER
    assert names(tmp_path) == ["in.bin", "out.bin"]


def test_input_and_output_may_be_the_same_file(tmp_path):
    path = tmp_path / "data.bin"
    path.write_bytes(INPUT)
    expect(sort("-i", path, "-o", path, stdin=subprocess.DEVNULL), 0)
    assert path.read_bytes() == ANSWER


def test_dash_means_the_streams():
    expect(sort("-i", "-", "-o", "-"), 0, stdout=ANSWER)


def test_nothing_to_sort(device_name):
    expect(sort(stdin=struct.pack("<i", 0), device=device_name), 0, stdout=b"")


def test_dtype_decides_the_order():
    done = sort("--dtype", "int32")
    expect(done, 0, stdout=struct.pack("<7i", *sorted(struct.unpack("<7i", INPUT[4:]))))


def test_time_tells_the_stages_on_stderr(device_name):
    done = sort("--time", "--variant", "split_1bit", device=device_name)
    expect(done, 0, "open device", "compile", "read", "to device", stdout=ANSWER)
    expect(done, 0, "split x 32", "to host", "write", "total", stdout=ANSWER)
    lines = done.stderr.decode().splitlines()
    tiers = [line for line in lines if re.fullmatch(r"\w+: (fibers|loops).*", line)]
    assert len(tiers) == (2 if facts(device_name).on_host else 0)
    times = [line for line in lines if line not in tiers]
    assert all(re.fullmatch(r"\S.* +[\d,]+\.\d{3} ms", line) for line in times)


def test_own_kernels_folder(tmp_path, own):
    (tmp_path / "radixsort").mkdir()
    own("").rename(tmp_path / "radixsort" / "mine.cu")
    done = run("--kernels", tmp_path, "list", "radixsort")
    assert b"A student's file" in done.stdout
    assert b"split_1bit" not in done.stdout


# One lab: what goes wrong ------------------------------------------------------------------------


@pytest.mark.parametrize("end", [0, 1, 3, 4, 5, 31])
def test_truncated_input(end):
    expect(sort(stdin=INPUT[:end]), 1, "Error: stdin: truncated", f"ends at byte {end}")


def test_negative_n():
    expect(sort(stdin=struct.pack("<i", -4)), 1, "n = -4 at byte 0", "Hint: ")


@pytest.mark.parametrize("tail", [b"\n", b"x" * 100])
def test_trailing_bytes_are_a_warning(tail, tmp_path):
    done = sort(stdin=INPUT + tail)
    expect(done, 0, "warning: stdin: ignored the bytes after the 32 ", stdout=ANSWER)
    (tmp_path / "in.bin").write_bytes(INPUT + tail)
    done = sort("-i", tmp_path / "in.bin")
    expect(done, 0, f"warning: {tmp_path / 'in.bin'}: ", stdout=ANSWER)
    assert done.stderr.count(b"\n") == 1


def test_terminal_as_stdin():
    controller, terminal = pty.openpty()
    done = sort(stdin=terminal)
    expect(done, 2, "stdin is a terminal", "cudalab radixsort < in.bin > out.bin")
    os.close(controller)
    os.close(terminal)


@pytest.mark.parametrize(
    "args", [["radixsort"], ["gen", "matmul", "--shape", "--n", "3x4x5"]], ids=" ".join
)
def test_terminal_as_stdout(args):
    controller, terminal = pty.openpty()
    done = run(*args, stdin=INPUT, stdout=terminal)
    os.close(terminal)
    assert done.returncode == 2
    assert b"stdout is a terminal" in done.stderr
    assert shlex.join(["cudalab", *args]).encode() in done.stderr
    assert b"> " in done.stderr
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):  # the end: nothing was written
        os.read(controller, 1)
    os.close(controller)


def shell(line):
    script = line.replace("cudalab", f"'{sys.executable}' -m cudalab")
    return subprocess.run(
        ["/bin/sh", "-c", script], capture_output=True, check=False, timeout=60, input=INPUT
    )


def test_closed_streams():
    expect(shell("cudalab radixsort <&-"), 1, "Error: stdin is closed", "Hint: ")
    expect(shell("cudalab radixsort >&-"), 1, "Error: stdout is closed", "Hint: ")
    expect(shell("cudalab show radixsort split_1bit >&-"), 1, "Error: stdout is closed")


def test_directory_as_stdin():
    expect(shell("cudalab radixsort --device cpu < /"), 1, "is a directory")  # says Python itself


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_unreadable_input(tmp_path):
    (tmp_path / "in.bin").write_bytes(INPUT)
    (tmp_path / "in.bin").chmod(0)
    expect(sort("-i", tmp_path / "in.bin"), 2, "not readable")


@pytest.mark.parametrize("supervised", [[], ["--kill-after", "60"]], ids=["", "supervised"])
def test_closed_output_ends_like_a_filter(big_input, supervised, device_name):
    with big_input.open("rb") as stdin:
        process = subprocess.Popen(
            [*COMMAND, "radixsort", "--device", device_name, *supervised],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        process.stdout.read(10)
        process.stdout.close()
        stderr = process.stderr.read()
        process.stderr.close()
    assert (process.wait(), stderr) == (-signal.SIGPIPE, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("supervised", ["", "--kill-after 60"])
def test_full_device(supervised):
    done = shell(f"cudalab radixsort --device cpu {supervised} > /dev/full")
    expect(done, 1, "stdout: cannot write the answer: No space left on device", "Hint: ")


def limited(limit, *args):
    """The finished command, which may use only so much of a resource."""
    resource_of_process, value = limit
    return subprocess.run(
        [*COMMAND, *map(str, args)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource_of_process, (value, value)),
    )


@pytest.mark.parametrize("supervised", [[], ["--kill-after", "60"]], ids=["", "supervised"])
def test_full_disk_keeps_the_old_file(big_input, tmp_path, supervised):
    sort()  # the kernels are compiled now, and no other file will be written
    out = tmp_path / "out.bin"
    out.write_bytes(b"old")
    limit = (resource.RLIMIT_FSIZE, 3 << 19)  # room for what is compiled, not for the answer
    done = limited(limit, "radixsort", "--device", "cpu", "-i", big_input, "-o", out, *supervised)
    expect(done, 1, f"Error: {out}: cannot write the answer: File too large")
    assert out.read_bytes() == b"old"
    assert names(tmp_path) == ["out.bin"]


def test_failure_keeps_the_old_file(tmp_path):
    out = tmp_path / "out.bin"
    out.write_bytes(b"old")
    expect(sort("-o", out, stdin=INPUT[:-1]), 1, "truncated")
    assert out.read_bytes() == b"old"
    assert names(tmp_path) == ["out.bin"]


@pytest.mark.parametrize("where", ["nowhere/out.bin", "."])
def test_unwritable_output(tmp_path, where):
    expect(sort("-o", tmp_path / where), 1, "Error: ", "cannot be written")
    expect(sort("-o", "/"), 1, "Error: /: cannot be written: Is a directory")


def test_out_of_memory(tmp_path):
    path = tmp_path / "sparse.bin"
    n = 2**31 - 1
    path.write_bytes(struct.pack("<i", n))
    os.truncate(path, 4 + 8 * n)
    limit = (resource.RLIMIT_AS, 4 << 30)
    done = limited(limit, "radixsort", "--device", "cpu", "-i", path, "--dtype", "uint64")
    expect(done, 1, "Error: out of memory")


# Devices -----------------------------------------------------------------------------------------


def test_auto_says_that_it_takes_the_cpu(no_gpu):
    done = run("radixsort", stdin=INPUT, env=no_gpu)
    expect(done, 0, stdout=ANSWER)
    assert done.stderr == b"note: no GPU here: running on the CPU device\n"


def test_missing_gpu(no_gpu):
    for args in (["radixsort", "--device", "cuda"], ["device", "cuda"]):
        expect(run(*args, stdin=INPUT, env=no_gpu), 4, "Error: ", "Hint: ")


def test_missing_compiler():
    program = "import sys; sys.modules['ziglang'] = None; from cudalab.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "radixsort", "--device", "cpu"],
        input=INPUT,
        capture_output=True,
        check=False,
        env={k: v for k, v in os.environ.items() if k != "CXX"} | {"PATH": "/nowhere"},
    )
    expect(done, 4, "C++ compiler", install_command("cpu"))


def test_device_tables(no_gpu):
    done = run("device", env=no_gpu)
    expect(done, 0, stdout=done.stdout)
    assert b"cuda device: " in done.stdout
    assert b"compiler" in done.stdout
    assert done.stderr == b""
    assert b"cuda" not in run("device", "cpu").stdout.splitlines()[0]


# Own files, supervised ---------------------------------------------------------------------------


def test_shown_source_runs(tmp_path, device_name):
    path = tmp_path / "my.cu"
    shown = run("show", "radixsort", "digit_4bit").stdout
    assert registry.find(LAB, "digit_4bit").path.read_bytes() == shown
    path.write_bytes(shown)
    expect(sort("--kernel", path, device=device_name), 0, stdout=ANSWER)


def test_shown_source_runs_as_one_file(tmp_path, device_name):
    path = tmp_path / "my.cu"
    path.write_bytes(run("show", "--whole", "radixsort", "digit_4bit").stdout)
    assert b'#include "' not in path.read_bytes()
    expect(sort("--kernel", path, device=device_name), 0, stdout=ANSWER)


def test_endless_kernel_is_ended(own, device_name):
    began = time.monotonic()
    done = sort("--kernel", own(SPIN), "--kill-after", "2.5", device=device_name)
    expect(done, 6, "did not finish within 2.5 s (--kill-after)", "Hint: ", "spin")
    assert time.monotonic() - began < 20


def test_slow_input_counts_too():
    process = start("radixsort", "--kill-after", "0.5")
    process.wait(timeout=20)
    _, stderr = process.communicate()
    assert process.returncode == 6
    assert b"did not finish within 0.5 s" in stderr


def test_what_a_kernel_prints_goes_to_stderr(own, device_name):
    body = 'if (threadIdx.x == 0) printf("in block %u\\n", blockIdx.x);'
    done = run("radixsort", "--device", device_name, "--kernel", own(body), stdin=INPUT)
    assert done.returncode == 0
    assert b"in block 0\n" in done.stderr
    assert b"in block" not in done.stdout
    assert len(done.stdout) == len(ANSWER)


def test_crash_names_the_kernel_and_the_next_step(own):
    path = own(CRASH)
    done = sort("--kernel", path)
    expect(done, 1, "Error: the kernel crashed: segmentation fault", "count_digits", "thread")
    assert done.stderr.decode().endswith(
        f"Hint: to find the line: cudalab sanitize radixsort --kernel {path}\n"
    )


@pytest.mark.parametrize("quiet", ["-q", "--quiet"])
def test_quiet_silences_notes(quiet):
    done = run("radixsort", quiet, stdin=INPUT, env={"CUDA_VISIBLE_DEVICES": ""})
    expect(done, 0, stdout=ANSWER)
    assert done.stderr == b""


def test_crash_keeps_the_old_file(own, tmp_path):
    out = tmp_path / "out.bin"
    out.write_bytes(b"old")
    expect(sort("--kernel", own(CRASH), "-o", out), 1, "the kernel crashed")
    assert out.read_bytes() == b"old"
    assert names(tmp_path) == ["my.cu", "out.bin"]


def test_compile_error_names_file_and_line(own, device_name):
    path = own("int x = does_not_exist;")
    expect(sort("--kernel", path, device=device_name), 5, f"{path}:14:", "does_not_exist")


def test_missing_kernel_is_named_with_the_contract(own, device_name):
    path = own("")
    path.write_text(path.read_text().replace("void scatter", "void scater"))
    expect(
        sort("--kernel", path, device=device_name),
        1,
        "no kernel scatter",
        "scater",
        "dispatch 'digits' of radixsort launches:",
        "scatter(const T *in, T *out, const unsigned *offsets, unsigned n, int shift)",
    )


def test_wrong_parameters_are_told_with_the_contract(own):
    path = own("")
    path.write_text(path.read_text().replace("unsigned* counts, unsigned n", "unsigned* counts"))
    expect(sort("--kernel", path), 1, "count_digits", "parameter", "count_digits(const T *keys")


def test_bad_header_names_file_and_line(own):
    path = own("")
    path.write_text(path.read_text().replace('"digits"', '"digit"'))
    expect(sort("--kernel", path), 1, f"Error: {path}:4: ", "did you mean digits?")


def test_file_without_a_header(tmp_path):
    path = tmp_path / "my.cu"
    path.write_text("__global__ void f() {}\n")
    expect(sort("--kernel", path), 1, f"Error: {path}:1: no header", "Hint: ")


@pytest.mark.parametrize(
    ("words", "one", "other"),
    [
        ("reduce --rows --cols", "--rows", "--cols"),
        ("gen reduce --n 5x5 --cols --rows", "--cols", "--rows"),
        ("verify matmul --aat --abt FILE FILE", "--aat", "--abt"),
        ("bench matmul --aat --abt", "--aat", "--abt"),
        ("profile reduce --data FILE --n 5", "--data", "--n"),
        ("profile reduce --data FILE --seed 5", "--data", "--seed"),
        ("sanitize reduce --data FILE --dist uniform", "--data", "--dist"),
    ],
)
def test_options_that_would_be_ignored_are_refused(words, one, other):
    message = f"Error: {one} and {other} exclude each other\nHint: leave one of them out"
    expect(run(*words.replace("FILE", __file__).split()), 2, message)


def test_a_report_from_results_takes_no_options_of_measuring():
    done = run("report", "reduce", "--from", __file__, "--n", "5", "--op", "max", "-o", "r.md")
    expect(done, 2, "Error: --from measures nothing\nHint: leave out --n, --op\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--variants nope", "reduce has no variant 'nope'"),
        ("scan --variants warp_shuffle,single_pass", "scan has no variant 'single_pass'"),
        ("--n 100,30x20", "reduce has no data of size (30, 20)"),
        ("--sweep LANES=1,2", "no variant of reduce here defines LANES"),
    ],
)
def test_nothing_is_printed_before_bench_refuses(words, message):
    done = run("bench", "reduce", *words.split(), "--device", "cpu")
    expect(done, 2, f"Error: {message}")


def test_compare_takes_no_other_options():
    done = run("bench", "reduce", "--compare", __file__, __file__, "--hot", "--n", "5")
    expect(done, 2, "Error: --compare measures nothing\nHint: leave out the labs, --n, --hot\n")


@pytest.mark.parametrize(
    "words",
    [
        "check reduce --variant sequential --json",
        "bench reduce --csv",
        "report reduce -o",
        "profile reduce --html",
        "sanitize reduce --json",
    ],
)
def test_a_path_that_cannot_be_written_is_refused_at_once(words, tmp_path):
    path = tmp_path / "gone" / "out.html"
    expect(run(*words.split(), path), 2, f"{path}: there is no folder {path.parent}")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("show reduce seq", ["sequential"]),
        ("reduce --variant seq", ["sequential"]),
        ("check reduce --variant seq", ["sequential"]),
        ("sanitize reduce --variant seq", ["sequential"]),
        ("profile reduce --variants serial,seq", ["serial,sequential"]),
        ("bench reduce --variants serial,se", ["serial,sequential", "serial,serial"]),
        ("report reduce --variants seq", ["sequential"]),
        ("bench --variants seq", []),
    ],
)
def test_shells_are_offered_the_names_of_variants(words, offered):
    words = ["cudalab", *words.split()]
    env = {
        "_CUDALAB_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    lines = run(env=env).stdout.decode().split()
    assert lines == [f"plain,{name}" for name in offered]


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not here")
def test_bash_completes_with_the_file_of_the_wheel():
    script = """source docs/shell/cudalab.bash
        COMP_WORDS=(cudalab rad) COMP_CWORD=1
        _cudalab_completion cudalab
        echo "${COMPREPLY[@]}"
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PATH": path},
    )
    assert (done.stdout, done.stderr) == ("radixsort\n", "")


def test_an_input_file_is_named_with_an_option():
    message = "Error: Got unexpected extra argument (in.bin). An input file is named with -i: "
    expect(sort("in.bin"), 2, message + "cudalab radixsort -i in.bin")


REPORTS = [
    ["list", "reduce"],
    ["show", "reduce", "sequential"],
    ["explain", "scan"],
    ["device", "cpu"],
    ["--help"],
    ["profile", "reduce", "--n", "64", "--variant", "sequential"],
    ["profile", "reduce", "--n", "64", "--variant", "sequential", "--kill-after", "60"],
    ["sanitize", "reduce", "--n", "64", "--orders", "1"],
]


@pytest.mark.parametrize("words", REPORTS, ids=" ".join)
def test_a_report_into_a_closed_pipe_ends_like_a_filter(words):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*COMMAND, *words], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert done.returncode == -signal.SIGPIPE
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", REPORTS, ids=" ".join)
def test_a_report_onto_a_full_disk_is_an_error_in_words(words):
    with Path("/dev/full").open("wb") as full:
        done = cudalab(*words, stdout=full)
    assert done.returncode == 1
    assert b"Error: cannot write: No space left on device\nHint: " in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


def supervised(work, kill_after=None):
    program = (
        "import os, signal, sys\n"
        "from cudalab.cli.failures import report_errors\n"
        "from cudalab.system.supervise import supervise\n"
        f"sys.exit(report_errors(lambda: supervise(lambda: {work}, {kill_after})))\n"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)


def test_status_of_the_child():
    expect(supervised("0"), 0)
    expect(supervised("77"), 77)
    expect(supervised("os.kill(os.getpid(), signal.SIGKILL)"), 1, "probably out of memory")
    expect(supervised("os.kill(os.getpid(), signal.SIGFPE)"), 1, "integer division by zero")
    expect(supervised("os.kill(os.getpid(), signal.SIGUSR1)"), 128 + signal.SIGUSR1)
    closed_pipe = "[signal.signal(13, signal.SIG_DFL), os.kill(os.getpid(), 13)]"
    assert supervised(closed_pipe).returncode == -signal.SIGPIPE
    details = "[os.write(int(os.environ['CUDALAB_CRASH_FD']), b'at line 3'), os.abort()]"
    expect(supervised(details), 1, "Error: the kernel crashed: aborted\nat line 3\n")


def test_unknown_exception_keeps_its_traceback():
    done = supervised("1 // 0")
    assert done.returncode == 1
    assert done.stderr.startswith(b"Traceback")
    assert b"ZeroDivisionError" in done.stderr


def test_the_limit_ends_what_the_child_started():
    began = time.monotonic()
    expect(supervised("os.system('sleep 60 & sleep 60')", 0.3), 6, "did not finish")
    assert time.monotonic() - began < 10


# Signals -----------------------------------------------------------------------------------------


def running_kernel(path):
    """A process that has begun to run an endless kernel."""
    process = start("radixsort", "--device", "cpu", "--kernel", path)
    process.stdin.write(INPUT)
    process.stdin.close()
    process.stdin = None
    time.sleep(2.5)
    assert process.poll() is None
    return process


def test_interrupt_while_reading():
    process = start("radixsort", "--device", "cpu")
    time.sleep(1.5)
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, stdout, stderr.strip()) == (130, b"", b"Interrupted")


def test_interrupt_of_an_endless_kernel(own):
    process = running_kernel(own(SPIN))
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, stdout, stderr.strip()) == (130, b"", b"Interrupted")


def test_interrupt_without_supervision(tmp_path, own):
    (tmp_path / "radixsort").mkdir()
    own(SPIN).rename(tmp_path / "radixsort" / "spin.cu")
    process = start("--kernels", tmp_path, "radixsort", "--device", "cpu", "--variant", "spin")
    process.stdin.write(INPUT)
    process.stdin.flush()
    time.sleep(2.5)
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, stdout, stderr.strip()) == (130, b"", b"Interrupted")


def test_termination_reaches_the_child(own):
    process = running_kernel(own(SPIN))
    process.terminate()
    stdout, stderr = process.communicate(timeout=20)  # ends when the child has, too
    assert (process.returncode, stdout, stderr) == (128 + signal.SIGTERM, b"", b"")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end")
def test_no_endless_kernel_is_left_behind(own):
    process = running_kernel(own(SPIN))
    process.kill()
    process.communicate(timeout=20)


# gen and verify ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("1000", 1000),
        ("1e6", 10**6),
        ("1.5e3", 1500),
        ("2^20", 2**20),
        ("1Ki", 2**10),
        ("1Mi", 2**20),
        ("1Gi", 2**30),
        ("2k", 2000),
        ("0.5M", 500_000),
        ("128M", 128_000_000),
        ("1.001K", 1001),
        ("2.01K", 2010),
        ("1.001M", 1_001_000),
        ("1.1e1", 11),
        ("2147483647", 2**31 - 1),
    ],
)
def test_sizes(text, count):
    assert count == size(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "-1", "x", "1.5", "2^31", "2^99", "1e99", "3G", "1_000", "1 000", "0xF", "3^2"),
        *("1.0001K", f"1.{29 * '0'}1K"),
    ],
)
def test_what_is_no_size(text):
    with pytest.raises(click.BadParameter):
        size(text)
    expect(run("gen", "radixsort", f"--n={text}"), 2, "Invalid value for '--n'")


@pytest.mark.parametrize("dist", LAB.distributions)
def test_gen_run_verify(dist, tmp_path):
    paths = tmp_path / "in.bin", tmp_path / "out.bin"
    args = ("--dtype", "float32")
    expect(run("gen", "radixsort", "--n", 1000, "--dist", dist, *args, "-o", paths[0]), 0)
    assert paths[0].stat().st_size == 4 + 4 * 1000
    expect(sort(*args, "-i", paths[0], "-o", paths[1], stdin=subprocess.DEVNULL), 0)
    done = run("verify", "radixsort", *paths, *args)
    expect(done, 0, stdout=b"correct: 1,000 elements\n")


@pytest.mark.parametrize("args", [["--n", "3x4"], ["--n", "3", "--dist", "few:2"]], ids=" ".join)
def test_gen_refuses_what_the_lab_does_not_have(args, tmp_path):
    expect(run("gen", "radixsort", *args), 2, "radixsort has no data of size ", "Hint: ")
    expect(run("gen", "radixsort", *args, "-o", tmp_path / "in.bin"), 2, "Hint: ")
    assert names(tmp_path) == []


def test_same_seed_same_bytes():
    args = ("gen", "radixsort", "--n", 100, "--seed")
    assert run(*args, 1).stdout == run(*args, 1).stdout != run(*args, 2).stdout


def judge(tmp_path, answer, stream=INPUT):
    (tmp_path / "in.bin").write_bytes(stream)
    (tmp_path / "out.bin").write_bytes(answer)
    done = run("verify", "radixsort", tmp_path / "in.bin", tmp_path / "out.bin")
    piped = run("verify", "radixsort", tmp_path / "in.bin", "-", stdin=answer)
    assert (done.returncode, done.stdout) == (piped.returncode, piped.stdout)
    return done


def test_right_answer(tmp_path):
    expect(judge(tmp_path, ANSWER), 0, stdout=b"correct: 7 elements\n")
    expect(judge(tmp_path, b"", struct.pack("<i", 0)), 0, stdout=b"correct: 0 elements\n")


def test_wrong_answer(tmp_path):
    swapped = struct.pack("<7I", 0, 1, 7, 5, 7, 2**31, 2**32 - 1)
    done = judge(tmp_path, swapped)
    expect(done, 3, "out.bin: wrong: 2 of 7 elements differ", "[2] expected 5, got 7")
    expect(done, 3, "not sorted", "the same multiset")


@pytest.mark.parametrize("stream", [INPUT, struct.pack("<i", 0)])
def test_repeated_header(tmp_path, stream):
    answer = b"" if len(stream) == 4 else ANSWER
    expect(judge(tmp_path, stream[:4] + answer, stream), 3, "the header is repeated", "4 bytes")


def test_answer_of_another_length(tmp_path):
    expect(judge(tmp_path, ANSWER[:-3]), 3, "truncated: ends at byte 25", "6 complete elements")
    expect(judge(tmp_path, b""), 3, "truncated: ends at byte 0")
    expect(judge(tmp_path, ANSWER + b"\n"), 3, "too long: expected 28 bytes, got 29")


def test_missing_answer(tmp_path):
    (tmp_path / "in.bin").write_bytes(INPUT)
    args = ("verify", "radixsort", tmp_path / "in.bin", tmp_path / "out.bin")
    expect(run(*args), 2, "does not exist")


def test_bad_input_of_an_answer(tmp_path):
    expect(judge(tmp_path, ANSWER, INPUT[:-1]), 1, "in.bin: truncated")


# Tables ------------------------------------------------------------------------------------------


def printed(*args, columns=None):
    """What a command prints into a pipe, or where there are so many columns."""
    done = CliRunner().invoke(cli, args, env={"COLUMNS": columns}, catch_exceptions=False)
    assert done.exit_code == 0
    assert "\x1b" not in done.output
    return done.output


def test_list_has_a_line_for_each_lab():
    shown = printed("list").splitlines()
    assert [line.split()[0] for line in shown] == ["lab", *labs.names()]
    case = LAB.complete({})
    for device, kind in DEVICES.items():
        features = kind.load().possible_features
        assert registry.default(LAB, case, device, features).name in shown[4].split(), device


def test_a_pipe_gets_a_line_for_each_variant():
    lines = printed("list", "radixsort").splitlines()
    assert lines[0].split() == [
        *("variant", "summary", "ladder", "default", "also", "for", "computes", "requires"),
        "devices",
    ]
    variants = by_ladder(registry.variants(LAB))
    assert [line.split()[0] for line in lines[1:]] == [variant.name for variant in variants]
    assert all(v.summary in line for v, line in zip(variants, lines[1:], strict=True))


def test_ladders_are_listed_one_behind_the_other():
    lines = printed("list", "matmul").splitlines()[1:]
    names = [line.split()[0] for line in lines]
    assert names[:3] == ["naive", "tiled", "register_tiled_1d"]
    ladders = [registry.find(labs.get("matmul"), name).ladder for name in names]
    assert len([*groupby(ladders)]) == len(set(ladders))
    assert all(ladder in line for ladder, line in zip(ladders, lines, strict=True))


@pytest.mark.parametrize("width", [40, 60, 80, 100, 150])
def test_a_list_fits_the_terminal(width):
    shown = printed("list", columns=str(width))
    ladder = printed("list", "radixsort", columns=str(width))
    assert max(map(len, (shown + ladder).splitlines())) <= width
    assert all(variant.name in ladder for variant in registry.variants(LAB))
    assert all(labs.summary(name).split()[0] in shown for name in labs.names())
    if width in (80, 150):  # a line for each
        assert shown.count("\n") <= 4 + len(labs.names())
    assert ("default on cpu" in shown.partition("no room")[0]) == (width >= 150 or width < 60)


def test_json_of_a_missing_gpu_is_an_error(no_gpu):
    expect(run("device", "cuda", "--json", "-", env=no_gpu), 4, "Error: ", "Hint: ")


def on_terminal(*args, env=None):
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *args],
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        env=os.environ | {"TERM": "xterm-256color"} | (env or {}),
    )
    os.close(terminal)
    output = b""
    while True:
        try:
            output += os.read(controller, 65_536)
        except OSError:  # the terminal's last writer has ended
            break
    os.close(controller)
    assert process.wait() == 0
    return output


def test_source_is_highlighted_on_a_terminal():
    assert b"\x1b[" in on_terminal("show", "radixsort", "split_1bit")
    no_color = {"NO_COLOR": "1"}
    assert b"\x1b[3" not in on_terminal("show", "radixsort", "split_1bit", env=no_color)


def test_a_terminal_shows_which_headers_are_included():
    header = b"kernels/radixsort/parts/sweep_digit.cuh\r\n"
    output = on_terminal("show", "radixsort", "onesweep", env={"NO_COLOR": "1"})
    assert b"(--whole prints them in place):" in output
    assert b"\r\n  " + header in output
    assert b"\r\n  kernels/common/warp/warp_scan.cuh\r\n" in output
    output = on_terminal("show", "--whole", "radixsort", "onesweep", env={"NO_COLOR": "1"})
    assert b"(--whole" not in output
    assert b"// begin " + header.strip() in output


def test_broken_report_pipe_ends_quietly():
    done = shell("cudalab show radixsort split_1bit | true; cudalab list | true; true")
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("arguments", "opens"),
    [
        ([], True),
        (["--device", "cuda"], True),
        (["--device", "cpu"], False),
        (["--device=cpu"], False),
        (["--kernel", "my.cu"], False),  # a child process computes, which is forked
        (["--kernel=my.cu"], False),
        (["--kill-after", "9"], False),
        (["--help"], False),
    ],
)
def test_the_gpu_is_opened_early_where_this_process_computes(monkeypatch, arguments, opens):
    opened = []
    monkeypatch.setattr(
        "cudalab.backends.cuda.early.begin_to_open_gpu", lambda: opened.append(True)
    )
    with suppress(click.ClickException):
        cli.main(["radixsort", *arguments, "-i", "no such file"], standalone_mode=False)
    assert opened == [True] * opens


def test_other_commands_of_a_lab_open_no_gpu(monkeypatch):
    monkeypatch.setattr(
        "cudalab.backends.cuda.early.begin_to_open_gpu", lambda: pytest.fail("opened")
    )
    with suppress(click.ClickException):
        cli.main(["verify", "radixsort", "no such file", "nor this"], standalone_mode=False)


def test_a_thread_that_opens_the_gpu_is_silent_without_one():
    code = "from cudalab.backends.cuda import early; early._retain_primary_context()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        check=True,
    )
    assert done.stdout + done.stderr == b""
