"""The launch plans of scan: which kernels run, in what order, on which memory.

`items` is the input, T its element type; n < 2^31. OP<T> is the operator of
common/thread/operators.cuh; INCLUSIVE is 1 or 0.
"""

from cudalab.labs.base import Job, Step, blocks_for, in_order
from cudalab.labs.scans import look_back_memory, scanned


def dispatch_recursive(job: Job) -> Step:
    """Scan blocks, scan the block sums in the same way, level by level, and add them back.

    scan_blocks(const T *in, T *out, T *block_sums, unsigned n)
        writes the scan of each block of items to out, inclusive or exclusive, and the block's
        sum to block_sums
    scan_block_sums(T *sums, T *sums_above, unsigned n)
        the same in place and always exclusive, for the block sums of the level below
    add_block_sums(T *data, const T *block_sums, unsigned n)
        data[i] = op(block_sums[i / items per block], data[i])
    Blocks of THREADS_PER_BLOCK threads, one block per THREADS_PER_BLOCK * ITEMS_PER_THREAD
    items.
    """
    return scanned(job, job.buffers["items"], job.params["n"])


def dispatch_chunks(job: Job) -> Step:
    """Sum all chunks, scan the sums, scan all chunks.

    reduce_chunks(const T *in, T *chunk_sums, unsigned n, unsigned tiles_per_chunk)
        chunk_sums[c] = sum of chunk c
    scan_sums(T *chunk_sums, unsigned num_chunks)
        scans in place, exclusively; one block
    scan_chunks(const T *in, const T *chunk_sums, T *out, unsigned n, unsigned tiles_per_chunk)
        the scan of each chunk, starting from chunk_sums[c]
    A tile is THREADS_PER_BLOCK * ITEMS_PER_THREAD items, a chunk tiles_per_chunk tiles; there
    are at most MAX_CHUNKS chunks, a block of THREADS_PER_BLOCK threads for each.
    """
    device, items, n = job.device, job.buffers["items"], job.params["n"]
    threads = job.define("THREADS_PER_BLOCK")
    tiles = blocks_for(n, threads * job.define("ITEMS_PER_THREAD"))
    tiles_per_chunk = blocks_for(tiles, job.define("MAX_CHUNKS"))
    chunks = blocks_for(tiles, tiles_per_chunk)
    out = device.empty(n, items.dtype)
    sums = device.empty(chunks, items.dtype)
    reduce = job.launch("reduce_chunks", chunks, threads, items, sums, n, tiles_per_chunk)
    scan_sums = job.launch("scan_sums", 1, threads, sums, chunks)
    scan = job.launch("scan_chunks", chunks, threads, items, sums, out, n, tiles_per_chunk)
    return Step(in_order(reduce, scan_sums, scan), out)


def dispatch_look_back(job: Job) -> Step:
    """One launch; blocks pass on their sums through status words.

    scan_tiles(const T *in, T *out, unsigned long long *words, unsigned long long *ticket,
               unsigned n)
        blocks take tiles by *ticket. words: one per tile, then one per 32 tiles, then one per
        1024; twice as many if T has 8 bytes. Both are zero before the first launch and unchanged
        between launches.
    A tile is WORDS_PER_THREAD words of 4 bytes for each of the THREADS_PER_BLOCK threads of
    its block.
    """
    items, n, threads = job.buffers["items"], job.params["n"], job.define("THREADS_PER_BLOCK")
    item_words = items.dtype.itemsize // 4
    words_each = job.define("WORDS_PER_THREAD", at_least=item_words)
    tiles = blocks_for(n, threads * words_each // item_words)
    out = job.device.empty(n, items.dtype)
    memory = look_back_memory(job, tiles, item_words)
    return Step(job.launch("scan_tiles", tiles, threads, items, out, *memory, n), out)
