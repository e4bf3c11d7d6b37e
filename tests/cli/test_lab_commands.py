"""The commands of a lab: bytes, streams, and what goes wrong with them."""

import errno
import os
import pty
import re
import resource
import shlex
import signal
import struct
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from sorting import ANSWER, COMMAND, INPUT, LAB, expect, names, run, shell, sort, start

from cudalab.backends import facts
from cudalab.labs import registry


@pytest.fixture(scope="module")
def big_input(tmp_path_factory):
    """Enough keys to fill any pipe."""
    path = tmp_path_factory.mktemp("big") / "in.bin"
    run("gen", "radixsort", "--n", "1Mi", "-o", path)
    return path


# One lab: bytes -----------------------------------------------------------------------------------


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


# One lab: what goes wrong -------------------------------------------------------------------------


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


def test_a_terminal_of_unknown_width_is_as_wide_as_any(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    done, usual = (run("list", env=env) for env in ({"COLUMNS": "0"}, {}))
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == usual.stdout


@pytest.mark.parametrize("no_color", ["", "1"])
def test_no_color_is_honoured_by_all_that_is_printed(no_color, tmp_path):
    controller, terminal = pty.openpty()
    kernel = tmp_path / "my.cu"
    run("new", "reduce", kernel)
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": no_color}
    run("watch", "reduce", kernel, "--once", stdout=terminal, env=environment)
    os.close(terminal)
    written = b""
    with suppress(OSError):  # the end
        while block := os.read(controller, 1 << 16):
            written += block
    os.close(controller)
    assert b"wrong answer" in written
    assert (re.search(rb"\x1b\[[\d;]*m", written) is None) == bool(no_color)


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


@pytest.mark.xdist_group("big input")
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
def test_a_note_that_nobody_can_store_costs_no_answer():
    done = shell("cudalab radixsort 2> /dev/full")
    assert (done.returncode, done.stdout) == (0, ANSWER)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("supervised", ["", "--kill-after 60"])
def test_full_device(supervised):
    done = shell(f"cudalab radixsort --device cpu {supervised} > /dev/full")
    expect(done, 1, "stdout: cannot be written: No space left on device", "Hint: ")


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


@pytest.mark.xdist_group("big input")
@pytest.mark.parametrize("supervised", [[], ["--kill-after", "60"]], ids=["", "supervised"])
def test_full_disk_keeps_the_old_file(big_input, tmp_path, supervised):
    sort()  # the kernels are compiled now, and no other file will be written
    out = tmp_path / "out.bin"
    out.write_bytes(b"old")
    limit = (resource.RLIMIT_FSIZE, 3 << 19)  # room for what is compiled, not for the answer
    done = limited(limit, "radixsort", "--device", "cpu", "-i", big_input, "-o", out, *supervised)
    expect(done, 1, f"Error: {out}: cannot be written: File too large")
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
