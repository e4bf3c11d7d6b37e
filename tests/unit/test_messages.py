"""program/messages.py: what g++ and clang++ refuse, in the program's words or as a missing feature.

The messages are those of the compilers, so that both are read wherever the tests run.
"""

import pytest

from cudalab.errors import KernelCompileError, NoDeviceError
from cudalab.program.files import File
from cudalab.program.messages import explain

TEXT = """#include <cudnn.h>
struct cudaOwn;
int main() {
    cg::frobnicated x;
    return cudaNoSuchFunction();
}
"""
LACKING = {
    "header": (
        "a.cu:1:10: fatal error: cudnn.h: No such file or directory",
        "a.cu:1:10: fatal error: 'cudnn.h' file not found",
        "cuDNN (a.cu:1)",
    ),
    "type in a namespace": (
        "a.cu:4:9: error: \u2018frobnicated\u2019 in namespace \u2018cg\u2019 does not name a type",
        "a.cu:4:9: error: no type named 'frobnicated' in namespace 'cg'",
        "cg::frobnicated (a.cu:4)",
    ),
    "function in a namespace": (
        "a.cu:4:9: error: \u2018frobnicated\u2019 is not a member of \u2018nvcuda\u2019",
        "a.cu:4:9: error: no member named 'frobnicated' in namespace 'nvcuda'",
        "nvcuda::frobnicated (a.cu:4)",
    ),
    "function of CUDA": (
        "a.cu:5:12: error: \u2018cudaNoSuchFunction\u2019 was not declared in this scope",
        "a.cu:5:12: error: use of undeclared identifier 'cudaNoSuchFunction'",
        "cudaNoSuchFunction (a.cu:5)",
    ),
    "instruction": (
        "a.cu:5: Error: no such instruction: `griddepcontrol.wait'",
        "a.cu:5: Error: no such instruction: `griddepcontrol.wait'",
        "inline PTX (a.cu:5)",
    ),
}


def explained(message, *others):
    """The error for a program that a compiler refuses with messages."""
    return explain("\n".join([message, *others, ""]), [File("a.cu", "a.cu", TEXT)])


@pytest.mark.parametrize("compiler", [0, 1], ids=["g++", "clang++"])
@pytest.mark.parametrize("what", LACKING)
def test_what_the_device_lacks_is_refused(what, compiler):
    error = explained(LACKING[what][compiler])
    assert isinstance(error, NoDeviceError)
    # The text's own header is recognised without a compiler, too.
    listed = error.message.partition(": ")[2].split(", ")
    assert listed[0] == LACKING[what][2]
    assert set(listed) <= {LACKING[what][2], LACKING["header"][2]}


OWN = "no member named 'frobnicated' in namespace 'mine'"
MISTAKES = {
    "\u2018cudaOwn\u2019 was not declared in this scope": "\u2018cudaOwn\u2019 was not declared",
    "use of undeclared identifier 'cudaMaloc'": "unknown: cudaMaloc; did you mean cudaMalloc?",
    OWN: OWN,
    "'mine.h' file not found": "no header mine.h",
}


@pytest.mark.parametrize(("message", "words"), MISTAKES.items())
def test_other_mistakes_are_the_programs_own(message, words):
    error = explained(f"a.cu:5:12: error: {message}")
    assert isinstance(error, KernelCompileError)
    assert f"a.cu:5: error: {words}" in error.message


def test_a_name_that_a_header_of_the_system_lacks_is_no_feature():
    error = explained("/usr/include/x.h:5:12: error: unknown type name 'cudaNoSuchType'")
    assert isinstance(error, KernelCompileError)
    assert "/usr/include/x.h:5: error: unknown type name" in error.message
