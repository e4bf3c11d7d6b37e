// Device memory is a separate range of addresses. Its pages are accessible only while a kernel or a
// copy of the API runs, so host code that dereferences a device pointer is stopped there
// (launch.cpp reports it).

#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cudalab/library_access.h"
#include "internal.h"
#include "order.h"
#include "sorted_map.h"

namespace cudalab {

static const size_t ALIGNMENT = 512, GAP = 256, PITCH = 512;
// Access rights are set for whole huge pages, at a thousandth of the cost for small ones.
static const size_t HUGE_PAGE = 2 << 20;

typedef SortedMap<Allocation> Allocations;

static struct Memory {
    char* arena;
    size_t size, used, high_water;       // high_water: pages up to there have been handed out
    Allocations live;                    // of every kind
    Allocations freed;                   // freed device memory, until it is reused
    SortedMap<size_t> free;              // ranges below high_water
    Section device, constants, managed;  // of the program's variables
    unsigned opened, by_kernels;         // how often: by kernels, and in all
} memory;                                // never destroyed: other exit handlers may still use it

static size_t round_up(size_t n, size_t to) {
    return (n + to - 1) / to * to;
}

size_t device_bytes() {
    static size_t bytes = [] {
        const char* text = getenv("CUDALAB_DEVICE_MEMORY");
        if (text && *text) {
            char* unit;
            double value = strtod(text, &unit);
            for (const char* u = "KMGT"; *u && *unit; ++u) {
                value *= 1024;
                if ((*unit & ~0x20) == *u) break;
            }
            if (unit == text || value < PAGE || (*unit && unit[1])) {
                fprintf(stderr, "CUDALAB_DEVICE_MEMORY=%s: not a size such as 512M or 2G\n", text);
                _exit(125);  // the program could not be started
            }
            return (size_t)value / PAGE * PAGE;
        }
        return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGE_SIZE) / 2 / PAGE * PAGE;
    }();
    return bytes;
}
size_t free_bytes() {
    return device_bytes() - memory.used;
}

// ------------------------------------------------------------------ access rights

static void set_access(const Section& variables, int rights) {
    const size_t bytes = (size_t)(variables.end - variables.begin);
    if (bytes > PAGE) mprotect((void*)variables.begin, bytes, rights);  // else there is no variable
}
static void change_access(int opened, int by_kernels) {
    const unsigned before = memory.opened, copies_before = before - memory.by_kernels;
    memory.opened += (unsigned)opened;
    memory.by_kernels += (unsigned)by_kernels;
    const unsigned copies = memory.opened - memory.by_kernels;
    const int both = PROT_READ | PROT_WRITE;
    if (!before != !memory.opened) {
        const int rights = memory.opened ? both : PROT_NONE;
        if (memory.high_water)
            mprotect(memory.arena, round_up(memory.high_water, HUGE_PAGE), rights);
        set_access(memory.device, rights);
    } else if (!copies_before == !copies) {
        return;
    }
    set_access(memory.constants, copies ? both : memory.opened ? PROT_READ : PROT_NONE);
}
Access::Access(By by_) : by(by_) {
    if (by == ALL) {
        wait_for_all_work();
        library_works();
    }
    change_access(1, by == KERNEL);
}
Access::~Access() {
    change_access(-1, by == KERNEL ? -1 : 0);
}

// ------------------------------------------------------------------ the meaning of an address

