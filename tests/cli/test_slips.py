"""What `cudalab run` says of mistakes at the borders of host and device."""

import re

import pytest
from whole_programs import OWN, run

pytestmark = pytest.mark.xdist_group("run")


def told(slip, *options):
    """The status of a run, and its report as one line."""
    done = run("slips.cu", "cpu", *options, arguments=slip.split())
    return done.returncode, " ".join(done.stderr.decode().split())


def sanitized(slip):
    return told(slip, "--sanitize")


def test_a_copy_of_what_nobody_has_written_is_a_note():
    status, report = sanitized("rounds_down")
    assert status == 0
    assert "slips: clean" in report
    assert "1. note: copy of memory that was never written" in report
    assert "cudaMemcpy copies 4000 bytes to the host, and nobody has written 928 of them" in report
    assert "the first is byte 3072 of the 4000 allocated at" in report
    assert "cudaMemcpy(host, out, BYTES, cudaMemcpyDeviceToHost);" in report
    assert "(n + threads - 1) / threads blocks" in report
    _, report = sanitized("in_rows")
    assert "cudaMemcpy2D copies 2000 bytes to the host, and nobody has written 400 of" in report
    assert "the first is byte 3200 of the 4000" in report
    assert "note" not in sanitized("rounds_up")[1]


def test_such_a_copy_counts_where_the_host_reads_what_nobody_has_written():
    _, report = sanitized("rounds_down all")
    text = (OWN / "slips.cu").read_text(encoding="utf-8").splitlines()
    line = next(n for n, row in enumerate(text, 1) if "sum += x[i]" in row)
    assert "1. note: copy of memory that was never written" in report
    assert re.search(
        rf"nobody has written 928 of them.* The host reads that at \S+:{line}\.", report
    )
    for right in ("rounds_down first", "rounds_down anew"):
        assert "note" not in sanitized(right)[1], right


def test_a_result_that_nobody_reads_is_a_note():
    for slip, why in (
        ("not_copied", "and the program copies nothing to the host."),
        ("wrong_copied", "and no copy and no kernel reads it."),
        ("in_place", "and the program copies nothing to the host."),
    ):
        status, report = sanitized(slip)
        assert (status, "slips: clean" in report) == (0, True), report
        assert "1. note: result that nobody reads Kernel square stores in the memory" in report
        assert why in report
        assert report.count("square stores") == 1
    for right in ("by_steps", "rounds_up", "spare"):
        assert "note" not in sanitized(right)[1]


def test_an_index_that_has_overflowed_is_named_and_what_the_program_frees_in_vain_is_no_leak():
    status, report = sanitized("overflow")
    assert status == 3
    assert "before the start of 'out' in global memory (has an int overflowed?)" in report
    assert "as a size_t" in report
    assert "never free" not in report


def test_a_pointer_of_the_host_in_a_struct_is_called_one():
    status, report = sanitized("nested_pointer")
    assert status == 3
    assert ", in memory of the host)" in report
    assert "lay in memory that was copied, such as a struct" in report


def test_a_launch_is_told_that_it_hands_on_a_pointer_of_the_host():
    status, report = told("host_pointer")
    assert status == 0
    assert report.count("kernel scale_all: argument 1 has a pointer to host memory") == 1
    assert told("both_pointers") == (0, "")
    assert sanitized("host_pointer")[0] == 3
    assert sanitized("both_pointers")[0] == 0


def test_dynamic_shared_memory_without_a_size_is_explained_by_the_launch():
    status, report = sanitized("no_size")
    assert status == 3
    assert "kernel<<<blocks, threads, bytes>>>" in report


def test_device_memory_without_a_value_is_to_be_filled_by_the_host():
    status, report = sanitized("no_memset")
    assert status == 3
    assert "reads bins[0] in global memory" in report
    assert "cudaMemset for counters and sums" in report


def test_equal_leaks_share_a_line():
    _, report = sanitized("no_free")
    assert "4000 bytes of device memory are never freed, 10 times" in report
    assert report.count("never freed") == 2
    assert "400 bytes of managed memory are never freed" in report


@pytest.mark.parametrize("options", [(), ("--sanitize",)])
def test_a_time_that_was_never_measured_is_told(options):
    status, report = told("no_record", *options)
    assert status == (3 if options else 0)
    assert "an event was never recorded" in report
    if options:
        assert "Failures that the program ignores:" in report
    else:
        assert "cudaEventElapsedTime failed and the program does not look at its result" in report


def test_a_time_that_is_read_before_the_host_waits_is_an_error():
    status, report = sanitized("early_time")
    assert status == 3
    assert "slips: 1 found" in report
    assert "cudaEventElapsedTime reads the time of an event, and the host has not" in report
    assert "cudaEventSynchronize(stop) before" in report
    assert sanitized("timed")[0] == 0


def test_output_of_a_kernel_for_which_nobody_waits_is_a_note():
    status, report = sanitized("no_wait")
    assert status == 0
    assert "1. note: output that nobody waits for Kernel hello prints, and" in report
    assert "hello<<<1, 2>>>();" in report
    assert "note" not in sanitized("waits")[1]
    assert "note" not in sanitized("timed")[1]
