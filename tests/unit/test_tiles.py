"""Which statements of a kernel one lane runs for its warp."""

import re

import pytest

from cudalab.program.files import File
from cudalab.program.rewrite import tiles
from cudalab.program.rewrite.parsed import Parsed, read

FRAGMENTS = """
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c, sums[2][4];
"""
PRODUCT = "wmma::mma_sync(c, a, b, c);"
STEP = f"wmma::load_matrix_sync(a, A, 16); {PRODUCT}"
KERNEL = "__global__ void k(const half *A, float *out, int n)"


def together(body, head=KERNEL, fragments=FRAGMENTS):
    """The parts of a kernel's body that one lane runs, without what is added to them."""
    text = f"{head} {{{fragments}\n{body}\n}}\n"
    parsed = Parsed(File("k.cu", "k.cu", text))
    tiles.rewrite([parsed], read([parsed]))
    edits = sorted(parsed.edits, reverse=True)
    for start, end, instead in edits:
        assert "\n" not in instead + text[start:end]
        mark = "«" if "cudalab_meeting" in instead else "»" if instead == " } }" else instead
        text = text[:start] + mark + text[end:]
    return [part.strip() for part in re.findall("«(.*?)»", text, re.DOTALL)]


@pytest.mark.parametrize(
    "statements",
    [
        f"for (int i = 0; i < n; i += 16) {{ {STEP} }}",
        f"for (int i = 0, j = 1; i < n; ++i, j *= 2) {{ if (A[i] <= 3 && i != n) {{ {STEP} }} }}",
        f"{{ const half *p = A + n; int x = 3, *q; x <<= 2; {STEP} }}",
        f"while (n == 3) {{ {STEP} }}",
        STEP,
        f"for (int i = 0; i < n; ++i) {{ wmma::fill_fragment(c, __float2half(0)); {STEP} }}",
        f"if constexpr (sizeof(int) == 4) {{ {STEP} }} else {{ wmma::fill_fragment(c, 0.0f); }}",
        (
            "for (int i = 0; i < 8; i++) { wmma::load_matrix_sync(a, (half*)(out) + i, 16); "
            "wmma::mma_sync(sums[i % 2][i / 2], a, b, sums[i % 2][i / 2]); }"
        ),
    ],
)
def test_statements_without_another_effect(statements):
    assert together(f"f();\n{statements}\nout[0] = 1;") == [statements]


@pytest.mark.parametrize(
    "statements",
    [
        PRODUCT,  # alone it is a meeting anyway
        f"f(); {PRODUCT}",
        f"for (int i = 0; i < n; ++i) {{ {PRODUCT} out[i] = 0; }}",
        f"for (int i = 0; i < n; ++i) {{ {PRODUCT} n = 3; }}",
        f"for (int i = 0; i < n; ++i) {{ {PRODUCT} n++; }}",
        f"for (int i = 0; i < n; ++i) {{ {PRODUCT} *out = i; }}",
        f"for (int i = 0; i < n; ++i) {{ {PRODUCT} int &r = n; r = i; }}",
        f"for (int i = 0; i < n; ++i) {{ {PRODUCT} int x = n >>= 1; }}",
        f"for (int i = 0; i < n; ++i) {{ {PRODUCT} __syncthreads(); }}",
        f"for (int i = 0; i < n; ++i) {{ {PRODUCT} int x = f(i); }}",
        f"for (int i = 0; i < n; ++i) {{ {PRODUCT} int x = g<2>(i); }}",
        f"for (int i = 0; i < n; ++i) {{ {PRODUCT} int x = (*f)(i); }}",
        f"for (int i = 0; i < n; ++i) {{ {PRODUCT} float x = c.x[0]; }}",
        f"for (int i = 0; i < n; ++i) {{ {PRODUCT} static int x = 3; }}",
        f"for (int i = 0; i < n; ++i) {{ {PRODUCT} Timer *t = new Timer; }}",
        f"for (int i = 0; i < n; ++i) {{ {PRODUCT} {{ int x; }} x = 3; }}",
        f"for (int i = 0; i < n; ++i) {{ wmma::fill_fragment(c, n); {PRODUCT} }}",
        f"for (int i = 0; i < n; ++i) {{ if (n) wmma::fill_fragment(c, 0); {PRODUCT} }}",
        f"for (int i = 0; i < n; ++i) {{ {PRODUCT} break; }}",
        f"for (int i = 0; i < n; ++i) {{ {PRODUCT} return; }}",
        f"for (int i = 0; i < n; ++i) {{\n#if X\n {STEP}\n#endif\n }}",
        "for (int i = 0; i < n; ++i) { wmma::mma_sync(s.c, a, b, s.c); }",
        "for (int i = 0; i < n; ++i) { wmma::mma_sync(other, a, b, other); }",
    ],
)
def test_statements_with_another_effect(statements):
    assert PRODUCT not in "".join(part for part in together(statements) if part != STEP)


def test_macros():
    kernel = KERNEL.replace("__global__", "\n__global__")
    body = f"for (int i = 0; i < n; ++i) {{ int at = AT(i, WIDTH); {STEP} }}"
    macros = "#define AT(i, n) ((i) * ROUND(n))\n#define WIDTH (n / 2)\n"
    assert together(body, f"{macros}#define ROUND(n) \\\n  ((n) + 3)\n{kernel}") == [body]
    assert together(body, f"{macros}#define ROUND(n) next(n)\n{kernel}") == [STEP]


def test_fragments_of_the_stretch_are_whole():
    local = "wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> l[2], m;"
    body = f"for (int i = 0; i < n; ++i) {{ {local} wmma::mma_sync(c, m, b, c); }}"
    [result] = together(f"wmma::load_matrix_sync(b, A, 16); {body}")
    whole = local.replace("wmma::fr", "::nvcuda::wmma::Whole<wmma::fr").replace("> l", ">> l")
    assert whole in result


def test_types_of_fragments_may_have_names():
    right = "wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;"
    head = (
        "using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;\n"
        "typedef nvcuda::wmma::fragment<wmma::matrix_a, 16, 16, 16, half> Left;\n"
        "__device__ void f(Sums &c, const half *A, int n)"
    )
    body = f"for (int i = 0; i < n; ++i) {{ Left a; {STEP} }}"
    [result] = together(f"f();\n{body}\nf();", head, right)
    assert result.replace("::nvcuda::wmma::Whole<Left>", "Left") == body


def test_fragments_may_be_declared_by_their_values():
    declared = re.sub(r"(wmma::fragment<.*?>) (\w+);", r"auto \2 = \1();", FRAGMENTS)
    assert declared.count("auto") == 2
    assert together(f"f();\n{STEP}\nf();", fragments=declared) == [STEP]


def test_rounding_to_tf32_is_of_the_whole_tile():
    loop = "for (int t = 0; t < a.num_elements; t++) a.x[t] = wmma::__float_to_tf32(a.x[t]);"
    [result] = together(f"{{ {loop} {STEP} }}")
    assert "for (int t = 0; t < 1; t++) { ::nvcuda::wmma::round_to_tf32(a); }" in result


def test_other_changes_of_elements_end_a_stretch():
    loop = "for (int t = 0; t < a.num_elements; t++) a.x[t] = a.x[t] * 2;"
    assert together(f"{{ {loop} {STEP} }}") == [STEP]
