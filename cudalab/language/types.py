"""The types of expressions, as far as the text says them."""

import re

from cudalab.language import scopes
from cudalab.language.scopes import UNKNOWN, Name, Node, Type
from cudalab.language.specifiers import named

INTEGER = re.compile(r"(?:0[xX][\da-fA-F']+|0[bB][01']+|[\d']+)(?P<suffix>[uUlLzZ]*)")
NUMBERS = frozenset({"integer", "bool", "float"})
_COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">=", "&&", "||"})
_LIKE_ARGUMENTS = frozenset({"min", "max", "abs"})
_DEPTH = 60  # of names that are initialized with each other
_NARROW = 32


def value_of(text: str) -> int | None:
    """The value of an integer's literal; None for other literals."""
    match = INTEGER.fullmatch(text)
    if match is None:
        return None
    digits = re.sub(r"['uUlLzZ]", "", text)
    octal = len(digits) > 1 and digits.startswith("0") and digits.isdigit()
    return int(digits, 8 if octal and "8" not in digits and "9" not in digits else 0)


def type_of(node: Node, depth: int = 0) -> Type:
    """The type of an expression's value; UNKNOWN if the text does not say it."""
    kind, parts = node.kind, node.children
    if depth > _DEPTH:
        return UNKNOWN
    if kind in ("cast", "construct", "named_cast"):
        return node.type
    if kind in _RULES:
        return _RULES[kind](node, depth)
    if kind == "comma" or (kind in ("group", "initializer") and len(parts) == 1):
        return type_of(parts[-1], depth + 1)
    if kind == "conditional":
        return _common(type_of(parts[1], depth + 1), type_of(parts[2], depth + 1))
    return UNKNOWN


def called(node: Node) -> Name | None:
    """The program's function or lambda expression that a call calls, if the text says which one."""
    callee = node.children[0]
    while callee.kind == "group" and len(callee.children) == 1:
        callee = callee.children[0]
    if callee.kind == "name" and callee.scope is not None:
        found = named(callee.scope, callee.text, callee.first)
        if found is None or found.kind == "function":
            return found
        if not found.type.is_auto or found.initializer is None:
            return None
        callee = found.initializer.children[0]
    if callee.kind != "lambda":
        return None
    parameters = tuple(each.type for each in callee.parameters)
    return Name("", "function", callee.type, parameters=parameters)


def constructed(type_: Type, count: int) -> tuple[Type, ...] | None:
    """The parameters of the constructor that makes an object of a class of so many numbers.

    None if several of the program's constructors may do so, or none.
    """
    if type_.kind != "class" or type_.scope is None or type_.is_reference:
        return None
    named_so = type_.scope.names.get(type_.text.rpartition("::")[2], [])
    suited = [
        each.parameters
        for each in named_so
        if each.kind == "function"
        and each.parameters is not None
        and each.required <= count <= len(each.parameters)
        and all(map(_may_be_number, each.parameters[:count]))
    ]
    return suited[0] if len(suited) == 1 else None


def _may_be_number(parameter: Type) -> bool:
    """Whether a number may be given for it; a class does not know its own name as a type."""
    of_class = parameter.kind == "class" or (parameter.kind == "unknown" and parameter.is_reference)
    return not of_class and parameter.kind != "pointer"


def declared(node: Node) -> Name | None:
    """What a name or a member in an expression stands for."""
    if node.kind == "name" and node.scope is not None:
        return named(node.scope, node.text, node.first)
    if node.kind == "member":
        type_ = type_of(node.children[0])
        while type_.kind == "pointer" and type_.element is not None:
            type_ = type_.element
        scope = type_.scope
        return scope.member(node.text) if scope is not None else None
    return None


def is_local(node: Node) -> bool:
    """Whether a name in an expression is declared around it, but in no namespace."""
    return node.scope is not None and node.scope.is_local(node.text, node.first)


def _literal(text: str) -> Type:
    match = INTEGER.fullmatch(text)
    if match is None:
        if text.startswith('"'):
            return scopes.pointer_to(scopes.CHAR)
        if text.endswith("'"):
            return scopes.CHAR
        is_hex = text[:2] in ("0x", "0X")
        return (
            scopes.FLOAT
            if text[-1] in "fF" and not (is_hex and "p" not in text.lower())
            else scopes.DOUBLE
        )
    suffix = match["suffix"].lower()
    value = value_of(text) or 0
    if "u" in suffix:
        narrow = "l" not in suffix and not value >> _NARROW
        return scopes.UINT if narrow else scopes.ULONGLONG if "ll" in suffix else scopes.ULONG
    if "l" in suffix or value >> _NARROW:
        return scopes.LONGLONG if "ll" in suffix else scopes.LONG
    return (
        scopes.INT
        if value >> (_NARROW - 1) == 0
        else scopes.UINT
        if text[:1] == "0"
        else scopes.LONG
    )


