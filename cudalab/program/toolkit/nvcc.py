"""What nvcc does, done for the CPU device: its command line, objects, archives and programs."""

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cudalab.backends.cpu.compiler.pipeline import RefusedError
from cudalab.backends.cpu.compiler.toolchain import find_compiler, run
from cudalab.errors import CudalabError, UsageError
from cudalab.output.notes import note
from cudalab.program import plain
from cudalab.program.files import TOOLKIT_VERSION, File, Part, gather
from cudalab.program.messages import explain, links
from cudalab.program.options import folders_of, for_host, split
from cudalab.program.toolkit import rebuild
from cudalab.program.toolkit.make import runtime_folder, toolkit

# What nvcc is to do, by the options that say so; without one of them it makes a program.
_WAYS = {
    **dict.fromkeys(("c", "compile", "dc", "device-c", "dw", "device-w"), "object"),
    **dict.fromkeys(("dlink", "device-link"), "device link"),
    "lib": "archive",
    "cuda": "C++",
    **dict.fromkeys(("M", "MM", "generate-dependencies"), "dependencies"),
    **dict.fromkeys(("V", "version"), "version"),
    **dict.fromkeys(("h", "help"), "help"),
}
_LOUD = frozenset({"v", "verbose", "dryrun"})
# What only a GPU can use.
_GPU_CODE = frozenset({"ptx", "cubin", "fatbin", "optix-ir", "ltoir", "gpu"})
_REFUSED = {
    **dict.fromkeys(_GPU_CODE, "the CPU device has no code for GPUs"),
    "shared": "the CPU device makes programs and archives (-lib, ar), no shared libraries",
    "E": "the CPU device does not print what the preprocessor makes",
    "preprocess": "the CPU device does not print what the preprocessor makes",
    "run": "start the program yourself",
}
_SOURCES = (".cu", ".c", ".cpp", ".cc", ".cxx", ".C")
_FOR_HOST = ("f", "m", "W", "pthread")  # options of the host's compiler, with CXX=nvcc
_FILES = ("optf", "options-file")


@dataclass(kw_only=True)
class Line:
    """A command line of nvcc."""

    way: str = "program"
    inputs: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)  # for `cudalab run`, too
    output: str = ""
    is_cuda: bool = False  # -x cu: whatever the files are called
    is_loud: bool = False  # -v: say what is done
    is_dry: bool = False  # --dryrun: only say it
    dependencies: str = ""  # the file to write them to, when a source is compiled
    target: str = ""  # their target
    unknown: list[str] = field(default_factory=list)

    @property
    def sources(self) -> list[str]:
        """The inputs that are compiled."""
        return [path for path in self.inputs if self.is_source(path)]

    def is_source(self, path: str) -> bool:
        """Whether an input is compiled; others are linked."""
        return path.endswith(_SOURCES) or (self.is_cuda and not path.endswith((".o", ".a", ".so")))


def read_line(words: Sequence[str]) -> Line:
    """Parse a command line. UsageError for what the CPU device cannot build."""
    names = {*_WAYS, *_LOUD, *_REFUSED}
    ours, options = split(list(_expanded(words)), names)
    line, rest = Line(), iter(ours)
    for word in rest:
        name = word.removeprefix("-")
        if not word.startswith("-"):
            line.inputs.append(word)
        elif name in names:
            _take_way(line, name, ours)
        elif name[0] in "ID":
            line.options.append(f"-{name[0]}{name[1:] or next(rest, '')}")
        elif name[0] == "o":
            line.output = name[1:] or next(rest, "")
        elif name.startswith(_FOR_HOST):
            line.options.append(f"-Xcompiler={word}")
        else:
            line.unknown.append(word)
    for option in options:
        _take(line, option)
    return line


def _take_way(line: Line, name: str, words: Sequence[str]) -> None:
    """Handle an option that selects what to do."""
    if name in _WAYS:
        line.way = _WAYS[name]
    elif name in _LOUD:
        line.is_loud = True
        line.is_dry |= name == "dryrun"
    elif "-dlink" not in words:  # CMake says -shared, too, for code of GPUs
        raise UsageError(f"-{name}: {_REFUSED[name]}")


