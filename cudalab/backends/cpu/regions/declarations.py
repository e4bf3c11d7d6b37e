"""Where the variables lie that a region declares: for the block, or for each thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.backends.cpu.regions import lambdas
from cudalab.backends.cpu.regions.body import Body
from cudalab.backends.cpu.regions.lambdas import has_lambda
from cudalab.backends.cpu.regions.parts import Home, by_itself, nearby
from cudalab.backends.cpu.regions.syntax import locals_of
from cudalab.backends.cpu.regions.words import NotCoveredError, spaced, texts
from cudalab.language.tokens import split

if TYPE_CHECKING:
    from cudalab.backends.cpu.regions.syntax import Local
    from cudalab.backends.cpu.regions.words import Words


class DeclaringBody(Body):
    """A function with what its statements declare."""

    def outer(self, words: Words) -> None:
        """Declare for the whole block."""
        shared = any(word.text == "__shared__" for word in words)
        shared &= not self.unit.is_program  # where what lies behind it is known, and its size
        if shared and self.function.is_kernel and not self.loops and "extern" not in texts(words):
            words = [word for word in words if word.text not in ("__shared__", "static")]
            self.shared += [f"sizeof({local.name})" for local in locals_of(words)]
            if not self.shared:
                raise NotCoveredError(f"{words[0].place}: a shared variable that is not understood")
            self.writer.add("alignas(64)", words)
            self.writer.add(f"static_assert({' + '.join(self.shared)} <= 48 << 10);")
        else:
            self.writer.add(words)

    def declare(self, local: Local, used: dict[str, set[int]]) -> None:
        """Declare a variable of each thread: in the region, anew in each, or as an array."""
        words = self.unit.handing_over(by_itself(local))
        if local.name in self.facts.handed_over:
            names = self.needed(set(texts(local.value)))
            bindings = self.bindings(names, set(), nearby=False)
            if self.analysis.needs_current(names):
                bindings.append("::cudalab::set_thread(threadIdx, (unsigned)cudalab_t);")
            value = self.unit.handing_over(local.initializer)
            self.writer.add(lambdas.definition(local, value, bindings))
            self.homes[local.name] = Home([lambdas.binding(local.name)])
            return
        crosses = len(used.get(local.name, ())) > 1
        if not crosses:
            self.region.add(*local.align, *words, ";")
            self.region.names |= set(texts(words))
            self.region.declared.add(local.name)
            return
        computed = {name for name, home in self.homes.items() if home.computed}
        if self.facts.is_computed(local, computed):
            self.writer.add(words, f"; (void){local.name};")
            self.region.add(words, ";", computed=True)
            self.region.names |= set(texts(words))
            self.region.declared.add(local.name)
            self.homes[local.name] = Home([*words, ";"], set(texts(local.value)), computed=True)
            return
        if local.value and local.value[-1].text == "}" and has_lambda(local.value):
            raise NotCoveredError(f"{local.value[0].place}: a lambda that is used after a barrier")
        self.keep_local(local)

    def keep_local(self, local: Local) -> None:
        """Keep a variable that lives across a barrier in an array over the threads."""
        name, value = local.name, self.unit.handing_over(local.value)
        region = self.region
        region.names |= set(texts([*local.spec, *value]))
        region.declared.add(name)
        if local.is_reference:
            initial = spaced(self.unit.handing_over(local.initializer))
            home = self.keep(name, f"std::remove_reference_t<decltype(({initial}))>*", "*")
            region.add(f"{home}[cudalab_t] = &(", *self.unit.handing_over(local.initializer), ");")
            region.add(f"auto& {name} = *{home}[cudalab_t];")
            return
        spec = [word for word in local.spec if word.text != "typename" or len(local.spec) > 1]
        if "auto" in texts(spec):
            kind = f"std::decay_t<decltype({spaced(self.unit.handing_over(local.initializer))})>"
        else:
            kind = spaced([*spec, *local.pointer, *_extents(local)])
        home = self.keep(name, f"::cudalab::Kept<{kind}>")
        if local.align:  # of each thread's value
            size = spaced(local.align[2:-1])
            self.writer.add(f"static_assert(sizeof(::cudalab::Kept<{kind}>) % ({size}) == 0);")
        if self.facts.is_nearby(name):
            self.homes[name].nearby = nearby(name, f"{home}[cudalab_t]")
        region.add(f"auto& {name} = {home}[cudalab_t];")
        if not value:
            return
        if value[0].text == "=" and not local.array and value[1].text != "{":
            region.add(f"{name}", *value, ";")
        elif value[0].text == "=":
            region.add(f"::cudalab::Kept<{kind}> cudalab_first_{name}", *value, ";")
            region.add(f"__builtin_memcpy(&{name}, &cudalab_first_{name}, sizeof {name});")
        else:
            region.add(f"::cudalab::construct(&{name}, ::cudalab::Kept<{kind}>", *value, ");")


def _extents(local: Local) -> Words:
    """The extents of an array; `int a[] = {1, 2, 3}` has three elements."""
    if texts(local.array[:2]) != ["[", "]"]:
        return local.array
    if texts(local.value[:2]) != ["=", "{"]:
        raise NotCoveredError(f"{local.spec[0].place}: an array without an extent")
    number = sum(bool(element) for element in split(local.value[2:-1]))
    opening, *rest = local.array
    return [opening, opening._replace(text=str(number), kind="number"), *rest]