static const Allocation* find_in(const Allocations& map, uintptr_t address, bool with_end) {
    const Allocations::Entry* next = map.upper_bound(address);
    if (next == map.begin()) return nullptr;
    const Allocation& found = next[-1].value;
    size_t offset = address - found.begin;
    return offset < found.bytes || (with_end && offset == found.bytes) ? &found : nullptr;
}
const Allocation* find_allocation(const void* address) {
    return find_in(memory.live, (uintptr_t)address, true);
}
static bool in_arena(uintptr_t address) {
    return memory.arena && address - (uintptr_t)memory.arena < memory.size;
}
static bool is_in(const Section& section, const void* address) {
    return (const char*)address >= section.begin && (const char*)address < section.end;
}
static bool is_variable(const void* address) {
    return is_in(memory.device, address) || is_in(memory.constants, address);
}
bool is_symbol(const void* address) {
    return is_variable(address) || is_in(memory.managed, address);
}
void know_variables(Section device, Section constants, Section managed) {
    memory.device = device;
    memory.constants = constants;
    memory.managed = managed;
}

Section device_variables() {
    return memory.device;
}
Section constants() {
    return memory.constants;
}
bool is_constant(const void* address) {
    return is_in(memory.constants, address);
}

bool is_code(const void* address) {
    return dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* wanted) {
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                const auto& part = info->dlpi_phdr[i];
                const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
                if (part.p_type == PT_LOAD && part.p_flags & PF_X &&
                    (uintptr_t)wanted - begin < part.p_memsz)
                    return 1;
            }
            return 0;
        },
        (void*)address);
}
bool is_device_address(const void* address) {
    return in_arena((uintptr_t)address) || is_variable(address);
}

void describe_device_address(const void* pointer, char* text, size_t size) {
    uintptr_t address = (uintptr_t)pointer;
    if (is_variable(pointer)) {
        snprintf(text, size, "it belongs to a __device__ or __constant__ variable");
        return;
    }
    if (const Allocation* in = find_in(memory.live, address, false)) {
        snprintf(text, size, "it is byte %zu of the %zu allocated at %s:%d",
                 (size_t)(address - in->begin), in->bytes, in->where().file, in->where().line);
        return;
    }
    if (const Allocation* in = find_in(memory.freed, address, false)) {
        snprintf(text, size, "it is byte %zu of the %zu allocated at %s:%d, and freed since",
                 (size_t)(address - in->begin), in->bytes, in->where().file, in->where().line);
        return;
    }
    const Allocations::Entry* next = memory.live.upper_bound(address);
    if (next != memory.live.begin() && in_arena(address)) {
        const Allocation& before = next[-1].value;
        if (in_arena(before.begin)) {
            snprintf(text, size, "it is %zu bytes past the end of the %zu allocated at %s:%d",
                     (size_t)(address - before.begin - before.bytes), before.bytes,
                     before.where().file, before.where().line);
            return;
        }
    }
    if (next != memory.live.end() && in_arena(next->key)) {
        const Allocation& behind = next->value;
        snprintf(text, size, "it is %zu bytes before the %zu allocated at %s:%d",
                 (size_t)(behind.begin - address), behind.bytes, behind.where().file,
                 behind.where().line);
        return;
    }
    snprintf(text, size, "no allocation contains it");
}

const char* why_not_for_kernels(const void* pointer, char* text, size_t size) {
    if (!pointer || find_allocation(pointer)) return nullptr;
    if (is_in(memory.managed, pointer)) return nullptr;
    if (in_arena((uintptr_t)pointer)) {
        if (!find_in(memory.freed, (uintptr_t)pointer, false)) return nullptr;
        int used = snprintf(text, size, "points to freed memory: ");
        describe_device_address(pointer, text + used, size - (size_t)used);
    } else if (is_variable(pointer)) {
        snprintf(text, size,
                 "is the host's name of a __device__ or __constant__ variable: kernels use the "
                 "variable itself, or the address from cudaGetSymbolAddress");
    } else if (is_code(pointer)) {
        return nullptr;  // a device function
    } else {
        snprintf(text, size,
                 "points to host memory (%p): a kernel needs memory from cudaMalloc, "
                 "cudaMallocManaged or cudaHostAlloc",
                 pointer);
    }
    return text;
}