def _take(line: Line, option: str) -> None:
    """Handle an option together with its value."""
    name, _, value = option[1:].partition("=")
    if name == "x":
        line.is_cuda = value == "cu"
    elif name in ("MF", "dependency-output"):
        line.dependencies = value
    elif name in ("MT", "dependency-target-name"):
        line.target = value
    elif name in ("MD", "MMD") or name.endswith("-with-compile"):
        line.dependencies = line.dependencies or "beside the object"
    elif name in ("odir", "output-directory"):
        line.output = line.output or f"{value}/"
    else:
        line.options.append(option)


def _expanded(words: Sequence[str]) -> Iterator[str]:
    """The words, with option files expanded."""
    rest = iter(words)
    for word in rest:
        name, equals, value = word.lstrip("-").partition("=")
        if word.startswith("-") and name in _FILES:
            yield from _words_of(value if equals else next(rest, ""))
        elif word.startswith("@"):
            yield from _words_of(word[1:])
        else:
            yield word


def _words_of(path: str) -> Iterator[str]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise CudalabError(f"{path}: cannot be read: {error.strerror}") from None
    yield from _expanded(shlex.split(text))


_ABOUT = f"""\
nvcc: NVIDIA (R) Cuda compiler driver, as cudalab plays it
Its programs run on the CPU device: they are for this machine's processor
Cuda compilation tools, release {TOOLKIT_VERSION.rpartition(".")[0]}, V{TOOLKIT_VERSION}
"""
_ARCHITECTURE = "75"  # which CMake takes for nvcc's own choice


def nvcc(words: Sequence[str]) -> None:
    """Do what the command line asks of nvcc."""
    line = read_line(words)
    if line.way in ("version", "help"):
        sys.stdout.write(_ABOUT)
        return
    if line.is_loud:
        _describe(line)
    if line.is_dry:
        return
    if not line.inputs:
        raise UsageError("no input files: name .cu files to compile, or objects to link")
    if line.unknown:
        note(f"{', '.join(line.unknown)}: means nothing on the CPU device")
    {
        "program": _link,
        "object": _compile_all,
        "device link": _link_devices,
        "archive": _archive,
        "C++": _translate_all,
        "dependencies": _list_dependencies,
    }[line.way](line)


def _describe(line: Line) -> None:
    """Print the part of nvcc -v's output that other tools read."""
    top = toolkit()
    libraries = f'"-L{top}/lib64/stubs" "-L{top}/lib64"'
    sys.stderr.write(
        f"#$ TOP={top}\n"
        f"#$ NVVMIR_LIBRARY_DIR={top}/nvvm/libdevice\n"
        f"#$ PATH={os.environ.get('PATH', '')}\n"
        f'#$ INCLUDES="-I{top}/include"\n'
        "#$ SYSTEM_INCLUDES=\n"
        f"#$ LIBRARIES=  {libraries}\n"
        f"#$ cicc -arch compute_{_ARCHITECTURE}\n"
        f'#$ {find_compiler().compile[0]} -o "{line.output or "a.out"}"  {libraries}'
        "  -lcudadevrt -lcudart_static -lrt -lpthread -ldl\n"
    )


def _compile_all(line: Line) -> None:
    """-c: an object for each source."""
    if line.output and not line.output.endswith("/") and len(line.sources) > 1:
        raise UsageError("-o names one object, but there are several sources")
    for source in line.sources:
        beside = Path(source).with_suffix(".o").name
        output = f"{line.output}{beside}" if line.output.endswith("/") else line.output or beside
        _compile(line, source, Path(output))
        if line.dependencies:
            path = line.dependencies
            path = path if path != "beside the object" else str(Path(output).with_suffix(".d"))
            Path(path).write_text(_rule(line, source, output), encoding="utf-8")


def _translate_all(line: Line) -> None:
    """-cuda: the C++ that the host's compiler is given for each source."""
    for source in line.sources:
        _compile(line, source, Path(line.output or f"{Path(source).name}.cpp.ii"), "-E")


