// Looks after a grid that takes longer than a moment. Part of launch.cpp.
//
// * Where all blocks that run wait, those that have not started are needed: OS threads are added,
//   up to the number of blocks that the device claims to hold at once.
// * Where all threads wait, the host may be what they wait for, and goes on.
// * Where every thread waits for another one, not by the clock, and the host for the grid, it ends
//   with an error that names them.
// * Where it only takes long, a line on stderr says how far it is.
#pragma once

#include <dirent.h>

#include "waits.h"

namespace cudalab {

// ------------------------------------------------------------------ kernels with many waits

static struct Kernels {
    BlockFn known[64];
    unsigned next;
    bool has(const Kernel& kernel) const {
        for (BlockFn each : known)
            if (each == kernel.block) return true;
        return false;
    }
    void add(const Kernel& kernel) {
        if (!has(kernel)) known[next++ % 64] = kernel.block;
    }
} waiting_kernels,        // blocks have waited for later ones
    kernels_left_behind;  // the host has gone on while all their threads waited

// Lets as many workers take part, in the launch in progress or else in the next one.
static bool widen(uint64_t workers) {
    pthread_mutex_lock(&pool.mutex);
    add_workers((int)workers);
    const int able = pool.workers < (int)workers ? pool.workers : (int)workers;
    if (able > pool.taking_part) {
        if (pool.running) pool.running += able - pool.taking_part;
        pool.taking_part = able;
        pthread_cond_broadcast(&pool.spare);
    }
    pthread_mutex_unlock(&pool.mutex);
    return able == (int)workers;
}

// ------------------------------------------------------------------ text

struct Text {
    char text[900];
    size_t used = 0;
    void add(const char* format, ...) __attribute__((format(printf, 2, 3))) {
        va_list values;
        va_start(values, format);
        const int more = vsnprintf(text + used, sizeof text - used, format, values);
        va_end(values);
        if (more > 0) used += (size_t)more;
        if (used >= sizeof text) used = sizeof text - 1;
    }
    void add_count(uint64_t n) {  // 390,625
        if (n >= 1000) add_count(n / 1000);
        add(n >= 1000 ? ",%03u" : "%u", (unsigned)(n % 1000));
    }
    void add_duration(uint64_t s) {
        if (s < 120)
            add("%u s", (unsigned)s);
        else if (s < 7200)
            add("%u min", (unsigned)(s / 60));
        else
            add("%u h", (unsigned)(s / 3600));
    }
    void add_block(uint64_t block) {
        const uint3& grid = pool.launch.grid;
        const uint64_t rows = block / grid.x;
        add("block (%u,%u,%u)", (unsigned)(block % grid.x), (unsigned)(rows % grid.y),
            (unsigned)(rows / grid.y));
    }
    // Where a thread is that gave way or was interrupted there.
    void add_place(const char* what, const void* at) {
        char line[300];
        find_line(at, line, sizeof line);
        add(" %s%s%s", what, *line ? " at " : "", line);
    }
};

// ------------------------------------------------------------------ one launch

class Watch {
  public:
    Watch(const Config& config_, const Kernel& kernel_, uint64_t resident_)
        : config(config_), kernel(kernel_), resident(resident_), began(now_ns()) {}
    int interval_ms() const { return eager || expects_wait ? 1 + running / 128 : 20; }
    bool look(bool host_waits);  // whether all threads wait
    void leave() {
        kernels_left_behind.add(kernel);
        is_left = true;
    }

  private:
    void look_at(Worker& w, uint64_t now);
    bool waits_for(const Worker& w, uint64_t ns, uint64_t now) const;
    bool only_waits(const Worker& w, uint64_t ns, uint64_t now) const;
    bool any_known_wait() const;
    void describe_waits(Text& text) const;
    void end_deadlock();
    void tell_how_far(uint64_t now);