bool reaches(const void* pointer, size_t bytes, char* why, size_t size) {
    const Allocation* in = find_in(memory.live, (uintptr_t)pointer, false);
    if (!in) {
        if (is_variable(pointer))
            snprintf(why, size,
                     "is a __device__ or __constant__ variable: cudaMemcpyToSymbol and "
                     "cudaMemcpyFromSymbol copy those");
        else if (in_arena((uintptr_t)pointer)) {
            int used = snprintf(why, size, "is not device memory: ");
            describe_device_address(pointer, why + used, size - (size_t)used);
        } else
            snprintf(why, size, "is host memory (%p)", pointer);
        return false;
    }
    size_t left = in->begin + in->bytes - (uintptr_t)pointer;
    if (bytes <= left) return true;
    snprintf(why, size, "has %zu bytes left of the %zu allocated at %s:%d, but %zu are copied",
             left, in->bytes, in->where().file, in->where().line, bytes);
    return false;
}

bool is_for_host(const void* pointer, char* why, size_t size) {
    if (!pointer) {
        snprintf(why, size, "is null");
        return false;
    }
    if (!is_device_address(pointer)) return true;
    int used = snprintf(why, size, "is device memory: ");
    describe_device_address(pointer, why + used, size - (size_t)used);
    return false;
}

// ------------------------------------------------------------------ the arena

static bool reserve_arena() {
    if (memory.arena) return true;
    size_t size = device_bytes();
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* range = mmap(nullptr, size + 2 * HUGE_PAGE, PROT_NONE, flags, -1, 0);
    if (range == MAP_FAILED) return false;
    char* arena = (char*)round_up((uintptr_t)range, HUGE_PAGE);
#ifdef MADV_HUGEPAGE
    madvise(arena, size + HUGE_PAGE, MADV_HUGEPAGE);
#endif
    memory.arena = arena;
    memory.size = size;
    memory.high_water = PAGE;  // the first page stays empty: free() reads before its pointer
    return true;
}

// The first free range that is long enough; the memory above high_water is one more range.
static uintptr_t take(size_t bytes) {
    for (auto range = memory.free.begin(); range != memory.free.end(); ++range) {
        if (range->value < bytes) continue;
        uintptr_t begin = range->key;
        size_t left = range->value - bytes;
        memory.free.erase(range);
        if (left) memory.free[begin + bytes] = left;
        return begin;
    }
    uintptr_t end = (uintptr_t)memory.arena + memory.high_water;
    size_t begin_offset = memory.high_water;
    if (!memory.free.empty()) {  // the last free range may reach up to high_water
        auto last = memory.free.end() - 1;
        if (last->key + last->value == end) {
            begin_offset = last->key - (uintptr_t)memory.arena;
            if (begin_offset + bytes <= memory.size) memory.free.erase(last);
        }
    }
    if (begin_offset + bytes > memory.size) return 0;
    uintptr_t begin = (uintptr_t)memory.arena + begin_offset;
    size_t new_high = round_up(begin_offset + bytes, PAGE);
    if (new_high > memory.size) new_high = memory.size;
    if (begin_offset + bytes < new_high)
        memory.free[begin + bytes] = new_high - begin_offset - bytes;
    if (memory.opened)  // a library or a kernel allocates: pages behind the last huge one have no
        mprotect(memory.arena, round_up(new_high, HUGE_PAGE), PROT_READ | PROT_WRITE);  // rights
    memory.high_water = new_high;
    return begin;
}

static void give_back(uintptr_t begin, size_t bytes) {
    auto next = memory.free.lower_bound(begin);
    if (next != memory.free.end() && begin + bytes == next->key) {
        bytes += next->value;
        next = memory.free.erase(next);
    }
    if (next != memory.free.begin()) {
        auto before = next - 1;
        if (before->key + before->value == begin) {
            before->value += bytes;
            return;
        }
    }
    memory.free[begin] = bytes;
}

// ------------------------------------------------------------------ counters of memory
// memory_pools

