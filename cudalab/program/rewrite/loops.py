"""Kernels of whole programs as loops over the threads of a block, as far as possible.

Each source is preprocessed without the system's headers, and `backends/cpu/regions` writes its
kernels anew; their text follows the source's own. The runtime finds a kernel's loops by its
address. A template has none before it is launched: its launch says both ways to call it, and the
function for a whole block is declared behind the kernel.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from cudalab.backends.cpu.compiler import flags, toolchain
from cudalab.backends.cpu.regions import Loops, Place, loops, parts, unit
from cudalab.backends.cpu.regions.functions import Function
from cudalab.backends.cpu.regions.words import read
from cudalab.language.tokens import Token, spaced, split
from cudalab.program.rewrite.launches import call_of, qualified
from cudalab.program.rewrite.parsed import Launch, Parsed
from cudalab.program.ways import Ways

MOST_INSTANCES = 8  # of a template's loops
_GROUPS = "cudalab/group_regions.h"  # for loops with cooperative groups
_USES_GROUPS = re.compile(r"\b__(?:cg|grid)_|\bcudalab_mask\b")
_PLANE = re.compile(r"\bdim3\b[^;]*,")  # a block of several dimensions, perhaps
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b[^\n]*$", re.MULTILINE)
_DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+(\w+)")
_LABEL = re.compile(r'^#line \d+ "(.*)"$', re.MULTILINE)
_MARKER = re.compile(r'# \d+ "(.*?)"(?: \d|$)')
_CONDITION = re.compile(r"[ \t]*#[ \t]*(?:el)?if(?:n?def)?\b(.*)", re.DOTALL)
# Macros of our own headers. Conditions on others that begin with an underscore, or are guards of
# headers, choose between systems and toolkits, not between kernels.
_DEFINED = ("-DCUDART_VERSION=13000", "-DCUDA_VERSION=13000", "-D__CUDA_ARCH__=800")
_HARMLESS = re.compile(r"_\w*|\w+_H_?|CUDA\w*_VERSION|NDEBUG|defined")


@dataclass(frozen=True)
class Preprocessor:
    """The compiler's preprocessor, applied to texts without the system's headers."""

    command: Sequence[str]
    whole: Sequence[str]  # the same with all headers
    folder: Path
    options: str = ""  # the macros of the command line, as directives

    def text(self, name: str, texts: dict[str, str], conditions: set[str]) -> str | None:
        """The file `name` with what it includes of `texts`, without other headers.

        Macros of other headers are there if `conditions` has their names. None if that fails.
        """
        macros = self._macros(name, texts, conditions)
        if macros is None:
            return None
        own = {f'"{each}"' for each in texts}

        def kept(match: re.Match[str]) -> str:
            """An #include of the program's; headers of the system contain no kernels."""
            return match[0] if match[0].partition("include")[2].strip() in own else ""

        self._write({each: _INCLUDE.sub(kept, text) for each, text in texts.items()})
        defined = self.folder / "defined"
        defined.write_text("\n".join([*macros, ""]), encoding="utf-8")
        guards = flags.CUDA_RUNTIME.with_name("cudalab") / "guards.h"
        return self._printed(
            *self.command, *_DEFINED, "-include", str(guards), "-include", str(defined), name=name
        )

    def _macros(self, name: str, texts: dict[str, str], conditions: set[str]) -> list[str] | None:
        """The directives that define those of `conditions` that other headers define."""
        if not conditions:
            return []
        self._write(texts)
        printed = self._printed(*self.whole, "-dD", name=name)
        if printed is None:
            return None
        own = {*texts, "macros", "<built-in>", "<command-line>"}
        own |= {match[1] for text in texts.values() for match in _LABEL.finditer(text)}
        macros: dict[str, str] = {}
        is_own = True
        for line in printed.splitlines():
            if match := _MARKER.match(line):
                is_own = bool(own & {match[1], match[1].rpartition("/")[2]})
            elif not is_own and (match := _DEFINE.match(line)) and match[1] in conditions:
                macros[match[1]] = line
        return list(macros.values())

    def _write(self, texts: dict[str, str]) -> None:
        self.folder.mkdir(exist_ok=True)
        for each, text in texts.items():
            (self.folder / each).write_text(text, encoding="utf-8", errors="surrogateescape")

    def _printed(self, *command: str, name: str) -> str | None:
        done = toolchain.run((*command, "-E", str(self.folder / name)))
        return done.stdout if done.returncode == 0 else None


