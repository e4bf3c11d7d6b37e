"""The host compiler's messages about a rewritten text, in the words of the program.

What follows from an earlier error is left out: a variable whose declaration has an error, or what
a compiler says about the rest of a line that it could not read.
"""

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cudalab.program import spelling
from cudalab.program.files import File

RUNTIME = "/cpu/runtime/"
_MESSAGE = re.compile(
    r"^(?P<path>[^\s:][^:\n]*):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?P<kind>(?:fatal )?error|note): (?P<words>.*)$",
    re.MULTILINE,
)
# A template of the runtime that the program calls with what it is not for.
_INSTANCE = re.compile(
    r"In instantiation of [\u2018'](?P<what>.*)[\u2019']:\n(?:.*:   required from .*\n)*?"
    r"(?P<path>[^\s:][^:\n]*):(?P<line>\d+):\d+:   required from here$"
    r"|^(?P<other>[^\s:][^:\n]*):(?P<at>\d+):\d+: note: in instantiation of [\w ]*"
    r"'(?P<called>.*)' requested here$",
    re.MULTILINE,
)
_Q = "[\u2018']([^\u2019'\n]*)[\u2019']"  # quoted, in the words of g++ and clang++
# A name that the compiler does not know, and the namespace in which it misses it.
_UNKNOWN = re.compile(
    rf"^{_Q}(?: was not declared| does not name| has not been declared"
    rf"|(?: is not a member of| in namespace)(?: {_Q})?)"
    rf"|^(?:use of undeclared identifier|unknown type name|no (?:template|member|type) named) {_Q}"
    rf"(?: in namespace {_Q})?"
)
_SUGGESTED = re.compile(rf"; did you mean {_Q}\?$")
_HEADER = re.compile(r"^([\w./+-]+): No such file or directory$|^'([\w./+-]+)' file not found$")
_NEEDS_HEADER = re.compile(r"is defined in header [\u2018']<([\w./]+)>[\u2019']")
_ALTERNATIVE = re.compile(r"^ *[\u2018'](std::\w+)[\u2019']$")
# Classes of the C++ library that have headers of the same name.
_CLASSES = frozenset({"vector", "string", "map", "set", "list", "deque", "queue", "stack", "tuple"})
# A launch whose arguments do not match, in the words of g++ and clang++.
_ARGUMENTS = re.compile(
    r"no match(?:ing function)? for call to (?:object of type )?"
    r"[\u2018'(]+(?:cudalab::)?TypedCall<.*?lambda.*?\)>?(?:, (?P<params>.*?))? ?>"
    r"(?:\) \((?P<arguments>.*)\)[\u2019']|')$"
)
_CONFIG = re.compile(r"^.*no matching function for call to .*\bcudalab::.*?[cC]onfig\((.*)\).*$")
_RESULT = re.compile(r"^no matching function for call to [\u2018']cudalab_kernel\((.*?) \(&\).*")
_NO_CONFIG = re.compile(r"^no matching constructor for .*\bcudalab_config\b")  # clang++'s words
_NO_VALUE = re.compile(r"no known conversion from ('[^']*').* for (\d\w\w) argument$")
_NO_KERNEL = re.compile(
    r"^no matching function for call to [\u2018']cudalab_(?:typed|any)_call[\u2019'(]"
)
_NOT_A_LAUNCH = re.compile(
    r"expected primary-expression before [\u2018'][<>]|expected expression$"
    r"|no match for [\u2018']operator(?:<<|>>)|invalid operands to binary expression"
)
_LAUNCH = re.compile(r"<<<[^;]*?>>>\s*\(")
_LIKE_A_LAUNCH = re.compile(r"\w\s*<<<?[^;\"]*>>>?\s*[(;]")
_SYNTAX = re.compile(r"expected |missing terminating|unterminated|a function-definition is not")
_MISSING = re.compile(
    rf"^expected (?:[\u2018'],[\u2019'] or )?[\u2018']([;)\]])[\u2019'] before {_Q}"
)
_CONVERSION = re.compile(r"invalid conversion|cannot convert|no known conversion")
_CANDIDATE = re.compile(rf"^candidate(?: function not viable[^:]*)?: {_Q}(?: \(near match\))?$")
_INITIALIZES = re.compile(rf"^ *initializing argument (\d+) of {_Q}$")
_PLACE = re.compile(r", const char\*, int\)")  # of a call, which our declarations ask for
_CALLED = re.compile(r"([\u2018'](?:\w+::)*(?P<name>\w+)\()([^\u2019']*)(\)[\u2019'])")
# Thrust's and CUB's version, which its namespaces have in their names, and default allocators.
_LIBRARYS_OWN = re.compile(
    r"(?<=\bthrust::)_V_\w+::|(?<=\bcub::)_V_\w+::"
    r"|, (?:thrust|std)::(?:_V_\w+::)?(?:\w+_)?allocator<[^<>]*> (?=>)"
)
# What the compiler says about our additions, and what the user is told instead.
_OURS = (
    (
        re.compile(r"^(?:use of|.* to) deleted .*\bConfig\b.*"),
        "a launch has at most four values: kernel<<<grid, block, shared memory, stream>>>",
    ),
    (re.compile(r"; did you mean [\u2018'][^\u2019']*cudalab[^\u2019']*[\u2019']\?"), ""),
    (_PLACE, ")"),
    (re.compile(r"\(const char\*, int\)"), "()"),
    (re.compile(r" \[-f\w+\]$"), ""),
    (re.compile(r" \{aka [\u2018'](?:cuda|CU)\w+\**[\u2019']\}"), ""),
    (re.compile(r" \{aka [\u2018']cudaError \(\*\)[^\u2019']*[\u2019']\}"), ""),
    (re.compile(r"([\u2018'])\*\((\w+) \+ \(\(sizetype\).*([\u2019'])"), r"\1\2[...]\3"),
    (re.compile(r"(for [\u2018']operator.*[\u2018'](?:u?int3|dim3)[\u2019']\))$"), r"\1: take .x"),
)
_INTERNAL = re.compile(
    r"\bcudalab_a\b|cudalab::|required from|in instantiation of|candidate expects|in definition of"
    r"|^ *template argument deduction|^class template argument deduction failed:$|mismatched types"
    r"|^candidate: .*template<|^suggested alternatives?:$|^expanded from macro"
    r"|is defined in header|^declared here$|ISO C\+\+ forbids declaration"
)


