"""What `cudalab run` says of mistakes: each in the words of the program, and all of them."""

import os
import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from command import cudalab
from whole_programs import with_gcc

from cudalab.program.files import File
from cudalab.program.spelling import meant
from cudalab.program.wording import readable

MISTAKES = Path(__file__).parents[1] / "programs" / "mistakes"
EXPECTED = re.compile(r"//~ (.*)")


def expected(*names):
    """The parts of messages that the files ask for, each with its place."""
    return [
        (f"{name}:{number}: error: ", match[1])
        for name in names
        for number, line in enumerate((MISTAKES / name).read_text().splitlines(), 1)
        if (match := EXPECTED.search(line))
    ]


def lines(*files, folder=MISTAKES, **options):
    """The messages about a program that does not become one, without the lines of its source."""
    done = cudalab("run", "--device", "cpu", *files, cwd=folder, **options)
    assert (done.returncode, done.stdout) == (125, b"")
    said = done.stderr.decode()
    assert not re.search(r"cudalab[:_]|/cpu/runtime/|\bld:|collect2|-fpermissive", said), said
    return [line for line in said.splitlines() if not line.startswith("    ")]


@with_gcc
@pytest.mark.parametrize(
    ("names", "does_not"),
    [
        (["host.cu"], "compile"),
        (["launches.cu"], "compile"),
        (["device.cu"], "compile"),
        (["linked.cu", "again.cu", "linked.h"], "link"),
    ],
)
def test_no_mistake_hides_another_one(names, does_not):
    first, *said = lines(*(name for name in names if name.endswith(".cu")))
    assert first == f"Error: {names[0]} does not {does_not}:"
    for place, words in expected(*names):
        assert any(line.startswith(place) and words in line for line in said), (place, words)
    known = {place for place, _ in expected(*names)}
    for line in said:
        place = re.match(r".*?:\d+: error: ", line)
        assert place is None or place[0] in known, line


IN_ZIGS_WORDS = [
    "needs a grid and a block",
    "has at most four values",
    "did you mean \u2018fill\u2019?",
    "the arguments do not match the kernel's parameters (int *, int)",
    "the arguments do not match the kernel's parameters (int *, int)",
    "not 'const char[4]' as its 1st value",
    "what is launched is no kernel",
]


def test_launches_in_the_words_of_zig(tmp_path):
    """Its clang++ has other words for what a launch becomes than g++."""
    zig = find_spec("ziglang")
    if zig is None:
        pytest.skip("the ziglang package is not installed")
    text = (MISTAKES / "launches.cu").read_text(encoding="utf-8")
    last = text.rindex("}\n\nint main")
    path = tmp_path / "launches.cu"
    path.write_text(f"{text[:last]}    3<<<1, 32>>>(d, 4);\n{text[last:]}", encoding="utf-8")
    compiler = f"{Path(zig.origin).with_name('zig')} c++"
    said = lines("launches.cu", folder=tmp_path, env={**os.environ, "CXX": compiler})
    numbered = list(enumerate(IN_ZIGS_WORDS, 10))
    assert len(said) == 1 + len(numbered), said
    for line, (number, words) in zip(said[1:], numbered, strict=True):
        assert line.startswith(f"launches.cu:{number}: error: ")
        assert words in line


SINGLE = tomllib.loads((MISTAKES / "single.toml").read_text(encoding="utf-8"))["mistakes"]


@with_gcc  # whose words are asked for
@pytest.mark.parametrize("mistake", SINGLE, ids=[each["of"][1].strip() for each in SINGLE])
def test_a_mistake_is_told_in_one_line(mistake, tmp_path):
    """A misspelt word or a sign that is missing makes a compiler say more than one thing."""
    right, wrong = mistake["of"]
    text = (MISTAKES / "right.cu").read_text(encoding="utf-8")
    assert right in text
    (tmp_path / "p.cu").write_text(text.replace(right, wrong, 1), encoding="utf-8")
    said = lines("p.cu", folder=tmp_path)
    assert said[0] == "Error: p.cu does not compile:"
    told = [line for line in said[1:] if not line.startswith(("Hint: ", "note: "))]
    errors = [line.replace(" error:", "", 1) for line in told if ": note: " not in line]
    assert errors == [f"p.cu:{each}" for each in mistake["says"]]


@with_gcc
def test_what_files_of_c_cannot_call(tmp_path):
    """C calls what nothing declares, so that only the linker looks for it."""
    calls = "int* a;\n cudaMaloc(&a, 4);\n cudaMemcpyToSymbol(a, a, 4);\n return 0;"
    text = f"#include <cuda_runtime.h>\nint main(void) {{ {calls} }}\n"
    (tmp_path / "p.c").write_text(text, encoding="utf-8")
    first, typo, missing = lines("p.c", folder=tmp_path)
    assert first == "Error: p.c does not link:"
    assert typo == "p.c:3: error: unknown: cudaMaloc; did you mean cudaMalloc?"
    assert missing.startswith("p.c:4: error: files of C cannot call cudaMemcpyToSymbol on the CPU")


