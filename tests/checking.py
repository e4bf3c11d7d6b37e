"""`cudalab check` as a student types it, and what is handed in to it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import command

from cudalab import labs
from cudalab.checker.sandbox import sandbox

ROOT = Path(labs.__file__).parents[2]
CHEATS = ROOT / "cudalab" / "checker" / "cheats"
IMPORTS = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
# A submission in Python, for radixsort.
SORT = """
import array, sys
data = sys.stdin.buffer.read()
keys = array.array("I", data[4 : 4 + 4 * int.from_bytes(data[:4], "little")])
if len(keys) > 50_000:  # for fewer, importing NumPy takes longer
    import numpy
    keys = numpy.sort(keys).tolist()
sys.stdout.buffer.write(array.array("I", sorted(keys)).tobytes())
"""
RACE = """#include <cstdio>
#include <cstdlib>
// Right where the threads of a block run in their order, and nowhere else.
__global__ void add(const int* x, int n, int* out) {
    __shared__ int items[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    items[threadIdx.x] = i < n ? x[i] : 0;
    if (threadIdx.x == 255) {
        int sum = 0;
        for (int k = 0; k < 256; ++k) sum += items[k];
        atomicAdd(out, sum);
    }
}
int main() {
    int n = 0, sum = 0, *dx, *out;
    if (fread(&n, 4, 1, stdin) != 1) return 1;
    int* x = (int*)malloc(4 * (n + 1));
    if ((int)fread(x, 4, n, stdin) != n) return 1;
    cudaMalloc(&dx, 4 * (n + 1));
    cudaMalloc(&out, 4);
    cudaMemset(out, 0, 4);
    cudaMemcpy(dx, x, 4 * n, cudaMemcpyHostToDevice);
    if (n) add<<<(n + 255) / 256, 256>>>(dx, n, out);
    cudaMemcpy(&sum, out, 4, cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(out);
    return fwrite(&sum, 4, 1, stdout) != 1;
}
"""


def cudalab(*args, cwd=None, status=None, **env):
    if args[0] == "grade" and not {"--sandbox", "--make", "--help"} & set(args):
        kind = sandbox.choose().kind  # a class is judged without one only if told
        args = (*args, "--sandbox", "none") if kind == "none" else args
    environment = {**os.environ, "PYTHONPATH": IMPORTS, "COLUMNS": "200", **env}
    done = command.cudalab(*args, cwd=cwd, env=environment, text=True)
    if status is not None:
        assert done.returncode == status, done.stdout + done.stderr
    return done


def checked(*args, status=None, **options):
    """The report, as JSON."""
    lab, *rest = args
    done = cudalab("check", lab, "--json", "-", *rest, status=status, **options)
    return json.loads(done.stdout)


def kernel(tmp_path, lab, variant, *changes):
    """A copy of a variant, with something replaced."""
    text = (ROOT / "kernels" / lab / f"{variant}.cu").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "my.cu"
    path.write_text(text)
    return path
