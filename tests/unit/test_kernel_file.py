"""Kernel files of labs: the variables that the host may ask for, and shared memory."""

import pytest

from cudalab.language.kernel_file import KernelFile


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("__constant__ float a[4][8], b;", {"a": True, "b": True}),
        ("__device__ int n = 3; static __device__ S s{1};", {"n": False, "s": False}),
        ('extern "C" { __device__ int n; }', {"n": False}),
        ("namespace { __constant__ int n; }", {}),
        ("extern __device__ int n;", {}),
        ("namespace a { __device__ int n; }", {}),
        ("__device__ int f(int a = 1); struct S { __device__ S() {} };", {}),
        ("__global__ void k() { __shared__ int s[4]; static __device__ int n; }", {}),
    ],
)
def test_variables_that_the_host_may_ask_for(text, variables):
    assert KernelFile(text).variables == variables


@pytest.mark.parametrize(
    ("declaration", "written"),
    [
        ("extern __shared__ T s[];", "T* const s = (T*)::cudalab::cudalab_dynamic();"),
        ("extern\n__shared__ T s[];", "T* const s = (T*)::cudalab::cudalab_dynamic();\n"),
        ("static __shared__ int s[4];", " __shared__ int s[4];"),
        ("__shared__ static int s[4];", "__shared__  int s[4];"),
    ],
)
def test_shared_variables(declaration, written):
    text = "__global__ void k() {{ {} }}\n".format
    assert KernelFile(text(declaration)).for_host(observed=False) == text(written)


def test_a_dynamic_array_that_is_cast_anew_is_a_pointer():
    head = "extern __shared__ char all[];\n__global__ void k(char *other) {"
    for cast, written in [
        ("reinterpret_cast<float *>(all)", "reinterpret_cast<float *>(+all)"),
        ("reinterpret_cast<float *>(other)", "reinterpret_cast<float *>(other)"),
        ("static_cast<char *>(all)", "static_cast<char *>(all)"),
        ("reinterpret_cast<float *>(all + 4)", "reinterpret_cast<float *>(all + 4)"),
    ]:
        text = KernelFile(f"{head} f({cast}); }}").for_host(observed=True)
        assert f"f({written});" in text


def test_shared_memory_of_a_macro_keeps_its_lines():
    text = "#define S extern \\\n __shared__ T s[]\n__global__ void k() { S; }\n"
    written = KernelFile(text).for_host(observed=True)
    assert written.startswith("#define S T* const s = (T*)::cudalab::cudalab_dynamic()\\\n\n")
    assert written.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("__global__ void k() { extern __shared__ __align__(16) float4 all[]; }", "all"),
        ("extern __shared__ int first[]; extern __shared__ int other[];", "first"),
        ("__global__ void k() { __shared__ int s[4]; } // extern __shared__ int t[];", None),
    ],
)
def test_the_array_whose_size_a_launch_says_has_a_name(text, name):
    assert KernelFile(text).dynamic == name


def test_local_arrays_are_those_that_each_thread_has_for_itself():
    text = """const int table[2] = {1, 2}; struct P { int in_class[2]; };
        template <class T> __device__ T f(const T* p) { T a[4], *b = a;
            unsigned long c[2][2]{}; return *b; }
        __global__ void k(int* out) {
            __shared__ int s[4]; static int t[4]; int e = s[0];
            if (out[0]) { float4 d[3]; use(d); } }"""
    assert KernelFile(text).local_arrays == {"a", "c", "d"}


def test_several_dynamic_arrays_of_a_declaration_are_pointers():
    text = "__global__ void k() { extern __shared__ float a[], b[][2]; }"
    written = KernelFile(text).for_host(observed=True, exact=False)
    assert "float* const a = (float*)::cudalab::cudalab_dynamic();" in written
    assert "float (*const b)[ 2 ] = (float (*)[ 2 ])::cudalab::cudalab_dynamic();" in written


@pytest.mark.parametrize(
    ("argument", "written"),
    [
        ("x", "AS_IT_IS(x)"),
        ("x = y", "x = AS_IT_IS(y)"),
        ("o.v[1]", "AS_IT_IS(o.v[1])"),
        ("x + y", "x + y"),  # of several values nothing is said
        ("x++", "x++"),
        ("*&x", "*&x"),
        ("q.x", "q.x"),  # no variable of the function
    ],
)
def test_a_lane_hands_on_what_it_has_as_it_is(argument, written):
    head = "struct P { int v[2]; };\n__global__ void k(P q) { P o; int x, y; x = "
    text = KernelFile(f"{head}__shfl_sync(~0u, {argument}, 0); }}").for_host(observed=True)
    call = written.replace("AS_IT_IS", "::cudalab::cudalab_as_it_is")
    assert f"__shfl_sync(~0u, {call}, 0)" in text


def test_what_a_function_sets_by_an_address_has_a_zone_where_that_is_seen():
    head = "__global__ void k(float a) { float s, c; int device; "
    text = f"{head}sincosf(a, &s, &c); m.sincosf(a, &s); cudaGetDevice(&device); }}"
    written = KernelFile(text).for_host(observed=True)
    assert "::cudalab::cudalab_sincosf(a, &s, &c); m.sincosf(" in written
    assert 'LocalVariable<float>("s")' in written
    assert 'LocalVariable<int>("device")' not in written