MemoryPool* memory_pools;
static const size_t CHUNK = 32 << 20;  // a pool reserves memory in pieces of this size, as on a GPU

static void count(MemoryPool* pool, size_t added, size_t removed) {
    if (!pool) return;
    pool->used = pool->used + added - removed;
    const size_t needed = round_up(pool->used, CHUNK);
    if (pool->reserved < needed) pool->reserved = needed;
    if (pool->used_high < pool->used) pool->used_high = pool->used;
    if (pool->reserved_high < pool->reserved) pool->reserved_high = pool->reserved;
}
void trim(MemoryPool& pool, size_t bytes) {
    const size_t needed = round_up(pool.used > bytes ? pool.used : bytes, CHUNK);
    if (needed < pool.reserved) pool.reserved = needed;
}
void keep_to_thresholds() {
    for (MemoryPool* pool = memory_pools; pool; pool = pool->next)
        if (pool->reserved > pool->threshold) trim(*pool, 0);
}

// ------------------------------------------------------------------ allocations

static size_t with_gap(size_t bytes) {
    return round_up(bytes + GAP, ALIGNMENT);
}

cudaError_t allocate(Call& call, void** pointer, size_t bytes, MemoryPool* pool) {
    if (!pointer) return call.fail(cudaErrorInvalidValue, "the pointer to the pointer is null");
    *pointer = nullptr;
    if (bytes == 0 && call.of_kernel) return call.fail(cudaErrorInvalidValue, "no bytes");
    if (bytes == 0) return cudaSuccess;
    size_t needed = with_gap(bytes);
    if (needed < bytes || !reserve_arena() || needed > memory.size - memory.used)
        return call.fail(cudaErrorMemoryAllocation,
                         "%zu bytes requested, but %zu of the device's %zu are free", bytes,
                         free_bytes(), device_bytes());
    uintptr_t begin = take(needed);
    if (!begin)
        return call.fail(cudaErrorMemoryAllocation,
                         "%zu bytes requested, but no free range is that long", bytes);
    memory.used += needed;
    auto stale = memory.freed.lower_bound(begin);
    if (stale != memory.freed.begin()) --stale;
    while (stale != memory.freed.end() && stale->key < begin + needed)
        stale = stale->key + stale->value.bytes > begin ? memory.freed.erase(stale) : stale + 1;
    watch_memory(memory.live[begin] = {begin, bytes, Kind::DEVICE, 0, call.place, {}, pool}, GAP);
    count(pool, bytes, 0);
    *pointer = (void*)begin;
    return cudaSuccess;
}

// ------------------------------------------------------------------ memory of graphs

static SortedMap<size_t>& reserved() {  // addresses of graphs, and their bytes
    static SortedMap<size_t> ranges;
    return ranges;
}
void* reserve(size_t bytes) {
    if (!reserve_arena() || with_gap(bytes) < bytes) return nullptr;
    const uintptr_t begin = take(with_gap(bytes));
    if (begin) reserved()[begin] = bytes;
    return (void*)begin;
}
void unreserve(void* address, size_t bytes) {
    reserved().erase(reserved().find((uintptr_t)address));
    auto found = memory.live.find((uintptr_t)address);
    if (found == memory.live.end()) {
        give_back((uintptr_t)address, with_gap(bytes));
    } else {  // freeing it gives back the addresses
        memory.used += with_gap(bytes);
    }
}
cudaError_t allocate_reserved(Call& call, void* address, size_t bytes) {
    if (is_live(address)) return call.fail(cudaErrorInvalidValue, "%p is still allocated", address);
    auto stale = memory.freed.find((uintptr_t)address);
    if (stale != memory.freed.end()) memory.freed.erase(stale);
    Allocation& made = memory.live[(uintptr_t)address];
    made = {(uintptr_t)address, bytes, Kind::DEVICE, 0, call.place};
    made.of_graph = true;
    watch_memory(made, GAP);
    return cudaSuccess;
}
bool is_reserved(const void* address) {
    return reserved().find((uintptr_t)address) != reserved().end();
}
bool is_reserved_range(const void* address) {
    const auto next = reserved().upper_bound((uintptr_t)address);
    return next != reserved().begin() && (uintptr_t)address - next[-1].key < next[-1].value;
}
bool is_live(const void* address) {
    return memory.live.find((uintptr_t)address) != memory.live.end();
}
size_t live_of_graphs() {
    size_t bytes = 0;
    for (const auto& each : memory.live)
        if (each.value.of_graph) bytes += each.value.bytes;
    return bytes;
}

