"""nvcc's options on the command line of `cudalab run`."""

import pytest

from cudalab.backends.cpu.compiler.toolchain import Compiler
from cudalab.errors import UsageError
from cudalab.program import files
from cudalab.program.options import for_host, libraries_of, split


@pytest.mark.parametrize(
    ("line", "ours", "options"),
    [
        ("a.cu -O3 -lm", "a.cu", "-O3 -lm"),
        ("-l m -L lib --library=z", "", "-lm -Llib -lz"),
        ("-arch sm_75 --gpu-architecture sm_90", "", "-arch=sm_75 -arch=sm_90"),
        ("-gencode arch=compute_75,code=sm_75", "", "-gencode=arch=compute_75,code=sm_75"),
        ("--expt-relaxed-constexpr -use_fast_math", "", "-expt-relaxed-constexpr -use_fast_math"),
        ("-lineinfo -g -G -w -m64 -std c++20", "", "-lineinfo -g -G -w -m64 -std=c++20"),
        ("-Xcompiler -fopenmp -Xptxas=-v,-O2", "", "-Xcompiler=-fopenmp -Xptxas=-v,-O2"),
        ("-I g -D g --include-path=x --define-macro y", "-I g -D g -I x -D y", ""),
        ("-DN=4 -Iinclude -o a --output-file b", "-DN=4 -Iinclude -o a -o b", ""),
        ("--device cpu --sanitize -q a.cu", "--device cpu --sanitize -q a.cu", ""),
        ("--no-such-option", "--no-such-option", ""),
    ],
)  # fmt: skip
def test_options_of_nvcc_are_told_from_ours(line, ours, options):
    assert split(line.split()) == (ours.split(), options.split())


@pytest.mark.parametrize("option", ["-c", "-dc", "-ptx", "--shared", "-lib"])
def test_options_that_make_no_program(option):
    with pytest.raises(UsageError, match=f"^{option}: "):
        split(["a.cu", option])


@pytest.mark.parametrize(
    ("line", "compile_", "link"),
    [
        ("-O0 -G -arch=sm_75 -std=c++11 -use_fast_math -Xptxas -v -maxrregcount=32", "", ""),
        ("-lcudart -lcublas_static -lcurand -lcuda -lnvToolsExt -lcudadevrt -lm", "", "-lm"),
        ("-L lib -lz -Xlinker -s", "", "-Llib -lz -Wl,-s"),
        ("-Xcompiler -fopenmp,-O2,-Wall,-march=native,/W4", "-fopenmp", "-fopenmp"),
        (r"-Xcompiler -Wl\,-s,-fno-inline", "-fno-inline", "-fno-inline -Wl,-s"),
        ("-std=c++20 --fmad=false", "-std=c++20 -ffp-contract=off", ""),
    ],
)
def test_what_options_mean_to_the_hosts_compiler(line, compile_, link):
    host = for_host(split(line.split())[1])
    assert (host.compile, host.link) == (compile_.split(), link.split())
    assert (host.folders, host.macros) == ([], "")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (',"-fopenmp","-DN=2"', ["-fopenmp", "-DN=2"]),  # as CMake's FindCUDA writes it
        ("-Wall -fopenmp", ["-fopenmp"]),
        ("-DF=f(1\\,2),'-DG=a b'", ["-DF=f(1,2)", "-DG=a b"]),
        ('-DA="a,b",-DB=\\\\\\"b\\\\\\"', ["-DA=a,b", '-DB="b"']),
    ],
)
def test_words_for_the_hosts_compiler_are_those_that_nvcc_passes_on(value, words):
    """Written down from nvcc --dryrun, whose line a shell reads."""
    assert for_host([f"-Xcompiler={value}"]).compile == words


def test_an_open_quote_is_refused():
    with pytest.raises(UsageError, match="quotation"):
        for_host(["-Xcompiler=-DA='b"])


def test_folders_macros_and_libraries(tmp_path):
    (tmp_path / "libown.a").touch()
    options = ["-Iinclude", f"-L{tmp_path}", "-DN", "-DM=a=b", "-lown", "-lother"]
    host = for_host(options)
    assert host.folders == ["-Iinclude"]
    assert host.macros == "#define N 1\n#define M a=b\n"
    assert libraries_of(options) == [f"{tmp_path}/libown.a"]


@pytest.mark.parametrize("name", ["g++ 13", "clang version 18"])
def test_openmp_is_added_to_the_options_that_are_there(name, monkeypatch, capsys):
    monkeypatch.setattr(files, "find_compiler", lambda: Compiler(name, (name,), name))
    monkeypatch.setattr(Compiler, "version", lambda self: self.name)
    texts = {"#pragma omp parallel": True, "// omp_get_num_threads()": False, "int x;": False}
    for text, uses in texts.items():
        file = files.File("a.cu", "a.cu", f"int y;\n{text}\n")
        part = files.Part(files=[file], sources=1, options=["-DN=4"])
        added = ["-Xcompiler=-fopenmp"] if uses and name.startswith("g++") else []
        assert files.with_openmp(part).options == ["-DN=4", *added]
        assert files.with_openmp(part).files == [file]
        assert ("a.cu:2: OpenMP" in capsys.readouterr().err) == bool(added)
    asked = files.Part(files=[], sources=0, options=["-Xcompiler=-fopenmp"])
    assert files.with_openmp(asked) is asked
