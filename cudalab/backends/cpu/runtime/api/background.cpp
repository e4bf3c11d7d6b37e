// What is done behind the host's back: a grid that waits for the host, and the work that follows.
//
// A launch returns when its grid has ended, which makes programs do the same in each run. Only a
// grid all of whose threads wait is left to an OS thread of the device, and the host goes on, for
// it may be what they wait for. Until that grid has ended, the host's further work is done at once
// only where nothing before it is left to do: all other work, and every launch, is a task. The
// device's thread does the tasks that nothing precedes any more, one after another.
//
// The lock of the API guards all of this. The device's thread has it, too, except while it waits
// for a grid or calls a function of the program.

#include <new>

#include "work.h"

namespace cudalab {

// What decides which work a stream's new work comes after.
struct Order {
    const CUstream_st* stream;  // only compared: it may have been destroyed
    bool is_legacy, is_blocking;
    explicit Order(cudaStream_t stream_)
        : stream(&object_of(stream_)),
          is_legacy(cudalab::is_legacy(stream_)),
          is_blocking(!(stream->flags & cudaStreamNonBlocking)) {}
    bool comes_after(const Order& other) const {
        return stream == other.stream || (is_legacy && other.is_blocking) ||
               (is_blocking && other.is_legacy);
    }
};

struct Outcome {
    bool is_done;
    cudaError_t error;
};

struct Task {
    enum Kind { WORK, RECORD, WAIT };
    const Kind kind;
    const Order order;
    const char* const name;  // of the call that has submitted it
    const Place place;
    Work work;
    uint64_t number = 0, after = 0;  // after: another task, that the stream has been told to await
    cudaEvent_t event = nullptr;     // to record; null if it has been destroyed since
    OwnLaunch launch = {};
    void* staged = nullptr;  // a copy of what is copied from the host
    Grid* grid = nullptr;    // the launch's, if it has begun
    bool has_begun = false;
    RunGraph* run = nullptr;
    Outcome* outcome = nullptr;  // for a host thread that waits for the task
    Task* next = nullptr;