@dataclass(kw_only=True)
class Error:
    """An error, and the notes that the compiler adds to it."""

    path: str
    line: int
    words: str
    source: str  # the line's text
    is_behind: bool = False  # it is behind the line's first word
    kind: str = "error"
    behind: str = ""  # the line behind, which the compiler could not read
    notes: list[tuple[str, int, str]] = field(default_factory=list)  # path, line, words

    def unknown(self) -> str:
        """The name that the compiler does not know; empty for other errors."""
        match = _UNKNOWN.match(self.words)
        return (match[1] or match[3]) if match else ""

    def namespace(self) -> str:
        """Where the compiler misses that name; empty if it does not say."""
        match = _UNKNOWN.match(self.words)
        return (match[2] or match[4] or "") if match else ""

    def header(self) -> str:
        """The header that the compiler does not find; empty for other errors."""
        match = _HEADER.match(self.words)
        return (match[1] or match[2]) if match else ""


def as_written(messages: str) -> str:
    """Messages with the names of Thrust and CUB that programs use."""
    return _LIBRARYS_OWN.sub("", messages)


def readable(messages: str, files: Sequence[File]) -> str:
    """The errors, each with the program's own line, without messages about the runtime.

    Columns and carets are left out, too, since they refer to the rewritten line.
    """
    messages = as_written(messages)
    texts = {file.label: file.text.splitlines() for file in files}
    names = {name for file in files for name in re.findall(r"[A-Za-z_]\w*", file.text)}
    elsewhere: dict[str, None] = {}
    errors: list[Error] = []
    for each in errors_of(messages, texts):
        if each.path in texts:
            errors.append(each)
        elif RUNTIME not in each.path:
            elsewhere[f"{each.path}:{each.line}: {each.kind}: {each.words}"] = None
    errors = list(_moved(errors, texts)) or list(_inside(messages, texts))
    lines = dict.fromkeys(
        line
        for i, error in enumerate(errors)
        if not any(_follows(error, before) for before in errors[:i])
        for line in _written(error, texts, names)
    )
    return "\n".join([*elsewhere, *lines]) or messages.strip()


def errors_of(messages: str, texts: Mapping[str, Sequence[str]]) -> Iterator[Error]:
    """The errors, each with its notes; `texts` are the lines of the sources, by their labels."""
    error: Error | None = None
    for match in _MESSAGE.finditer(messages):
        path, line, kind, words = match["path"], int(match["line"]), match["kind"], match["words"]
        if kind != "note":
            if error:
                yield error
            whole = _source(texts, path, line)
            error = Error(path=path, line=line, words=words, source=whole.strip(), kind=kind)
            error.is_behind = int(match["column"] or 0) > len(whole) - len(whole.lstrip()) + 1
        elif error:
            error.notes.append((path, line, words))
    if error:
        yield error


