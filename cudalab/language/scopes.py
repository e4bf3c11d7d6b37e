"""The nodes of the tree of CUDA C++, and its scopes: names, and what is known of their types.

A scope knows the names of a block from where they are declared, those of any other one from
anywhere. A name that is declared twice, perhaps in two branches of an `#if`, has what both
declarations have in common.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import reduce
from typing import NamedTuple

from cudalab.language.tokens import set_of


@dataclass(frozen=True, eq=False)
class Type:
    """What is known of a type.

    The kind is integer, float, half (16 bits), bool, pointer, class, void or unknown.
    """

    kind: str = "unknown"
    text: str = ""  # its name where it was written, without qualifiers; may be empty
    _: KW_ONLY
    bits: int = 0  # of an integer
    unsigned: bool = False
    element: Type | None = None  # of a pointer, an array or CUDA's vectors
    scope: Scope | None = None  # of a class that the text defines
    is_reference: bool = False
    is_array: bool = False

    @property
    def is_auto(self) -> bool:
        """Whether the initializer says what the type is."""
        return self.kind == "unknown" and self.text == "auto"

    @property
    def element_of_array(self) -> Type:
        """What an index or `*` gives."""
        return self.element if self.kind == "pointer" and self.element else UNKNOWN

    def is_like(self, other: Type) -> bool:
        """Whether nothing that is known tells the types apart."""
        if self.element and other.element and not self.element.is_like(other.element):
            return False
        known, others = (
            (each.kind, each.bits, each.unsigned, id(each.scope), bool(each.element))
            for each in (self, other)
        )
        return known == others and (self.kind != "unknown" or self.text == other.text)

    @property
    def may_lead(self) -> bool:
        """Whether a value of this type may lead to a variable: it is, or has, an address."""
        if self.is_reference or self.kind == "unknown":
            return True
        if self.kind == "pointer":
            return not self.is_array or self.element_of_array.may_lead
        if self.kind != "class":
            return False
        if self.scope is not None:
            return self.scope.may_lead
        is_group = self.text.rpartition("::")[2] in GROUP_TYPES
        return not is_group and (self.element is None or self.element.may_lead)  # of a vector


UNKNOWN = Type()
AUTO = Type(text="auto")  # the type of the initializer
VOID = Type("void", "void")
BOOL = Type("bool", "bool")


def integer(text: str, bits: int = 32, *, unsigned: bool = False) -> Type:
    return Type("integer", text, bits=bits, unsigned=unsigned)


def pointer_to(element: Type) -> Type:
    return Type("pointer", element=element)


def array_of(element: Type) -> Type:
    """The type of an array, which is that of a pointer wherever its value is used."""
    return Type("pointer", element=element, is_array=True)


INT, UINT = integer("int"), integer("unsigned int", unsigned=True)
LONG, ULONG = integer("long", 64), integer("unsigned long", 64, unsigned=True)
LONGLONG = integer("long long", 64)
ULONGLONG = integer("unsigned long long", 64, unsigned=True)
FLOAT, DOUBLE = Type("float", "float"), Type("float", "double")
CHAR, SHORT = integer("char", 8), integer("short", 16)
UCHAR = integer("unsigned char", 8, unsigned=True)
USHORT = integer("unsigned short", 16, unsigned=True)
# Words of which the names of types consist.
BASIC = set_of(
    "void bool char short int long float double signed unsigned wchar_t char8_t char16_t "
    "char32_t __int128"
)


def _known_types() -> dict[str, Type]:
    types = {
        "uchar": UCHAR,
        "ushort": USHORT,
        "uint": UINT,
        "ulong": ULONG,
        "cudaTextureObject_t": ULONGLONG,
        "cudaSurfaceObject_t": ULONGLONG,
        "dim3": Type("class", "dim3", element=UINT),
    }
    for name in ("size_t", "uintptr_t", "uintmax_t"):
        types[name] = integer(name, 64, unsigned=True)
    for name in ("ssize_t", "ptrdiff_t", "intptr_t", "intmax_t", "clock_t"):
        types[name] = integer(name, 64)
    for bits in (8, 16, 32, 64):
        for name in (f"int{bits}_t", f"int_fast{bits}_t", f"int_least{bits}_t"):
            types[name] = integer(name, bits)
            types[f"u{name}"] = integer(f"u{name}", bits, unsigned=True)
    elements = {"char": CHAR, "short": SHORT, "int": INT, "long": LONG, "longlong": LONGLONG}
    elements |= {"uchar": UCHAR, "ushort": USHORT, "uint": UINT, "ulong": ULONG}
    elements |= {"ulonglong": ULONGLONG, "float": FLOAT, "double": DOUBLE}
    for word, element in elements.items():
        for size in "1234":
            types[word + size] = Type("class", word + size, element=element)
    for name in ("half", "__half", "__nv_bfloat16", "nv_bfloat16"):
        types[name] = Type("half", name)
    for name in ("half2", "__half2", "__nv_bfloat162", "nv_bfloat162"):
        types[name] = Type("class", name, element=Type("half", "__half"))
    return types


KNOWN_TYPES = _known_types()
# Cooperative groups, by whatever name a program calls their namespace.
GROUP_TYPES = {
    name: Type("class", name)
    for name in (
        *("thread_group", "thread_block", "thread_block_tile", "coalesced_group"),
        *("grid_group", "multi_grid_group", "cluster_group"),
    )
}
_INDEX = Type("class", "uint3", element=UINT)
KNOWN_VARIABLES = {
    "threadIdx": _INDEX,
    "blockIdx": _INDEX,
    "blockDim": KNOWN_TYPES["dim3"],
    "gridDim": KNOWN_TYPES["dim3"],
    "warpSize": INT,
    "true": BOOL,
    "false": BOOL,
    "nullptr": pointer_to(UNKNOWN),
    "NULL": INT,
}


def basic(words: list[str]) -> Type:
    """The type of words such as `unsigned long`."""
    text = " ".join(words)
    if "void" in words:
        return VOID
    if "bool" in words:
        return BOOL
    if "double" in words or "float" in words:
        return Type("float", text)
    bits = 32
    if "char" in words or "char8_t" in words:
        bits = 8
    elif "short" in words or "char16_t" in words:
        bits = 16
    elif "long" in words or "__int128" in words:
        bits = 128 if "__int128" in words else 64
    unsigned = "unsigned" in words or any(word.startswith("char1") for word in words)
    return integer(text, bits, unsigned=unsigned)


@dataclass(frozen=True, eq=False)
class Name:
    """A declared name, of which all that the text says is known when it is declared."""

    name: str
    kind: str  # variable, function, type, class, namespace, or unknown
    type: Type = UNKNOWN  # of a variable, or of what a function returns
    position: int = 0  # the index of the token from which a block knows it
    _: KW_ONLY
    initializer: Node | None = None
    parameters: tuple[Type, ...] | None = None  # of a function; None for several that differ
    required: int = 0  # parameters that have no default
    scope: Scope | None = None  # of a class or namespace
    is_template: bool = False
    is_bit_field: bool = False
    is_prefix: bool = False  # a macro behind which another statement begins

    def merged(self, other: Name) -> Name:
        """What two declarations of a name have in common."""
        same = self.type.is_like(other.type)
        types = (self.parameters, other.parameters)
        agree = same and types[0] is not None and types[1] is not None
        agree = agree and len(types[0] or ()) == len(types[1] or ())
        agree = agree and all(a.is_like(b) for a, b in zip(*(t or () for t in types), strict=False))
        kind = self.kind if self.kind == other.kind else "unknown"
        return replace(
            self,
            kind=kind,
            type=self.type if same and kind != "unknown" else UNKNOWN,
            parameters=self.parameters if agree else None,
            initializer=self.initializer if self.initializer is other.initializer else None,
            is_template=self.is_template or other.is_template,
            is_bit_field=self.is_bit_field or other.is_bit_field,
            is_prefix=self.is_prefix and other.is_prefix,
        )


@dataclass(eq=False)
class Scope:
    """The names of a namespace, a class, a function's parameters, a template or a block."""

    kind: str
    parent: Scope | None = None
    names: dict[str, list[Name]] = field(default_factory=dict)
    _: KW_ONLY
    used: list[Scope] = field(default_factory=list)  # `using namespace`, and known bases
    is_opaque: bool = False  # it may have variables from elsewhere, as of an unknown base
    # What several declarations of a name have in common, and how many of them that is.
    _merged: dict[str, tuple[Name, int]] = field(default_factory=dict)

    @property
    def may_lead(self) -> bool:
        """Whether one of the variables in it may lead to another variable."""
        own = (each for named in self.names.values() for each in named if each.kind == "variable")
        return (
            self.is_opaque
            or any(each.may_lead for each in self.used)
            or any(each.type.may_lead for each in own)
        )

    def declare(self, name: Name) -> None:
        """Add a name."""
        self.names.setdefault(name.name, []).append(name)

    def own(self, name: str, position: int | None = None) -> Name | None:
        """The name as this scope itself declares it."""
        declared = self.names.get(name)
        if not declared:
            return None
        if self.kind == "block":
            known = [each for each in declared if position is None or each.position <= position]
            return known[-1] if known else None
        if len(declared) == 1:
            return declared[0]
        merged, count = self._merged.get(name, (declared[0], 1))
        if count < len(declared):
            merged = reduce(Name.merged, declared[count:], merged)
            self._merged[name] = merged, len(declared)
        return merged

    def member(self, name: str, position: int | None = None) -> Name | None:
        """The name as this scope or one that it uses declares it."""
        found = self.own(name, position)
        for scope in self.used if found is None else ():
            if scope is not self and (found := scope.member(name)) is not None:
                break
        return found

    def find(self, name: str, position: int | None = None) -> Name | None:
        """The name as it is known at a position of this scope."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.member(name, position)
            if found is not None:
                return found
            if scope.is_opaque and scope.parent is not None:
                found = scope.parent.find(name, position)
                is_variable = found is None or found.kind == "variable"
                return Name(name, "unknown") if is_variable else found
            scope = scope.parent
        return None

    def is_local(self, name: str, position: int) -> bool:
        """Whether a name is declared around a position, but in no namespace."""
        around = (scope for scope in self.enclosing() if scope.kind != "namespace")
        return any(scope.member(name, position) is not None for scope in around)

    def inner(self, name: str, kind: str) -> Scope:
        """The scope of the namespace or class of this name, which is made once."""
        for each in self.names.get(name, ()):
            if each.scope is not None and each.kind == kind:
                return each.scope
        scope = Scope(kind, self)
        type_ = Type("class", name, scope=scope) if kind == "class" else UNKNOWN
        self.declare(Name(name, kind, type_, scope=scope))
        return scope

    def define(self, name: str, type_: Type, *, is_template: bool) -> None:
        """Note that the class of this name is a `type_`, where it was only declared before."""
        self.names[name] = [
            replace(each, type=type_, is_template=is_template)
            if each.scope is type_.scope
            else each
            for each in self.names[name]
        ]
        self._merged.pop(name, None)

    def outside_templates(self) -> Scope:
        """The scope around a template's parameters; any other one is itself."""
        scope = self
        while scope.kind == "template" and scope.parent is not None:
            scope = scope.parent
        return scope

    def enclosing(self) -> Iterator[Scope]:
        """Yield this scope and those around it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


class Declarator(NamedTuple):
    """What declares one variable of a declaration, by the indices of its tokens."""

    first: int  # its `*` and `&`, if any
    name: int
    array: int  # behind the name
    value: int  # the initializer, or where it would be
    last: int  # behind all


@dataclass(eq=False, slots=True)
class Node:
    """A part of the text: the tokens from `first` up to, but without, `last`."""

    kind: str
    first: int
    last: int
    children: list[Node] = field(default_factory=list)
    _: KW_ONLY
    text: str = ""  # a name, a literal or an operator
    at: int = -1  # the index of the operator's first token, or of what is declared
    type: Type = UNKNOWN  # that a declaration or a cast names, or that a function returns
    scope: Scope | None = None  # in which it stands; of a function, its parameters'
    words: frozenset[str] = frozenset()  # of a declaration, such as __global__
    names: list[Name] = field(default_factory=list)  # that it declares
    declarators: list[Declarator] = field(default_factory=list)  # of its variables
    parameters: list[Node] = field(default_factory=list)  # of a function

    def walk(self) -> Iterator[Node]:
        """Yield this node and all below it, in the order of the text."""
        ahead = [self]
        while ahead:
            node = ahead.pop()
            yield node
            ahead += node.children[::-1]

    def of_kind(self, *kinds: str) -> Iterator[Node]:
        """The nodes of these kinds."""
        return (node for node in self.walk() if node.kind in kinds)
