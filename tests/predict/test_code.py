"""The instructions of a kernel: basic blocks of PTX, how often they run, how long they take."""

from __future__ import annotations

import pytest

from cudalab.predict import gpus
from cudalab.predict.code import Code, _blocks, chains, files, frequencies

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
	bar.warp.sync 	-1;
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
    in_warp = (FILE, 12, "barrier", "warp")
    assert keys(shuffle) == [in_warp, in_warp, (FILE, 12, "barrier", "block")]
    assert keys(store) == [(FILE, 13, "global", "store")]
    assert store.instructions[0].bytes == 8
    assert (loop.depth, loop.back, before.depth, end.depth) == (1, 1, 0, 0)
    assert code.parts()[FILE, 12, "barrier", "warp"] == 1 / 2  # the shuffle's
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
    load = (FILE, 11, "global", "load")
    near, far = (chains(code, gpu, {load: miss}, 35, {})[1] for miss in (35, 650))
    assert far - near == pytest.approx(650 - 35)
    assert chains(code, gpu, {load: 35}, 35, {load: 900.0})[1] > 900  # turns, more than the wait


# A tile of 64 bytes a line is read; the number for the next turn is loaded before it is needed.
AHEAD = """
	.loc	1 10 5
	mov.u32 	%r1, %tid.x;
	mov.u32 	%r9, tile;
	shl.b32 	%r2, %r1, 6;
	add.s32 	%r3, %r9, %r2;
	ld.global.f32 	%f1, [%rd1];
$L__BB0_1:
	.loc	1 11 9
	st.shared.f32 	[%r4], %f1;
	bar.sync 	0;
	.loc	1 12 9
	ld.global.f32 	%f1, [%rd1];
	.loc	1 13 9
	ld.shared.f32 	%f3, [%r3+4];
	ld.shared.f32 	%f2, [%r3];
	ld.shared.f32 	%f5, [%r3+12];
	ld.shared.f32 	%f4, [%r3+8];
	ld.shared.f32 	%f6, [%r3+20];
	.loc	1 14 9
	ld.shared.f32 	%f7, [%r4];
	ld.shared.f32 	%f8, [%r4+4];
	@%p1 bra 	$L__BB0_3;
LONG
$L__BB0_3:
	@%p2 bra 	$L__BB0_1;
	ret;
""".replace("LONG", 300 * "	fma.rn.f32 	%f9, %f2, %f3, %f9;\n")


def test_neighbouring_loads_are_merged_where_their_alignment_is_known():
    code = Code(blocks=_blocks(AHEAD, FILES), registers=32, shared_bytes=0, local_bytes=0)
    tile, unknown = (FILE, 13, "shared", "load"), (FILE, 14, "shared", "load")
    assert code.parts()[tile] == 2 / 5  # four become one, the fifth stays
    assert code.parts()[unknown] == 1


def test_a_loop_hides_a_load_that_it_begins_early():
    blocks, gpu = _blocks(AHEAD, FILES), gpus.load("h100")
    code = Code(blocks=blocks, registers=32, shared_bytes=0, local_bytes=0)
    keys = [(FILE, line, "global", "load") for line in (10, 12)]
    near, far = (sum(chains(code, gpu, dict.fromkeys(keys, x), 35, {})[1:]) for x in (100, 300))
    assert near == pytest.approx(far)
    waits = sum(chains(code, gpu, dict.fromkeys(keys, 3000), 35, {})[1:])
    assert waits > far + 1000


def test_nothing_behind_a_barrier_is_issued_before_it():
    head, _, _ = AHEAD.partition("	.loc	1 12 9")
    text = head + 100 * "	add.f32 	%f9, %f8, %f7;\n"
    code = Code(blocks=_blocks(text, FILES), registers=32, shared_bytes=0, local_bytes=0)
    load = (FILE, 10, "global", "load")
    assert sum(chains(code, gpus.load("h100"), {load: 650}, 35, {})) >= 650 + 100


def test_files_have_the_names_of_messages():
    ptx = '\t.file\t1 "/home/me/kernels/reduce/my.cu"\n\t.file\t2 "/usr/include/sm_30.hpp"\n'
    assert files(ptx, [FILE, "my.cu"]) == {1: FILE}