def _of_name(node: Node, depth: int) -> Type:
    if node.scope is None:
        return UNKNOWN
    found = named(node.scope, node.text, node.first)
    if found is None:
        return scopes.KNOWN_VARIABLES.get(node.text, UNKNOWN)
    if found.kind != "variable":
        return UNKNOWN
    return of_variable(found, depth)


def of_variable(name: Name, depth: int = 0) -> Type:
    """The type of a variable; that of its initializer, if it says `auto`."""
    if not name.type.is_auto:
        return name.type
    if name.initializer is None or name.initializer.text != "=":
        return UNKNOWN
    return type_of(name.initializer, depth + 1)


def _of_member(node: Node, depth: int) -> Type:
    type_ = type_of(node.children[0], depth + 1)
    if type_.kind == "pointer" and type_.element is not None:
        type_ = type_.element
    if type_.kind != "class":
        return UNKNOWN
    if type_.scope is not None:
        found = type_.scope.member(node.text)
        is_own = found is not None and found.kind == "variable" and not found.is_template
        return found.type if found is not None and is_own else UNKNOWN
    return type_.element or UNKNOWN if node.text in ("x", "y", "z", "w") else UNKNOWN


def promoted(type_: Type) -> Type:
    """The type that arithmetic makes of a number."""
    if type_.kind == "bool" or (type_.kind == "integer" and type_.bits < _NARROW):
        return scopes.INT
    return type_


def _of_unary(node: Node, depth: int) -> Type:
    type_ = type_of(node.children[0], depth + 1)
    if node.text == "*":
        return type_.element_of_array
    if node.text == "&":
        return scopes.pointer_to(type_) if type_.kind != "class" else UNKNOWN
    if node.text == "!":
        return scopes.BOOL if type_.kind in NUMBERS | {"pointer"} else UNKNOWN
    if node.text in ("+", "-", "~"):
        return promoted(type_) if type_.kind in NUMBERS else UNKNOWN
    return type_ if type_.kind in NUMBERS | {"pointer"} else UNKNOWN  # ++ and --


def _of_binary(node: Node, depth: int) -> Type:
    left, right = (type_of(part, depth + 1) for part in node.children)
    known = NUMBERS | {"pointer"}
    if left.kind not in known or right.kind not in known:
        return UNKNOWN
    if node.text in _COMPARISONS:
        return scopes.BOOL
    if "pointer" in (left.kind, right.kind):
        if left.kind == right.kind:
            return scopes.LONG if node.text == "-" else UNKNOWN
        return left if left.kind == "pointer" else right
    if node.text in ("<<", ">>"):
        return promoted(left)
    return _common(promoted(left), promoted(right))


def _common(left: Type, right: Type) -> Type:
    """The type of an operation on two numbers."""
    if left.is_like(right):
        return left
    kinds = {left.kind, right.kind}
    if not kinds <= NUMBERS:
        return UNKNOWN
    if "float" in kinds:
        return scopes.DOUBLE if "double" in (left.text, right.text) else scopes.FLOAT
    left, right = promoted(left), promoted(right)
    if left.bits != right.bits:
        return left if left.bits > right.bits else right
    return left if left.unsigned else right


def _of_call(  # noqa: PLR0911 - a kind of function each
    node: Node, depth: int
) -> Type:
    callee, *values = node.children
    found = called(node)
    if found is not None:
        return UNKNOWN if found.is_template else found.type
    if callee.kind != "name" or callee.scope is None or not values:
        return UNKNOWN
    name = callee.text.removeprefix("::").removeprefix("std::")
    types = [type_of(value, depth + 1) for value in values]
    if named(callee.scope, callee.text, callee.first) is not None:
        return UNKNOWN
    if name in _LIKE_ARGUMENTS:
        result = types[0]
        for type_ in types[1:]:
            result = _common(result, type_)
        return result
    if name.startswith("atomic"):
        return types[0].element_of_array
    if name.startswith("__shfl") and len(values) > 1:
        return types[name.endswith("_sync")]
    return scopes.KNOWN_TYPES.get(name.removeprefix("make_"), UNKNOWN)


_RULES = {
    "literal": lambda node, _: _literal(node.text),
    "sizeof": lambda *_: scopes.KNOWN_TYPES["size_t"],
    "index": lambda node, depth: type_of(node.children[0], depth + 1).element_of_array,
    "assign": lambda node, depth: type_of(node.children[0], depth + 1),
    "name": _of_name,
    "member": _of_member,
    "unary": _of_unary,
    "binary": _of_binary,
    "call": _of_call,
}