// ------------------------------------------------------------------ memory of the host

static cudaError_t allocate_shared_with_host(Call& call, void** pointer, size_t bytes, Kind kind,
                                             unsigned flags) {
    if (!pointer) return call.fail(cudaErrorInvalidValue, "the pointer to the pointer is null");
    *pointer = nullptr;
    if (bytes == 0) return cudaSuccess;
    if (posix_memalign(pointer, PAGE, round_up(bytes, PAGE)) != 0)
        return call.fail(cudaErrorMemoryAllocation, "%zu bytes requested", bytes);
    if (kind == Kind::MANAGED) memset(*pointer, 0, bytes);
    uintptr_t begin = (uintptr_t)*pointer;
    watch_memory(memory.live[begin] = {begin, bytes, kind, flags, call.place}, 0);
    return cudaSuccess;
}

cudaError_t release(Call& call, void* pointer, bool pinned) {
    if (!pointer) return cudaSuccess;
    auto found = memory.live.find((uintptr_t)pointer);
    if (found == memory.live.end()) {
        auto freed = memory.freed.find((uintptr_t)pointer);
        if (freed != memory.freed.end())
            return call.fail(cudaErrorInvalidValue, "freed twice: allocated at %s:%d",
                             freed->value.where().file, freed->value.where().line);
        return call.fail(cudaErrorInvalidValue, "%p is not what an allocation returned", pointer);
    }
    Allocation freed = found->value;
    bool is_pinned = freed.kind == Kind::PINNED;
    if (freed.kind == Kind::VARIABLE || freed.kind == Kind::REGISTERED || is_pinned != pinned)
        return call.fail(cudaErrorInvalidValue, "the memory allocated at %s:%d is %s",
                         freed.where().file, freed.where().line,
                         is_pinned ? "pinned: it is freed by cudaFreeHost"
                                   : "not pinned: it is freed by cudaFree");
    memory.live.erase(found);
    unwatch_memory(freed);
    if (freed.kind != Kind::DEVICE) {
        free(pointer);
        return cudaSuccess;
    }
    if (is_reserved(pointer)) {
        memory.freed[freed.begin] = freed;
        return cudaSuccess;
    }
    size_t bytes = with_gap(freed.bytes);
    memory.used -= bytes;
    count(freed.pool, 0, freed.bytes);
    uintptr_t first = round_up(freed.begin, HUGE_PAGE);
    uintptr_t last = (freed.begin + bytes) / HUGE_PAGE * HUGE_PAGE;
    if (last > first) madvise((void*)first, last - first, MADV_DONTNEED);
    give_back(freed.begin, bytes);
    memory.freed[freed.begin] = freed;
    return cudaSuccess;
}

void free_all() {
    for (auto next = memory.live.begin(); next != memory.live.end();) {
        const Allocation& each = next->value;
        if (each.kind == Kind::VARIABLE || each.kind == Kind::REGISTERED) {
            ++next;
            continue;
        }
        Call call("cudaDeviceReset", each.place);
        release(call, (void*)next->key, each.kind == Kind::PINNED);  // `next` is now the one behind
    }
}