    Task(Kind kind_, cudaStream_t stream, const char* name_, Place place_, const Work& work_)
        : kind(kind_), order(stream), name(name_), place(place_), work(work_) {}
    bool is_launch() const { return kind == WORK && work.type == cudaGraphNodeTypeKernel; }
    bool runs_grids() const {
        return is_launch() || (kind == WORK && work.type == cudaGraphNodeTypeGraph);
    }
};

// In the order in which they were submitted; what is being done is one of them.
static Task* tasks;
static unsigned waiting;  // host threads that wait for tasks
static bool grid_waits;   // that runs: for the host, perhaps
static __thread bool is_device;

bool is_device_thread() {
    return is_device;
}

// ------------------------------------------------------------------ tasks

static Task* make(Task::Kind kind, cudaStream_t stream, const char* name, Place place,
                  const Work& work) {
    void* memory = malloc(sizeof(Task));
    return memory ? new (memory) Task(kind, stream, name, place, work) : nullptr;
}
static void drop(Task* task) {
    free(task->launch.args);
    free(task->staged);
    free(task);
}
static void append(Task* task) {
    static uint64_t last;
    task->number = ++last;
    Task** end = &tasks;
    while (*end) end = &(*end)->next;
    *end = task;
    tell_news();
}
static void remove(Task* task) {
    Task** at = &tasks;
    while (*at != task) at = &(*at)->next;
    *at = task->next;
    drop(task);
    tell_news();
}

static bool is_left(uint64_t number) {
    for (const Task* each = tasks; each; each = each->next)
        if (each->number == number) return true;
    return false;
}
// Whether work must wait for a task in front of `end`.
static bool must_wait(const Order& order, const Task* end) {
    for (const Task* each = tasks; each != end; each = each->next)
        if (order.comes_after(each->order)) return true;
    return false;
}

// ------------------------------------------------------------------ the device's thread

static void run_grid(Task& task) {
    Call call(task.name, task.place);
    const KernelCall launch = task.launch.call();
    if (!task.grid) {
        if (call.pending()) return;
        task.grid = new (malloc(sizeof(Grid))) Grid(call, launch);
    }
    run_to_end(*task.grid);
    task.grid->finish(call);
    task.grid->~Grid();
    free(task.grid);
}

static cudaError_t do_work(Task& task) {
    if (task.work.type == cudaGraphNodeTypeHost) {
        Unlocked unlocked;  // it may wait for another thread that calls the API
        task.work.host.function(task.work.host.data);
        return cudaSuccess;
    }
    if (task.work.type == cudaGraphNodeTypeGraph) {
        Unlocked unlocked;
        return task.run(task.work.graph);
    }
    Call call(task.name, task.place);
    if (cudaError_t error = call.pending()) return error;
    return perform(call, task.work);
}
static void do_task(Task* task) {
    task->has_begun = true;
    if (task->kind == Task::RECORD && task->event) record_now(task->event);
    if (task->is_launch())
        run_grid(*task);
    else if (task->kind == Task::WORK) {
        const cudaError_t error = do_work(*task);
        if (task->outcome) *task->outcome = {true, error};
    }
    remove(task);
}

static bool is_ready(const Task* task) {
    return !task->has_begun && !is_left(task->after) && !must_wait(task->order, task);
}
// The first task that can be done; a grid cannot while another one runs.
static Task* find_ready(bool grid_runs) {
    for (Task* each = tasks; each; each = each->next)
        if (is_ready(each) && !(grid_runs && each->runs_grids())) return each;
    return nullptr;
}
void run_to_end(Grid& grid) {
    for (;;) {
        const Progress progress = grid.go_on(!is_device || waiting > 0);
        if (progress == Progress::ENDED) break;
        if (!is_device) continue;
        if (progress == Progress::WAITS && !grid_waits) {
            leave_grid();
            grid_waits = true;
            tell_news();
        }
        while (Task* other = find_ready(true)) do_task(other);
    }
    if (is_device) grid_waits = false;
}

void describe_next_launch(char* text, size_t size) {
    Call call("describe", {});
    text[0] = 0;
    for (const Task* each = tasks; each && !*text; each = each->next)
        if (each->is_launch() && !each->grid && is_ready(each))
            snprintf(text, size, "%s (%s:%d)", each->launch.kernel.name, each->place.file,
                     each->place.line);
}

static void* do_tasks(void*) {
    is_device = true;
    Call call("the device", {});
    for (;;) {
        if (Task* task = find_ready(false)) {
            do_task(task);
        } else {
            let_kernels_share_lock(false);
            while (!tasks) wait_for_news();
            let_kernels_share_lock(true);
        }
    }
}

// ------------------------------------------------------------------ submitting

template <class Reason>
static void wait_while(Reason reason) {
    if (is_device || !tasks) return;
    ++waiting;
    while (reason()) wait_for_news();
    --waiting;
}

static bool has_thread() {
    static const bool started = start_os_thread(do_tasks);
    return started;
}

// Runs a grid until it has ended or all its threads wait.
static cudaError_t launch(Call& call, cudaStream_t stream, const Work& work) {
    if (!tasks && work.kernel.kernel->loops) return perform(call, work);  // it waits for nobody
    Task* const task = make(Task::WORK, stream, call.name, call.place, work);
    if (!task || !task->launch.copy(work.kernel)) {
        if (task) drop(task);
        return call.fail(cudaErrorMemoryAllocation, "no memory for a launch");
    }
    if (tasks) {
        append(task);
        return cudaSuccess;
    }
    const KernelCall own = task->launch.call();
    task->grid = new (malloc(sizeof(Grid))) Grid(call, own);
    for (;;) {
        const Progress progress = task->grid->go_on(true);
        if (progress == Progress::RUNS) continue;
        if (progress == Progress::ENDED) break;
        if (!has_thread()) continue;
        leave_grid();
        grid_waits = true;
        let_kernels_share_lock(true);
        append(task);
        return cudaSuccess;
    }
    const cudaError_t error = task->grid->finish(call);
    task->grid->~Grid();
    free(task->grid);
    drop(task);
    return error;
}

static bool is_pageable(const void* address) {
    const Allocation* in = find_allocation(address);
    return !is_device_address(address) && !in;
}
// A copy from the host's memory, which the host may change when the call has returned.
static bool stage(Task& task) {
    Copy& copy = task.work.copy;
    const size_t rows = copy.height * copy.depth;
    task.staged = malloc(rows * copy.width);
    if (!task.staged) return false;
    for (size_t slice = 0; slice < copy.depth; ++slice)
        for (size_t row = 0; row < copy.height; ++row)
            memcpy((char*)task.staged + (slice * copy.height + row) * copy.width,
                   (const char*)copy.source + slice * copy.source_slice + row * copy.source_pitch,
                   copy.width);
    copy.source = task.staged;
    copy.source_pitch = copy.width;
    copy.source_slice = copy.height * copy.width;
    copy.kind = cudaMemcpyHostToDevice;
    return true;
}

cudaError_t do_in_order(Call& call, cudaStream_t stream, const Work& work) {
    if (work.type == cudaGraphNodeTypeKernel) return launch(call, stream, work);
    const bool is_copy = work.type == cudaGraphNodeTypeMemcpy;
    const bool host_waits = is_copy && (!call.is_asynchronous() || is_pageable(work.copy.target));
    if (host_waits) {
        wait_while([&] { return has_work(stream); });
        if (cudaError_t error = call.pending()) return error;
    }
    if (!has_work(stream)) return perform(call, work);
    if (is_copy)
        if (cudaError_t error = check(call, work.copy)) return error;
    if (work.type == cudaGraphNodeTypeMemset)
        if (cudaError_t error = check(call, work.fill)) return error;
    Task* const task = make(Task::WORK, stream, call.name, call.place, work);
    if (!task || (is_copy && is_pageable(work.copy.source) && !stage(*task)))
        return call.fail(cudaErrorMemoryAllocation, "no memory for work that comes later");
    append(task);
    return cudaSuccess;
}

// The device's thread runs a graph, for a grid in it may wait for the host.
cudaError_t launch_graph(Call& call, cudaStream_t stream, cudaGraphExec_t graph, RunGraph run) {
    if (!has_thread()) {
        Unlocked unlocked;
        return run(graph);
    }
    Task* const task = make(Task::WORK, stream, call.name, call.place, Work(graph));
    if (!task) return call.fail(cudaErrorMemoryAllocation, "no memory for a graph");
    Outcome outcome = {};
    task->run = run;
    task->outcome = &outcome;
    append(task);
    ++waiting;
    while (!outcome.is_done && !grid_waits) wait_for_news();
    --waiting;
    if (!outcome.is_done) task->outcome = nullptr;
    return outcome.error;
}

bool has_work(cudaStream_t stream) {
    return tasks && !is_device && must_wait(Order(stream), nullptr);
}
bool is_busy(cudaStream_t stream) {
    const Order order(stream);
    for (const Task* each = tasks; each; each = each->next)
        if (each->order.stream == order.stream || (order.is_legacy && each->order.is_blocking))
            return true;
    return false;
}
void record_later(cudaEvent_t event, cudaStream_t stream) {
    Task* const task = make(Task::RECORD, stream, "cudaEventRecord", {}, Work(HostCall{}));
    if (!task) abort();
    task->event = event;
    append(task);
    event->recorded = true;
    event->task = task->number;
}
void wait_later(cudaStream_t stream, cudaEvent_t event) {
    Task* const task = make(Task::WAIT, stream, "cudaStreamWaitEvent", {}, Work(HostCall{}));
    if (!task) abort();
    task->after = event->task;
    append(task);
}
bool is_done(cudaEvent_t event) {
    return !event->task || !is_left(event->task);
}
void forget_in_background(cudaEvent_t event) {
    for (Task* each = tasks; each; each = each->next)
        if (each->event == event) each->event = nullptr;
}

// ------------------------------------------------------------------ waiting

void wait_for_all_work() {
    wait_while([] { return tasks != nullptr; });
}
void wait_for_work(cudaStream_t stream) {
    wait_while([&] { return is_busy(stream); });
}
void wait_for_event_of_work(cudaEvent_t event) {
    const uint64_t number = event->task;
    wait_while([&] { return is_left(number); });
}

}  // namespace cudalab
