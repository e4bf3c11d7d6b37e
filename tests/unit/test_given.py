"""The functions of CUDA that are known to read what they are given, against CUDA's own headers."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

from cudalab.backends.cpu.regions import given
from cudalab.backends.cuda.nvcc import find_nvcc
from cudalab.errors import CudalabError

DECLARED = re.compile(r"\b([A-Za-z_]\w*)\s*\(([^(){};]*)\)[^(){};]*[;{]")
MARKS = (
    "__device__",
    "__DEVICE",
    "__CUDA_HOSTDEVICE",
    "__NV_",
    "__device_builtin__",
    "__CUDA_FP16",
)

INSIDE = re.compile("__internal|__u128")  # what only the headers themselves call


@pytest.fixture(scope="module")
def declared():
    """The functions of the headers for kernels: names, each with its parameters."""
    folders = [*Path("/usr/local").glob("cuda*/include"), *Path("/opt").glob("cuda*/include")]
    with suppress(CudalabError):
        folders.append(Path(find_nvcc()).resolve().parents[1] / "include")
    folder = next((each for each in folders if (each / "crt").is_dir()), None)
    if folder is None:
        pytest.skip("no headers of CUDA here")
    headers = [
        *folder.glob("*_functions.h*"),
        *folder.glob("*_intrinsics.h*"),
        *folder.glob("cuda_*16.h*"),
        *folder.glob("crt/*_functions.h*"),
        *folder.glob("crt/sm_*_rt.h*"),
    ]
    found = []
    for header in headers:
        text = re.sub(
            r"/\*.*?\*/|//[^\n]*", " ", header.read_text(errors="replace"), flags=re.DOTALL
        )
        for match in DECLARED.finditer(text):
            head = text[max(0, match.start() - 120) : match.start()].rpartition(";")[2]
            if any(mark in head for mark in MARKS) and not INSIDE.match(match[1]):
                found.append((match[1], " ".join(match[2].split())))
    return found


TYPES = (
    r"(?:volatile )?(?:unsigned|signed|int|float|double|long|short|char|void|T|_*half\w*|__nv_\w+"
    r"|u?int\w*_t)"
)


def written(parameters, sign):
    """Whether a parameter is a pointer or reference to what is not constant."""
    typed = [one.strip() for one in parameters.split(",")]
    return any(re.match(TYPES + r"\b", one) and sign in one and "const" not in one for one in typed)


def test_headers_are_read(declared):
    names = {name for name, _ in declared}
    assert {"__popc", "sincosf", "atomicAdd", "__shfl_sync", "__hadd", "fmaf"} <= names


def test_no_known_function_changes_its_arguments(declared):
    known = [
        (name, parameters)
        for name, parameters in declared
        if given._COMPUTING.fullmatch(name) or given._TAKING.fullmatch(name)
    ]
    assert len(known) > 300
    assert [each for each in known if written(each[1], "&")] == []


def test_no_computing_function_writes_through_a_pointer(declared):
    wrong = [
        (name, parameters)
        for name, parameters in declared
        if given._COMPUTING.fullmatch(name) and written(parameters, "*")
    ]
    assert wrong == []
