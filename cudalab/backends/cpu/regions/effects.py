"""What calls of functions do besides computing a value, and what making and ending objects does.

A call that changes nothing, and only computes a value, serves all threads of a block.
"""

from cudalab.backends.cpu.regions.given import BUILT_IN, Declared, Given
from cudalab.backends.cpu.regions.uses import Uses
from cudalab.language.scopes import Scope, Type
from cudalab.language.tokens import texts

_NOT_COMPUTING = frozenset({"static", "asm", "__asm__", "new", "delete", "throw"})


class Effects:
    """What is known of the effects of a file's functions, and of making its objects."""

    def __init__(self, given: Given) -> None:
        self.given = given
        self._known: dict[str, bool] = {}

    def computes(self, callee: str) -> bool:
        """Whether a call of a function only computes a value, the same one for the same memory."""
        name, given = callee.rpartition("::")[2], self.given
        if name not in given.functions:
            if name in given.classes | given.aliases | given.type_parameters:
                return self._makes(name)
            return given.computes(name)
        if name not in self._known:
            self._known[name] = True  # as long as nothing else is known of a recursion
            defined = [each for each in given.functions[name] if each.body is not None]
            self._known[name] = bool(defined) and all(map(self._computes, defined))
        return self._known[name]

    def _computes(self, function: Declared) -> bool:
        body = function.body or []
        if _NOT_COMPUTING & set(texts(body)):
            return False
        uses = Uses(self.given, function.scope or Scope("function"), returns_reference=False)
        found = uses.of(body)
        own = uses.locals | {
            words[-1].text
            for words, _ in function.parameters
            if words and not {"&", "&&"} & set(texts(words))
        }
        alone = all(
            each.name in own and (not each.through or each.name in uses.arrays)
            for each in found.changes
        )
        return alone and not found.elsewhere and all(map(self.computes, found.calls))

    def makes(self, type_: Type) -> bool:
        """Whether making an object of a type only computes a value, and destroying it nothing."""
        return type_.kind in BUILT_IN or self._makes(type_.text.rpartition("::")[2])

    def _makes(self, name: str) -> bool:
        named = (each for name in self._classes(name) for each in (name, f"~{name}"))
        return all(map(self.computes, filter(self._is_of_device, named)))

    def ends(self, type_: Type) -> bool:
        """Whether destroying an object of a type may do anything."""
        classes = self._classes(type_.text.rpartition("::")[2])
        ends = any(self._is_of_device(f"~{name}") for name in classes)
        return ends and type_.kind not in BUILT_IN

    def _classes(self, name: str) -> set[str]:
        """The class of this name, or those that an unknown name may stand for."""
        return {name} if name in self.given.classes else self.given.classes

    def _is_of_device(self, name: str) -> bool:
        return any(each.is_device for each in self.given.functions.get(name, []))