def _compile(line: Line, source: str, output: Path, *until: str) -> list[File]:
    """Compile a source to an object, which records how; or only `until` a step before."""
    files = gather([source], folders_of(line.options), is_cuda=line.is_cuda)
    record = rebuild.Record(
        folder=str(Path.cwd()), source=source, options=line.options, is_cuda=line.is_cuda
    )
    with tempfile.TemporaryDirectory(prefix="build-", dir=runtime_folder()) as name:
        recording = Path(name, "recording")
        recording.write_text(rebuild.text(record, files), encoding="utf-8")
        more = ["-include", str(recording), *until]
        part = Part(files=files, sources=1, options=line.options)
        try:
            (made,), _ = plain.build_objects(part, Path(name), runtime_folder(), more)
        except RefusedError as error:
            raise explain(error.messages, files) from None
        _move(Path(made), output)
    return files


def _move(made: Path, to: Path) -> None:
    """Put a file where the user wants it, which may be on another disk."""
    try:
        shutil.copy2(made, to)
    except OSError as error:
        raise CudalabError(f"{to}: cannot be written: {error.strerror}") from None


def _list_dependencies(line: Line) -> None:
    """-M: for each source, the rule that tells make what it includes."""
    rules = "".join(
        _rule(line, source, Path(source).with_suffix(".o").name) for source in line.sources
    )
    if line.output:
        Path(line.output).write_text(rules, encoding="utf-8")
    else:
        sys.stdout.write(rules)


def _rule(line: Line, source: str, output: str) -> str:
    files = gather([source], folders_of(line.options), is_cuda=line.is_cuda)
    names = [file.path.replace(" ", "\\ ") for file in files]
    return " \\\n ".join([f"{line.target or output} :", *names]) + "\n"


def _link_devices(line: Line) -> None:
    """-dlink: an empty object, since device code is linked like the host's."""
    with tempfile.TemporaryDirectory(prefix="build-", dir=runtime_folder()) as name:
        source, made = Path(name, "empty.cpp"), Path(name, "empty.o")
        source.touch()
        done = run((*find_compiler().compile, "-c", str(source), "-o", str(made)))
        if done.returncode:
            raise explain(done.stderr, [])
        _move(made, Path(line.output or "a_dlink.o"))


def _archive(line: Line) -> None:
    """-lib: an archive of objects."""
    with tempfile.TemporaryDirectory(prefix="build-", dir=runtime_folder()) as name:
        objects = _objects(line, Path(name))
        done = run(("ar", "rcs", line.output or "a.a", *objects))
        if done.returncode:
            raise CudalabError(f"ar: {done.stderr.strip()}")


def _link(line: Line) -> None:
    """Link the inputs to a program, followed by the CPU device's runtime."""
    with tempfile.TemporaryDirectory(prefix="build-", dir=runtime_folder()) as name:
        objects, made = _objects(line, Path(name)), Path(name, "program")
        objects.append(_linked(line, Path(name)))
        inputs = (*objects, *for_host(line.options).link, str(toolkit() / "lib64" / "libcudart.so"))
        done = find_compiler().link(made, inputs, shared=False)
        if done.returncode:
            sources = gather(line.sources, folders_of(line.options), is_cuda=line.is_cuda)
            raise explain(done.stderr, sources) if sources else links(done.stderr, line.inputs[0])
        _move(made, Path(line.output or "a.out"))


def _linked(line: Line, folder: Path) -> str:
    """An object whose record says what is linked to the program."""
    source, made = folder / "linked.cpp", folder / "linked.o"
    options = [word for word in line.options if word.startswith(("-L", "-l", "-Xlinker"))]
    record = rebuild.Record(
        folder=str(Path.cwd()),
        source="",
        options=options,
        is_cuda=False,
        objects=[str(Path(each).resolve()) for each in line.inputs if rebuild.is_foreign(each)],
    )
    source.write_text(rebuild.statement(record), encoding="utf-8")
    done = run((*find_compiler().compile, "-c", str(source), "-o", str(made)))
    if done.returncode:
        raise explain(done.stderr, [])
    return str(made)


def _objects(line: Line, folder: Path) -> list[str]:
    """The inputs, with each source replaced by its object."""
    objects = []
    for i, path in enumerate(line.inputs):
        if line.is_source(path):
            made = folder / f"{i}-{Path(path).stem}.o"
            _compile(line, path, made)
            objects.append(str(made))
        else:
            objects.append(path)
    return objects