def add(
    files: Sequence[Parsed],
    names: Sequence[str],
    sources: Iterable[int],
    preprocessor: Preprocessor,
    refused: Mapping[str, str] = MappingProxyType({}),
) -> Ways:
    """Add the loops of the kernels to the sources, as edits; return how each kernel runs.

    Kernels whose loops the compiler has `refused` keep their fibers.
    """
    ways = fibers(files, "")
    if not ways.reasons:
        return ways
    conditions = _conditions(files)
    texts = {name: file.rewritten() for name, file in zip(names, files, strict=True)}
    launches = _instances(files)
    places = Counter(launch.name for launch in launches)
    often = {name for name, count in places.items() if count > MOST_INSTANCES}
    written: dict[int, Loops] = {}
    for i in sources:
        text = preprocessor.text(names[i], texts, conditions)
        if text is None:
            ways.refuse("its file cannot be preprocessed")
            return ways
        written[i] = loops(text, is_program=True, often=often, refused=refused)
        for_all = written[i].reasons.get("", "")
        for name, reason in ways.reasons.items():
            ways.reasons[name] = reason or written[i].reasons.get(name, for_all)
    done = {name for each in written.values() for name in each.kernels}
    for name in ways.reasons.keys() - done:
        ways.reasons[name] = ways.reasons[name] or "no source has its text"
    kernels = [kernel for each in written.values() for kernel in each.functions]
    often = {kernel.name for kernel in kernels if not _has_few_instances(kernel, launches)}
    for name in often & done:
        ways.reasons[name] = f"launched in {places[name]} places, each to be compiled twice"
    unnamed = {each.name for each in kernels if each.template or each.numbers} - places.keys()
    for name in unnamed & done:
        ways.reasons[name] = "a template of which no launch and no address names an instance"
    often |= unnamed
    ways.any_loops = bool(done - often)
    ways.places = _places(files, written.values(), often)
    if ways.any_loops or any(each.alike for each in written.values()):
        lines = [*(each.text for each in _directives(files)), *preprocessor.options.splitlines()]
        own = {match[1] for line in lines if (match := _DEFINE.match(line))}
        _weave(files, written, own, often)
    return ways


def _places(
    files: Sequence[Parsed], written: Iterable[Loops], often: set[str]
) -> dict[str, frozenset[Place]]:
    """The lines of each kernel with loops, and those of the launches that call them."""
    places = {name: own for each in written for name, own in each.places.items()}
    for file in files:
        for launch in (*file.launches, *file.addresses):
            if launch.name in places:
                places[launch.name] |= {(file.file.label, file.lines[launch.position])}
    return {name: own for name, own in places.items() if name not in often}


def _instances(files: Sequence[Parsed]) -> list[Launch]:
    """The launches of templates, those of a macro as often as it is used, and other instances."""
    launches = [launch for file in files for launch in file.launches]
    words = Counter(word.text for file in files for word in file.tokens)
    launches += [each for each in launches for _ in range(1, words[each.macro])]
    launched = {each.kernel for each in launches}
    others = {each.kernel: each for file in files for each in file.addresses}
    return launches + [each for kernel, each in others.items() if kernel not in launched]


def fibers(files: Sequence[Parsed], reason: str) -> Ways:
    """All kernels of a program, with the reason why they run as fibers."""
    return Ways({each.name: reason for file in files for each in file.structure.kernels})


def _directives(files: Sequence[Parsed]) -> list[Token]:
    return [each for file in files for each in file.directives]


def _conditions(files: Sequence[Parsed]) -> set[str]:
    """The names that conditions of the preprocessor depend on."""
    tested = [match[1] for each in _directives(files) if (match := _CONDITION.match(each.text))]
    names = {name for text in tested for name in re.findall(r"[A-Za-z_]\w*", text)}
    return {name for name in names if not _HARMLESS.fullmatch(name)}


