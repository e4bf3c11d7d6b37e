// The host's view of kernels: their attributes, and the limits and arguments of their launches.

#include <alloca.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "work.h"

namespace cudalab {

static const unsigned MAX_THREADS = 1024;

// ------------------------------------------------------------------ functions

static Function* functions;

Function* find_function(const void* address) {
    for (Function* each = functions; each; each = (Function*)each->next)
        if (each->address == address) return each;
    return nullptr;
}
void enlist(Function* function) {
    if (find_function(function->address)) return;
    function->next = functions;
    functions = function;
}
void add_loops(const void* kernel, BlockFn loops, bool flat) {
    Function* function = find_function(kernel);
    if (!function) return;
    function->kernel.loops = loops;
    function->kernel.flat = flat;
}

// The symbols of the program itself, for sizes that the compiler knows and C++ cannot query.
struct Symbols {
    const ElfW(Sym) * begin, *end;
    const char* names;
    uintptr_t base;  // added to their values
    const ElfW(Shdr) * sections;
    unsigned num_sections;
    const char* section_names;
};
static const Symbols* program_symbols(const void* inside) {
    static Symbols symbols;
    if (symbols.begin) return &symbols;
    Dl_info program;
    if (!dladdr(inside, &program)) return nullptr;
    const bool is_library = strstr(program.dli_fname, ".so") != nullptr;
    int file = open(is_library ? program.dli_fname : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) return nullptr;
    char* image = (char*)mmap(nullptr, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (image == MAP_FAILED) return nullptr;
    const ElfW(Ehdr)* header = (const ElfW(Ehdr)*)image;
    const ElfW(Shdr)* sections = (const ElfW(Shdr)*)(image + header->e_shoff);
    for (int i = 0; i < header->e_shnum; ++i) {
        if (sections[i].sh_type != SHT_SYMTAB) continue;
        symbols.base = header->e_type == ET_EXEC ? 0 : (uintptr_t)program.dli_fbase;
        symbols.begin = (const ElfW(Sym)*)(image + sections[i].sh_offset);
        symbols.end = symbols.begin + sections[i].sh_size / sizeof(ElfW(Sym));
        symbols.names = image + sections[sections[i].sh_link].sh_offset;
        symbols.sections = sections, symbols.num_sections = header->e_shnum;
        symbols.section_names = image + sections[header->e_shstrndx].sh_offset;
        return &symbols;
    }
    return nullptr;
}

// The name of a function in C++'s encoding, or null; not one that a compiler has made of it with a
// dot, as `_Z1kPf.localalias`.
static const char* mangled_name(const void* function) {
    const Symbols* symbols = program_symbols(function);
    if (!symbols) return nullptr;
    const uintptr_t wanted = (uintptr_t)function - symbols->base;
    for (const ElfW(Sym)* each = symbols->begin; each < symbols->end; ++each)
        if ((each->st_info & 15) == STT_FUNC && each->st_value == wanted &&
            !strncmp(symbols->names + each->st_name, "_Z", 2) &&
            !strchr(symbols->names + each->st_name, '.'))
            return symbols->names + each->st_name;
    return nullptr;
}

// A kernel's __shared__ variables are thread-local symbols: _ZZ<kernel>E<variable>.
size_t static_shared(const void* function) {
    const char* mangled = mangled_name(function);
    if (!mangled) return 0;
    mangled += 2;
    const Symbols* symbols = program_symbols(function);
    size_t bytes = 0, length = strlen(mangled);
    for (const ElfW(Sym)* each = symbols->begin; each < symbols->end; ++each) {
        const char* name = symbols->names + each->st_name;
        if ((each->st_info & 15) == STT_TLS && !strncmp(name, "_ZZ", 3) &&
            !strncmp(name + 3, mangled, length) && name[3 + length] == 'E')
            bytes += each->st_size;
    }
    return bytes;
}

// The address ranges of the program's own functions, sorted.
struct Range {
    const char *begin, *end;
};
static Range* code;
static size_t code_ranges;

static bool is_own_function(const char* name) {
    if (strncmp(name, "_Z", 2) != 0) return strncmp(name, "cudalab_", 8) != 0;
    name += 2;
    while (*name && strchr("ZNKL", *name)) ++name;
    if (!strncmp(name, "7cudalab", 8))  // kernels may be inlined in the functions that call them
        return !strncmp(name + 8, "5EntryI", 7);
    return strncmp(name, "St", 2) != 0;
}

void know_kernel_code() {
    const Symbols* symbols = program_symbols((const void*)&know_kernel_code);
    if (!symbols || code) return;
    code = (Range*)calloc((size_t)(symbols->end - symbols->begin), sizeof *code);
    if (!code) return;
    for (const ElfW(Sym)* each = symbols->begin; each < symbols->end; ++each) {
        if ((each->st_info & 15) != STT_FUNC || !each->st_size || each->st_shndx == SHN_UNDEF ||
            !is_own_function(symbols->names + each->st_name))
            continue;
        const char* begin = (const char*)(symbols->base + each->st_value);
        code[code_ranges++] = {begin, begin + each->st_size};
    }
    qsort(code, code_ranges, sizeof *code, [](const void* a, const void* b) {
        const char *left = ((const Range*)a)->begin, *right = ((const Range*)b)->begin;
        return left < right ? -1 : left > right;
    });
}
bool is_kernel_code(const void* pc) {
    size_t first = 0;
    for (size_t left = code_ranges; left;) {  // the first range that ends behind it
        const size_t half = left / 2;
        if (code[first + half].end <= (const char*)pc) {
            first += half + 1;
            left -= half + 1;
        } else {
            left = half;
        }
    }
    return first < code_ranges && code[first].begin <= (const char*)pc;
}

// Shared memory is that of the OS thread: its part of each library, and of the program.
bool is_shared(const void* address) {
    if ((size_t)((const char*)address - current.dynamic_shared) < SHARED_OPTIN) return true;
    return dl_iterate_phdr(
               [](dl_phdr_info* library, size_t, void* wanted) {
                   for (int i = 0; i < library->dlpi_phnum; ++i)
                       if (library->dlpi_phdr[i].p_type == PT_TLS && library->dlpi_tls_data)
                           return (int)((size_t)((char*)wanted - (char*)library->dlpi_tls_data) <
                                        library->dlpi_phdr[i].p_memsz);
                   return 0;
               },
               (void*)address) != 0;
}

static const size_t LARGEST_APART = 64 << 20;  // bytes; larger ones are host code's

void for_each_variable(Section section, Visitor visit) {
    const Symbols* symbols = program_symbols(section.begin);
    if (!symbols) return;
    for (const ElfW(Sym)* each = symbols->begin; each < symbols->end; ++each) {
        const char* address = (const char*)(symbols->base + each->st_value);
        const char* name = symbols->names + each->st_name;
        if ((each->st_info & 15) == STT_OBJECT && address >= section.begin &&
            address < section.end && !strstr(name, "cudalab_last_"))  // of sections.cpp
            visit(name, address, each->st_size);
    }
}

// Whether a variable is one that a section cannot hold: of a function, a template, or inline.
static bool is_apart(const char* name, unsigned binding) {
    const bool of_template = strchr(name, 'I') && name[strlen(name) - 1] == 'E';
    const bool is_merged = binding == STB_WEAK || binding == STB_GNU_UNIQUE;
    return is_merged || of_template || strncmp(name, "_ZZ", 3) == 0;
}
// Whether it never changes: a table of constants, or of virtual functions.
static bool is_fixed(const Symbols& symbols, const ElfW(Sym) & symbol) {
    if (symbol.st_shndx >= symbols.num_sections) return false;
    const ElfW(Shdr) & section = symbols.sections[symbol.st_shndx];
    const char* const name = symbols.section_names + section.sh_name;
    return !(section.sh_flags & SHF_WRITE) || !strncmp(name, ".data.rel.ro", 12);
}
// What is in the libraries' namespaces is none of the program's.
static bool is_of_program(const char* name) {
    if (strncmp(name, "_Z", 2) != 0) return *name != '_' && !strchr(name, '.');  // at file scope
    name += strncmp(name, "_ZTV", 4) ? 2 : 4;
    while (*name && strchr("ZNKL", *name)) ++name;
    static const char* const others[] = {"T",     "G",    "St",      "7cudalab",
                                         "4cuda", "3cub", "6thrust", "9__gnu_cxx"};
    for (const char* each : others)
        if (!strncmp(name, each, strlen(each))) return false;
    return true;
}
void for_each_variable_apart(Visitor visit) {
    const Symbols* symbols = program_symbols(device_variables().begin);
    if (!symbols) return;
    for (const ElfW(Sym)* each = symbols->begin; each < symbols->end; ++each) {
        const char* address = (const char*)(symbols->base + each->st_value);
        const char* name = symbols->names + each->st_name;
        if ((each->st_info & 15) == STT_OBJECT && each->st_shndx != SHN_UNDEF &&
            each->st_size <= LARGEST_APART && !is_symbol(address) &&
            (is_apart(name, each->st_info >> 4) || is_fixed(*symbols, *each)) &&
            is_of_program(name))
            visit(name, address, each->st_size);
    }
}

static size_t static_shared(Function& function) {
    if (function.static_shared == Function::NONE)
        function.static_shared = static_shared(function.address);
    return function.static_shared;
}
static size_t most_dynamic_shared(Function& function) {
    if (function.dynamic_shared != Function::NONE) return function.dynamic_shared;
    size_t used = static_shared(function);
    return used < SHARED_DEFAULT ? SHARED_DEFAULT - used : 0;
}

static unsigned blocks_per_multiprocessor(unsigned threads, size_t shared) {
    unsigned warps = (threads + 31) / 32;
    unsigned blocks = THREADS_PER_MULTIPROCESSOR / (32 * warps);
    if (blocks > BLOCKS_PER_MULTIPROCESSOR) blocks = BLOCKS_PER_MULTIPROCESSOR;
    size_t fit = SHARED_PER_MULTIPROCESSOR / (shared + SHARED_RESERVED);
    return fit < blocks ? (unsigned)fit : blocks;
}
// How many blocks of a launch the device claims to hold at once.
static uint64_t resident_blocks(const Config& config, Function* function) {
    const unsigned threads = config.block.x * config.block.y * config.block.z;
    const size_t shared = config.shared + (function ? static_shared(*function) : 0);
    return (uint64_t)blocks_per_multiprocessor(threads, shared) * MULTIPROCESSORS;
}
static unsigned dynamic_of_launch, total_of_launch;  // of the one in progress
void begin_shared_memory(const KernelCall& launch) {
    Function* function = launch.address ? find_function(launch.address) : nullptr;
    dynamic_of_launch = (unsigned)launch.config->shared;
    total_of_launch = dynamic_of_launch + (unsigned)(function ? static_shared(*function) : 0);
}
unsigned dynamic_shared_bytes() {
    return dynamic_of_launch;
}
unsigned total_shared_bytes() {
    return total_of_launch;
}
uint64_t resident_blocks(const KernelCall& launch) {
    return resident_blocks(*launch.config,
                           launch.address ? find_function(launch.address) : nullptr);
}

static cudaError_t find(Call& call, const void* address, Function*& function) {
    if (cudaError_t error = call.pending()) return error;
    function = find_function(address);
    return function ? cudaSuccess
                    : call.fail(cudaErrorInvalidResourceHandle, "%p is not a kernel", address);
}
cudaError_t function_attributes(cudaFuncAttributes* attributes, const void* address,
                                const char* file, int line) {
    Call call("cudaFuncGetAttributes", {file, line}, Call::ANYWHERE);
    Function* function;
    if (cudaError_t error = find(call, address, function)) return error;
    memset(attributes, 0, sizeof *attributes);
    attributes->sharedSizeBytes = static_shared(*function);
    attributes->maxThreadsPerBlock = function->max_threads ? (int)function->max_threads : 1024;
    attributes->maxDynamicSharedSizeBytes = (int)most_dynamic_shared(*function);
    attributes->ptxVersion = attributes->binaryVersion = __CUDA_ARCH__ / 10;
    attributes->preferredShmemCarveout = cudaSharedmemCarveoutDefault;
    return cudaSuccess;
}
cudaError_t set_function_attribute(const void* address, cudaFuncAttribute attribute, int value,
                                   const char* file, int line) {
    Call call("cudaFuncSetAttribute", {file, line});
    Function* function;
    if (cudaError_t error = find(call, address, function)) return error;
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize)
        return call.fail(cudaErrorInvalidValue, "attribute %d cannot be set", (int)attribute);
    if (value < 0 || (size_t)value + static_shared(*function) > SHARED_OPTIN)
        return call.fail(cudaErrorInvalidValue,
                         "%d bytes of dynamic shared memory and %zu static ones: a block has at "
                         "most %zu",
                         value, static_shared(*function), SHARED_OPTIN);
    function->dynamic_shared = (size_t)value;
    return cudaSuccess;
}
cudaError_t max_active_blocks(int* blocks, const void* address, int threads, size_t shared,
                              const char* file, int line) {
    Call call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", {file, line}, Call::ANYWHERE);
    Function* function;
    if (cudaError_t error = find(call, address, function)) return error;
    int most = function->max_threads ? (int)function->max_threads : 1024;
    *blocks = 0;
    if (threads <= 0) return call.fail(cudaErrorInvalidValue, "blocks of %d threads", threads);
    if (threads <= most && shared <= most_dynamic_shared(*function))
        *blocks =
            (int)blocks_per_multiprocessor((unsigned)threads, shared + static_shared(*function));
    return cudaSuccess;
}

cudaError_t available_dynamic_shared(size_t* bytes, const void* address, int blocks, int threads,
                                     const char* file, int line) {
    Call call("cudaOccupancyAvailableDynamicSMemPerBlock", {file, line}, Call::ANYWHERE);
    Function* function;
    if (cudaError_t error = find(call, address, function)) return error;
    if (!bytes || blocks <= 0 || threads <= 0)
        return call.fail(cudaErrorInvalidValue, "%d blocks of %d threads", blocks, threads);
    const size_t used = static_shared(*function) + SHARED_RESERVED;
    const size_t each = SHARED_PER_MULTIPROCESSOR / (unsigned)blocks, most = SHARED_OPTIN;
    *bytes = each > used ? each - used : 0;
    if (*bytes > most) *bytes = most;
    return cudaSuccess;
}
cudaError_t function_name(const char** name, const void* address, const char* file, int line) {
    Call call("cudaFuncGetName", {file, line}, Call::ANYWHERE);
    if (cudaError_t error = call.pending()) return error;
    if (!name) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    Function* function;
    if (cudaError_t error = find(call, address, function)) return error;
    *name = mangled_name(address);
    if (!*name) *name = function->kernel.name;
    return cudaSuccess;
}

// ------------------------------------------------------------------ launches

// The errors of a launch that the API reports before a block runs.
cudaError_t check_launch(Call& call, const KernelCall& launch) {
    const Config& config = *launch.config;
    const cudaError_t invalid =
        call.of_kernel ? cudaErrorInvalidConfiguration : cudaErrorInvalidValue;
    Function* function = launch.address ? find_function(launch.address) : nullptr;
    const dim3 &g = config.grid, &b = config.block;
    uint64_t threads = (uint64_t)b.x * b.y * b.z;
    if (!threads || b.x > 1024 || b.y > 1024 || b.z > 64 || threads > MAX_THREADS)
        return call.fail(invalid, "blocks of %u x %u x %u threads: 1 to 1024 are allowed", b.x, b.y,
                         b.z);
    if (!g.x || !g.y || !g.z || g.x > 0x7fffffff || g.y > 65535 || g.z > 65535)
        return call.fail(invalid,
                         "a grid of %u x %u x %u blocks: 1 to 2147483647 x 65535 x 65535 are "
                         "allowed",
                         g.x, g.y, g.z);
    if (function && static_shared(*function) > SHARED_DEFAULT)
        return call.fail(
            invalid,
            "%zu bytes of __shared__ variables: nvcc compiles no kernel with more than "
            "%zu",
            static_shared(*function), SHARED_DEFAULT);
    size_t limit = SHARED_DEFAULT;  // the default, for an unknown kernel
    if (function && config.shared) limit = most_dynamic_shared(*function);
    for (Function* each = functions; each && !function; each = (Function*)each->next)
        if (each->dynamic_shared != Function::NONE && each->dynamic_shared > limit)
            limit = each->dynamic_shared;
    if (config.shared > limit)
        return call.fail(invalid,
                         "%zu bytes of dynamic shared memory: the limit is %zu, "
                         "cudaFuncSetAttribute can raise it to %zu",
                         config.shared, limit, SHARED_OPTIN);
    if (function && function->max_threads && threads > function->max_threads)
        return call.fail(invalid, "blocks of %llu threads: __launch_bounds__ allows at most %u",
                         (unsigned long long)threads, function->max_threads);
    uint64_t blocks = (uint64_t)g.x * g.y * g.z;
    if (config.cooperative) {
        uint64_t most = resident_blocks(config, function);
        if (blocks > most)
            return call.fail(cudaErrorCooperativeLaunchTooLarge,
                             "%llu blocks, %llu of this size fit on the device at once",
                             (unsigned long long)blocks, (unsigned long long)most);
    }
    return cudaSuccess;
}

// Tells of a structure with pointers of which none is the device's: a GPU cannot follow them.
static void look_into(const KernelCall& launch, unsigned i, Place place) {
    const void* of_host = nullptr;
    for (size_t at = 0; at + sizeof of_host <= launch.kernel->arg_bytes[i]; at += sizeof of_host) {
        const void* word;
        memcpy(&word, (const char*)launch.args[i] + at, sizeof word);
        const Word kind = read_word(word);
        if (kind == Word::DEVICE) return;
        if (kind == Word::HOST) of_host = word;
    }
    if (of_host) tell_of_host_address(place, launch.kernel->name, i + 1, of_host);
}

cudaError_t check_arguments(Call& call, const KernelCall& launch) {
    const Kernel& kernel = *launch.kernel;
    void* const* args = launch.args;
    for (unsigned i = 0; i < kernel.num_params; ++i) {
        if (!(kernel.param_sizes[i] & 128)) {
            look_into(launch, i, call.place);
            continue;
        }
        char why[400], text[600];
        if (!why_not_for_kernels(*(void**)args[i], why, sizeof why)) continue;
        snprintf(text, sizeof text, "kernel %s: argument %u %s", kernel.name, i + 1, why);
        return call.fail_for_good(cudaErrorIllegalAddress, text);
    }
    return cudaSuccess;
}

static cudaError_t launch(const Config& config, const Kernel& kernel, const void* address,
                          void* const* args) {
    Call call("launch", {config.file, config.line}, Call::ANYWHERE);
    if (cudaError_t error = call.pending()) return error;
    const KernelCall launched = {&config, &kernel, address, args};
    if (cudaError_t error = check_launch(call, launched)) {
        if (captures) captures->launch_failed(config.stream);
        return error;
    }
    Work work(launched);
    return submit(call, config.stream, work);
}

void run(const Config& config, const Kernel& kernel, const void* address, void* const* args) {
    const Function* function = kernel.loops || !address ? nullptr : find_function(address);
    if (!function) return (void)launch(config, kernel, address, args);
    Kernel both = kernel;
    both.loops = function->kernel.loops;
    both.flat = function->kernel.flat;
    both.alike = function->kernel.alike;
    launch(config, both, address, args);
}

cudaError_t launch_function(const void* address, const Config& config, void** args) {
    const Function* function = find_function(address);
    if (!function) {
        Call call("launch", {config.file, config.line}, Call::ANYWHERE);
        return call.fail(cudaErrorInvalidResourceHandle, "%p is not a kernel", address);
    }
    unsigned count = function->kernel.num_params;
    void** with_closure = (void**)alloca((count + 1) * sizeof *args);
    for (unsigned i = 0; i < count; ++i) with_closure[i] = args[i];
    with_closure[count] = (void*)&function->address;
    return launch(config, function->kernel, address, with_closure);
}

}  // namespace cudalab
