"""Reading what a declaration begins with, and names of types."""

from dataclasses import KW_ONLY, dataclass

from cudalab.language import scopes
from cudalab.language.tokens import ATTRIBUTES, KEYWORDS, QUALIFIERS, Words

CLASS_KEYS = frozenset({"class", "struct", "union", "enum"})
DEDUCED = frozenset({"decltype", "__typeof__", "typeof", "__decltype"})


@dataclass
class Specifiers:
    """What a declaration begins with."""

    type: scopes.Type | None  # None if no type is there
    last: int
    _: KW_ONLY
    words: frozenset[str]
    text: str = ""  # the type as it is written, without qualifiers
    is_certain: bool = False  # these are known to be the words of a type


def named(scope: scopes.Scope, name: str, position: int | None = None) -> scopes.Name | None:
    """What a qualified name such as `a::b` stands for, as far as the text says it."""
    first, *rest = name.split("::")
    if first in ("", "std") and rest:
        first, *rest = rest
    found = scope.find(first, position)
    for word in rest:
        if found is None or found.scope is None:
            return None
        found = found.scope.member(word)
    return found


def type_named(scope: scopes.Scope, name: str, position: int | None = None) -> scopes.Type | None:
    """The type of this name; None if the name may be something else."""
    found = named(scope, name, position)
    if found is not None:
        return found.type if found.kind in ("type", "class") else None
    known = scopes.KNOWN_TYPES.get(name.removeprefix("::").removeprefix("std::"))
    return known or scopes.GROUP_TYPES.get(name.rpartition("::")[2])


def is_variable(scope: scopes.Scope, name: str, position: int | None = None) -> bool:
    """Whether a name certainly stands for a variable."""
    found = named(scope, name, position)
    return name in scopes.KNOWN_VARIABLES if found is None else found.kind == "variable"


def end_of_name(words: Words, i: int, end: int, scope: scopes.Scope) -> tuple[int, str]:
    """The index behind a qualified name, with its template arguments; its words without them."""
    name = ""
    if words.texts[i] == "::":
        i, name = i + 1, "::"
    while i < end and words.kinds[i] == "name":
        name += words.texts[i]
        i += 1
        if words.texts[i] == "<" and _may_be_template(words, i, end, scope, name):
            i = words.angle(i, end) or i
        if words.texts[i] != "::" or words.kinds[i + 1] != "name":
            break
        if words.texts[i + 1] == "operator":
            break
        name += "::"
        i += 2 if words.texts[i + 1] == "template" else 1
    return i, name


def _may_be_template(words: Words, i: int, end: int, scope: scopes.Scope, name: str) -> bool:
    """Whether `name <`, whose sign is at `i`, may begin template arguments."""
    found = named(scope, name, i)
    if found is not None and found.kind in ("type", "class", "function"):
        return True
    behind = words.angle(i, end)
    if behind is None or (found is not None and found.kind == "variable"):
        return found is not None and found.is_template
    after, inside = words.texts[behind], {words.operator(k) for k in range(i + 1, behind - 1)}
    if inside & {"&&", "=", "?", "!", "+=", "<<"}:
        return False
    return after in ("(", "::", "{", ">", ",", ")", ";", "&", "*", "...") or (
        words.kinds[behind] == "name" or (after == "<" and words.operator(behind) == "<<")
    )