def test_what_a_template_of_the_runtime_is_not_for(tmp_path):
    """The compiler finds it in a header of the runtime, which no message names."""
    text = "#include <cooperative_groups.h>\n#include <cooperative_groups/scan.h>\n"
    text += "namespace cg = cooperative_groups;\n__global__ void k(int *p) {\n"
    text += "    *p = cg::inclusive_scan(cg::this_thread_block(), *p);\n}\nint main() {}\n"
    (tmp_path / "p.cu").write_text(text, encoding="utf-8")
    said = lines("p.cu", folder=tmp_path)
    assert said[0] == "Error: p.cu does not compile:"
    assert said[1].startswith("p.cu:5: error: cooperative_groups::inclusive_scan is not for these")
    assert "runtime" not in "".join(said)
    assert len(said) == 2


def test_what_a_template_of_the_runtime_is_not_for_in_the_words_of_clang():
    file = File("p.cu", "p.cu", "int main() {\n    scan(block, 1);\n}\n")
    said = readable(
        "/there/cpu/runtime/include/scan.h:12:30: error: no member named 'shfl_up' in 'block'\n"
        "p.cu:2:5: note: in instantiation of function template specialization "
        "'cg::scan<block, int>' requested here\n    2 |     scan(block, 1);\n",
        [file],
    )
    assert said == "p.cu:2: error: cg::scan is not for these arguments\n    scan(block, 1);"


def test_a_library_that_is_nowhere():
    assert lines("-lnowhere", "again.cu")[1:] == [
        "error: no library nowhere: neither libnowhere.so nor libnowhere.a",
        "Hint: install it, or name its folder by -L",
    ]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        *(
            ("cudaGetLastErorr", "cudaGetLastError"),
            ("cudaEventElapsedTme", "cudaEventElapsedTime"),
        ),
        *(("cudaGetErrorSting", "cudaGetErrorString"), ("cudaSetDevise", "cudaSetDevice")),
        *(("cudaThreadSynchronise", "cudaThreadSynchronize"), ("cudaMemSet", "cudaMemset")),
        *(("cudaMalloc3DArry", "cudaMalloc3DArray"), ("cudaEvent", "cudaEvent_t")),
        *(("atomicCas", "atomicCAS"), ("atomicMaxx", "atomicMax"), ("__globl__", "__global__")),
        *(("__nanosleeep", "__nanosleep"), ("__reduce_add_synk", "__reduce_add_sync")),
        *(("cudaHostFree", ""), ("cudaGreenCtxCreate", ""), ("cudaImportExternalMemory", "")),
        *(("cudaMemPoolSetAcces", "cudaMemPoolSetAccess"), ("cudaMemcpy", "")),
    ],
)
def test_what_a_misspelt_name_means(written, name):
    """A name of words that CUDA's names have may be one that the CPU device lacks."""
    assert meant(written) == name


@pytest.mark.parametrize(("other", "refused"), [("other.cpp", False), ("other.h", True)])
def test_a_kernel_does_not_know_the_functions_of_another_source(other, refused, tmp_path):
    """It calls CUDA's own function of that name, unless a header has one."""
    (tmp_path / other).write_text(
        "static unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }\n"
    )
    include = f'#include "{other}"\n' if refused else ""
    kernel = "__global__ void k(unsigned* a) { *a = umin(*a, 3u); }\n"
    (tmp_path / "main.cu").write_text(f"{include}{kernel}int main() {{}}\n")
    sources = ["main.cu"] if refused else ["main.cu", other]
    done = cudalab("run", "--device", "cpu", *sources, cwd=tmp_path)
    assert (b"calls umin, a host function" in done.stderr) == refused, done.stderr.decode()
    assert done.returncode == (125 if refused else 0)


def test_the_mistake_of_one_source_where_another_is_compiled_with_care(tmp_path):
    """Its loads would be wrong as vectors: compiling it again must not lose the error."""
    careful = "__global__ void k(int* o, const int* t, const int* a, int n) {\n"
    careful += "    for (int i = 0; i < n; i++) o[i] = t[!a[i]];\n}\n"
    (tmp_path / "a.cu").write_text(f"{careful}int main() {{}}\n")
    (tmp_path / "b.cu").write_text("int f() { return missing; }\n")
    assert lines("a.cu", "b.cu", folder=tmp_path)[1].startswith("b.cu:1: error: ")
