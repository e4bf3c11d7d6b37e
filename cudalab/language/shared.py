"""Shared variables as a host's compiler takes them."""

from collections.abc import Iterator

from cudalab.language.macros import Macro, read_body
from cudalab.language.scopes import Declarator, Node, Scope
from cudalab.language.structure import CudaFile
from cudalab.language.tokens import ATTRIBUTES, Edit, Words


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
    shared = [node for node in root.of_kind("declaration") if "__shared__" in node.words]
    dynamic = {name.name for node in shared if "extern" in node.words for name in node.names}
    for cast in root.of_kind("named_cast") if dynamic else ():
        value = cast.children[0]
        if cast.text == "reinterpret_cast" and value.kind == "name" and value.text in dynamic:
            yield tokens[value.first].start, tokens[value.first].start, "+"  # to be a pointer
    for node in shared:
        at = texts.index("__shared__", node.first)
        if "extern" in node.words:
            yield from _dynamic(node, words, text, macro)
        elif "static" in node.words:
            static = tokens[texts.index("static", node.first)]
            yield static.start, static.end, ""
        if texts[at + 1] == "alignas":
            start, end = tokens[at].start, tokens[words.behind(at + 2, node.last) - 1].end
            yield start, end, f"{text[tokens[at + 1].start : end]} __shared__"


def _dynamic(node: Node, words: Words, text: str, macro: Macro | None) -> Iterator[Edit]:
    """The edit that makes pointers to the memory of the launch of `extern __shared__ T name[]`."""
    scopes = node.scope.enclosing() if node.scope is not None else ()
    in_function = any(scope.kind in ("block", "function") for scope in scopes)
    arrays = [each for each in node.declarators if each.array < each.value]
    if not arrays:
        return
    pointers = "".join(_pointer(words, node, each, in_function=in_function) for each in arrays)
    last = words.tokens[node.last - 1]
    if macro and last.start == macro.end:  # it leaves the semicolon to its user
        pointers, last = pointers.removesuffix(";"), words.tokens[node.last - 2]
    start, end = words.tokens[node.first].start, last.end
    lost = text.count("\n", start, end)
    yield start, end, pointers + ("\\\n" if macro else "\n") * lost


def _pointer(words: Words, node: Node, array: Declarator, *, in_function: bool) -> str:
    """The pointer that takes the place of an array."""
    name, kind = words.texts[array.name], _type(words, node, array)
    dimensions = " ".join(words.texts[array.array + 2 : array.last])  # after `[]`
    if not in_function:
        made = f"::cudalab::cudalab_dynamic_array<{kind}{dimensions}>"
        return f"static constexpr {made} {name}{{}};"
    if dimensions:
        return (
            f"{kind} (*const {name}){dimensions} = "
            f"({kind} (*){dimensions})::cudalab::cudalab_dynamic();"
        )
    return f"{kind}* const {name} = ({kind}*)::cudalab::cudalab_dynamic();"


def _type(words: Words, node: Node, array: Declarator) -> str:
    """The type of an array's elements, without storage class and alignment."""
    pieces, i = list[str](), node.first
    while i < node.at:
        text, is_attribute = words.texts[i], words.texts[i] in ATTRIBUTES
        if not is_attribute and text not in ("extern", "__shared__", "static"):
            pieces.append(text)
        i = words.behind(i + 1, node.at) if is_attribute else i + 1
    pieces += words.texts[array.first : array.name]
    return " ".join(pieces).replace(" :: ", "::").replace(":: ", "::")