void tell_leaks() {
    for (const auto& each : memory.live) {
        const Allocation& left = each.value;
        if (left.kind == Kind::VARIABLE || left.kind == Kind::REGISTERED) continue;
        char text[400];
        snprintf(text, sizeof text, "%s:%d: %zu bytes of %s memory are never freed",
                 left.where().file, left.where().line, left.bytes,
                 left.kind == Kind::DEVICE    ? "device"
                 : left.kind == Kind::MANAGED ? "managed"
                                              : "pinned");
        report(MessageKind::LEAK, text);
    }
}

// ------------------------------------------------------------------ libraries on the host

// What a library does for a grid is done by this thread of the host: a grid of one thread.
static void set_grid(unsigned threads) {
    current.block_dim = current.grid_dim = {threads, threads, threads};
}
cudaError_t open_for_library() {
    if (in_kernel()) return cudaSuccess;
    Call call("a library", {});
    wait_for_all_work();
    library_works();
    change_access(1, 0);
    library_writes(true);
    set_grid(1);
    return call.pending();
}
void close_for_library() {
    if (in_kernel()) return;
    Call call("a library", {});
    library_writes(false);
    change_access(-1, 0);
    set_grid(0);
}
void name_variable(const void* address, size_t bytes, Place place) {
    memory.live[(uintptr_t)address] = {(uintptr_t)address, bytes, Kind::VARIABLE, 0, place};
}

}  // namespace cudalab

using namespace cudalab;

// ------------------------------------------------------------------ the API

cudaError_t cudaMalloc(void** pointer, size_t bytes, const char* file, int line) {
    Call call("cudaMalloc", {file, line}, Call::ANYWHERE);
    if (cudaError_t error = call.pending_or_unsafe()) return error;
    return allocate(call, pointer, bytes);
}

cudaError_t cudaFree(void* pointer, const char* file, int line) {
    Call call("cudaFree", {file, line}, Call::ANYWHERE);
    if (cudaError_t error = call.pending_after_all_work()) return error;
    return release(call, pointer, false);
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height,
                            const char* file, int line) {
    Call call("cudaMallocPitch", {file, line});
    if (cudaError_t error = call.pending_or_unsafe()) return error;
    if (!pitch) return call.fail(cudaErrorInvalidValue, "the pointer to the pitch is null");
    *pitch = round_up(width, PITCH);
    return allocate(call, pointer, *pitch * height);
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent, const char* file, int line) {
    Call call("cudaMalloc3D", {file, line});
    if (cudaError_t error = call.pending_or_unsafe()) return error;
    size_t pitch = round_up(extent.width, PITCH);
    *pointer = {nullptr, pitch, extent.width, extent.height};
    return allocate(call, &pointer->ptr, pitch * extent.height * extent.depth);
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags, const char* file,
                          int line) {
    Call call("cudaHostAlloc", {file, line});
    if (cudaError_t error = call.pending_or_unsafe()) return error;
    if (flags & ~(cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined))
        return call.fail(cudaErrorInvalidValue, "flags %#x are not known", flags);
    return allocate_shared_with_host(call, pointer, bytes, Kind::PINNED, flags);
}

