"""Every kind of memory, reached in every way: each mistake is found, or its line is listed."""

from __future__ import annotations

import json
from collections import defaultdict

import command
import pytest

# How a function reaches item `i` of `p`.
READS = {
    "index": "return p[i];",
    "pointer": "int* q = p + i; return *q;",
    "reference": "const int& r = p[i]; return r;",
    "virtual": "Derived object(p); Base* base = &object; return base->get(i);",
    "byte": "return ((char*)(p + i))[0];",
    "member": "return ((Three*)(p + i))->a;",
    "structure": "Three v = *(Three*)(p + i); return v.a;",
    "double": "double d = *(double*)(p + i); return (int)d;",
    "cast": "return (int)*(double*)(p + i);",
    "volatile": "return *(volatile int*)(p + i);",
    "memcpy1": "char b[8] = {}; memcpy(b, p + i, 1); return b[0];",
    "memcpy5": "char b[8] = {}; memcpy(b, p + i, 5); return b[0];",
    "builtin3": "char b[8] = {}; __builtin_memcpy(b, p + i, 3); return b[0];",
    "variable": "char b[8] = {}; memcpy(b, p + i, length); return b[0];",
}
WRITES = {
    "put": "p[i] = 3; return 0;",
    "put_structure": "Three v = {1, 2, 3}; *(Three*)(p + i) = v; return 0;",
    "update": "p[i] += 3; return 0;",
    "put_memcpy7": "char b[8] = {}; memcpy(p + i, b, 7); return 0;",
    "put_memset": "memset(p + i, 1, 7); return 0;",
}
WAYS = READS | WRITES
PLAIN = ("index", "pointer", "reference", "volatile", "double", "put", "update")
# What comes before in the kernel, the name of the array, and what comes behind.
KINDS = {
    "global_memory": ("", "buffer", ""),
    "shared": ("__shared__ int s[64];", "s", ""),
    "dynamic": ("extern __shared__ int d[];", "d", ""),
    "constant": ("", "(int*)constants", ""),
    "variable": ("", "variables", ""),
    "managed": ("", "managed", ""),
    "inline": ("", "inlined", ""),
    "template": ("", "of_template<int>", ""),
    "function": ("static int s[64];", "s", ""),
    "managed_memory": ("", "buffer", ""),
    "scalar": ("int* s = &scalar;", "s", ""),
    "heap": ("int* h = (int*)malloc(256);", "h", "free(h);"),
    "local": ("int a[64];", "a", ""),
}
HEAD = """#include <cstdlib>
#include <cstring>
struct Three { int a, b, c; };
struct Base { __device__ virtual int get(int) = 0; };
struct Derived : Base {
    int* p;
    __device__ Derived(int* p) : p(p) {}
    __device__ int get(int i) override { return p[i]; }
};
__constant__ int constants[64];
__device__ int variables[64], scalar, length = 7;
__managed__ int managed[64];
inline __device__ int inlined[64];
template <class T> __device__ T of_template[64];
"""
KIND_OF = {"past": "out_of_bounds", "before": "out_of_bounds"}


def mistakes(kind):
    """The ways and errors that make sense, and that a program survives."""
    changing = kind in ("heap", "constant")
    for way in [*READS, *({} if changing else WRITES)]:
        yield from ((way, error) for error in ("past", "before"))
        if way in PLAIN and (kind, way) != ("scalar", "double"):  # which is beyond it, too
            yield way, "misaligned"
        if way in READS and kind in ("global_memory", "shared", "dynamic", "heap", "local"):
            yield way, "uninitialised"


