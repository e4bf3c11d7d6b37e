"""Inline PTX of a program as C++."""

from collections.abc import Iterator

from cudalab.language import ptx
from cudalab.language.tokens import Token, closing, tokenize
from cudalab.program.parsed import Parsed
from cudalab.program.pasted import Pasted


def rewrite(parsed: Parsed, tokens: list[Token], pasted: Pasted) -> None:
    """Translate inline PTX into C++; in a macro's body, leave what is unknown to the compiler."""
    in_macro = tokens is not parsed.tokens
    text = parsed.file.text
    for i, end, statement in _assembly(tokens, text, pasted):
        if not in_macro and not _in_device_code(parsed, i):
            continue
        translated = _translated(parsed, tokens[i], statement, tell=not in_macro)
        if translated is not None:
            newline = "\\\n" if in_macro else "\n"
            parsed.replace(tokens[i].start, tokens[end].end, translated, newline)
    if in_macro:
        return
    for i, end in pasted.uses(tokens):
        in_function = any(a < i < b for a, b in parsed.structure.functions)
        if not in_function or _in_device_code(parsed, i):
            made = _with_assembly(parsed, tokens[i], pasted.expanded(tokens[i : end + 1]), pasted)
            parsed.replace(tokens[i].start, tokens[end].end, made)


def _in_device_code(parsed: Parsed, i: int) -> bool:
    return any(a < i < b for a, b in (each.body for each in parsed.structure.device_functions))


def _assembly(
    tokens: list[Token], text: str, pasted: Pasted
) -> Iterator[tuple[int, int, ptx.Statement]]:
    """The first and the last token of each `asm` statement whose text is known, and what it says.

    An empty one is a fence for the compiler, and is left alone, unless it reads and writes values.
    """
    for i, token in enumerate(tokens):
        if token.text not in ("asm", "__asm__", "__asm"):
            continue
        begin = i + 1
        while tokens[begin].text in ("volatile", "__volatile__"):
            begin += 1
        end = closing(tokens, begin)
        if end is None:
            continue
        inside = tokens[begin + 1 : end]
        statement = ptx.read(inside, text)
        if statement is None:
            expanded = pasted.expanded(inside)
            statement = ptx.read(tokenize(expanded), expanded)
        if statement is not None and (statement.text.strip() or statement.keeps_values):
            yield i, end, statement


def _translated(
    parsed: Parsed, token: Token, statement: ptx.Statement, *, tell: bool
) -> str | None:
    """The statement as C++, or None if an instruction is unknown."""
    try:
        return ptx.translate(statement)
    except ptx.UnknownInstructionError as unknown:
        if tell:
            parsed.lacking.add("inline PTX", parsed.place(token.start), str(unknown))
        return None


def _with_assembly(parsed: Parsed, token: Token, text: str, pasted: Pasted) -> str:
    """The expansion of a macro at `token`, on one line, with its inline PTX as C++."""
    tokens = tokenize(text)
    pieces, at = [], 0
    for i, end, statement in _assembly(tokens, text, pasted):
        translated = _translated(parsed, token, statement, tell=True)
        if translated is not None:
            pieces += [text[at : tokens[i].start], translated]
            at = tokens[end].end
    return " ".join("".join([*pieces, text[at:]]).split())
