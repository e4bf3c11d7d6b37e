"""Plain programs: rewritten, compiled and linked to an executable."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from cudalab.backends.cpu.compiler import flags
from cudalab.backends.cpu.compiler.pipeline import (
    RefusedError,
    Unit,
    Units,
    Written,
    build,
    compiled,
)
from cudalab.backends.cpu.compiler.toolchain import find_compiler
from cudalab.output.progress import stage
from cudalab.program import rewrite, runtime
from cudalab.program.files import IN_C, Part
from cudalab.program.rewrite import loops
from cudalab.program.rewrite.parsed import ONLY_LAUNCHED
from cudalab.program.rewrite.unchecked import rewritten_c
from cudalab.program.ways import Ways


def build_program(part: Part, to: Path) -> None:
    """Build the program `to`, which the cache lacks."""

    def make(folder: Path) -> Path:
        made = runtime.plain(runtime.used(part.texts))
        objects, ways = build_objects(part, folder, made.folder)
        objects += made.finish()
        binary = folder / "program"
        done = find_compiler().link(binary, [*objects, *part.host.link], shared=False)
        if done.returncode:
            raise RefusedError(done.stderr)
        ways.store(to)
        return binary

    try:
        build(to, make)
    except RefusedError as error:
        from cudalab.program.messages import explain  # noqa: PLC0415 - most programs are not refused

        raise explain(error.messages, part.files) from None


def build_objects(
    part: Part, folder: Path, header: Path, more: Sequence[str] = ()
) -> tuple[list[str], Ways]:
    """Compile the sources to objects in a folder; these, and how each kernel runs. RefusedError.

    The precompiled header is in the folder `header`. The compiler gets `more` options.
    """
    macros, plain = folder / "macros", _Plain(part, folder, header, more)
    macros.write_text(part.host.macros, encoding="utf-8")
    units = Units(folder=folder, names=part.names, compiled=[*map(plain.unit, range(part.sources))])
    with stage(f"compiling {part.files[0].label}"):
        compiled(plain.write, units)
    return units.objects, plain.ways


class _Plain:
    """How the texts of a plain program are written and compiled."""

    def __init__(self, part: Part, folder: Path, header: Path, more: Sequence[str]) -> None:
        self.part, self.folder, self.more = part, folder, more
        self.ways = Ways()
        compiler, macros = find_compiler(), ["-include", str(folder / "macros")]
        own = [*compiler.compile, *flags.with_users(flags.PROGRAM), *part.flags]
        self.command = [*own, *(() if compiler.is_clang else flags.GCC_PROGRAM)]
        self.command += ["-I", str(header), *part.headers]
        for name in (runtime.PRECOMPILED, *runtime.special_functions(part.texts)):
            self.command += ["-include", name]
        self.command += macros
        self.preprocessor = loops.Preprocessor(
            [*own, *macros], self.command, folder / "read", part.host.macros
        )

    def write(self, refused: Counter[tuple[str, int]], of_loops: Mapping[str, str]) -> Written:
        """Write all files; the loops of kernels follow the text of their source."""
        part, names = self.part, self.part.names
        parsed = rewrite.edited(part.files, names, refused=refused, whole_tiles=not refused)
        plain = [each.rewritten(ONLY_LAUNCHED) for each in parsed]
        self.ways = loops.add(parsed, names, part.for_device, self.preprocessor, of_loops)
        texts = [each.rewritten(ONLY_LAUNCHED) for each in parsed]
        return Written(plain, texts, self.ways.places if self.ways.any_loops else {})

    def unit(self, i: int) -> Unit:
        """How a source is compiled; one of the host's may be compiled as it is."""
        part, path = self.part, str(self.folder / self.part.names[i])
        if i in part.for_host:
            own = self._rewritten_c(i)
            return Unit(own or part.files[i].path, [*part.host_command(i, own), *self.more])
        renamed = f"-ffile-prefix-map={path}={part.files[i].label}"
        return Unit(path, [*self.command, *self.more, renamed])

    def _rewritten_c(self, i: int) -> str:
        """The path of a file in C that throws results of CUDA away, rewritten; or nothing."""
        file = self.part.files[i]
        text = rewritten_c(file.text, file.path) if file.is_c and IN_C.search(file.text) else None
        if text is None:
            return ""
        path = self.folder / f"{i}-rewritten.c"
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        return str(path)