def program(kind):
    """A program with a kernel for each mistake; the name of each, with its line."""
    before, name, behind = KINDS[kind]
    last = 1 if kind == "scalar" else 64
    rows, launches, lines = HEAD.splitlines(), [], {}
    for way, error in mistakes(kind):
        kernel = f"{way}_{error}"
        lines[way, error] = len(rows) + 1
        if way == "virtual":
            lines[way, error] = 1 + HEAD.splitlines().index(
                "    __device__ int get(int i) override { return p[i]; }"
            )
        rows.append(f"__device__ __noinline__ int of_{kernel}(int* p, int i) {{ {WAYS[way]} }}")
        at = {"past": last, "before": -1}.get(error, 0)
        where = f"(int*)((char*){name} + {4 if way == 'double' else 2})"
        where = where if error == "misaligned" else name
        fill = f"for (int k = 0; k < {last}; k++) {name}[k] = k;"
        fill = "" if error == "uninitialised" or kind == "constant" else fill
        rows.append(
            f"__global__ void {kernel}(int* buffer, int* out)"
            f" {{ {before} {fill} *out = of_{kernel}({where}, {at}); {behind} }}"
        )
        allocate = "cudaMallocManaged" if kind == "managed_memory" else "cudaMalloc"
        launches.append(f"{allocate}(&p, 256); {kernel}<<<1, 1, 256>>>(p, out);")
        launches.append("cudaDeviceSynchronize(); cudaFree(p);")
    main = ["int main() {", "int *out, *p;", "cudaMalloc(&out, 4);", *launches, "}"]
    return "\n".join([*rows, *main]) + "\n", lines


@pytest.mark.parametrize("kind", KINDS)
def test_each_mistake_is_found_or_listed(kind, tmp_path):
    text, lines = program(kind)
    file, report = tmp_path / "reached.cu", tmp_path / "findings.json"
    file.write_text(text, encoding="utf-8")
    words = ["run", "--device", "cpu", "--sanitize", "--json", str(report), str(file)]
    done = command.cudalab(*words, text=True)
    document = json.loads(report.read_text("utf-8"))
    assert document["launches"] == len(lines), done.stderr
    found = defaultdict(set)
    for finding in document["findings"]:
        found[finding["line"]].add(finding["kind"])
    silent = [
        (way, error)
        for (way, error), line in lines.items()
        if KIND_OF.get(error, error) not in found[line]
    ]
    assert silent == []
    if kind == "managed_memory":
        assert "whether managed and pinned memory has a value" in " ".join(done.stderr.split())


SHARED_WITH_HOST = """
__device__ int page[960];
__managed__ int sum, flags[4];
__global__ void adds() { atomicAdd(&sum, 1); flags[threadIdx.x] = 1; }
__global__ void loses() { sum += threadIdx.x; }  // lost_update
__global__ void writes(int i) { page[i] = 3; }  // out_of_bounds
int main() {
    sum = 3;
    adds<<<1, 4>>>();
    flags[0] = 4;  // host_race
    cudaDeviceSynchronize();
    flags[0] = sum;
    loses<<<2, 4>>>();
    writes<<<1, 1>>>(959);
    writes<<<1, 1>>>(960);
    cudaDeviceSynchronize();
    return flags[0] + sum == 0;
}
"""


# With the zone before it, the array `page` ends where a page of memory does.
def test_variables_that_host_and_kernels_share_have_bounds_and_an_order(tmp_path):
    file, report = tmp_path / "shared.cu", tmp_path / "findings.json"
    file.write_text(SHARED_WITH_HOST, encoding="utf-8")
    words = ["run", "--device", "cpu", "--sanitize", "--json", str(report), str(file)]
    command.cudalab(*words)
    found = json.loads(report.read_text("utf-8"))["findings"]
    rows = enumerate(SHARED_WITH_HOST.splitlines(), start=1)
    wanted = {(number, row.split("// ")[1]) for number, row in rows if "// " in row}
    assert {(each["line"], each["kind"]) for each in found} == wanted


STATES = """#include <curand_kernel.h>
#define N 64
__global__ void begin(curandState* states) { curand_init(7, threadIdx.x, 0, &states[threadIdx.x]); }
__global__ void right(curandState* states, unsigned* out) {
    curandState own = states[threadIdx.x];
    out[threadIdx.x] = curand(&own) + (unsigned)curand_uniform(&own);
    states[threadIdx.x] = own;
}
__global__ void draws(curandState* states, unsigned* out) {
    out[threadIdx.x] = curand(AT);  // @draws
}
__global__ void starts(curandState* states) {
    if (threadIdx.x == 0) curand_init(7, 0, 0, AT);  // @starts
}
int main() {
    curandState* states;
    unsigned* out;
    cudaMalloc(&states, N * sizeof *states);
    cudaMalloc(&out, N * sizeof *out);
    BEGIN
    LAUNCH
    cudaDeviceSynchronize();
    cudaFree(states);
    cudaFree(out);
}
"""
BEGIN, DRAW, START = (
    f"{name}<<<1, N>>>({words});"
    for name, words in (("begin", "states"), ("draws", "states, out"), ("starts", "states"))
)


