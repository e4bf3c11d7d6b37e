"""Host C++ in place of declarations that only CUDA has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.language.tokens import closing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cudalab.language.tokens import Token


def dynamic_shared(words: Sequence[Token], *, in_function: bool) -> str | None:
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
    while name > 2 and words[name - 1].text == words[name - 2].text == "#":  # in a macro
        name -= 3
        called = f"{words[name].text}##{called}"
    kind = _type_words(words[:name])
    if not in_function:
        return f"static constexpr ::cudalab::DynamicShared<{kind}{dimensions}> {called}{{}};"
    if rest:
        return (
            f"{kind} (*const {called}){dimensions} = "
            f"({kind} (*){dimensions})::cudalab::current.dynamic_shared;"
        )
    return f"{kind}* const {called} = ({kind}*)::cudalab::current.dynamic_shared;"


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
