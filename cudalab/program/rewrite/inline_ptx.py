"""Inline PTX of a program as C++.

An `asm` statement can be translated only where its text is known, but macros may put it together,
as in `asm("mov.u32 %0, %%" #name ";" : …)`. So the macros in it are expanded as the preprocessor
would, and a macro that builds the text from its parameters is expanded at each use.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from cudalab.language import macros, ptx
from cudalab.language.tokens import CLOSING, OPENING, Token, closing, tokenize
from cudalab.program.rewrite.parsed import Parsed

_ASM = frozenset({"asm", "__asm__", "__asm"})
_VOLATILE = frozenset({"volatile", "__volatile__"})  # may follow it
_DEEPEST = 20  # macros within macros
_PAIRS = frozenset({"##", "<<", ">>", "==", "!=", "<=", ">=", "&&", "||", "+=", "-=", "|=", "++"})


class _Word(NamedTuple):
    """A token of an expansion, and whether a space is before it."""

    text: str
    spaced: bool


class Pasted:
    """The macros of a program, by name."""

    def __init__(self, files: Iterable[Parsed]) -> None:
        """Collect the macros of all files, except those with several definitions."""
        every: dict[str, list[macros.Macro]] = {}
        for each in files:
            for macro in each.macros:
                every.setdefault(macro.name, []).append(macro)
        self._macros = {
            name: found[0]
            for name, found in every.items()
            if len({(one.params, *(word.text for word in one.tokens)) for one in found}) == 1
        }
        self.makers = self._makers()

    def _makers(self) -> set[str]:
        """The macros that build the text of an `asm` statement from their parameters."""
        makers = {name for name, macro in self._macros.items() if _pastes(macro)}
        while more := {
            name
            for name, macro in self._macros.items()
            if name not in makers and macro.words & makers
        }:
            makers |= more
        return makers

    def uses(self, tokens: Sequence[Token]) -> list[tuple[int, int]]:
        """The first and the last token of each use of a maker."""
        found, i = [], 0
        while i < len(tokens):
            end = None
            if tokens[i].text in self.makers:
                end = i
                if self._macros[tokens[i].text].params:
                    end = closing(list(tokens), i + 1) if tokens[i + 1 : i + 2] else None
            if end is not None:
                found.append((i, end))
                i = end
            i += 1
        return found

    def expanded(self, tokens: Sequence[Token]) -> str:
        """The text of the tokens with all macros of the program expanded."""
        words = self._expand(_words(tokens), 0)
        return "".join((" " if word.spaced else "") + word.text for word in words)

    def _expand(self, words: list[_Word], depth: int) -> list[_Word]:
        result: list[_Word] = []
        i = 0
        while i < len(words):
            macro = self._macros.get(words[i].text) if depth < _DEEPEST else None
            arguments, end = (None, i) if macro is None else _arguments(macro, words, i)
            if macro is None or arguments is None:
                result.append(words[i])
            else:
                body = self._substituted(macro, arguments, depth)
                result += self._expand(body, depth + 1)
                i = end
            i += 1
        return result

    def _substituted(
        self, macro: macros.Macro, arguments: dict[str, list[_Word]], depth: int
    ) -> list[_Word]:
        """The body of a macro with its arguments."""
        body = _words(macro.tokens)
        result: list[_Word] = []
        i = 0
        while i < len(body):
            word = body[i]
            following = body[i + 1].text if i + 1 < len(body) else ""
            if word.text == "##":
                glued = arguments.get(following, body[i + 1 : i + 2])
                before = result.pop() if result else _Word("", spaced=False)
                first = glued[0].text if glued else ""
                result += [_Word(before.text + first, before.spaced), *glued[1:]]
                i += 1
            elif word.text == "#" and following in arguments:
                words = arguments[following]
                text = "".join((" " if word.spaced else "") + word.text for word in words).strip()
                result.append(_Word('"' + re.sub(r'[\\"]', r"\\\g<0>", text) + '"', spaced=True))
                i += 1
            elif word.text in arguments and following == "##":
                result += arguments[word.text]
            elif word.text in arguments:
                whole = self._expand(arguments[word.text], depth + 1)
                result += [_Word(each.text, word.spaced) for each in whole[:1]] + whole[1:]
            else:
                result.append(word)
            i += 1
        return result


def _pastes(macro: macros.Macro) -> bool:
    """Whether a macro's body has an `asm` statement whose text is not made of strings alone."""
    words = [word for word in macro.tokens if word.text not in _VOLATILE]
    for i, word in enumerate(words[:-1]):
        if word.text not in _ASM:
            continue
        for part in words[i + 2 : closing(words, i + 1)]:
            if part.text in (":", "::"):
                break
            if part.kind != "string":
                return True
    return False


def _words(tokens: Sequence[Token]) -> list[_Word]:
    """The tokens as words; `##` and other pairs of signs are one."""
    words: list[_Word] = []
    end = tokens[0].start if tokens else 0
    if tokens and tokens[0].kind == "directive":  # a body that begins by `#name`
        after = tokenize(tokens[0].text.lstrip().removeprefix("#"))
        return [_Word("#", spaced=True), *_words(after), *_words(tokens[1:])]
    for token in tokens:
        touches = token.start == end
        end = token.end
        if touches and words and words[-1].text + token.text in _PAIRS:
            words[-1] = _Word(words[-1].text + token.text, words[-1].spaced)
        else:
            words.append(_Word(token.text, not touches))
    return words


def _arguments(
    macro: macros.Macro, words: list[_Word], i: int
) -> tuple[dict[str, list[_Word]] | None, int]:
    """The arguments of a use, by parameter, and the index of its last word."""
    if not macro.params:
        return {}, i
    if [word.text for word in words[i + 1 : i + 2]] != ["("]:
        return None, i
    names = re.findall(r"\w+|\.\.\.", macro.params)
    given: list[list[_Word]] = [[]]
    depth = 0
    for end in range(i + 1, len(words)):
        word = words[end]
        depth += (word.text in OPENING) - (word.text in CLOSING)
        if depth == 0:
            named = dict(zip(names, given, strict=False))
            rest = {"__VA_ARGS__": named.pop("...")} if "..." in named else {}
            return {**{name: list[_Word]() for name in names}, **named, **rest}, end
        if depth == 1 and word.text == "," and (len(given) < len(names) or names[-1:] != ["..."]):
            given.append([])
        elif end > i + 1:
            given[-1].append(word)
    return None, i


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
        if token.text not in _ASM:
            continue
        begin = i + 1
        while tokens[begin].text in _VOLATILE:
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
