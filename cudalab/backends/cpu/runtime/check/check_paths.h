// Check mode: the way that each thread has taken, and whether threads that have left the kernel
// went past a barrier where others wait.
//
// Returning early is allowed. Going past the barrier is not: entering a basic block that the
// waiting threads enter once the barrier has released them. Blocks that only leave a function do
// not count.
#pragma once

#include "check_state.h"

namespace cudalab {

// The last basic block that the running thread has entered, in its row of paths.blocks. Null: what
// runs is not a kernel, or is not looked at.
static __thread unsigned* last_block __attribute__((tls_model("initial-exec")));

struct Paths {
    static const unsigned LONGEST = 527;
    static const unsigned END = ~0u;
    // Sites of the blocks since the last barrier, from 1; 0: the last one before it.
    unsigned blocks[MAX_THREADS][LONGEST + 1];
    unsigned* last[MAX_THREADS];    // of each thread that does not run
    Place last_place[MAX_THREADS];  // where a thread was seen last
    unsigned left[MAX_THREADS], num_left;

    struct Suspect {
        unsigned block;
        unsigned thread, waits;
        Place barrier;
    };
    List<Suspect> suspects;

    void begin_block(unsigned threads) {
        for (unsigned t = 0; t < threads; ++t) {
            last[t] = blocks[t];
            blocks[t][0] = 0;
            blocks[t][LONGEST] = END;
        }
        num_left = 0;
        suspects.clear();
    }
    // What the threads have done before is not known: nothing is compared up to the next barrier.
    void resume_block(unsigned threads) {
        begin_block(threads);
        for (unsigned t = 0; t < threads; ++t) {
            last[t] = blocks[t] + LONGEST - 1;
            *last[t] = 0;
        }
    }
    void switch_to(unsigned from, unsigned to) {
        if (!last_block) return;
        last[from] = last_block;
        last_block = last[to];
    }
    // The running thread enters a block. Beyond LONGEST only the last one is kept.
    static void enter(unsigned site) {
        last_block += last_block[1] != END;
        *last_block = site;
    }
    void leave(unsigned thread) {
        left[num_left++] = thread;
        last[thread] = last_block;
        if (!*last_block) return;
        const Site& s = run.module->sites[*last_block];
        last_place[thread] =
            s.branch_line ? place_of(s.branch_file, s.branch_line) : place_of(s.file, s.line);
    }
    // `waits` is one of the threads that the barrier releases, `running` the one that runs.
    void pass_barrier(unsigned waits, unsigned threads, unsigned running) {
        last[running] = last_block;
        for (unsigned i = 0; i < num_left; ++i) compare(left[i], waits);
        num_left = 0;
        for (unsigned t = 0; t < threads; ++t) {
            blocks[t][0] = *last[t];
            last[t] = blocks[t];
        }
        last_block = last[running];
    }
    __attribute__((noinline)) void look_for_suspect(unsigned thread, unsigned block) {
        for (const Suspect& s : suspects)
            if (s.block == block && thread != s.thread) {
                accuse(s, BARRIER_DIVERGENCE);
                return suspects.clear();
            }
    }

  private:
    unsigned count(unsigned thread) const { return (unsigned)(last[thread] - blocks[thread]); }

    void compare(unsigned gone, unsigned waits) {
        accuse({0, gone, waits, place_of_event(waits)}, EARLY_RETURN);
        const unsigned longest = LONGEST - 1, theirs = count(gone), others = count(waits);
        if (theirs == longest || others == longest) return;
        unsigned i = 1;
        while (i <= theirs && i <= others && blocks[gone][i] == blocks[waits][i]) ++i;
        for (; i <= theirs && suspects.count < 64; ++i) {
            suspects.add({blocks[gone][i], gone, waits, place_of_event(waits)});
            run.attention = true;
        }
    }
    void accuse(const Suspect& s, FindingKind kind) {
        bool fresh;
        FindingRow& row = findings.report(kind, s.barrier, last_place[s.thread], NO_REGION, fresh);
        if (!fresh) return;
        row.thread = s.waits, row.other_thread = s.thread;
        row.block = row.other_block = run.block;
        snprintf(row.detail, sizeof row.detail, "left");
    }
};
static Paths paths;

}  // namespace cudalab
