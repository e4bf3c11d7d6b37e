// The work that may be under way, and reports of what is not ordered. Part of order.cpp.
#pragma once

#include <pthread.h>

#include "clocks.h"
#include "footprints.h"
#include "sorted_map.h"
#include "work.h"

namespace cudalab {

// ------------------------------------------------------------------ what is reported

// Python reads these structs.
struct Party {
    const char *name, *file;  // of the call, or null: the host itself
    int line;
    unsigned place;  // the line of the access, or 0
    unsigned kind;   // 0 loads, 1 stores, 2 changes atomically
    unsigned is_kernel;
    unsigned stream;          // one of StreamKind
    const char* stream_file;  // where it was made
    int stream_line;
    unsigned stream_number;  // of those that were made there, from 0
};
enum StreamKind : unsigned { MADE, LEGACY, PER_THREAD };
enum Problem : unsigned { STREAMS, HOST, FREED, NOT_YET_ALLOCATED, STAGED };
struct Unordered {
    unsigned problem;
    Party earlier, later;
    const char* file;  // where the memory was allocated
    int line;
    unsigned region;
    uint64_t offset;
};
typedef void (*Listener)(const Unordered* unordered);

// ------------------------------------------------------------------ state

// The calls may come from any thread of the host.
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
struct Locked {
    Locked() { pthread_mutex_lock(&lock); }
    ~Locked() { pthread_mutex_unlock(&lock); }
};

struct Stream {
    StreamKind kind;
    bool is_blocking, is_gone;
    Place made;
    unsigned number;  // of those that were made there
    unsigned sequence;
    Clock clock;
};
// A piece of work that may be under way.
struct Task {
    unsigned sequence, tick;
    Party party;
    bool is_staged;  // it has read what it copies, but perhaps not written it
    bool prints;
};
// The piece of work that this thread of the host performs.
struct Doing {
    unsigned task;
    Clock* clock;
    Doing* outer;
};

static struct Order {
    Sequences sequences;
    Clock host;  // what the host has waited for
    List<Stream*> streams;
    SortedMap<Stream*> stream_of;     // of a CUstream_st
    SortedMap<Clock*> clock_of;       // of events, and of instances of graphs
    SortedMap<unsigned> sequence_of;  // of nodes of graphs
    List<Task> tasks;
    unsigned in_progress;
    bool default_is_per_thread;

    SortedMap<Memory*> memories;
    List<Memory*> memory_of;  // a region
    List<Memory*> used;       // memory that work under way uses
    HostWatch watch;
    Listener listener;
    struct Unread {
        Result result;
        Place made;
    };
    List<Unread> unread;     // results in memory that is freed
    size_t kernels;          // that have run
    List<const char*> read;  // kernels of which a result has been read
    void knows_read(const char* kernel) {
        for (const char* known : read)
            if (known == kernel) return;
        read.add(kernel);
    }
    bool brings_back, has_libraries, shows;    // something to the host; which read all; by printf
}& order = *(Order*)calloc(1, sizeof(Order));  // never destroyed: exit handlers may use it
static thread_local Doing* doing;

static Clock& find_clock(const void* of) {
    Clock*& clock = order.clock_of[(uintptr_t)of];
    if (!clock) clock = (Clock*)calloc(1, sizeof *clock);
    if (!clock) abort();
    return *clock;
}
static bool is_done(const Task& task, const Clock& clock) {
    return clock[task.sequence] >= task.tick;
}

// ------------------------------------------------------------------ reports

static Party party_of(const Footprint& footprint, size_t byte) {
    Party party = order.tasks[footprint.task].party;
    party.kind = kind_at(footprint, byte);
    party.place = place_at(footprint, byte);
    return party;
}

static bool is_same(const Party& one, const Party& other) {
    return one.file == other.file && one.line == other.line && one.place == other.place &&
           one.kind == other.kind;
}
// Reports a pair of lines once for each pair of tasks, and not more often than anyone would read.
static void report(Problem problem, const Memory& memory, size_t offset, const Party& earlier,
                   const Party& later, unsigned earlier_task, unsigned later_task) {
    struct Known {
        Party earlier, later;
        unsigned earlier_task, later_task, count;
    };
    static List<Known>& all = *(List<Known>*)calloc(1, sizeof(List<Known>));
    Known* known = nullptr;
    for (Known& each : all)
        if (is_same(each.earlier, earlier) && is_same(each.later, later)) known = &each;
    if (!known) {
        all.add({earlier, later, NO_TASK, NO_TASK, 0});
        known = all.end() - 1;
    }
    if (known->count && known->earlier_task == earlier_task && known->later_task == later_task)
        return;
    known->earlier_task = earlier_task;
    known->later_task = later_task;
    if (++known->count > 1000) return;
    const Unordered unordered = {problem,           earlier,       later, memory.place.file,
                                 memory.place.line, memory.region, offset};
    if (order.listener) order.listener(&unordered);
}

}  // namespace cudalab