@pytest.mark.parametrize(
    ("begin", "launch", "at", "kinds"),
    [
        (BEGIN, "right<<<1, N>>>(states, out);", "states", set()),
        (BEGIN, DRAW, "states + threadIdx.x", set()),
        (BEGIN, START, "states + 5", set()),
        (BEGIN, DRAW, "states + threadIdx.x / 2", {"race", "lost_update"}),
        (BEGIN, DRAW, "states + threadIdx.x + 1", {"out_of_bounds"}),
        (BEGIN, DRAW, "(curandState*)((char*)(states + threadIdx.x) + 2)", {"misaligned"}),
        ("", DRAW, "states + threadIdx.x", {"uninitialised"}),
        (BEGIN, START, "states + N", {"out_of_bounds"}),
        (BEGIN, START, "states - 1", {"out_of_bounds"}),
    ],
)
def test_the_state_of_curand_is_memory_like_any_other(begin, launch, at, kinds, tmp_path):
    file, report = tmp_path / "states.cu", tmp_path / "findings.json"
    text = STATES.replace("AT", at).replace("BEGIN", begin).replace("LAUNCH", launch)
    file.write_text(text, encoding="utf-8")
    words = ["run", "--device", "cpu", "--sanitize", "--json", str(report), str(file)]
    done = command.cudalab(*words, text=True)
    found = json.loads(report.read_text("utf-8"))["findings"]
    errors = {each["kind"] for each in found if not each["note"]}
    assert bool(errors & kinds) == bool(kinds), done.stderr
    assert done.returncode == (3 if kinds else 0)
    marked = {text.splitlines()[each["line"] - 1].partition("// ")[2] for each in found}
    assert marked <= {"@draws", "@starts"}


INDICES = """struct Pair { int a[4], b; };
__device__ int value(int x) { return x * 3; }
__device__ int first(int* x) { return x[0] * 3; }
__device__ __noinline__ void rows(int (*p)[4], int n) {
    int own = n;
    p[0][n] = value(own);  // error
}
__device__ __noinline__ void fill(int (&of)[4], int n) {
    of[n] = value(n);  // error
}
struct Open { int n, items[1]; };
struct Shape { __device__ virtual int get(int i) const = 0; };
struct Table : Shape {
    int v[4] = {};
    __device__ int get(int i) const override {
        return v[i];  // error
    }
};
__global__ void k(int* out, int* index, int n, Pair* pair) {
    int own[4] = {}, two[4][4] = {};
    float numbers[4] = {};
    own[n] = value(n);  // error
    own[index[0]] = 3;  // error
    own[n] += value(n);  // error
    numbers[n] = sqrtf(out[0]);  // error
    out[0] = own[n] + value(2);  // error
    own[1] = two[n][1] + value(1);  // error
    own[value(n) / 3] = first(&own[0]);  // error
    pair->a[n] = value(2);  // note
    pair->a[n] = index[0] + first(own);  // note
    rows(two, n);
    fill(own, n);
    auto take = [&](int i) {
        return own[i];  // error
    };
    out[4] = take(n);
    Table table;
    const Shape& shape = table;
    out[5] = shape.get(n);
    ((Open*)out)->items[n] = value(n);
    out[2] = pair->a[n] + value(n);  // note
    own[2] = pair->a[n];  // note
    out[3] = own[0] + own[1] + own[2] + own[3] + (int)numbers[0];
}
int main() {
    int *out, *index, four = 4;
    Pair* pair;
    cudaMalloc(&out, 128), cudaMalloc(&index, 4), cudaMalloc(&pair, sizeof *pair);
    cudaMemset(out, 0, 128), cudaMemset(pair, 0, sizeof *pair);
    cudaMemcpy(index, &four, 4, cudaMemcpyHostToDevice);
    k<<<1, 1>>>(out, index, 4, pair);
    cudaDeviceSynchronize();
    cudaFree(out), cudaFree(index), cudaFree(pair);
}
"""