cudaError_t cudaFreeHost(void* pointer, const char* file, int line) {
    Call call("cudaFreeHost", {file, line});
    if (cudaError_t error = call.pending_after_all_work()) return error;
    return release(call, pointer, true);
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags, const char* file,
                              int line) {
    Call call("cudaMallocManaged", {file, line});
    if (cudaError_t error = call.pending_or_unsafe()) return error;
    return allocate_shared_with_host(call, pointer, bytes, Kind::MANAGED, flags);
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags, const char* file,
                             int line) {
    Call call("cudaHostRegister", {file, line});
    if (cudaError_t error = call.pending_or_unsafe()) return error;
    if (!pointer || !bytes || is_device_address(pointer))
        return call.fail(cudaErrorInvalidValue, "%zu bytes at %p are not host memory", bytes,
                         pointer);
    if (find_in(memory.live, (uintptr_t)pointer, false))
        return call.fail(cudaErrorHostMemoryAlreadyRegistered, "%p is registered", pointer);
    watch_memory(memory.live[(uintptr_t)pointer] = {(uintptr_t)pointer, bytes, Kind::REGISTERED,
                                                    flags, call.place},
                 0);
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* pointer, const char* file, int line) {
    Call call("cudaHostUnregister", {file, line});
    if (cudaError_t error = call.pending_after_all_work()) return error;
    auto found = memory.live.find((uintptr_t)pointer);
    if (found == memory.live.end() || found->value.kind != Kind::REGISTERED)
        return call.fail(cudaErrorHostMemoryNotRegistered, "%p is not registered", pointer);
    unwatch_memory(found->value);
    memory.live.erase(found);
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned, const char* file,
                                     int line) {
    Call call("cudaHostGetDevicePointer", {file, line});
    if (cudaError_t error = call.pending()) return error;
    const Allocation* in = find_in(memory.live, (uintptr_t)host, false);
    if (!device || !in || (in->kind != Kind::PINNED && in->kind != Kind::REGISTERED))
        return call.fail(cudaErrorInvalidValue, "%p is not pinned host memory", host);
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* host, const char* file, int line) {
    Call call("cudaHostGetFlags", {file, line});
    if (cudaError_t error = call.pending()) return error;
    const Allocation* in = find_in(memory.live, (uintptr_t)host, false);
    if (!flags || !in || in->kind != Kind::PINNED)
        return call.fail(cudaErrorInvalidValue, "%p is not pinned host memory", host);
    *flags = in->flags | cudaHostAllocMapped;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total, const char* file, int line) {
    Call call("cudaMemGetInfo", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (free) *free = free_bytes();
    if (total) *total = device_bytes();
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer,
                                     const char* file, int line) {
    Call call("cudaPointerGetAttributes", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!attributes) return call.fail(cudaErrorInvalidValue, "the attributes' pointer is null");
    void* address = (void*)pointer;
    const Allocation* in = find_in(memory.live, (uintptr_t)pointer, false);
    if (!in)
        *attributes = {cudaMemoryTypeUnregistered, cudaInvalidDeviceId, nullptr, address};
    else if (in->kind == Kind::DEVICE || in->kind == Kind::VARIABLE)
        *attributes = {cudaMemoryTypeDevice, 0, address, nullptr};
    else if (in->kind == Kind::MANAGED)
        *attributes = {cudaMemoryTypeManaged, 0, address, address};
    else
        *attributes = {cudaMemoryTypeHost, 0, address, address};
    return cudaSuccess;
}

// ------------------------------------------------------------------ hints about managed memory

// Hints have no effect, since there is only one managed memory, but a program can read them.
static cudaError_t find_managed(Call& call, const void* pointer, size_t bytes, Hints** hints) {
    static Hints of_variables;
    if (cudaError_t error = call.pending()) return error;
    *hints = &of_variables;
    if (is_in(memory.managed, pointer)) return cudaSuccess;
    Allocation* in = (Allocation*)find_in(memory.live, (uintptr_t)pointer, false);
    if (!in || in->kind != Kind::MANAGED || bytes > in->begin + in->bytes - (uintptr_t)pointer)
        return call.fail(cudaErrorInvalidValue, "%zu bytes at %p are not managed memory", bytes,
                         pointer);
    *hints = &in->hints;
    return cudaSuccess;
}
static int number_of(cudaMemLocation location) {
    return location.type == cudaMemLocationTypeDevice ? location.id
           : location.type == cudaMemLocationTypeNone ? cudaInvalidDeviceId
                                                      : cudaCpuDeviceId;
}
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, int device, cudaStream_t,
                                 const char* file, int line) {
    Call call("cudaMemPrefetchAsync", {file, line});
    Hints* hints;
    if (cudaError_t error = find_managed(call, pointer, bytes, &hints)) return error;
    if (device != 0 && device != cudaCpuDeviceId)
        return call.fail(cudaErrorInvalidDevice, "there is only device 0, not %d", device);
    hints->prefetched = device;
    return cudaSuccess;
}
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation location,
                                 unsigned, cudaStream_t stream, const char* file, int line) {
    return cudaMemPrefetchAsync(pointer, bytes, number_of(location), stream, file, line);
}
cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise advice, int device,
                          const char* file, int line) {
    Call call("cudaMemAdvise", {file, line});
    Hints* hints;
    if (cudaError_t error = find_managed(call, pointer, bytes, &hints)) return error;
    switch (advice) {
        case cudaMemAdviseSetReadMostly:
        case cudaMemAdviseUnsetReadMostly:
            hints->read_mostly = advice == cudaMemAdviseSetReadMostly;
            return cudaSuccess;
        case cudaMemAdviseSetPreferredLocation:
            hints->preferred = device;
            return cudaSuccess;
        case cudaMemAdviseUnsetPreferredLocation:
            hints->preferred = cudaInvalidDeviceId;
            return cudaSuccess;
        case cudaMemAdviseSetAccessedBy:
            hints->accessed_by = device;
            return cudaSuccess;
        case cudaMemAdviseUnsetAccessedBy:
            hints->accessed_by = cudaInvalidDeviceId;
            return cudaSuccess;
    }
    return call.fail(cudaErrorInvalidValue, "%d is not a piece of advice", (int)advice);
}
cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise advice,
                          cudaMemLocation location, const char* file, int line) {
    return cudaMemAdvise(pointer, bytes, advice, number_of(location), file, line);
}

