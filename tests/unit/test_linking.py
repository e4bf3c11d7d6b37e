"""program/messages.py: what the linkers of the host's compilers say."""

import pytest

from cudalab.program import messages

TEXTS = {"src/a.cu": "int f();\nint main() { return f(); }\n", "src/b.cu": "int f() { return 1; }"}
MISSED = {
    "GNU": "/usr/bin/ld: /tmp/a.o: in function `main':\nsrc/a.cu:2: undefined reference to `f()'\n",
    "lld": "ld.lld: error: undefined symbol: f()\n"
    ">>> referenced by a.cu:2 (src/a.cu:2)\n>>>               a.o:(main)\n",
    "zig": "error: ld.lld: undefined symbol: f()\n"
    "    note: referenced by a.cu:2 (src/a.cu:2)\n    note:               a.o:(main)\n",
}
TWICE = {
    "GNU": "/usr/bin/ld: src/b.cu:1: multiple definition of `f()'; "
    "/tmp/a.o:src/a.cu:1: first defined here\n",
    "lld": "ld.lld: error: duplicate symbol: f()\n"
    ">>> defined at a.cu:1 (src/a.cu:1)\n>>>            a.o:(f())\n"
    ">>> defined at b.cu:1 (src/b.cu:1)\n>>>            b.o:(.text+0x0)\n",
    "zig": "error: ld.lld: duplicate symbol: f()\n"
    "    note: defined at a.cu:1 (src/a.cu:1)\n    note:            a.o:(f())\n"
    "    note: defined at b.cu:1 (src/b.cu:1)\n    note:            b.o:(.text+0x0)\n",
}


@pytest.mark.parametrize("linker", MISSED)
def test_what_no_file_defines(linker):
    error = messages.unlinked(MISSED[linker], "a.cu", TEXTS)
    assert error.message == (
        "a.cu does not link:\n"
        "src/a.cu:2: error: f() is declared, but no file defines it\n"
        "    int main() { return f(); }"
    )


def test_names_of_thrust_are_those_of_programs():
    of = "thrust::_V_300500_SM___CUDA_ARCH_LIST__::"
    vector = f"{of}device_vector<int, {of}device_allocator<int> >"
    message = MISSED["GNU"].replace(
        "f()'", f"f({vector} const&, std::vector<int, std::allocator<int> >)'"
    )
    error = messages.unlinked(message, "a.cu", TEXTS)
    assert ": error: f(thrust::device_vector<int> const&, std::vector<int>) is" in error.message


@pytest.mark.parametrize("linker", TWICE)
def test_what_two_files_define(linker):
    error = messages.unlinked(TWICE[linker], "a.cu", TEXTS)
    assert error.message == (
        "a.cu does not link:\n"
        "src/b.cu:1: error: f() is defined a second time; first at src/a.cu:1\n"
        "    int f() { return 1; }"
    )


@pytest.mark.parametrize(
    "words",
    [
        "/usr/bin/ld: cannot find -lnowhere: No such file or directory",
        'error: unable to find dynamic system library "nowhere" using strategy paths_first.',
    ],
)
def test_a_library_that_is_nowhere(words):
    error = messages.unlinked(words, "a.cu", TEXTS)
    assert "error: no library nowhere: neither libnowhere.so nor libnowhere.a" in error.message
