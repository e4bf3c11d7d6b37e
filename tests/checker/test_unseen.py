"""What would hide a kernel's accesses from the sanitizer is refused."""

import pytest

from cudalab.checker.submit import views


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("[[using gnu: noinline, no_sanitize_thread]] void f();", "attribute no_sanitize_thread"),
        ('[[__gnu__::no_sanitize("thread")]] void f();', "attribute no_sanitize is"),
        ("<:<:gnu::constructor:>:> void f();", "attribute constructor"),
        ("void f(int* p) { _mm_stream_si32(p, 1); }", "_mm_stream_si32 is for the host"),
        (
            "void f(int& d) { reinterpret_cast<std::atomic<int>&>(d) = 1; }",
            "atomic is for the host",
        ),
        ("void f(int& d) { std::atomic_ref(d) = 1; }", "atomic_ref is for the host"),
        ('void f(int* p) { printf("a" "%5" "n", p); }', "printf has no %n"),
        ('void f(int* p) { printf("\\x25hhn", p); }', "printf has no %n"),
        ("void f(const char* s, int* p) { printf(s, p); }", "format of a kernel's printf"),
        ("[[nodiscard, gnu::noinline]] int f(int (&v)[3]) { return v[v[0]]; }", ""),
        ('[[maybe_unused]] int f(int d) { printf("%d %%n\\n", d); return d; }', ""),
        ("void f(cuda::atomic_ref<int> a, cuda::std::atomic<int>& b, int atomic_max);", ""),
    ],
)
def test_what_hides_accesses(line, says):
    found = views.of_kernel(f'#line 1 "my.cu"\n{line}\n', views.of_kernels(), "my.cu".__eq__)
    assert bool(found.foreign) == bool(says)
    assert says in "".join(found.foreign)
