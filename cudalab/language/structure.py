"""The declarations of a .cu file: its functions, kernels and device variables."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

from cudalab.language.tokens import Lines, Token, closing, closing_angle

_ATTRIBUTES = frozenset(
    {
        "__launch_bounds__",
        "__attribute__",
        "__declspec",
        "__align__",
        "__maxnreg__",
        "__cluster_dims__",
        "__block_size__",
        "alignas",
        "decltype",
        "noexcept",
    }
)
_CLASSES = frozenset({"class", "struct", "union", "enum"})
_NO_PARAMETER_NAMES = frozenset(
    {"int", "float", "double", "char", "bool", "long", "short", "unsigned", "signed", "void"}
)
_QUALIFIERS = frozenset({"const", "__restrict__", "__restrict", "restrict", "volatile", "struct"})


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A declaration of a `__global__` function."""

    name: str
    scope: str  # `outer::inner::`, for a kernel defined by its qualified name
    is_template: bool
    has_defaults: bool
    signature: str  # its parameters' types
    references: int  # a bit for each parameter, set for a reference
    bounds: str  # the first argument of __launch_bounds__, or nothing
    body_end: int | None = None  # the closing brace's position in the text; None without a body
    line: int = 0


@dataclass
class Structure:
    """The declarations in one file; numbers are indices of tokens."""

    kernels: list[Kernel] = field(default_factory=list)
    device_functions: list[tuple[int, int]] = field(default_factory=list)
    functions: list[tuple[int, int]] = field(default_factory=list)
    _: KW_ONLY
    variables: list[int] = field(default_factory=list)  # words such as `__device__`, to be replaced
    host_functions: set[str] = field(default_factory=set)  # names; a kernel may have one of them


def scan(tokens: list[Token], lines: Lines) -> Structure:
    """Walk over the declarations; `tokens` hold no directives."""
    structure = Structure()
    start = i = 0
    while i < len(tokens):
        text = tokens[i].text
        if text == ";":
            _declaration(tokens, start, i, lines, structure)
            start = i + 1
        elif text == "}":
            start = i + 1
        elif text == "{":
            kind = kind_of_brace(tokens, start, i)
            end = closing(tokens, i) if kind in ("function", "initializer") else i
            if end is None:
                break
            if kind == "function":
                _function(tokens, start, i, end, lines, structure)
            if kind != "initializer":  # which belongs to the same declaration
                start = end + 1
            i = end
        i += 1
    return structure


def without_template(tokens: list[Token], start: int, end: int) -> int:
    """The index after `template <...>`, if the declaration begins with it."""
    while start + 1 < end and tokens[start].text == "template" and tokens[start + 1].text == "<":
        angle = closing_angle(tokens, start + 1)
        if angle is None:
            break
        start = angle + 1
    return start


def top_level(tokens: list[Token], start: int, end: int) -> list[int]:
    """The indices outside brackets, including the opening brackets themselves."""
    indices, i = [], start
    while i < end:
        text = tokens[i].text
        attribute = text in _ATTRIBUTES and i + 1 < end and tokens[i + 1].text == "("
        if not attribute:
            indices.append(i)
        skip = i + 1 if attribute else i
        if tokens[skip].text in ("(", "[", "{"):
            i = closing(tokens, skip) or end
        i += 1
    return indices


def kind_of_brace(tokens: list[Token], start: int, brace: int) -> str:
    """The kind of block that `{` opens: a namespace, class, function or initializer."""
    start = without_template(tokens, start, brace)
    top = [tokens[i] for i in top_level(tokens, start, brace)]
    texts = [token.text for token in top]
    if "namespace" in texts or (texts[:1] == ["extern"] and len(top) == 2):
        return "namespace"
    if "(" in texts and ("=" not in texts or tokens[brace - 1].text == ")"):
        return "function"
    if "=" not in texts and _CLASSES & set(texts):
        return "class"
    return "initializer" if texts else "function"


def _function(
    tokens: list[Token], start: int, brace: int, end: int, lines: Lines, structure: Structure
) -> None:
    texts = {token.text for token in tokens[start:brace]}
    structure.functions.append((brace, end))
    if {"__global__", "__device__"} & texts:
        structure.device_functions.append((brace, end))
    if "__global__" in texts:
        kernel = _kernel(tokens, start, brace, tokens[end].end, lines)
        if kernel:
            structure.kernels.append(kernel)
    else:
        _host_function(tokens, start, brace, structure)