def _inside(messages: str, texts: dict[str, list[str]]) -> Iterator[Error]:
    """The errors in templates of the runtime, at the lines that call these."""
    for match in _INSTANCE.finditer(messages):
        path, line = match["path"] or match["other"], int(match["line"] or match["at"])
        if path in texts:
            what = match["what"] or match["called"]
            name = re.search(r"[\w:]+(?=[(<])", what)
            given = re.search(r"\[with (.*)\]$", what)
            words = f"{name[0] if name else what} is not for these arguments"
            words += f": {given[1].replace(';', ',')}" if given else ""
            yield Error(
                path=path, line=line, words=words, source=_source(texts, path, line).strip()
            )


def _source(texts: Mapping[str, Sequence[str]], path: str, line: int) -> str:
    lines = texts.get(path, ())
    return lines[line - 1] if 0 < line <= len(lines) else ""


def _moved(errors: list[Error], texts: dict[str, list[str]]) -> Iterator[Error]:
    """The errors, at the lines where the mistakes are."""
    for error in errors:
        lines = texts[error.path]
        missing = _MISSING.match(error.words)
        unclosed = re.match(r'unterminated argument list invoking macro "(\w+)"', error.words)
        if missing:
            _move_missing(error, lines, *missing.groups())
        elif result := _RESULT.match(error.words):
            numbers = range(error.line, 0, -1)
            error.line = next((n for n in numbers if "__global__" in lines[n - 1]), error.line)
            error.source = lines[error.line - 1].strip()
            error.words = f"a kernel returns void, not {result[1]}"
        elif _NO_KERNEL.match(error.words):
            error.words = "what is launched is no kernel: it returns something"
        elif unclosed:
            call = next((e for e in errors if e.unknown() == unclosed[1]), error)
            error.line, error.source = call.line, call.source
            error.words = f"expected \u2018)\u2019: {unclosed[1]}( is not closed"
        elif _NOT_A_LAUNCH.search(error.words) and _LIKE_A_LAUNCH.search(error.source):
            is_right = _LAUNCH.search(error.source)
            error.words = (
                error.words if is_right else "a launch is kernel<<<grid, block>>>(arguments)"
            )
        yield error


def _move_missing(error: Error, lines: list[str], sign: str, behind: str) -> None:
    """Tell a sign that is missing before the word `behind` at the line that lacks it."""
    before = error.source.partition(behind)[0]
    if error.is_behind and not before.strip():  # the next line begins with the same word
        before = error.source
    if sign == ";" and before.count("(") > before.count(")"):
        error.words = f"expected \u2018)\u2019 before \u2018{behind}\u2019"
    elif not before.strip() or before == error.source:
        if not before.strip():
            error.behind, error.line = error.source, _code_before(lines, error.line)
            error.source = lines[error.line - 1].strip()
        error.words = f"expected \u2018{sign}\u2019 at the end of the line"


def _code_before(lines: list[str], line: int) -> int:
    """The last line before another one that has code."""
    for number in range(line - 1, 0, -1):
        text = lines[number - 1].strip()
        if text and not text.startswith(("//", "#", "*", "/*")):
            return number
    return line


def _follows(error: Error, before: Error) -> bool:
    """Whether an error is only a consequence of one before it."""
    if error.path != before.path:
        return False
    if error.line == before.line:
        return _is_of_the_same(error, before)
    if name := error.unknown():
        declared = re.compile(rf"(?:[\w>*&]\s+[*&]*|[*&,]\s*){name}\s*[\[({{;=,]")
        lost = (before.source, before.behind)
        return error.line > before.line and any(map(declared.search, lost))
    if "it returns something" in error.words:
        return "a kernel returns" in before.words
    if _NOT_A_LAUNCH.search(error.words) and _LAUNCH.search(error.source):
        return bool(_SYNTAX.search(before.words))
    is_near = error.line == before.line + 1 or "missing terminating" in before.words
    is_rest = re.match("expected (primary-|unqualified-)?(expression|id)", error.words)
    return is_near and bool(is_rest and _SYNTAX.search(before.words))


def _is_of_the_same(error: Error, before: Error) -> bool:
    """Whether an error follows from one in the same line."""
    if error.words == before.words or "launch is" in before.words:
        return True
    if _SYNTAX.search(before.words) or before.unknown():
        rest = _SYNTAX.match(error.words) or _NOT_A_LAUNCH.search(error.words)
        return bool(rest or ("is not closed" in before.words and error.unknown()))
    return bool("no match" in before.words and _CONVERSION.search(error.words))


def _written(error: Error, texts: dict[str, list[str]], names: set[str]) -> Iterator[str]:
    """The lines about an error: its words, its source, what its notes say of the program."""
    words = _own_words(error, names)
    if not _INTERNAL.search(words):
        yield f"{error.path}:{error.line}: error: {words}\n    {error.source}"
        for path, line, note in error.notes:
            if path in texts and not _INTERNAL.search(note):
                source = _source(texts, path, line).strip()
                yield f"{path}:{line}: note: {_plain(note).strip()}\n    {source}"


