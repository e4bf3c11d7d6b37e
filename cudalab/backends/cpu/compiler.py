"""Compiles kernel files with the host's C++ compiler, at most once for each source.

A compiled library is stored in the user's cache under a hash of everything that went into it:
source, runtime, compiler, flags and the processor's features (homes are shared between machines).
The header that every kernel begins with is kept there as g++ has read it: that takes as long as
the rest of a small kernel.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cudalab.backends.cpu import tiers
from cudalab.backends.cpu.flags import (
    DEFINED,
    FITTING,
    GCC_OPTIMIZED,
    KERNEL,
    QUICK,
    QUICK_OPTIMIZED,
    RUNTIME,
    for_kernels,
    for_runtime,
    with_users,
)
from cudalab.backends.cpu.gathers import carefully
from cudalab.backends.cpu.key import cached, key
from cudalab.backends.cpu.toolchain import find_compiler, run
from cudalab.errors import (
    CudalabError,
    KernelCompileError,
    NoDeviceError,
    ToolchainError,
    install_command,
)
from cudalab.language.local_variables import EVERYWHERE
from cudalab.language.source import QUOTED, unquoted
from cudalab.output.progress import stage
from cudalab.system.cache import cache_dir, disk_full, explain_full_disk, place_of

if TYPE_CHECKING:
    from cudalab.backends.cpu.regions import Place
    from cudalab.backends.cpu.toolchain import Compiler, Done

    # A command, or a function that runs one or does something between two of them. All of them
    # turn source.cpp into library.so, in a folder of their own.
    Step = tuple[str, ...] | Callable[[], Done | None]
    Steps = Callable[[Path], tuple[Step, ...]]
    Made = TypeVar("Made")  # by an attempt to compile
    Result = TypeVar("Result")  # of a compiler

_HEADER = RUNTIME / "kernels" / "cudalab_cpu.h"

# For check mode every access of the source must be there once, in the order of the source: nothing
# is optimized, and compilers report the same.
_CHECK = ("-DCUDALAB_CHECK",)
_NOT_OPTIMIZED = (
    *(flag for flag in KERNEL if flag != "-O3"),
    *("-g1", "-gdwarf-4"),  # of later versions addr2line takes the first file for the source
    "-fno-omit-frame-pointer",
    "-fdata-sections",  # and so a label for each variable, before which assembly.py puts a zone
    *_CHECK,
    "-fsanitize=thread",
)
_HOOKS_GCC = (
    *("-fno-builtin-memcpy", "-fno-builtin-memmove", "-fno-builtin-memset"),  # without a hook
    "-fsanitize-coverage=trace-pc",
    "-fsanitize=bounds-strict",  # of a structure's last array, too
    "--param=tsan-distinguish-volatile=1",
    "--param=logical-op-non-short-circuit=0",
)
_HOOKS_CLANG = (
    "-fsanitize-coverage=trace-pc,no-prune",
    "-fsanitize=array-bounds",
    "-fno-sanitize-trap=array-bounds",
    *("-mllvm", "-tsan-distinguish-volatile=1"),
    *("-mllvm", "-tsan-instrument-read-before-write=1"),
)
# A section that a linker drops if a file before has one of that name.
_GROUP = re.compile(r'(\t\.section\t[^,\n]+,"\w*)G(\w*)"(,[@%]\w+(?:,\d+)?),[^,\n]+,comdat')
_BUILTIN_COPY = re.compile(r"\b__builtin_(mem(?:cpy|move|set))\b")
# Where a message is; and what begins one, to which notes and source lines that follow belong.
_WHERE = re.compile(r"^In file included|: (?:In |At global scope)")
_BEGINS = re.compile(rf": (?:(?:fatal )?error|warning): |{_WHERE.pattern}")
_LINE = re.compile(r'^#line (?P<line>\d+) "(?P<file>[^"]+)"$', re.MULTILINE)
_NAMED = re.compile(rf"^#line \d+ {QUOTED}", re.MULTILINE)
_ERROR = re.compile(r"^(?P<file>[^\n]+?):\d+:(?:\d+:)? (?:fatal )?error: ", re.MULTILINE)
# What a plain run from the cache needs nothing of.
_IMPORTED_LATE = (
    "backends.cpu.assembly", "backends.cpu.regions", "language.nvcc_rules",
)  # fmt: skip
LONGEST_NAME = 60  # letters of a source file's name that a name in the cache has
_OLDEST_GCC = 11  # the first that distinguishes volatile accesses


def runtime_library() -> Path:
    """The compiled scheduler (runtime.cpp) that every kernel library links against."""
    flags = with_users(KERNEL)
    return _runtime("runtime", "grids/runtime.cpp", flags, kernel_flags)


def check_runtime_library() -> Path:
    """The compiled scheduler of check mode (check.cpp), with its instruments."""
    flags = (*KERNEL, "-fno-omit-frame-pointer", *_CHECK)
    return _runtime("check-runtime", "check/check.cpp", with_users(flags), check_flags)


def runtime_files(*, check: bool) -> list[Path]:
    """The schedulers, and the headers of their kernels: what another cache needs of this one."""
    made = [(runtime_library(), kernel_flags())]
    if check:
        made.append((check_runtime_library(), check_flags()))
    headers = [_precompiled(flags) for _, flags in made]
    return [library for library, _ in made] + [path for path in headers if path.is_file()]


def quick_files() -> list[Path]:
    """The header as quickly compiled kernels begin with it, made once: see `runtime_files`."""
    flags = _optimized(QUICK_OPTIMIZED)
    header = _precompiled(flags)
    if not header.is_file() and not _is_clang():
        beside = header.parent.parent
        with (
            suppress(OSError),
            stage("compiling the header of all kernels, once", once=True),
            tempfile.TemporaryDirectory(prefix="build-", dir=beside) as folder,
        ):
            _precompile(lambda: flags, Path(folder))
    return [header] if header.is_file() else []


def _runtime(
    stem: str, name: str, flags: tuple[str, ...], kernels: Callable[[], tuple[str, ...]]
) -> Path:
    """The library of `name`; the header of its kernels is precompiled with the flags `kernels`."""
    compile_and_link = _compile_and_link((*flags, *for_runtime()))

    def steps(folder: Path) -> tuple[Step, ...]:
        return (*compile_and_link(folder), lambda: _precompile(kernels, folder))

    text, what = (RUNTIME / name).read_text(encoding="utf-8"), "the CPU device's runtime, once"
    try:
        return _built(stem, text, flags, steps, what, once=True)
    except KernelCompileError as error:
        raise runtime_failure(error.message) from None


def kernel_library(
    parts: tiers.Parts, label: str, check: Callable[[Path], None], *, loops: bool = True
) -> Path:
    """Compile a kernel file. KernelCompileError with the messages.

    The threads of its kernels become `loops` where that is possible. `check` inspects the library
    before it is stored.
    """
    runtime = str(runtime_library())
    words = ("loops" if loops else "fibers", "exact" if parts.exact else "")

    def steps(folder: Path) -> tuple[Step, ...]:
        command, link = _compile_and_link(kernel_flags(), runtime)(folder)
        command = (*command, *([FITTING] if parts.exact else ()))
        compile_it = _compile_loops if loops else _compile_fibers

        def attempt(ready: tiers.Parts) -> tuple[Done, str]:
            done = compile_it(folder, command, ready)
            return done, done.stderr if done.returncode else ""

        check_it = partial(check, folder / "library.so")
        return (lambda: _exact(attempt, parts, label, observed=False), link, check_it)

    depends = (*parts.kernels, *with_users(KERNEL), runtime, *words)
    return _built(Path(label).stem[:LONGEST_NAME], parts.text, depends, steps, label)


def _exact(
    attempt: Callable[[tiers.Parts], tuple[Made, str]],
    parts: tiers.Parts,
    label: str,
    *,
    observed: bool,
) -> Made:
    """What an `attempt` to compile kernels makes, with a GPU's conversions and shifts.

    It is given with the compiler's errors. Where the compiler refuses these results for a
    statement, the function around it refuses to run.
    """
    from cudalab.backends.cpu.regions import places_in  # noqa: PLC0415 - for new kernels only

    refused: Counter[Place] = Counter()
    before, errors = None, ""
    for_host = partial(tiers.for_host, observed=observed)
    while True:
        ready = for_host(parts, refused=tuple(refused.items()))
        if ready == before:
            if not observed or refused[EVERYWHERE] > 1:
                break
            refused[EVERYWHERE] += 1
            if refused[EVERYWHERE] > 1:  # the text has no zones, so these are not to blame
                refused.update(places_in(errors))
            continue
        (made, errors), before = attempt(ready), ready
        if not errors or not parts.exact:
            return made
        refused.update(places_in(errors))
    plain, wrong = attempt(for_host(parts._replace(exact=False)))
    if wrong:  # a wrong file fails again, in its own words
        return plain
    first = next(line for line in errors.splitlines() if "error:" in line)
    raise KernelCompileError(
        f"{label}: its conversions and shifts cannot be given a GPU's values:\n{first}",
        hint="split the statement into simpler ones, with variables of plain types",
    )


def _compile_fibers(
    folder: Path, command: tuple[str, ...], parts: tiers.Parts, reason: str = ""
) -> Done:
    """Compile kernels whose threads are fibers, for a reason."""
    text = tiers.with_fibers(parts, reason)
    (folder / "source.cpp").write_text(text, encoding="utf-8", errors="surrogateescape")
    return _run_compiler(command)


def _compile_loops(folder: Path, command: tuple[str, ...], parts: tiers.Parts) -> Done:
    """Compile kernels as loops over threads; with fibers where the compiler refuses the loops."""
    from cudalab.backends.cpu.regions import blamed  # noqa: PLC0415 - for new kernels only

    source = folder / "source.cpp"
    source.write_text(tiers.to_preprocess(parts), encoding="utf-8")
    compiler = find_compiler()
    done = run((*compiler.compile, *DEFINED, "-E", str(source)))
    refused: dict[str, str] = {}
    while True:
        text, places = tiers.with_loops(parts, done.stdout, refused)
        source.write_text(text, encoding="utf-8", errors="surrogateescape")
        compiled = _run_compiler(command)
        if compiled.returncode == 0 or not places:
            return compiled
        if not refused and (plain := _compile_fibers(folder, command, parts)).returncode != 0:
            return plain  # the kernels themselves are wrong
        refused |= blamed(compiled.stderr, places)


def check_library(parts: tiers.Parts, label: str) -> Path:
    """Compile a kernel file with hooks for check mode, and its tables of call sites.

    A note in the cache names the library of what the compiler took at last. Where nothing may be
    compiled, what it has refused before that cannot be tried again.
    """
    flags = (FITTING,) if parts.exact else ()
    words = (*map(str, parts), *check_flags(flags), str(check_runtime_library()))
    place = cached("cpu", "checked", find_compiler().identity, *words, suffix=".txt")
    note = place if place.exists() else place_of(place)
    if note.exists():
        library = place.with_name(note.read_text(encoding="utf-8"))
        library = library if library.exists() else place_of(library)
        if library.exists():
            return library

    def attempt(ready: tiers.Parts) -> tuple[Path | KernelCompileError, str]:
        try:
            return check_files([(tiers.with_fibers(ready), flags)], label), ""
        except KernelCompileError as error:
            return error, error.message

    made = _exact(attempt, parts, label, observed=True)
    if isinstance(made, KernelCompileError):
        raise made
    with explain_full_disk():
        draft = note.with_suffix(f".{os.getpid()}")
        draft.write_text(made.name, encoding="utf-8")
        draft.replace(note)
    return made


def check_files(
    files: Sequence[tuple[str, tuple[str, ...]]], label: str, libraries: tuple[str, ...] = ()
) -> Path:
    """Compile texts with hooks for check mode to one library, with its tables of call sites.

    Those of a whole program have flags, one tuple a text, and `libraries` beside the runtime.
    """
    texts = [_BUILTIN_COPY.sub(r"\1", text) for text, _ in files]
    runtime = str(check_runtime_library())

    def steps(folder: Path) -> tuple[Step, ...]:
        objects = [str(folder / f"{i}.o") for i in range(len(texts))]
        inputs = (*objects, *libraries, runtime)
        return (
            *_compile_checked(folder, texts, [more for _, more in files], bool(libraries)),
            lambda: find_compiler().link(folder / "library.so", inputs, shared=True),
        )

    depends = [word for _, more in files for word in (*check_flags(more), "")]
    return _built(
        f"{Path(label).stem[:LONGEST_NAME]}-check",
        "\0".join(texts),
        (*depends, runtime, *libraries),
        steps,
        f"{label}, instrumented",
    )


def _compile_checked(
    folder: Path,
    texts: Sequence[str],
    flags: Sequence[tuple[str, ...]],
    is_program: bool,
) -> list[Step]:
    """The steps from texts to objects with tables, which continue each other's."""
    from cudalab.backends.cpu import assembly, site_tables  # noqa: PLC0415 - for check mode only

    compile_it, counts = find_compiler().compile, site_tables.Counts()

    def annotate(i: int) -> None:
        nonlocal counts
        listing = folder / f"{i}.s"
        rows, counts = assembly.annotate(
            _kept(listing.read_text(encoding="utf-8")),
            {unquoted(name) for name in _NAMED.findall(texts[i])},
            is_program=is_program,
            before=counts,
            is_last=i == len(texts) - 1,
        )
        listing.write_text(rows, encoding="utf-8")

    steps: list[Step] = []
    for i, text in enumerate(texts):
        source, listing = folder / f"{i}.cpp", str(folder / f"{i}.s")
        source.write_text(text, encoding="utf-8", errors="surrogateescape")
        all_flags = check_flags(flags[i])
        options = (*all_flags, *_searched(all_flags), "-S", str(source), "-o", listing)
        steps += [
            (*compile_it, *options),
            partial(annotate, i),
            (*compile_it, "-c", listing, "-o", str(folder / f"{i}.o")),
        ]
    return steps


