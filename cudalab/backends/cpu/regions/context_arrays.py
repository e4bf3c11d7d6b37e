"""Where a region's variables live: in the block, or in context arrays with one for each thread."""

from cudalab.backends.cpu.regions import lambdas
from cudalab.backends.cpu.regions.body import Body
from cudalab.backends.cpu.regions.lambdas import has_lambda
from cudalab.backends.cpu.regions.parts import Home, by_itself, nearby
from cudalab.backends.cpu.regions.syntax import TYPES, Local, locals_of
from cudalab.backends.cpu.regions.words import NotCoveredError, Words, spaced, texts
from cudalab.language.tokens import split


def outer(body: Body, words: Words) -> None:
    """Write a declaration that holds for the whole block."""
    shared = any(word.text == "__shared__" for word in words)
    shared &= not body.unit.is_program  # where what lies behind it is known, and its size
    if shared and body.function.is_kernel and not body.loops and "extern" not in texts(words):
        words = [word for word in words if word.text not in ("__shared__", "static")]
        body.shared += [f"sizeof({local.name})" for local in locals_of(words)]
        if not body.shared:
            raise NotCoveredError(f"{words[0].place}: a shared variable that is not understood")
        body.writer.add("alignas(64)", words)
        body.writer.add(f"static_assert({' + '.join(body.shared)} <= 48 << 10);")
    else:
        body.writer.add(words)


def declare(body: Body, local: Local, used: dict[str, set[int]]) -> None:
    """Declare a variable of each thread: in one region, in each region, or as a context array."""
    words = body.unit.handing_over(by_itself(local))
    if local.name in body.facts.handed_over:
        names = body.needed(set(texts(local.value)))
        bindings = body.bindings(names, set(), nearby=False)
        if body.analysis.needs_current(names):
            bindings.append("::cudalab::set_thread(threadIdx, (unsigned)cudalab_t);")
        value = body.unit.handing_over(local.initializer)
        body.writer.add(lambdas.definition(local, value, bindings))
        body.homes[local.name] = Home([lambdas.binding(local.name)])
        return
    crosses = len(used.get(local.name, ())) > 1
    if not crosses:
        body.region.add(*local.align, *words, ";")
        body.region.names |= set(texts(words))
        body.region.declared.add(local.name)
        return
    computed = {name for name, home in body.homes.items() if home.computed}
    if body.facts.is_computed(local, computed):
        body.writer.add(words, f"; (void){local.name};")
        body.region.add(words, ";", computed=True)
        body.region.names |= set(texts(words))
        body.region.declared.add(local.name)
        body.homes[local.name] = Home([*words, ";"], set(texts(local.value)), computed=True)
        return
    if local.value and local.value[-1].text == "}" and has_lambda(local.value):
        raise NotCoveredError(f"{local.value[0].place}: a lambda that is used after a barrier")
    keep_local(body, local)


def keep_local(body: Body, local: Local) -> None:
    """Keep a variable that lives across a barrier in a context array."""
    name, value = local.name, body.unit.handing_over(local.value)
    region = body.region
    region.names |= set(texts([*local.spec, *value]))
    region.declared.add(name)
    if local.is_reference:
        initial = spaced(body.unit.handing_over(local.initializer))
        home = body.keep(name, f"::std::remove_reference_t<decltype(({initial}))>*", "*")
        region.add(f"{home}[cudalab_t] = &(", *body.unit.handing_over(local.initializer), ");")
        region.add(f"auto& {name} = *{home}[cudalab_t];")
        return
    spec = [word for word in local.spec if word.text != "typename" or len(local.spec) > 1]
    if "auto" in texts(spec):
        kind = f"::std::decay_t<decltype({spaced(body.unit.handing_over(local.initializer))})>"
    else:
        kind = spaced([*spec, *local.pointer, *_extents(local)])
    if body.unit.given.referring or "decltype" in texts(spec):
        body.writer.add(f"static_assert(::cudalab::is_copied<{kind}>);")
    home = body.keep(name, f"::cudalab::Kept<{kind}>")
    if local.align:  # of each thread's value
        size = spaced(local.align[2:-1])
        body.writer.add(f"static_assert(sizeof(::cudalab::Kept<{kind}>) % ({size}) == 0);")
    if body.facts.is_nearby(name):
        body.homes[name].nearby = nearby(name, f"{home}[cudalab_t]")
    region.add(f"auto& {name} = {home}[cudalab_t];")
    if not value:
        if not TYPES.issuperset(texts(spec)) and not local.pointer:  # a class, as far as is known
            region.add(f"::cudalab::begin({name});")
    elif value[0].text == "=" and not local.array and value[1].text != "{":
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