def _weave(
    files: Sequence[Parsed], written: dict[int, Loops], macros: Iterable[str], often: set[str]
) -> None:
    """Append the loops to the sources, and call them where templates are launched.

    Templates that are launched often keep their fibers.
    """
    planes = any(_PLANE.search(each.file.text) for each in files)
    flat = all(each.flat for each in written.values()) and not planes
    head = [f"#undef {name}" for name in sorted({*macros, *unit.BLOCK_VOTES})]  # they are expanded
    head += ["#define CUDALAB_PROGRAM", *["#define CUDALAB_FLAT"] * flat]
    head += ['#include "../kernels/regions.h"']
    templates: dict[str, Function] = {}
    for i, each in written.items():
        if each.functions or each.alike:
            others = [kernel for kernel in each.functions if kernel.template or kernel.numbers]
            plain = [kernel for kernel in each.functions if kernel not in others]
            templates |= {kernel.name: kernel for kernel in others if kernel.name not in often}
            groups = [f'#include "{_GROUPS}"'] if _USES_GROUPS.search(each.text) else []
            known = qualified(files, {kernel.name for kernel in [*plain, *each.alike]}, set())
            added = [_registered(kernel, known, has_loops=True) for kernel in plain]
            added += [_registered(kernel, known, has_loops=False) for kernel in each.alike]
            files[i].tail = "\n".join([*head, *groups, each.text, *added, ""])
    for file in files:
        for kernel in file.structure.kernels:
            if kernel.body_end is not None and kernel.name in templates:
                text = f" {parts.declaration(templates[kernel.name])}"
                file.replace(kernel.body_end, kernel.body_end, text)
        for launches, by_address in ((file.launches, False), (file.addresses, True)):
            for launch in launches:
                if template := templates.get(launch.name):
                    _call_both(file, launch, template, flat=flat, by_address=by_address)


def _registered(kernel: Function, expressions: dict[str, str], *, has_loops: bool) -> str:
    """The object that tells the runtime a kernel's loops, or that one row of its blocks does."""
    space = kernel.head[0].namespace.replace("{}", "").replace("::::", "::").strip(":")
    name = f"{space}::{kernel.name}" if space else kernel.name
    written, own = expressions.get(name, name), name.replace("::", "_")
    if not has_loops:
        return f"static ::cudalab::OneRow cudalab_row_{own}({written});"
    run = f"::cudalab::BlockLauncher<{name}_cudalab_all>::run"
    return f"static ::cudalab::AddLoops cudalab_add_{own}({written}, {run}, CUDALAB_IS_FLAT);"


def _has_few_instances(kernel: Function, launches: Iterable[Launch]) -> bool:
    """Whether few template arguments occur, so that the kernel's loops are worth compiling."""
    own = [launch for launch in launches if launch.name == kernel.name]
    if not kernel.numbers:
        return len(own) <= MOST_INSTANCES
    calls = [_instance(launch, kernel) for launch in own]
    return all(calls) and len({call[0] for call in calls if call}) <= MOST_INSTANCES


def _instance(launch: Launch, kernel: Function) -> tuple[str, str] | None:
    """The template arguments of the loops that a launch calls, and the numbers passed first.

    None if the launch does not name all arguments of the kernel's template.
    """
    _, opening, rest = launch.kernel.partition("<")
    written = opening + rest
    if not kernel.numbers:
        return written, ""
    arguments = [spaced(part) for part in split(read(written)[1:-1])]
    types = [part for i, part in enumerate(arguments) if i not in kernel.numbers]
    if len(arguments) != len(kernel.numbers) + len(split(kernel.template[2:-1])):
        return None
    numbers = "".join(f", {arguments[i]}" for i in kernel.numbers)
    return f"<{', '.join(types)}>" if types else "", numbers


def _call_both(
    file: Parsed, launch: Launch, kernel: Function, *, flat: bool, by_address: bool
) -> None:
    """Make the launch of a template, or what takes an instance's address, pass both ways."""
    start, end, text = file.edits[launch.edit]
    before, name, _ = launch.kernel.partition("<")[0].rpartition(launch.name)
    arguments, numbers = _instance(launch, kernel) or ("", "")
    of_block = f"{before}{name}_cudalab_all{arguments}(cudalab_b{numbers}, cudalab_a...);"
    loops = f"(auto& cudalab_b, auto&... cudalab_a) {{ {of_block} }}"
    if by_address:
        head, _, tail = text.rpartition(")")
        both = f"{head}, ::cudalab::cudalab_loops<{str(flat).lower()}>([]{loops})){tail}"
    else:
        fibers = call_of(launch.kernel)
        two = f"::cudalab::cudalab_two_ways<{str(flat).lower()}>({fibers}, [=]{loops})"
        both = text.replace(fibers, two)
    file.edits[launch.edit] = (start, end, both)