def _kept(listing: str) -> str:
    """An assembly file whose inline functions a linker keeps, though another file has them, too.

    The tables name places in all of them.
    """
    return _GROUP.sub(r'\1\2"\3', listing).replace("gnu_unique_object", "object")


def look_up() -> None:
    """Look up once what each compilation asks for, before processes are forked."""
    for module in _IMPORTED_LATE:
        import_module(f"cudalab.{module}")
    key()
    with suppress(CudalabError):
        kernel_flags()
        check_flags()
        find_compiler().version()


def kernel_flags() -> tuple[str, ...]:
    """The flags for kernels that are optimized, or not much if the environment has QUICK."""
    if os.environ.get(QUICK) == "1":
        return _optimized(QUICK_OPTIMIZED)
    return with_users(KERNEL) if _is_clang() else _optimized(GCC_OPTIMIZED)


def _optimized(instead: tuple[str, ...]) -> tuple[str, ...]:
    """The flags for kernels with others in place of -O3."""
    at = KERNEL.index("-O3")
    return with_users((*KERNEL[:at], *instead, *KERNEL[at + 1 :]))


def _is_clang() -> bool:
    return "clang" in find_compiler().version()


def check_flags(more: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The flags for kernels in check mode; the user's may not optimize them."""
    return (*with_users((*_NOT_OPTIMIZED, *_hooks(), *more)), "-O0")


@cache
def _hooks() -> tuple[str, ...]:
    """The flags that make the compiler call the hooks of check mode."""
    version = find_compiler().version()
    if "clang" in version:
        return _HOOKS_CLANG
    number = re.search(r" (\d+)\.\d+", version)
    if number and int(number[1]) < _OLDEST_GCC:
        raise NoDeviceError(
            f"check mode needs g++ {_OLDEST_GCC} or later, or clang: found {version}",
            hint=f"{install_command('cpu')} and set CXX to: python -m ziglang c++",
        )
    return _HOOKS_GCC


def _searched(flags: tuple[str, ...]) -> tuple[str, ...]:
    """The include paths, beginning with that of the precompiled header, which g++ prefers."""
    return ("-I", str(_precompiled(flags).parent), *for_kernels())


def _precompiled(flags: tuple[str, ...]) -> Path:
    """The header as g++ has read it with `flags`; it need not be there."""
    flags = tuple(flag for flag in flags if flag != FITTING)  # it is the same with and without
    return cached("cpu", "header", find_compiler().identity, *flags) / f"{_HEADER.name}.gch"


def _precompile(kernels: Callable[[], tuple[str, ...]], folder: Path) -> None:
    """Keep the header as g++ reads it with the flags `kernels`.

    Without it, as on a full disk, the compiler reads the text for each kernel.
    """
    compiler = find_compiler()
    if _is_clang():  # which would need an option in each call
        return
    with suppress(OSError, NoDeviceError):
        flags, made = kernels(), folder / "header.gch"
        read = ("-x", "c++-header", str(_HEADER), "-o", str(made))
        done = run((*compiler.compile, *flags, *read))
        if done.returncode == 0:
            target = _precompiled(flags)
            target.parent.mkdir(exist_ok=True)
            made.replace(target)


def _built(
    stem: str, text: str, depends: tuple[str, ...], steps: Steps, what: str, *, once: bool = False
) -> Path:
    """The cached library for `text`; `steps` compile it, which is said of `what`, if it is new."""
    library = cached("cpu", stem, find_compiler().identity, text, *depends, suffix=".so")
    if not library.exists():
        library = place_of(library)
        if not library.exists():
            with stage(f"compiling {what}", once=once):
                _build(find_compiler(), text, steps, library)
    return library


def _compile_and_link(
    flags: tuple[str, ...], *libraries: str
) -> Callable[[Path], tuple[tuple[str, ...], Callable[[], Done]]]:
    compiler = find_compiler()

    def steps(folder: Path) -> tuple[tuple[str, ...], Callable[[], Done]]:
        source, compiled = str(folder / "source.cpp"), str(folder / "kernel.o")
        return (
            (*compiler.compile, *flags, *_searched(flags), "-c", source, "-o", compiled),
            partial(_link, folder, libraries=libraries),
        )

    return steps


def _link(folder: Path, libraries: tuple[str, ...]) -> Done:
    """Make library.so of kernel.o."""
    inputs = (str(folder / "kernel.o"), *libraries)
    return find_compiler().link(folder / "library.so", inputs, shared=True)


@explain_full_disk()
def _build(compiler: Compiler, text: str, steps: Steps, library: Path) -> None:
    """Compile beside the cache entry and move the result into place, so it is always complete."""
    with tempfile.TemporaryDirectory(prefix="build-", dir=library.parent) as name:
        folder = Path(name)
        (folder / "source.cpp").write_text(text, encoding="utf-8", errors="surrogateescape")
        for step in steps(folder):
            done = step() if callable(step) else _run_compiler(step)
            if done and done.returncode != 0:
                raise _compile_error(done.stderr or done.stdout, compiler, text)
        (folder / "library.so").replace(library)


def _run_compiler(command: Sequence[str]) -> Done:
    """Run a compiler, which may read a precompiled header in a folder that it searches."""
    attempt = partial(
        carefully, [command], lambda commands: run(*commands), lambda done: done.returncode
    )
    done = attempt()
    if not reads_damage(done.stderr):
        return done
    searched = [Path(word) for before, word in pairwise(command) if before == "-I"]
    own = [folder for folder in searched if folder.is_relative_to(cache_dir("cpu").parent)]
    headers = [header for folder in own for header in folder.glob("*.gch")]
    return without_damaged(headers, attempt, lambda done: done.stderr)


def without_damaged(
    headers: Iterable[Path], attempt: Callable[[], Result], messages: Callable[[Result], str]
) -> Result:
    """Compile without precompiled headers that may be damaged: the text will do.

    If the compiler still complains as before, they are not at fault, and stay.
    """
    moved: list[tuple[Path, Path]] = []
    for header in headers:
        aside = header.with_name(f"aside-{os.getpid()}")
        with suppress(OSError):  # another process has moved it
            moved.append((header, header.replace(aside)))
    is_damaged = False
    try:
        result = attempt()
        is_damaged = not reads_damage(messages(result))
    finally:
        for header, aside in moved:
            aside.unlink() if is_damaged else aside.replace(header)
    return result


def reads_damage(messages: str) -> bool:
    """Whether a damaged precompiled header may be what the compiler complains of or crashes on.

    One that a limit has ended says so in other words.
    """
    signs = ("PCH", "Segmentation fault", "internal compiler error")
    return any(sign in messages for sign in signs)


def runtime_failure(messages: str) -> ToolchainError:
    """The error for cudalab's own code failing to compile."""
    return disk_full(messages) or ToolchainError(
        f"the CPU device's own runtime does not compile:\n{messages.strip()}"
    )


def _compile_error(messages: str, compiler: Compiler, text: str) -> CudalabError:
    full = disk_full(messages)
    if full:
        return full
    if re.search("File (size limit exceeded|too large)", messages):  # in a sandbox
        return KernelCompileError(
            "the compiled kernel is larger than a file may be here",
            hint="is there a huge array with initial values?",
        )
    hint = None
    if re.search(r"\basm\b", text):
        hint = "inline PTX cannot run on the CPU device: declare requires = ['inline_ptx']"
    elif "<<<" in text:
        hint = "a kernel file holds kernels only: cudalab launches them"
    errors = _at_the_end(text, messages) or _without_warnings(messages).strip()
    errors = errors.replace("__syncthreads_at", "__syncthreads")  # our function behind the macro
    return KernelCompileError(f"{compiler.name} rejected the kernel:\n{errors}", hint)


def _at_the_end(text: str, messages: str) -> str:
    """The error of a text that ends too early, where a compiler blames what we have put behind it.

    Empty for other errors.
    """
    marks, first = list(_LINE.finditer(text)), _ERROR.search(messages)
    names = {mark["file"] for mark in marks}
    if tiers.EXPORTS not in messages or not first or not marks or first["file"] in names:
        return ""
    line = int(marks[-1]["line"]) + text.rstrip().count("\n", marks[-1].end() + 1)
    return (
        f"{marks[-1]['file']}:{line}: error: the file ends here, inside of something: a bracket or "
        "a semicolon is missing"
    )


def _without_warnings(messages: str) -> str:
    """The errors among a compiler's messages: nvcc, which graders run, has other warnings."""
    errors: list[str] = []
    message: list[str] = []  # its place, its text and the lines that belong to it
    for line in [*messages.splitlines(), "In file included"]:
        if message and _BEGINS.search(line) and not _WHERE.search(message[-1]):
            errors += [] if any(": warning: " in each for each in message) else message
            message = []
        message.append(line)
    return "\n".join(errors)
