"""tools/right: each style leaves a kernel whole, and each verdict has its word."""

from __future__ import annotations

import pytest

from cudalab.checker.verdicts import Report, Result, Stage, Status, Why
from tools.right import __main__ as right
from tools.right.styles import STYLES, File

KERNEL = """// /// cudalab
// defines = { TILE = 32 }
// ///
extern "C" __global__ void add(const T* x, T* out, unsigned n) {
    __shared__ T tile[TILE];
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) tile[i] = x[i];
    __syncthreads();
    out[blockIdx.x] = tile[0];
}
"""
CHANGES = {  # what each style puts into it
    "as shipped": "extern",
    "parameters renamed": "tile[i] = my_x[i]",
    "macros for threads and barriers": "tile[i] = x[i];\n    WAIT();",
    "names for the thread and the block": "i = tx_; i < n; i += bd_",
    "work in a device function": "{ do_add(x, out, n); }",
    "work in a template": "{ do_add<1>(x, out, n); }",
    "work in a static member": "{ Does_add::run(x, out, n); }",
    "work in a member of a class": "Work_add task_{x, out, n}; task_.run();",
    "work in a namespace": "{ lab::detail::do_add(x, out, n); }",
    "work in a lambda": None,  # it has shared memory
    "barriers by cooperative groups": "    cg::this_thread_block().sync();",
    "includes of a whole program": "#include <cuda_runtime.h>",
    "launch bounds": "void __launch_bounds__(1024) add(",
    "extern C with braces": 'extern "C" {\n__global__ void add(',
    "declared before": "unsigned n);\nextern",
    "own name for the type": "const element_t* x, element_t* out",
    "defaults for the defines": "#ifndef TILE\n#define TILE 128",
    "assertions": "<= 1024);",
    "loops not unrolled": "#pragma unroll 1\nfor",
    "an editor of Windows": "\r\n\tout[blockIdx.x]",
}


@pytest.mark.parametrize("name", STYLES)
def test_styles(name):
    made, wanted = STYLES[name](File(KERNEL)), CHANGES[name]
    assert (made is None) == (wanted is None)
    if made is not None:
        assert wanted in made
        assert made.lstrip("\ufeff").startswith("// /// cudalab")
        assert made.count("{") == made.count("}")


def report(*stages, test=Status.PASSED, why=Why.NOTHING):
    result = Result(name="one", size="1", dist="", seed=1, status=test, why=why)
    return Report(
        lab="reduce", submission="my.cu", kind="kernel", device="cpu", sandbox="none",
        sandbox_words="", seed=1, plan="", stages=list(stages), tests=[result],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("word", "judged"),
    [
        ("accepted", report(Stage("compile", Status.PASSED))),
        ("blamed", report(Stage("sanitize", Status.FAILED, why=Why.SANITIZER))),
        ("said to cheat", report(Stage("compile", Status.FAILED, why=Why.FOREIGN))),
        ("refused", report(Stage("compile", Status.FAILED, why=Why.COMPILE))),
        ("refused", report(test=Status.FAILED, why=Why.CONTRACT)),
        ("rejected", report(test=Status.FAILED, why=Why.WRONG)),
        ("not judged", report(Stage("sanitize", Status.SKIPPED, says="could not be run: x"))),
    ],
)
def test_words(word, judged):
    assert right.verdict_of(judged)[0] == word


def test_every_style_has_been_judged():
    rows = right.stored()
    assert {row["style"] for row in rows} == set(STYLES)
    assert {row["verdict"] for row in rows} <= set(right.WORDS)