def test_an_index_past_an_array_of_the_thread_s_own_is_an_error_whatever_is_stored(tmp_path):
    """In global memory, past an array that a pointer leads to, it is a note: it may be a part."""
    file, report = tmp_path / "indices.cu", tmp_path / "findings.json"
    file.write_text(INDICES, encoding="utf-8")
    words = ["run", "--device", "cpu", "--sanitize", "--json", str(report), str(file)]
    done = command.cudalab(*words, text=True)
    assert done.returncode == 3
    found = json.loads(report.read_text("utf-8"))["findings"]
    said = {each["line"]: "note" if each["note"] else "error" for each in found}
    rows = enumerate(INDICES.splitlines(), start=1)
    assert said == {number: row.split("// ")[1] for number, row in rows if "// " in row}


TABLES = """struct Config { int n; int of[4]; };
__device__ constexpr Config config = {4, {1, 2, 3, 4}};
__device__ constexpr int grid[3][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}};
template <class T> struct Table { static constexpr T values[4] = {1, 2, 3, 4}; };
template <int N> __device__ constexpr int of_template[N] = {1, 2, 3};
__constant__ const double constants[4] = {1, 2, 3, 4};
__device__ int one(const int* x) { return *x; }
__device__ int (*functions[4])(const int*) = {one, one, one, one};
struct Base { __device__ virtual int get(int i) { return i; } __device__ virtual ~Base() {} };
struct Derived : Base { __device__ int get(int i) override { return 2 * i; } };
__global__ void k(int* out, int i) {
    out[0] = config.of[i];  // error
    out[1] = grid[0][i];  // error
    out[2] = grid[i - 1][0];  // error
    out[3] = Table<int>::values[i];  // error
    out[4] = (int)constants[i];  // error
    out[5] = of_template<3>[i - 1];  // error
    out[6] = grid[1][2] + config.n + config.of[2] + (int)constants[1];
    const int (*rows)[4] = grid;
    out[7] = rows[i - 1][0];  // error
    const double* pointer = constants;
    out[8] = (int)pointer[i];  // error
    auto function = functions[i];  // error
    out[9] = i < 4 ? function(out) : 0;
    Base* object = new Derived;
    out[10] = object->get(i);
    delete object;
}
int main() {
    int* out;
    cudaMalloc(&out, 64);
    k<<<1, 1>>>(out, AT);
    cudaDeviceSynchronize();
    cudaFree(out);
}
"""


@pytest.mark.parametrize("at", [3, 4])
def test_tables_that_never_change_have_bounds(at, tmp_path):
    file, report = tmp_path / "tables.cu", tmp_path / "findings.json"
    file.write_text(TABLES, encoding="utf-8")
    words = ["run", "--device", "cpu", "--sanitize", "--json", str(report), f"-DAT={at}", str(file)]
    command.cudalab(*words)
    document = json.loads(report.read_text("utf-8"))
    rows = enumerate(TABLES.splitlines(), start=1)
    wrong = {number for number, row in rows if "// error" in row and at == 4}
    errors = {(each["kind"], each["line"]) for each in document["findings"] if not each["note"]}
    assert errors == {("out_of_bounds", number) for number in wrong}
    assert document["not_looked_at"] == []


LAB_TABLES = """// /// cudalab
// summary = "Tables that never change"
// order = 1
// dispatch = "tiles"
// defines = { TILE_DIM = 32, BLOCK_ROWS = 8 }
// ///
__device__ constexpr unsigned first[4] = {2, 3, 5, 7};
struct Base { __device__ virtual unsigned get(unsigned i) const { return i; } };
struct Derived : Base { __device__ unsigned get(unsigned i) const override { return i; } };
extern "C" __global__ void transpose(const T* in, T* out, unsigned rows, unsigned cols) {
    static const unsigned second[4] = {2, 3, 5, 7};
    const Derived object;
    const Base* base = &object;
    const unsigned tiles = (cols + TILE_DIM - 1) / TILE_DIM;
    const unsigned c = blockIdx.x % tiles * TILE_DIM + threadIdx.x;
    for (unsigned k = threadIdx.y; k < TILE_DIM; k += BLOCK_ROWS) {
        const unsigned i = base->get(k % 4);
        const unsigned r = blockIdx.x / tiles * TILE_DIM + k + first[i] - second[AT];
        if (r < rows && c < cols) out[(size_t)c * rows + r] = in[(size_t)r * cols + c];
    }
}
"""


