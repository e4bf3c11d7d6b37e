"""Shared variables as a host's compiler takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.language.rewrite import dynamic_shared

if TYPE_CHECKING:
    from cudalab.language.scopes import Node
    from cudalab.language.syntax import Words
    from cudalab.program.macros import Macro
    from cudalab.program.parsed import Parsed


def rewrite(parsed: Parsed, root: Node, words: Words, macro: Macro | None = None) -> None:
    """Rewrite the shared variables in a file's tree, or in that of a `macro`.

    `extern __shared__ T name[];` becomes a pointer to the memory of the launch. What is shared is
    static by itself, and g++ wants `alignas` first.
    """
    tokens, texts = words.tokens, words.texts
    for node in root.of_kind("declaration"):
        if "__shared__" not in node.words:
            continue
        at = texts.index("__shared__", node.first)
        if "extern" in node.words:
            _rewrite_dynamic(parsed, node, words, macro)
        elif "static" in node.words:
            static = tokens[texts.index("static", node.first)]
            parsed.replace(static.start, static.end, "")
        if texts[at + 1] == "alignas":
            end = tokens[words.behind(at + 2, node.last) - 1].end
            alignment = parsed.file.text[tokens[at + 1].start : end]
            parsed.replace(tokens[at].start, end, f"{alignment} __shared__")


def _rewrite_dynamic(parsed: Parsed, node: Node, words: Words, macro: Macro | None) -> None:
    scopes = node.scope.enclosing() if node.scope is not None else ()
    in_function = any(scope.kind in ("block", "function") for scope in scopes)
    declared = words.tokens[node.first : node.last - 1]
    pointer = dynamic_shared(declared, in_function=in_function)
    if pointer is None:
        return
    semicolon = words.tokens[node.last - 1]
    if macro and semicolon.start == macro.end:  # it leaves the semicolon to its user
        pointer, semicolon = pointer.removesuffix(";"), declared[-1]
    parsed.replace(declared[0].start, semicolon.end, pointer, "\\\n" if macro else "\n")
