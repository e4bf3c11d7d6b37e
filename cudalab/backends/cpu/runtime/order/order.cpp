// Check mode: computes the order of a program's work, and reports work that uses the same bytes and
// is not ordered.

#include "order.h"

#include "layout.h"
#include "nodes.h"
#include "tasks.h"
#include "unwritten.h"

extern "C" {
// The runtime of check mode (check.cpp).
void cudalab_check_watch_uses(const cudalab::HostWatch* watch);
void cudalab_check_take_uses(void (*visit)(unsigned region, unsigned piece,
                                           const cudalab::Use* words,
                                           const cudalab::UsePlaces& places));
}

namespace cudalab {

// ------------------------------------------------------------------ streams

// How many streams were made at the place before.
static unsigned count_made(Place place) {
    struct Made {
        Place place;
        unsigned count;
    };
    static List<Made>& all = *(List<Made>*)calloc(1, sizeof(List<Made>));
    for (Made& made : all)
        if (made.place.line == place.line && made.place.file == place.file) return made.count++;
    all.add({place, 1});
    return 0;
}

static Stream& add_stream(const CUstream_st& object, StreamKind kind, Place made) {
    Stream* stream = (Stream*)calloc(1, sizeof *stream);
    if (!stream) abort();
    stream->kind = kind;
    stream->is_blocking = kind != LEGACY && !(object.flags & cudaStreamNonBlocking);
    stream->made = made;
    stream->number = count_made(made);
    stream->sequence = order.sequences.add();
    order.streams.add(stream);
    return *(order.stream_of[(uintptr_t)&object] = stream);
}
static Stream& find(cudaStream_t stream) {
    if (!stream && order.default_is_per_thread) stream = cudaStreamPerThread;
    const CUstream_st& object = object_of(stream);
    const auto found = order.stream_of.find((uintptr_t)&object);
    if (found != order.stream_of.end()) return *found->value;
    const StreamKind kind = is_legacy(stream)               ? LEGACY
                            : stream == cudaStreamPerThread ? PER_THREAD
                                                            : MADE;
    return add_stream(object, kind, {nullptr, 0});
}
// The stream, ordered after all that its next work waits for.
static Stream& advance(cudaStream_t stream) {
    Stream& own = find(stream);
    own.clock.join(order.host);
    for (Stream* other : order.streams)
        if (own.kind == LEGACY ? other->is_blocking : own.is_blocking && other->kind == LEGACY)
            own.clock.join(other->clock);
    return own;
}

// The host's accesses there matter.
static void watch(uintptr_t begin, size_t bytes) {
    if (begin < order.watch.low || !order.watch.high) order.watch.low = begin;
    if (begin + bytes > order.watch.high) order.watch.high = begin + bytes;
}
static void watch_copies() {
    order.watch.low = order.watch.high = 0;
    for (const UnwrittenCopy& copy : unwritten) watch(copy.to, copy.bytes);
}

// The host has waited. Forgets what nothing can overlap any more.
static void settle() {
    for (size_t i = order.streams.size(); i-- > 0;) {
        Stream* stream = order.streams[i];
        if (!stream->is_gone || !order.host.covers(stream->clock)) continue;
        order.sequences.remove(stream->sequence);
        order.streams.remove(stream);
        stream->~Stream();
        free((void*)stream);
    }
    if (order.in_progress || !order.host.covers(order.sequences.newest)) return;
    for (Memory* each : order.used) each->forget();
    order.used.clear();
    order.tasks.clear();
    watch_copies();
}
static void host_joins(const Clock& clock) {
    order.host.join(clock);
    settle();
}

void stream_made(cudaStream_t stream, Place place) {
    const Locked locked;
    add_stream(*stream, MADE, place);
}
void stream_destroyed(cudaStream_t stream) {
    const Locked locked;
    Stream& own = find(stream);
    own.is_gone = true;
    order.stream_of.erase(order.stream_of.find((uintptr_t)stream));
    settle();
}
void event_recorded(cudaEvent_t event, cudaStream_t stream) {
    const Locked locked;
    find_clock(event).become(doing ? *doing->clock : advance(stream).clock);
}
void event_awaited(cudaStream_t stream, cudaEvent_t event) {
    const Locked locked;
    (doing ? *doing->clock : advance(stream).clock).join(find_clock(event));
}
void event_destroyed(cudaEvent_t event) {
    const Locked locked;
    const auto found = order.clock_of.find((uintptr_t)event);
    if (found == order.clock_of.end()) return;
    found->value->~Clock();
    free(found->value);
    order.clock_of.erase(found);
}
void host_waits(cudaStream_t stream) {
    const Locked locked;
    host_joins(advance(stream).clock);
}
void host_waits(cudaEvent_t event) {
    const Locked locked;
    host_joins(find_clock(event));
}
void host_waits() {
    const Locked locked;
    host_joins(order.sequences.newest);
}
// A GPU has no time for an event that it has not reached yet.
void time_is_read(const Call& call, cudaEvent_t event) {
    const Locked locked;
    report(MessageKind::TIME_READ, "");
    if (order.host.covers(find_clock(event))) return;
    char text[300];
    snprintf(text, sizeof text,
             "%s:%d: %s reads the time of an event, and the host has not waited for it",
             call.place.file, call.place.line, call.name);
    report(MessageKind::EARLY_TIME, text);
}
void library_works() {
    order.has_libraries = true;
    if (!doing) host_waits();
}

// ------------------------------------------------------------------ memory

static void remember(Memory& memory) {
    if (!memory.is_used()) order.used.add(&memory);
    if (memory.is_for_host) watch(memory.begin, memory.bytes);
}

static const size_t MOST_FOOTPRINTS = 64;  // of a piece; older ones are forgotten

// The work that this thread performs uses a piece of memory.
static void use(Memory& memory, size_t number, Footprint later) {
    later.task = doing->task;
    remember(memory);
    if (memory.made_by != NO_TASK && !is_done(order.tasks[memory.made_by], *doing->clock)) {
        size_t byte = 0;
        while (later.words && byte < PIECE - 1 && !later.words[byte / 4]) byte += 4;
        report(NOT_YET_ALLOCATED, memory, number * PIECE + byte, order.tasks[memory.made_by].party,
               party_of(later, byte), memory.made_by, later.task);
    }
    List<Footprint>& piece = memory.piece(number);
    for (size_t i = piece.size(); i-- > 0;) {
        Footprint& earlier = piece[i];
        const Task& task = order.tasks[earlier.task];
        bool stays = !is_done(task, order.host);
        if (stays && is_done(task, *doing->clock)) {
            stays = forget_covered(earlier, later);
        } else if (stays) {
            const size_t byte = find_conflict(earlier, later);
            if (byte < PIECE)
                report(task.is_staged ? STAGED : STREAMS, memory, number * PIECE + byte,
                       party_of(earlier, byte), party_of(later, byte), earlier.task, later.task);
        }
        if (stays) continue;
        earlier.drop();
        piece.remove_at(i);
    }
    if (piece.size() == MOST_FOOTPRINTS) {
        piece[0].drop();
        piece.remove_at(0);
    }
    if (later.words) {
        Use* own = (Use*)malloc(PIECE_WORDS * sizeof *own);
        if (!own) abort();
        later.words = (Use*)memcpy(own, later.words, PIECE_WORDS * sizeof *own);
    }
    piece.add(later);
}

static Memory* find_memory(uintptr_t address) {
    const auto next = order.memories.upper_bound(address);
    if (next == order.memories.begin()) return nullptr;
    Memory* memory = next[-1].value;
    return address - memory->begin < memory->bytes ? memory : nullptr;
}
static void copy_uses(const void* address, size_t bytes, unsigned kind) {
    if (!doing) return;
    const Locked locked;
    Memory* memory = find_memory((uintptr_t)address);
    if (!memory) return;  // pageable
    memory->result.is_copied |= kind == 0;
    if (kind == 0) order.knows_read(memory->result.kernel);
    for_pieces((uintptr_t)address - memory->begin, bytes, kind,
               [&](size_t piece, const Footprint& used) { use(*memory, piece, used); });
}
void memory_read(const void* address, size_t bytes) {
    copy_uses(address, bytes, 0);
}
void order_write(const void* address, size_t bytes) {
    copy_uses(address, bytes, 1);
}
// The kernel of the work that this thread performs has ended.
static bool has_printed;  // since the kernel began
void kernel_has_printed() {
    has_printed = true;
}
void order_kernel() {
    if (!doing) return;
    const Locked locked;
    ++order.kernels;
    order.tasks[doing->task].prints = has_printed;
    order.shows |= has_printed;
    has_printed = false;
    cudalab_check_take_uses(
        [](unsigned region, unsigned piece, const Use* words, const UsePlaces& places) {
            if (region >= order.memory_of.size() || !order.memory_of[region]) return;
            Memory& memory = *order.memory_of[region];
            Footprint footprint = {NO_TASK, {}, 0, (Use*)words};
            memcpy(footprint.places, places, sizeof places);
            bool uniform = true;
            for (size_t i = 1; i < PIECE_WORDS && uniform; ++i) uniform = words[i] == words[0];
            if (uniform) footprint.same = words[0], footprint.words = nullptr;
            const Party& party = order.tasks[doing->task].party;
            const bool loads = uses_any(footprint, ANY_USE & ~WRITES);
            if (loads && memory.result.number != order.kernels)  // what another launch has stored
                order.knows_read(memory.result.kernel);
            memory.result.is_loaded |= loads;
            if (uses_any(footprint, WRITES))
                memory.result.become(party.name, {party.file, party.line}, order.kernels);
            order.brings_back |= memory.is_for_host && memory.result.kernel;
            use(memory, piece, footprint);
        });
}

// A plain load by the host of a word that a kernel changes atomically: right if a compare-and-swap
// follows, which checks what was read.
struct Guess {
    pthread_t thread;
    uintptr_t address;
    Memory* memory;
    Party earlier, self;
    unsigned task;
};
static List<Guess>& guesses = *(List<Guess>*)calloc(1, sizeof(List<Guess>));

// No compare-and-swap has followed: by this thread, or by any.
static void settle_guesses(bool of_all) {
    for (size_t i = guesses.size(); i-- > 0;) {
        const Guess guess = guesses[i];
        if (!of_all && !pthread_equal(guess.thread, pthread_self())) continue;
        guesses.remove_at(i);
        report(HOST, *guess.memory, guess.address - guess.memory->begin, guess.earlier, guess.self,
               guess.task, NO_TASK);
    }
}
static void host_checks(uintptr_t address) {
    const Locked locked;
    for (size_t i = guesses.size(); i-- > 0;)
        if (guesses[i].address == address && pthread_equal(guesses[i].thread, pthread_self()))
            guesses.remove_at(i);
}
void order_copied_to_host(const void* target, size_t bytes) {
    const Locked locked;
    order.brings_back = true;
    use_unwritten((uintptr_t)target, bytes, true, 0);
}
void order_unwritten(const UnwrittenCopy& copy) {
    const Locked locked;
    if (unwritten.size() == MOST_UNWRITTEN) end_unwritten(0, 0);
    unwritten.add(copy);
    watch(copy.to, copy.bytes);
}
// Memory ends: what kernels have left there may be what the program was to compute.
static void end_result(const Memory& memory) {
    const Result& result = memory.result;
    if (memory.is_plain && result.kernel && !result.is_copied)
        order.unread.add({result, memory.place});
}
// If nothing at all is brought to the host, what kernels have read is not enough. Of a kernel with
// several results a program may read the one that it needs.
static void report_unread() {
    for (const auto& [address, memory] : order.memories) end_result(*memory);
    for (const Order::Unread& each : order.unread) {
        bool is_needed = each.result.is_loaded && order.brings_back;
        for (const char* kernel : order.read) is_needed |= kernel == each.result.kernel;
        if (is_needed || order.has_libraries || order.shows) continue;
        char text[600];
        snprintf(text, sizeof text,
                 "%s:%d: Kernel %s stores in the memory allocated at %s:%d, and %s",
                 each.result.launch.file, each.result.launch.line, each.result.kernel,
                 each.made.file, each.made.line,
                 order.brings_back ? "no copy and no kernel reads it"
                                   : "the program copies nothing to the host");
        report(MessageKind::UNREAD_RESULT, text);
    }
}
void program_ends() {
    const Locked locked;
    settle_guesses(true);
    report_unread();
    while (unwritten.size()) end_unwritten(0, 0);
    for (const Task& task : order.tasks) {
        if (!task.prints || is_done(task, order.host)) continue;
        char text[600];
        snprintf(text, sizeof text,
                 "%s:%d: Kernel %s prints, and the program ends without waiting for it",
                 task.party.file, task.party.line, task.party.name);
        report(MessageKind::UNAWAITED, text);
    }
}

// The host itself uses memory that kernels and copies use, too.
static void host_uses(uintptr_t address, size_t bytes, unsigned kind, unsigned place) {
    const Locked locked;
    settle_guesses(false);
    use_unwritten(address, bytes, kind == 1, place);
    Memory* memory = find_memory(address);
    if (!memory || !memory->pieces) return;
    const Clock& done = doing ? *doing->clock : order.host;
    const Party self = {nullptr, nullptr, 0, place, kind, 0, MADE, nullptr, 0};
    const Footprint used = {NO_TASK, {}, (Use)(EVERY_BYTE << 4 * kind), nullptr};
    for (size_t offset = address - memory->begin, left = bytes; left; ++offset, --left) {
        if (offset >= memory->bytes) return;
        for (Footprint& earlier : memory->piece(offset / PIECE)) {
            if (is_done(order.tasks[earlier.task], done)) continue;
            const size_t byte = offset % PIECE;
            const Use theirs = (Use)(use_of(earlier, byte) & 0x111 << byte % 4);
            const Footprint here = {earlier.task, {}, theirs, nullptr};
            if (find_conflict(here, used) == PIECE) continue;
            const Party party = party_of(earlier, byte);
            if (kind == 0 && !Bytes(theirs).stores)
                guesses.add({pthread_self(), address, memory, party, self, earlier.task});
            else
                report(HOST, *memory, offset, party, self, earlier.task, NO_TASK);
        }
    }
}

void order_begins(const Allocation& memory, unsigned region) {
    const Locked locked;
    const bool is_for_host = memory.kind != Kind::DEVICE && memory.kind != Kind::VARIABLE;
    Memory* made = (Memory*)malloc(sizeof *made);
    if (!made) abort();
    *made = {memory.begin,
             memory.bytes,
             region,
             is_for_host,
             memory.where(),
             NO_TASK,
             nullptr,
             memory.kind == Kind::DEVICE,
             {}};
    order.memories[memory.begin] = made;
    while (order.memory_of.size() <= region) order.memory_of.add(nullptr);
    order.memory_of[region] = made;
}
void order_ends(const Allocation& memory) {
    const Locked locked;
    const auto found = order.memories.find(memory.begin);
    if (found == order.memories.end()) return;
    Memory* gone = found->value;
    settle_guesses(true);
    end_result(*gone);
    gone->forget();
    order.used.remove(gone);
    order.memory_of[gone->region] = nullptr;
    order.memories.erase(found);
    free(gone);
}

// ------------------------------------------------------------------ work

enum class Side { DEVICE, MANAGED, PINNED, PAGEABLE };
static Side side_of(const void* address) {
    const Allocation* in = find_allocation(address);
    if (is_device_address(address)) return Side::DEVICE;
    if (!in) return is_symbol(address) ? Side::MANAGED : Side::PAGEABLE;
    return in->kind == Kind::MANAGED    ? Side::MANAGED
           : in->kind == Kind::VARIABLE ? Side::DEVICE
                                        : Side::PINNED;
}
static bool is_async(const char* name) {
    const size_t length = strlen(name);
    return length > 5 && !strcmp(name + length - 5, "Async");
}
// Whether the call returns only when the work is done.
static bool waits_for(const char* name, const Work& work) {
    if (work.type == cudaGraphNodeTypeHost) return true;
    if (work.type == cudaGraphNodeTypeMemset) {
        const Side side = side_of(work.fill.target);
        return !is_async(name) && (side == Side::PINNED || side == Side::MANAGED);
    }
    if (work.type != cudaGraphNodeTypeMemcpy) return false;
    const Side from = side_of(work.copy.source), to = side_of(work.copy.target);
    if (is_async(name)) {
        const bool on_host = from >= Side::PINNED && to >= Side::PINNED;
        return on_host || (to == Side::PAGEABLE && from != Side::PAGEABLE);
    }
    return !(to == Side::DEVICE && (from == Side::DEVICE || from == Side::PAGEABLE));
}
static bool is_staged(const char* name, const Work& work) {
    return work.type == cudaGraphNodeTypeMemcpy && !is_async(name) &&
           side_of(work.copy.target) == Side::DEVICE && side_of(work.copy.source) == Side::PAGEABLE;
}

// A new task, the next of a sequence.
static unsigned add_task(unsigned sequence, Clock& clock, const Party& party) {
    order.tasks.add({sequence, order.sequences.tick(clock, sequence), party, false, false});
    return (unsigned)order.tasks.size() - 1;
}
static void begin(unsigned task, Clock& clock) {
    Doing* now = (Doing*)malloc(sizeof *now);
    if (!now) abort();
    *now = {task, &clock, doing};
    doing = now;
    ++order.in_progress;
}
static void end() {
    Doing* done = doing;
    doing = done->outer;
    free(done);
    --order.in_progress;
}

Ordered::Ordered(const char* name, Place place, cudaStream_t stream, const Work& work)
    : waits(waits_for(name, work)),
      graph(work.type == cudaGraphNodeTypeGraph ? work.graph : nullptr) {
    const Locked locked;
    Stream& own = advance(stream);
    if (graph) own.clock.join(find_clock(graph));  // one instance runs once at a time
    // A function of the host may wake threads of the host, which use what was made before it.
    if (work.type == cudaGraphNodeTypeHost) host_joins(own.clock);
    const bool is_kernel = work.type == cudaGraphNodeTypeKernel;
    const Party party = {is_kernel ? work.kernel.kernel->name : name,
                         place.file,
                         place.line,
                         0,
                         0,
                         is_kernel,
                         own.kind,
                         own.made.file,
                         own.made.line,
                         own.number};
    const unsigned task = add_task(own.sequence, own.clock, party);
    order.tasks[task].is_staged = is_staged(name, work);
    begin(task, own.clock);
}
Ordered::~Ordered() {
    const Locked locked;
    const Clock& clock = *doing->clock;
    if (graph) find_clock(graph).become(clock);
    end();
    if (waits) host_joins(clock);
}

// ------------------------------------------------------------------ graphs

struct OrderedNodes::Inside {
    struct Ended {
        cudaGraphNode_t node;
        Clock* clock;
    };
    List<Ended> nodes;
};

OrderedNodes::OrderedNodes() : inside((Inside*)calloc(1, sizeof(Inside))) {
    if (!inside) abort();
}
OrderedNodes::~OrderedNodes() {
    const Locked locked;
    for (Inside::Ended& each : inside->nodes) {
        doing->clock->join(*each.clock);
        each.clock->~Clock();
        free((void*)each.clock);
    }
    inside->~Inside();
    free((void*)inside);
}
void OrderedNodes::begin(cudaGraphNode_t node) {
    const Locked locked;
    Clock* clock = (Clock*)calloc(1, sizeof *clock);
    if (!clock) abort();
    clock->become(*doing->clock);
    for (const Inside::Ended& each : inside->nodes)
        if (node->before.has(each.node)) clock->join(*each.clock);
    inside->nodes.add({node, clock});
    if (order.sequence_of.find((uintptr_t)node) == order.sequence_of.end())
        order.sequence_of[(uintptr_t)node] = order.sequences.add();
    Party party = order.tasks[doing->task].party;
    party.is_kernel = node->content.type == cudaGraphNodeTypeKernel;
    party.name = party.is_kernel ? node->content.launch.kernel.name : "a node";
    party.file = node->place.file;
    party.line = node->place.line;
    const unsigned task = add_task(order.sequence_of[(uintptr_t)node], *clock, party);
    cudalab::begin(task, *clock);
}
void OrderedNodes::end(cudaGraphNode_t node) {
    const Locked locked;
    const Clock& clock = *doing->clock;
    cudalab::end();
    if (node->content.type == cudaGraphNodeTypeHost) host_joins(clock);
}

// ------------------------------------------------------------------ memory of pools

void pool_gives(const void* address, Place place, cudaStream_t stream) {
    const Locked locked;
    Memory* memory = find_memory((uintptr_t)address);
    if (!memory) return;
    Work work(cudaGraphNodeTypeMemAlloc, PoolMemory{});
    const Ordered ordered("cudaMallocAsync", place, stream, work);
    remember(*memory);
    memory->made_by = doing->task;
}
void pool_takes(const void* address, Place place, cudaStream_t stream) {
    const Locked locked;
    Memory* memory = find_memory((uintptr_t)address);
    if (!memory) return;
    Work work(cudaGraphNodeTypeMemFree, PoolMemory{});
    const Ordered ordered("cudaFreeAsync", place, stream, work);
    const Party self = order.tasks[doing->task].party;
    if (memory->made_by != NO_TASK && !is_done(order.tasks[memory->made_by], *doing->clock))
        report(FREED, *memory, 0, order.tasks[memory->made_by].party, self, memory->made_by,
               doing->task);
    for (size_t number = 0; memory->pieces && number < memory->num_pieces(); ++number)
        for (const Footprint& earlier : memory->pieces[number]) {
            if (is_done(order.tasks[earlier.task], *doing->clock)) continue;
            size_t byte = 0;
            while (earlier.words && byte < PIECE - 4 && !earlier.words[byte / 4]) byte += 4;
            report(FREED, *memory, number * PIECE + byte, party_of(earlier, byte), self,
                   earlier.task, doing->task);
        }
}

}  // namespace cudalab