def read(  # noqa: C901, PLR0912 - a kind of word each
    words: Words, i: int, end: int, scope: scopes.Scope
) -> Specifiers:
    """Read specifiers and a type, up to what is declared."""
    texts, first = words.texts, i
    kept: list[str] = []
    basics: list[str] = []
    type_: scopes.Type | None = None
    spelled, certain = "", False
    while i < end:
        text = texts[i]
        if text in ATTRIBUTES:
            i = words.skip(i + 1, end) if texts[i + 1] == "(" else i + 1
        elif text == "[" and texts[i + 1] == "[":
            i = words.behind(i, end)
        elif text in QUALIFIERS or text in CLASS_KEYS:
            kept.append(text)
            i += 1
        elif text in scopes.BASIC:
            basics.append(text)
            i += 1
        elif text in DEDUCED and texts[i + 1] == "(":
            behind = words.behind(i + 1, end)
            type_, spelled, certain = scopes.UNKNOWN, words.text(i, behind), True
            i = behind
        elif text == "auto":
            type_, spelled, certain, i = scopes.AUTO, text, True, i + 1
        elif (words.kinds[i] != "name" and text != "::") or text in KEYWORDS:
            break
        else:
            behind, known = _named_type(words, i, end, scope, has_type=bool(basics or type_))
            if behind == i:
                break
            if known is not None:
                certain = type_named(scope, end_of_name(words, i, end, scope)[1], i) is not None
                certain |= "typename" in kept
                type_, spelled = known, words.text(i, behind)
            i = behind
    if basics:
        type_, spelled, certain = scopes.basic(basics), " ".join(basics), True
    certain = certain or bool({"const", "volatile"} & set(texts[first:i]))
    if "typename" in kept:
        spelled = f"typename {spelled}"
        type_ = (
            scopes.Type(text=spelled) if type_ is not None and type_.kind == "unknown" else type_
        )
    result = Specifiers(type_, i, words=frozenset(kept), text=spelled)
    result.is_certain = certain and type_ is not None
    return result


def _named_type(
    words: Words, i: int, end: int, scope: scopes.Scope, *, has_type: bool
) -> tuple[int, scopes.Type | None]:
    """The type whose name begins here, and the index behind it.

    None for a macro before a type or a name; the same index if what is declared begins here.
    """
    texts = words.texts
    behind, name = end_of_name(words, i, end, scope)
    after = words.kinds[behind] == "name" and texts[behind] not in KEYWORDS
    if has_type:
        return (behind, None) if after and behind == i + 1 else (i, None)
    known = type_named(scope, name, i)
    if known is None and "<" not in texts[i:behind]:
        next_, _ = end_of_name(words, behind, end, scope) if after else (behind, "")
        two = next_ > behind and words.kinds[next_] == "name" and texts[next_] not in KEYWORDS
        if two and texts[behind] not in QUALIFIERS:
            return behind, None
    of_class = scope.outside_templates()  # whose constructor may be declared here
    is_constructor = known is not None and of_class.kind == "class" and known.scope is of_class
    is_call = texts[behind] == "(" and (known is None or is_constructor)
    is_member = texts[behind] == "::" and texts[behind + 1] in ("operator", "~")
    if is_call or is_member or is_variable(scope, name, i):
        return i, None
    return behind, known or scopes.Type(text=words.text(i, behind))


def type_of_id(words: Words, first: int, last: int, scope: scopes.Scope) -> Specifiers | None:
    """The type that these tokens name all together, as in a cast; None if they may be no type."""
    found = read(words, first, last, scope)
    if found.type is None:
        return None
    i, signs = found.last, ""
    while i < last and words.texts[i] in ("*", "&", "const", "volatile", "__restrict__"):
        signs += words.texts[i] if words.texts[i] in ("*", "&") else ""
        i += 1
    if (i < last and words.texts[i] == "(" and words.texts[i + 1] == "*") or (
        i < last and words.texts[i] == "[" and found.is_certain
    ):  # pointer to a function
        signs, i = "*", last
    elif i < last and words.texts[i] == "(" and found.is_certain:  # type of a function
        return Specifiers(scopes.UNKNOWN, last, words=found.words, text="", is_certain=True)
    if i != last:
        return None
    found.is_certain |= "*" in signs or "&" in signs
    for sign in signs:
        if sign == "*":
            found.type = scopes.pointer_to(found.type)
    if signs:
        found.text = ""
    found.last = last
    return found