cudaError_t cudaMemRangeGetAttribute(void* data, size_t size, cudaMemRangeAttribute attribute,
                                     const void* pointer, size_t bytes, const char* file,
                                     int line) {
    Call call("cudaMemRangeGetAttribute", {file, line});
    Hints* hints;
    if (cudaError_t error = find_managed(call, pointer, bytes, &hints)) return error;
    if (!data || size < sizeof(int) || size % sizeof(int))
        return call.fail(cudaErrorInvalidValue, "%zu bytes for the attribute", size);
    int* values = (int*)data;
    switch (attribute) {
        case cudaMemRangeAttributeReadMostly:
            *values = hints->read_mostly;
            return cudaSuccess;
        case cudaMemRangeAttributePreferredLocation:
            *values = hints->preferred;
            return cudaSuccess;
        case cudaMemRangeAttributeLastPrefetchLocation:
            *values = hints->prefetched;
            return cudaSuccess;
        case cudaMemRangeAttributeAccessedBy:
            for (size_t i = 0; i < size / sizeof(int); ++i)
                values[i] = i == 0 ? hints->accessed_by : (int)cudaInvalidDeviceId;
            return cudaSuccess;
        default:
            return call.fail(cudaErrorInvalidValue, "attribute %d is not known", (int)attribute);
    }
}
cudaError_t cudaMemRangeGetAttributes(void** data, size_t* sizes, cudaMemRangeAttribute* attributes,
                                      size_t count, const void* pointer, size_t bytes,
                                      const char* file, int line) {
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; i < count && !error; ++i)
        error =
            cudaMemRangeGetAttribute(data[i], sizes[i], attributes[i], pointer, bytes, file, line);
    return error;
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t bytes,
                                     unsigned flags, const char* file, int line) {
    Call call("cudaStreamAttachMemAsync", {file, line});
    Hints* hints;
    if (cudaError_t error = find_managed(call, pointer, bytes, &hints)) return error;
    if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost && flags != cudaMemAttachSingle)
        return call.fail(cudaErrorInvalidValue, "flags %#x are not one of the three", flags);
    if (flags == cudaMemAttachSingle && !stream)
        return call.fail(cudaErrorInvalidValue, "the default stream cannot own memory");
    return cudaSuccess;
}
