"""Kernels of one's own: supervision, crashes, signals."""

import os
import signal
import sys
import time

import pytest
from sorting import ANSWER, INPUT, LAB, expect, names, run, sort, start, supervised

from cudalab.labs import registry

SPIN = "for (volatile unsigned i = 0;; i = i + 1) {}"


CRASH = "*(volatile unsigned*)(unsigned long long)(8 * threadIdx.x) = n;"


# Own files, supervised ----------------------------------------------------------------------------


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


# Signals ------------------------------------------------------------------------------------------


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
