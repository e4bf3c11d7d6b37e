// What kernels call whose threads are loops (regions.h): the rest of runtime.cpp is about fibers.
#pragma once

namespace cudalab {

// All lanes `here` have come to a warp operation together; `what` it is, for messages.
extern "C" void cudalab_complete(WarpOp op, Lanes* lanes, const char* what, const char* file,
                                 int line) {
    Worker& w = *worker;
    const uint3* index = w.index + 32 * lanes->warp;
    for (unsigned left = lanes->here; left;) {
        const unsigned lane = __builtin_ctz(left), mask = lanes->mask[lane];
        const uint3& i = index[lane];
        if (!(mask >> lane & 1))
            fail(w,
                 "thread (%u,%u,%u) is not in the mask 0x%08x of the warp operation it calls "
                 "(%s:%d)",
                 i.x, i.y, i.z, mask, file, line);
        unsigned missing = mask & lanes->live;
        for (unsigned other = 0; other < 32; ++other)
            if (lanes->here >> other & 1 && lanes->mask[other] == mask) missing &= ~(1u << other);
        if (missing) {
            const uint3& o = index[__builtin_ctz(missing)];
            fail(w,
                 "deadlock: thread (%u,%u,%u) waits at %s (%s:%d) with mask 0x%08x, while thread "
                 "(%u,%u,%u) is elsewhere",
                 i.x, i.y, i.z, what, file, line, mask, o.x, o.y, o.z);
        }
        const unsigned group = mask & lanes->live;
        complete(op, group, lanes->value, lanes->source, lanes->result);
        left &= ~group;
    }
}

// Some threads of a block would go on to a barrier, and others not.
extern "C" void cudalab_disagree(const char* file, int line) {
    fail(*worker, "divergent barrier: the threads disagree at %s:%d whether to go on to one", file,
         line);
}

// Memory for `bytes` of local variables of a block, given back in the opposite order.
static size_t lent_bytes(size_t bytes) {
    return (bytes + 127) / 64 * 64;
}
extern "C" void* cudalab_borrow(size_t bytes) {
    Worker& w = *worker;
    const size_t all = MAX_THREADS * LOCAL_MEMORY;
    if (!w.lent) w.lent = map_stacks(all);
    if (!w.lent || w.num_lent + lent_bytes(bytes) > all)
        fail(w, "not enough memory for the local variables of %u threads", w.threads);
    void* memory = w.lent + w.num_lent;
    w.num_lent += lent_bytes(bytes);
    return memory;
}
extern "C" void cudalab_give_back(size_t bytes) {
    worker->num_lent -= lent_bytes(bytes);
}

}  // namespace cudalab
