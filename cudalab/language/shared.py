"""Shared variables as a host's compiler takes them."""

from collections.abc import Iterator, Sequence

from cudalab.language.macros import Macro, read_body
from cudalab.language.scopes import Node, Scope
from cudalab.language.structure import CudaFile
from cudalab.language.tokens import Edit, Token, Words, closing

CAST_WORDS = 24  # of `reinterpret_cast<TYPE>(` at most


def edits(file: CudaFile, scope: Scope) -> list[Edit]:
    """The edits for the shared variables in a file that was read into `scope`, and in its macros.

    `extern __shared__ T name[];` becomes a pointer to the memory of the launch. What is shared is
    static by itself, and g++ wants `alignas` first. Lines keep their numbers.
    """
    made = list(_edits(file.root, file.words, file.text))
    for macro in file.macros:
        if "__shared__" in macro.words:
            words, body = read_body(macro, scope)
            made += _edits(body, words, file.text, macro)
    return made


def _edits(root: Node, words: Words, text: str, macro: Macro | None = None) -> Iterator[Edit]:
    tokens, texts = words.tokens, words.texts
    yield from _casts(root, words)
    for node in root.of_kind("declaration"):
        if "__shared__" not in node.words:
            continue
        at = texts.index("__shared__", node.first)
        if "extern" in node.words:
            yield from _dynamic(node, words, text, macro)
        elif "static" in node.words:
            static = tokens[texts.index("static", node.first)]
            yield static.start, static.end, ""
        if texts[at + 1] == "alignas":
            start, end = tokens[at].start, tokens[words.behind(at + 2, node.last) - 1].end
            yield start, end, f"{text[tokens[at + 1].start : end]} __shared__"


def _casts(root: Node, words: Words) -> Iterator[Edit]:
    """A plus before a dynamic array that reinterpret_cast takes: there it must be a pointer."""
    tokens, texts = words.tokens, words.texts
    if "reinterpret_cast" not in texts:
        return
    names = {
        name.name
        for node in root.of_kind("declaration")
        if {"extern", "__shared__"} <= set(node.words)
        for name in node.names
    }
    for i, word in enumerate(texts[2:-1], 2):
        if word in names and texts[i - 1] == "(" and texts[i + 1] == ")":
            before = texts[max(i - CAST_WORDS, 0) : i - 1]
            if before[-1] in (">", ">>") and "reinterpret_cast" in before:
                yield tokens[i].start, tokens[i].start, "+"


def _dynamic(node: Node, words: Words, text: str, macro: Macro | None) -> Iterator[Edit]:
    scopes = node.scope.enclosing() if node.scope is not None else ()
    in_function = any(scope.kind in ("block", "function") for scope in scopes)
    declared, semicolon = words.tokens[node.first : node.last - 1], words.tokens[node.last - 1]
    pointer = _pointer(declared, in_function=in_function)
    if pointer is None:
        return
    if macro and semicolon.start == macro.end:  # it leaves the semicolon to its user
        pointer, semicolon = pointer.removesuffix(";"), declared[-1]
    start, end = declared[0].start, semicolon.end
    lost = text.count("\n", start, end)
    yield start, end, pointer + ("\\\n" if macro else "\n") * lost


def _pointer(words: Sequence[Token], *, in_function: bool) -> str | None:
    """The C++ for `extern __shared__ T name[]`: a pointer to the memory of the launch.

    `words` are the declaration without its semicolon. None if they declare something else.
    """
    if not any(word.text == "__shared__" for word in words):
        return None
    name = next((j for j, word in enumerate(words) if j and word.text == "["), 0) - 1
    if name < 0:
        return None
    rest = words[name + 3 :]  # further dimensions, after `name []`
    dimensions = " ".join(word.text for word in rest)
    called = words[name].text
    kind = _type_words(words[:name])
    if not in_function:
        array = f"::cudalab::cudalab_dynamic_array<{kind}{dimensions}>"
        return f"static constexpr {array} {called}{{}};"
    if rest:
        return (
            f"{kind} (*const {called}){dimensions} = "
            f"({kind} (*){dimensions})::cudalab::cudalab_dynamic();"
        )
    return f"{kind}* const {called} = ({kind}*)::cudalab::cudalab_dynamic();"


def _type_words(words: Sequence[Token]) -> str:
    """A type without its storage class and alignment."""
    type_words: list[str] = []
    i = 0
    while i < len(words):
        text = words[i].text
        if text in ("__align__", "alignas", "__attribute__"):
            i = closing(list(words), i + 1) or i
        elif text not in ("extern", "__shared__", "static"):
            type_words.append(text)
        i += 1
    return " ".join(type_words).replace(" :: ", "::").replace(":: ", "::")