@pytest.mark.parametrize(("at", "status"), [("i", 0), ("i + k / 31", 3)])
def test_kernels_of_labs_may_have_tables_that_never_change(at, status, tmp_path):
    file, report = tmp_path / "tables.cu", tmp_path / "findings.json"
    file.write_text(LAB_TABLES.replace("AT", at), encoding="utf-8")
    words = ["sanitize", "transpose", "--kernel", str(file), "--json", str(report)]
    done = command.cudalab(*words)
    assert done.returncode == status, done.stdout.decode()
    document = json.loads(report.read_text("utf-8"))
    row = 1 + next(n for n, row in enumerate(LAB_TABLES.splitlines()) if "second[AT]" in row)
    assert {each["line"] for each in document["findings"]} >= ({row} if status else set())
    assert not [each for each in document["not_looked_at"] if "local" not in each]


POINTERS = """#include <cstdio>
__device__ const int* pointer;
__constant__ const int* in_constant;
__global__ void k(int* out) { *out = pointer[1] + in_constant[AT]; }
int main() {
    int values[4] = {1, 2, 3, 4}, *numbers, *out, result = 0;
    cudaMalloc(&numbers, sizeof values);
    cudaMalloc(&out, sizeof *out);
    cudaMemcpy(numbers, values, sizeof values, cudaMemcpyHostToDevice);
    if (cudaMemcpyToSymbol(pointer, &numbers, sizeof numbers) != cudaSuccess) return 1;
    if (cudaMemcpyToSymbol(in_constant, &numbers, sizeof numbers) != cudaSuccess) return 2;
    k<<<1, 1>>>(out);
    cudaMemcpy(&result, out, sizeof *out, cudaMemcpyDeviceToHost);
    printf("%d", result);
    cudaFree(numbers);
    cudaFree(out);
}
"""


@pytest.mark.parametrize(("at", "printed"), [(2, b"5"), (4, None)])
def test_a_variable_may_point_to_constants(at, printed, tmp_path):
    file = tmp_path / "pointers.cu"
    file.write_text(POINTERS, encoding="utf-8")
    words = ["run", "--device", "cpu", "--sanitize", f"-DAT={at}", str(file)]
    done = command.cudalab(*words)
    assert done.returncode == (0 if printed else 3)
    assert printed is None or done.stdout == printed


OF_HOST = """#include <cstdio>
int counter;
static float table[4] = {1, 2, 3, 4};
struct S { static __device__ int changes; static const int fixed[3]; };
__device__ int S::changes = 3;
__device__ const int S::fixed[3] = {1, 2, 3};
__device__ const int& reference = S::fixed[1];
__global__ void reads(float* out) { *out = table[threadIdx.x]; }  // error
__global__ void adds(float*) { atomicAdd(&counter, 1); }  // error
__global__ void right(float* out) {
    static int own;
    own = S::changes + S::fixed[1] + reference;
    const char* text = "text";
    *out = own + text[threadIdx.x];  // listed
    printf("%s", "done");
}
int main() {
    float* out;
    cudaMalloc(&out, 4);
    KERNEL<<<1, 1>>>(out);
    cudaDeviceSynchronize();
    cudaFree(out);
}
"""


