"""What check mode has not seen is known from the code, whatever has lost it."""

from __future__ import annotations

import ctypes
import platform
from types import SimpleNamespace

import pytest

from cudalab.backends.cpu.assembly.listing import Counts, Listing
from cudalab.backends.cpu.check import rows
from cudalab.backends.cpu.check.rows import ENTERED, LOOKED_AT, NOT_LOOKED_AT, OWN
from cudalab.backends.cpu.layout import IS_ACCESS
from cudalab.backends.trace import Place

# A block with two hooks, of which a jump may leave out the second, and a block behind it.
LISTING = """\t.file 1 "a.cu"
\t.type kernel, @function
kernel:
\t.loc 1 4 1
\tcall\t__sanitizer_cov_trace_pc
\t.loc 1 5 1
\tcall\t__tsan_read4
\tmovl\t(%rax), %ebx
\ttestl\t%ebx, %ebx
\tje\t.L2
\t.loc 1 6 1
\tcall\t__tsan_write4
\tmovl\t%ebx, (%rax)
.L2:
\t.loc 1 7 1
\tcall\t__sanitizer_cov_trace_pc
\t.loc 1 8 1
\tcall\t__tsan_write8
\tmovq\t%rbx, (%rax)
\tret
"""


def test_a_hook_belongs_to_its_block_if_nothing_leads_around_it():
    listing = Listing({"a.cu"}, Counts(), is_program=True)
    for row in LISTING.splitlines():
        listing.read(row)
    expected = {site.line: site.head for site in listing.sites if site.flags & IS_ACCESS}
    blocks = {site.line: site.number for site in listing.sites if site.line in (4, 7)}
    assert expected == {5: blocks[4], 8: blocks[7]}


ALIGNED = """\t.file 1 "a.cu"
\t.type kernel, @function
kernel:
\tleaq\t16(%rbp), %r10
\tmovq\t%r10, %r13
\t.loc 1 4 1
\tcall\t__sanitizer_cov_trace_pc
\tmovl\t0(%r13), %eax
\t.loc 1 5 1
\tmovq\t(%rsp), %r13
\t.loc 1 6 1
\tmovl\t0(%r13), %eax
\tret
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the rows are x86-64's")
def test_arguments_of_a_function_that_aligns_its_frame_are_its_own():
    listing = Listing({"a.cu"}, Counts(), is_program=True)
    for row in ALIGNED.splitlines():
        listing.read(row)
    assert [site.line for site in listing.blind()] == [6]


@pytest.mark.parametrize(
    ("block", "hook", "whole", "why"),
    [
        (ENTERED, 0, True, "the instrument has lost them"),
        (ENTERED, 0, False, None),  # perhaps the kernel ended between the two
        (0, 0, True, None),
        (ENTERED, LOOKED_AT, True, None),
        (ENTERED, OWN, True, None),
        (ENTERED, NOT_LOOKED_AT, True, "made in a header of cudalab"),
    ],
)
def test_what_a_hook_has_told_and_nobody_has_seen_is_lost(block, hook, whole, why):
    known = bytes([block, hook])
    buffer = ctypes.create_string_buffer(known)
    checker = SimpleNamespace(cudalab_check_looks=_Returns(ctypes.addressof(buffer)))
    sites = [
        SimpleNamespace(file=0, line=4, flags=0, head=0),
        SimpleNamespace(file=0, line=5, flags=IS_ACCESS, head=1),
    ]
    tables = SimpleNamespace(sites=sites, files=["a.cu"], handle=0)
    _, lines = rows.looks(checker, tables, b"", whole=whole)
    assert lines.missed == ({Place("a.cu", 5): why} if why else {})
    assert lines.at == ({Place("a.cu", 5)} if hook == LOOKED_AT else set())


class _Returns:
    """A function of a library that returns an address."""

    def __init__(self, address):
        self.address = address

    def __call__(self, _):
        return self.address