    const Config& config;
    const Kernel& kernel;
    const uint64_t resident, began;
    int eager = 0;    // signals that still come quickly
    int running = 0;  // blocks
    bool told_of_waits = false, is_left = false;
    const bool expects_wait = kernels_left_behind.has(kernel);
    uint64_t others_seen = began;  // when the program had other OS threads
    uint64_t tell_after_s = isatty(2) ? 5 : 60;
};

// Notes what has changed, and asks where the running thread is.
void Watch::look_at(Worker& w, uint64_t now) {
    Stay& stay = *w.stay;
    if (stay.seen_block != w.block || stay.seen_steps != w.steps) {
        stay.seen_block = w.block;
        stay.seen_steps = w.steps;
        stay.step_ns = stay.news_ns = now;
    }
    if (stay.seen_news != stay.news) {
        stay.seen_news = stay.news;
        stay.news_ns = now;
    }
    if (stay.seen_clock != w.clock.turns) {
        stay.seen_clock = w.clock.turns;
        stay.clock_ns = now;
    }
    if (stay.seen_gave_way != stay.gave_way) {
        stay.seen_gave_way = stay.gave_way;
        eager = 50;
    }
    w.stuck = is_left || now - stay.step_ns > 1000 * MS;
    if (!w.crashes || !stay.crash_ns) stay.crash_ns = now;
    if (now - stay.crash_ns > 10000 * MS) {  // the stack that is searched for a line is damaged
        stay.crash_ns = now;
        pthread_kill(w.os_thread, SIGSEGV);
    }
    if (stay.asked) return;
    stay.asked = true;
    pthread_kill(w.os_thread, look_signal());
}

// Whether threads of the block have given way for so long, and none has reached its next step.
bool Watch::waits_for(const Worker& w, uint64_t ns, uint64_t now) const {
    return now - w.stay->step_ns >= ns && (w.at_grid_barrier || w.spins >= 2 * PATIENCE);
}

// Whether every thread of the block waits, and none has been in a new state for so long.
bool Watch::only_waits(const Worker& w, uint64_t ns, uint64_t now) const {
    const Stay& stay = *w.stay;
    if (now - stay.news_ns < ns) return false;
    if (w.at_grid_barrier) return true;
    if (!w.fibers || stay.wait_block != w.block || stay.wait_steps != w.steps) return false;
    for (unsigned t = 0; t < w.threads; ++t)
        if (ready(w, t >> 5) & bit(t) && stay.waits[t] < 2) return false;
    return true;
}

// Whether a thread has been seen to wait: it was in a state that was known.
bool Watch::any_known_wait() const {
    for (Worker* w = pool.first; w; w = w->next)
        for (unsigned t = 0; w->stay && w->block != NO_BLOCK && t < w->threads; ++t)
            if (w->stay->waits[t]) return true;
    return false;
}

// Two threads of the first block that waits, as different as possible.
void Watch::describe_waits(Text& text) const {
    const Worker* first = nullptr;
    for (Worker* w = pool.first; w; w = w->next)
        if (w->stay && w->block != NO_BLOCK && !w->at_grid_barrier &&
            (!first || w->block < first->block))
            first = w;
    if (!first) return;
    Worker& w = *(Worker*)first;
    unsigned loop = NOBODY, stopped = NOBODY, others = 0;
    for (unsigned t = 0; t < w.threads; ++t) {
        if (!(w.live[t >> 5] & bit(t))) continue;
        ++others;
        unsigned& kind = ready(w, t >> 5) & bit(t) ? loop : stopped;
        if (kind == NOBODY) kind = t;
    }
    text.add_block(w.block);
    if (loop != NOBODY) {
        const uint3& i = w.index[loop];
        text.add(", thread (%u,%u,%u)", i.x, i.y, i.z);
        text.add_place("waits in a loop", w.stay->at[loop]);
        --others;
    }
    if (stopped != NOBODY) {
        char what[300];
        text.add(", %s", describe(w, stopped, what, sizeof what));
        --others;
    }
    if (others)
        text.add(", and %u other%s wait%s", others, others > 1 ? "s" : "", others > 1 ? "" : "s");
    const uint64_t next = pool.launch.next, blocks = pool.launch.blocks;
    if (running > 1) text.add("; all %d blocks that run wait", running);
    if (next < blocks) {
        text.add(", and ");
        text.add_count(blocks - next);
        text.add(" more cannot start: the device holds %llu at once", (unsigned long long)resident);
    }
    char behind[300];
    describe_next_launch(behind, sizeof behind);
    if (*behind) text.add("; kernel %s cannot start: here one kernel runs at a time", behind);
}

// Ends a launch in which nothing can happen any more.
void Watch::end_deadlock() {
    Text text;
    text.add("kernel %s: deadlock: ", kernel.name);
    describe_waits(text);
    pthread_mutex_lock(&pool.mutex);
    Launch& launch = pool.launch;
    if (!launch.failed) {
        crash_error = cudaErrorLaunchTimeout;
        snprintf(launch.error, sizeof launch.error, "%s", text.text);
        __atomic_store_n(&launch.failed, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&pool.mutex);
}

static int count_os_threads() {
    DIR* tasks = opendir("/proc/self/task");
    if (!tasks) return INT_MAX;
    int count = 0;
    while (const dirent* each = readdir(tasks)) count += each->d_name[0] != '.';
    closedir(tasks);
    return count;
}
static int os_threads_at_start;  // one, or an emulator's own
CUDALAB_BEFORE_PROGRAM static void count_first_os_threads() {
    os_threads_at_start = count_os_threads();
}

static int os_threads_of_device;

// Whether nobody else can change memory: the program has no OS threads of its own but one, which
// waits.
static bool is_alone() {
    return count_os_threads() <= pool.workers + os_threads_of_device + os_threads_at_start;
}

void Watch::tell_how_far(uint64_t now) {
    const uint64_t s = (now - began) / (1000 * MS), blocks = pool.launch.blocks;
    const uint64_t started = pool.launch.next < blocks ? pool.launch.next : blocks;
    const uint64_t ended = started - (uint64_t)running;
    Text text;
    text.add("cudalab: kernel %s (%s:%d) has run for ", kernel.name, config.file, config.line);
    text.add_duration(s);
    if (ended && ended < blocks) {
        text.add(": block ");
        text.add_count(ended);
        text.add(" of ");
        text.add_count(blocks);
        text.add("; at this pace it takes ");
        text.add_duration(s * (blocks - ended) / ended);
        text.add(" more. A smaller input?\n");
    } else {
        const Worker* first = pool.first;
        for (Worker* w = pool.first; w; w = w->next)
            if (w->stay && w->block < first->block) first = w;
        if (first->block == NO_BLOCK) return;
        const Stay& stay = *first->stay;
        text.add(": ");
        text.add_block(first->block);
        if (stay.block == first->block && stay.pc) {
            const uint3& i = first->index[stay.thread];
            text.add(", thread (%u,%u,%u)", i.x, i.y, i.z);
            text.add_place("runs", stay.pc);
        } else {
            text.add(" has not ended");
        }
        text.add("\n");
    }
    if (write(2, text.text, text.used) < 0) return;
}

bool Watch::look(bool host_waits) {
    static const bool watching = (watch_for_waits(), true);
    (void)watching;
    const uint64_t now = now_ns();
    bool any_loop = false, all_wait = true, for_long = true, for_very_long = true, for_good = true,
         for_now = true, by_clock = true;
    running = 0;
    if (eager) --eager;
    for (Worker* w = pool.first; w; w = w->next) {
        if (!w->stay) w->stay = (Stay*)calloc(1, sizeof(Stay));
        if (!w->stay || w->block == NO_BLOCK) continue;
        ++running;
        look_at(*w, now);
        any_loop |= !w->at_grid_barrier;
        all_wait &= waits_for(*w, 40 * MS, now);
        for_long &= waits_for(*w, 1000 * MS, now);
        for_very_long &= waits_for(*w, 10000 * MS, now);
        for_good &= only_waits(*w, 3000 * MS, now) && now - w->stay->clock_ns >= 3000 * MS;
        for_now &= only_waits(*w, 20 * MS, now);
        by_clock &= waits_for(*w, 1000 * MS, now) && now - w->stay->clock_ns < 100 * MS;
    }
    if (!running || has_failed()) return false;
    const Launch& launch = pool.launch;
    if (all_wait && launch.next < launch.blocks && (uint64_t)running < resident) {
        waiting_kernels.add(kernel);
        const uint64_t able = resident < launch.blocks ? resident : launch.blocks;
        if (widen(able) || pool.taking_part > running) return false;
    }
    if (!host_waits || (for_long && !is_alone())) others_seen = now;
    if (for_good && any_loop && now - others_seen > 1000 * MS) {
        end_deadlock();
    } else if (for_very_long && !told_of_waits && any_known_wait()) {
        told_of_waits = true;
        Text text;
        text.add("cudalab: kernel %s (%s:%d): no thread has got on for 10 s: ", kernel.name,
                 config.file, config.line);
        describe_waits(text);
        text.add("\n");
        if (write(2, text.text, text.used) < 0) return false;
    } else if (host_waits && now - began >= tell_after_s * 1000 * MS) {
        tell_how_far(now);
        tell_after_s *= 2;
    }
    return expects_wait || (for_now && any_loop) || by_clock;
}

}  // namespace cudalab