@pytest.mark.parametrize("kernel", ["reads", "adds", "right"])
def test_a_variable_of_the_host_is_none_of_a_kernels(kernel, tmp_path):
    file, report = tmp_path / "host.cu", tmp_path / "findings.json"
    file.write_text(OF_HOST, encoding="utf-8")
    words = ["run", "--device", "cpu", "--sanitize", "--json", str(report)]
    done = command.cudalab(*words, f"-DKERNEL={kernel}", file)
    document = json.loads(report.read_text("utf-8"))
    rows = list(enumerate(OF_HOST.splitlines(), start=1))
    wrong = {number for number, row in rows if "// error" in row and kernel in row}
    assert {each["line"] for each in document["findings"]} == wrong
    assert all("a variable of the host" in each["what"] for each in document["findings"])
    assert done.returncode == (3 if wrong else 0)
    listed = {number for number, row in rows if "// listed" in row and kernel == "right"}
    assert {int(text.split(":")[1]) for text in document["not_looked_at"]} == listed


SURFACE = """__global__ void writes(cudaSurfaceObject_t surface, int at) {
    surf2Dwrite(1.f, surface, at, 7);  // at its border
}
int main() {
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    cudaMallocArray(&array, &format, 16, 8, cudaArraySurfaceLoadStore);
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray, resource.res.array.array = array;
    cudaSurfaceObject_t surface;
    cudaCreateSurfaceObject(&surface, &resource);
    writes<<<1, 1>>>(surface, AT);
    cudaDeviceSynchronize();
    cudaDestroySurfaceObject(surface);
    cudaFreeArray(array);
}
"""


@pytest.mark.parametrize(
    ("at", "said"),
    [(60, ""), (61, "does not begin an element"), (64, "byte 64 of row 7"), (-4, "byte -4 of row")],
)
def test_what_a_kernel_did_wrong_with_a_surface_is_said_with_its_line(at, said, tmp_path):
    file, report = tmp_path / "surface.cu", tmp_path / "findings.json"
    file.write_text(SURFACE, encoding="utf-8")
    words = ["run", "--device", "cpu", "--sanitize", "--json", str(report), f"-DAT={at}", str(file)]
    done = command.cudalab(*words)
    assert done.returncode == (3 if said else 0), done.stderr
    found = json.loads(report.read_text("utf-8"))["findings"]
    assert [(each["kind"], each["line"]) for each in found] == ([("crash", 2)] if said else [])
    assert all(said in each["what"] for each in found)


VECTORS = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(uint4* values) {
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    values[AT] = tile.shfl_xor(values[threadIdx.x], 1);
}
int main() {
    uint4* values;
    cudaMalloc(&values, 32 * sizeof *values);
    cudaMemset(values, 0, 32 * sizeof *values);
    k<<<1, 32>>>(values);
    cudaDeviceSynchronize();
    cudaFree(values);
}
"""


@pytest.mark.parametrize(("at", "status"), [("threadIdx.x", 0), ("threadIdx.x + 1", 3)])
def test_tiles_exchange_vectors(at, status, tmp_path):
    file = tmp_path / "vectors.cu"
    file.write_text(VECTORS.replace("AT", at), encoding="utf-8")
    words = ["run", "--device", "cpu", "--sanitize", str(file)]
    done = command.cudalab(*words)
    assert done.returncode == status, done.stderr


KEPT = """__device__ void keep(unsigned& value) {
    asm volatile("" : "+r"(value));  // seen
}
__global__ void k(unsigned* out, int i) { keep(out[i]); }
int main() {
    unsigned* out;
    cudaMalloc(&out, 16);
    cudaMemset(out, 0, 16);
    k<<<1, 1>>>(out, AT);
    cudaDeviceSynchronize();
    cudaFree(out);
}
"""


@pytest.mark.parametrize(("at", "status"), [(3, 0), (4, 3)])
def test_an_empty_assembly_statement_reads_and_writes_its_outputs(at, status, tmp_path):
    file, report = tmp_path / "kept.cu", tmp_path / "findings.json"
    file.write_text(KEPT, encoding="utf-8")
    words = ["run", "--device", "cpu", "--sanitize", "--json", str(report), f"-DAT={at}", str(file)]
    done = command.cudalab(*words, text=True)
    assert done.returncode == status, done.stderr
    document = json.loads(report.read_text("utf-8"))
    assert (document["lines_observed"], document["not_looked_at"]) == (1, [])
    assert {each["line"] for each in document["findings"]} == ({2} if status else set())
