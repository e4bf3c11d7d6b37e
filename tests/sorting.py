"""What the tests of the command line share: a lab, its input and answer, and processes."""

import os
import struct
import subprocess
import sys

from command import cudalab

from cudalab import labs

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


def run(*args, stdin=b"", env=None, **options):
    """The finished command."""
    if isinstance(stdin, bytes):
        options["input"] = stdin
    else:
        options["stdin"] = stdin
    return cudalab(*args, env=os.environ | (env or {}), timeout=120, **options)


STARTED = []


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


# One lab: what goes wrong -------------------------------------------------------------------------


def shell(line):
    script = line.replace("cudalab", f"'{sys.executable}' -m cudalab")
    return subprocess.run(
        ["/bin/sh", "-c", script], capture_output=True, check=False, timeout=60, input=INPUT
    )


# Own files, supervised ----------------------------------------------------------------------------


def supervised(work, kill_after=None):
    program = (
        "import os, signal, sys\n"
        "from cudalab.cli.failures import report_errors\n"
        "from cudalab.system.supervise import supervise\n"
        f"sys.exit(report_errors(lambda: supervise(lambda: {work}, {kill_after})))\n"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
