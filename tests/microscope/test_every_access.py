"""Every kind of memory, reached in every way: each mistake is found, or its line is listed."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict

import pytest

from tools.measure import COMMAND

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
"""
KIND_OF = {"past": "out_of_bounds", "before": "out_of_bounds"}
CAST = ("local", "cast")  # a header converts what it reads, and is not told whose memory that is


def mistakes(kind):
    """The ways and errors that make sense, and that a program survives."""
    changing = kind in ("heap", "local", "constant")
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
        launches.append(f"cudaMalloc(&p, 256); {kernel}<<<1, 1, 256>>>(p, out);")
        launches.append("cudaDeviceSynchronize(); cudaFree(p);")
    main = ["int main() {", "int *out, *p;", "cudaMalloc(&out, 4);", *launches, "}"]
    return "\n".join([*rows, *main]) + "\n", lines


@pytest.mark.parametrize("kind", KINDS)
def test_each_mistake_is_found_or_listed(kind, tmp_path):
    text, lines = program(kind)
    file, report = tmp_path / "reached.cu", tmp_path / "findings.json"
    file.write_text(text, encoding="utf-8")
    words = ["run", "--device", "cpu", "--sanitize", "--json", str(report), str(file)]
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False)
    document = json.loads(report.read_text("utf-8"))
    assert document["launches"] == len(lines), done.stderr
    found = defaultdict(set)
    for finding in document["findings"]:
        found[finding["line"]].add(finding["kind"])
    listed = {int(text.split(":")[1]) for text in document["not_looked_at"]}
    is_local = kind == "local"
    silent = [
        (way, error)
        for (way, error), line in lines.items()
        if KIND_OF.get(error, error) not in found[line]
        and not (is_local and (line in listed or error == "uninitialised"))
        and (kind, way) != CAST
    ]
    assert silent == []
    if is_local:
        assert "whether local arrays have a value" in " ".join(done.stderr.split())