def _own_words(error: Error, names: set[str]) -> str:
    """A compiler's message in terms of the program's own text."""
    words, name = error.words, error.unknown()
    if name:
        return _about_name(error, name, names)
    if path := error.header():
        if folder := _folder_with(path, Path(error.path).parent):
            return f"no header {path}; it is in {folder}: add -I {shlex.quote(folder)}"
        other = spelling.close_header(path)
        return f"no header {path}" + (f"; did you mean {other}?" if other else "")
    if "void value not ignored" in words and "<<<" in error.source:
        return "a launch has no value: ask cudaGetLastError() behind it"
    if launch := _about_launch(error):
        return launch
    words = _signature(error, _plain(_ARGUMENTS.sub(_arguments, words)))
    if "__shared__" in error.source and "storage size of" in words:
        words += (
            ": the size is a constant, or the launch's third value (extern __shared__ T name[])"
        )
    return words


def _folder_with(header: str, source: Path) -> str:
    """A folder beside a source, or beside its folder, that has a header; empty if none has it."""
    if Path(header).is_absolute() or ".." in Path(header).parts:
        return ""
    beside = [*source.glob(f"*/{header}"), *(source / "..").glob(header)]
    found = sorted(beside) or sorted((source / "..").glob(f"*/{header}"))
    return os.path.normpath(str(found[0])[: -len(header)]) if found else ""


def _about_launch(error: Error) -> str:
    """The words about a launch's values in <<<>>>; empty if the error is another one."""
    if config := _CONFIG.match(error.words):
        given = _types(config[1])
        wrong = f"({', '.join(given)})" if len(given) > 1 else ""
    elif _NO_CONFIG.match(error.words):
        values = (_NO_VALUE.search(note) for _, _, note in error.notes)
        wrong = next((f"{value[1]} as its {value[2]} value" for value in values if value), "")
    else:
        return ""
    if not wrong:
        return "a launch needs a grid and a block: kernel<<<grid, block>>>(arguments)"
    return f"a launch takes a grid, a block, bytes of shared memory and a stream, not {wrong}"


def _plain(words: str) -> str:
    for pattern, instead in _OURS:
        words = pattern.sub(instead, words)
    return words


def _about_name(error: Error, name: str, names: set[str]) -> str:
    """The words about an unknown name, with the one that was probably meant."""
    suggestion = spelling.meant(name) if spelling.is_cuda_name(name) else ""
    if suggestion:
        return f"unknown: {name}; did you mean {suggestion}?"
    if spelling.is_barrier(name):
        return f"{name} is not called, so nobody waits: {name}()"
    if "keyword to refer to the type" in error.words:  # as C has it
        return error.words
    said = _SUGGESTED.search(error.words)
    words = _SUGGESTED.sub("", error.words)
    header = next((m[1] for _, _, note in error.notes if (m := _NEEDS_HEADER.search(note))), "")
    other = next((m[1] for _, _, note in error.notes if (m := _ALTERNATIVE.match(note))), "")
    header = header or (name if name in _CLASSES and not other else "")
    if header:
        return f"{words}; it needs #include <{header}>"
    other = other or spelling.close(name, names - {name}, said[1] if said else "")
    return f"{words}; did you mean \u2018{other}\u2019?" if other else words


def _arguments(match: re.Match[str]) -> str:
    given = match["arguments"]
    types = f" ({', '.join(_types(given))})" if given is not None else ""
    return f"the arguments{types} do not match the kernel's parameters ({match['params'] or ''})"


def _types(text: str) -> list[str]:
    """Types of arguments, without the references that the compiler adds."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "<([") - (sign in ">)]")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    each = (part.strip().removesuffix("&").removesuffix("&") for part in parts)
    return [re.sub(r"^const (?=\w+$)", "", part) for part in each if part]


def _signature(error: Error, words: str) -> str:
    """The words, with the parameters of the function that is called."""
    called = _CALLED.search(words)
    if called and "no matching function" in words:
        words = words.replace(called[0], f"{called[1]}{', '.join(_types(called[3]))}{called[4]}")
    takes: dict[str, None] = {}
    for path, _, note in error.notes:
        candidate, initializes = _CANDIDATE.match(note), _INITIALIZES.match(note)
        match = candidate or initializes
        if RUNTIME not in path or match is None:
            continue
        text = _PLACE.sub(")", match[match.re.groups])
        text = re.sub(r"^(?:constexpr )?(?:cudaError_t|[\w:]+\*?)?[ :]+(?=\w+\()", "", text)
        if initializes:
            return f"{words}: argument {initializes[1]} of {text}"
        if not re.search(r"template<|cudalab::|&&|const dim3&", text):
            takes[text] = None
    return f"{words}: it is {' or '.join(takes)}" if 0 < len(takes) < 3 else words
