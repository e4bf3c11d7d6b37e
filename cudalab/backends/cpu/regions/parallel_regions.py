"""Parallel regions: statements that each thread runs through without waiting for others.

A variable that only one region uses is declared in it. One that another region uses, too, is
declared there anew if that is cheap and gives the same value; else it is kept in a context array:

    float x = a[i];     ->    x_cudalab_1[cudalab_t] = a[i];
    __syncthreads();
    b[i] = x;           ->    auto& x = x_cudalab_1[cudalab_t]; b[i] = x;
"""

from cudalab.backends.cpu.regions import lambdas, parts
from cudalab.backends.cpu.regions.body import Body
from cudalab.backends.cpu.regions.parts import OUTER, Home, Loop, Part, Piece
from cudalab.backends.cpu.regions.syntax import LOOPS, TYPES, Local, Statement, locals_of
from cudalab.backends.cpu.regions.words import NotCoveredError, Words
from cudalab.language.tokens import has_lambda, spaced, split, texts


def once(body: Body, part: Part) -> None:
    """Write a change to variables of the block, once for all threads."""
    if part.cuts:
        body.flush()
    body.writer.add(part.statement.words)


def plain(body: Body, part: Part) -> None:
    """Add a statement without barriers to the region."""
    if part.cuts:  # others need not wait for what they have done before
        body.flush()
        body.region.ordered = True
    statement, last = part.statement, part.last
    words = statement.words
    if statement.kind == "other" and words[0].text in ("struct", "class", "union", "enum"):
        body.writer.add(words)
        return
    if statement.kind == "simple":
        if words[0].text in OUTER:
            outer(body, words)
            return
        if words[0].text in ("return", "break", "continue") and _at_once(body, words, last=last):
            return
        for local in statement.declared:
            declare(body, local, part.used)
        if statement.declared:
            return
    body.region.add(in_region(body, statement, depth=0, last=last), of=words)


def _at_once(body: Body, words: Words, *, last: bool) -> bool:
    """Write a `return`, `break` or `continue` that all threads here take together."""
    text = words[0].text
    loop = body.loops[-1] if body.loops else Loop()
    if text == "return" and last and not body.loops:
        return False
    if body.mask.startswith("cudalab_m_"):
        return False
    if text == "return":
        if len(words) > 2:
            body.region.add(_returned(body, words), of=words)
        body.flush()
        body.writer.add("return;")
        return True
    if loop.mask:
        return False
    body.flush()
    body.writer.add(f"goto {loop.label};" if text == "continue" and loop.label else f"{text};")
    return True


def _returned(body: Body, words: Words) -> list[Piece]:
    if len(words) == 2:
        return []
    has_value = not (body.function.is_kernel or body.function.returns_nothing)
    kept = ["cudalab_ret[cudalab_t] ="] if has_value else []
    return [*kept, *body.unit.handing_over(words[1:-1]), ";"]


def in_region(body: Body, statement: Statement, depth: int, *, last: bool) -> list[Piece]:
    """The text of a statement for one thread; `depth`: of loops inside the region."""
    words = statement.words
    if statement.kind == "block":
        parts = [in_region(body, part, depth, last=False) for part in statement.parts]
        return ["{", *(piece for pieces in parts for piece in pieces), "}"]
    if statement.kind == "simple":
        return _simple(body, words, depth, last=last)
    if statement.kind == "other":
        if "return" in texts(words) and not has_lambda(words):
            raise NotCoveredError(f"{words[0].place}: a return in a switch or a loop over a range")
        return [*body.unit.handing_over(words)]
    pieces, at = list[Piece](), statement.start
    for part in statement.parts:
        pieces += body.unit.handing_over(statement.text[at : part.start])
        inside = in_region(body, part, depth + (statement.kind in LOOPS), last=False)
        pieces += ["{", *inside, "}"]
        at = part.end
    return [*pieces, *body.unit.handing_over(statement.text[at : statement.end])]


def _simple(body: Body, words: Words, depth: int, *, last: bool) -> list[Piece]:
    text, loop = words[0].text, body.loops[-1] if body.loops else Loop()
    if text == "return":
        if last:
            return _returned(body, words)
        body.region.number = body.region.number or body.number()
        leave = "cudalab_live.remove(cudalab_t);" if body.leaving else ""
        body.region.leaves |= body.leaving
        leave += f" goto cudalab_next_{body.region.number}; }}"
        return ["{", *_returned(body, words), leave]
    if text in ("break", "continue") and depth == 0:
        if not loop.mask:
            raise NotCoveredError(f"{words[0].place}: a {text} that only some threads reach")
        body.region.number = body.region.number or body.number()
        body.region.leaves = True
        leave = f"{loop.round}.remove(cudalab_t);"
        if text == "break" and loop.round != loop.mask:
            leave += f" {loop.mask}.remove(cudalab_t);"
        return ["{", f"{leave} goto cudalab_next_{body.region.number}; }}"]
    return [*body.unit.handing_over(words)]


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
    words = body.unit.handing_over(parts.by_itself(local))
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
        body.region.add(*local.align, *words, ";", of=words)
        body.region.declared.add(local.name)
        return
    computed = {name for name, home in body.homes.items() if home.computed}
    if body.facts.is_computed(local, computed):
        body.writer.add(words, f"; (void){local.name};")
        body.region.add(words, ";", of=words, computed=True)
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
        kind = parts.type_of_value(body.unit.handing_over(local.initializer))
    else:
        kind = spaced([*spec, *local.pointer, *_extents(local)])
    if body.unit.given.referring or "decltype" in texts(spec):
        body.writer.add(f"static_assert(::cudalab::is_copied<{kind}>);")
    home = body.keep(name, f"::cudalab::Kept<{kind}>")
    if local.align:  # of each thread's value
        size = spaced(local.align[2:-1])
        body.writer.add(f"static_assert(sizeof(::cudalab::Kept<{kind}>) % ({size}) == 0);")
    if body.facts.is_nearby(name):
        body.homes[name].nearby = parts.nearby(name, f"{home}[cudalab_t]")
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