using namespace cudalab;

extern "C" const unsigned* cudalab_order_layout(unsigned* count) {
    static Layout layout;
    if (layout.count == 0) {
        typedef Party P;
        layout.add(&P::name, &P::file, &P::line, &P::place, &P::kind, &P::is_kernel, &P::stream,
                   &P::stream_file, &P::stream_line, &P::stream_number);
        typedef Unordered U;
        layout.add(&U::problem, &U::earlier, &U::later, &U::file, &U::line, &U::region, &U::offset);
    }
    *count = layout.count;
    return layout.values;
}

// `own_default`: the default stream is the thread's own.
extern "C" void cudalab_order(Listener listener, int own_default) {
    order.listener = listener;
    order.default_is_per_thread = own_default;
    order.watch.use = host_uses;
    order.watch.check = host_checks;
    cudalab_check_watch_uses(&order.watch);
}
// A variable, which check mode has as a region.
extern "C" void cudalab_order_variable(const void* address, size_t bytes, unsigned region) {
    const Section managed = managed_variables();
    const bool is_managed = address >= managed.begin && address < managed.end;
    const Kind kind = is_managed ? Kind::MANAGED : Kind::VARIABLE;
    order_begins({(uintptr_t)address, bytes, kind, 0, {nullptr, 0}}, region);
}
