"""The instructions of a kernel: basic blocks of PTX, how often they run, how long they take."""

from __future__ import annotations

import pytest

from cudalab.predict import gpus
from cudalab.predict.code import Code, _blocks, _files, chains, frequencies

FILE = "kernels/reduce/my.cu"
FILES = {1: FILE}
# for (i = 0; i < n; ++i) sum += in[i];  if (lane == 0) out[0] = sum;  with a shuffle between.
PTX = """
	.loc	1 10 5
	ld.param.u64 	%rd1, [my_param_0];
	mov.u32 	%r1, %tid.x;
	mul.wide.u32 	%rd2, %r1, 4;
	add.s64 	%rd3, %rd1, %rd2;
$L__BB0_1:
	.loc	1 11 9
	ld.global.nc.f32 	%f1, [%rd3];
	add.f32 	%f2, %f2, %f1;
	add.s64 	%rd3, %rd3, 128;
	setp.lt.u32 	%p1, %r2, %r3;
	@%p1 bra 	$L__BB0_1;
	.loc	2 50 3, function_name $L__info_string0, inlined_at 1 12 7
	shfl.sync.down.b32 	%r5|%p2, %r4, 16, 31, -1;
	bar.sync 	0;
	@%p3 bra 	$L__BB0_3;
	.loc	1 13 5
	st.global.v2.f32 	[%rd4], {%f2, %f3};
$L__BB0_3:
	ret;
"""


@pytest.fixture
def code():
    return Code(blocks=_blocks(PTX, FILES), registers=32, shared_bytes=0, local_bytes=0)


def keys(block):
    return [one.key for one in block.instructions if one.key]


def test_blocks_have_the_lines_of_their_accesses(code):
    before, loop, shuffle, store, end, _ = code.blocks
    assert keys(before) == []
    assert keys(loop) == [(FILE, 11, "global", "load")]
    # What CUDA's own header does belongs to the line that calls it.
    assert keys(shuffle) == [(FILE, 12, "barrier", "warp"), (FILE, 12, "barrier", "block")]
    assert keys(store) == [(FILE, 13, "global", "store")]
    assert store.instructions[0].bytes == 8
    assert (loop.depth, loop.repeats, before.depth, end.depth) == (1, True, 0, 0)
    assert store.is_joined
    assert not shuffle.is_joined


def test_instructions_by_unit(code):
    before, loop, *_ = code.blocks
    assert before.counts() == {"integer": 2}  # parameters and moves cost nothing
    assert loop.counts() == {"other": 2, "float": 1, "integer": 1}  # the address is the access's


def test_frequencies_explain_the_counts_of_lines(code):
    executed = {
        (FILE, 11, "global", "load"): 4 * 1000.0,
        (FILE, 12, "barrier", "block"): 100.0,
        (FILE, 13, "global", "store"): 8 * 5.0,
    }
    often = frequencies(code, executed, 100)
    assert often[:5] == pytest.approx([100, 1000, 100, 5, 100])


def test_a_path_that_no_line_was_seen_of_is_not_taken(code):
    executed = {(FILE, 11, "global", "load"): 4000.0, (FILE, 12, "barrier", "block"): 100.0}
    assert frequencies(code, executed, 100)[3] == 0


def test_a_loop_waits_for_its_load(code):
    gpu = gpus.load("h100")
    near, far = (chains(code, gpu, miss, 35, {})[1] for miss in (35, 650))
    assert far - near == pytest.approx(650 - 35)
    turns = {(FILE, 11, "global", "load"): 900.0}  # more than the wait
    assert chains(code, gpu, 35, 35, turns)[1] > 900


def test_files_have_the_names_of_messages():
    ptx = '\t.file\t1 "/home/me/kernels/reduce/my.cu"\n\t.file\t2 "/usr/include/sm_30.hpp"\n'
    assert _files(ptx, [FILE, "my.cu"]) == {1: FILE}