def _host_function(tokens: list[Token], start: int, end: int, structure: Structure) -> None:
    for i in top_level(tokens, without_template(tokens, start, end), end):
        if tokens[i].text == "(":
            structure.host_functions.add(tokens[i - 1].text)
            return


def _declaration(
    tokens: list[Token], start: int, end: int, lines: Lines, structure: Structure
) -> None:
    """Note a kernel's declaration or a device variable."""
    texts = [token.text for token in tokens[start:end]]
    if "__global__" in texts:
        kernel = _kernel(tokens, start, end, None, lines)
        if kernel:
            structure.kernels.append(kernel)
        return
    if not {"__device__", "__constant__", "__managed__"} & set(texts):
        _host_function(tokens, start, end, structure)
        return
    if {"extern", "template", "const", "constexpr", "inline", "__shared__", "using"} & set(texts):
        return  # a constant may be read by the host, and is stored elsewhere
    top = top_level(tokens, start, end)
    for i in top:
        if tokens[i].text == "=" or (tokens[i].text == "(" and tokens[i + 1].text == "*"):
            break
        if tokens[i].text == "(":
            return  # a function
    word = next(each for each in ("__managed__", "__constant__", "__device__") if each in texts)
    variable = next((i for i in top if tokens[i].text == word), None)
    if variable is not None:
        structure.variables.append(variable)


def _kernel(
    tokens: list[Token], start: int, end: int, body_end: int | None, lines: Lines
) -> Kernel | None:
    """Read the declaration of a `__global__` function in tokens[start:end]."""
    after = without_template(tokens, start, end)
    explicit = tokens[start].text == "template"
    while after < end and tokens[after].text != "__global__":  # past a macro that stands before it
        after += 1
    bounds = ""
    for i in range(start, end):
        if tokens[i].text == "__launch_bounds__":
            bounds = _first_argument(tokens, i + 1)
    for i in top_level(tokens, after, end):
        if tokens[i].text != "(" or i == 0:
            continue
        name = i - 1
        if tokens[name].text == ">":  # a specialization
            explicit = True
            while name > after and tokens[name].text != "<":
                name -= 1
            name -= 1
        close = closing(tokens, i)
        if tokens[name].kind != "name" or close is None:
            return None
        params = tokens[i + 1 : close]
        types = _types(params)
        scope = name
        while scope > after + 1 and tokens[scope - 1].text == "::":
            scope -= 2
        return Kernel(
            name=tokens[name].text,
            scope="".join(token.text for token in tokens[scope:name]),
            is_template=explicit,
            has_defaults=any(token.text == "=" for token in params),
            signature=", ".join(types),
            references=sum(1 << i for i, written in enumerate(types) if written.endswith("&")),
            bounds=bounds,
            body_end=body_end,
            line=lines[tokens[name].start],
        )
    return None


def _first_argument(tokens: list[Token], opening: int) -> str:
    close = closing(tokens, opening)
    if close is None:
        return ""
    words, i = [], opening + 1
    while i < close and tokens[i].text != ",":
        end = closing(tokens, i) if tokens[i].text in ("(", "[", "{") else i
        words += [token.text for token in tokens[i : (end or i) + 1]]
        i = (end or i) + 1
    return " ".join(words)


def _types(params: list[Token]) -> list[str]:
    """The parameters' types, in the same form for all declarations of a kernel."""
    types: list[str] = []
    words: list[str] = []
    depth = 0
    for token in [*params, Token("sign", ",", 0, 0)]:
        depth += (token.text in ("(", "[", "<", "{")) - (token.text in (")", "]", ">", "}"))
        if token.text != "," or depth > 0:
            words.append(token.text)
            continue
        if "=" in words:
            words = words[: words.index("=")]
        words = [word for word in words if word not in _QUALIFIERS]
        named = len(words) > 1 and words[-1].isidentifier() and words[-2] != "::"
        if named and words[-1] not in _NO_PARAMETER_NAMES:
            words.pop()
        types.append(" ".join(words))
        words = []
    return types
