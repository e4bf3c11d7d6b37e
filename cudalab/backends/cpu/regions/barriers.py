"""Calls in which threads meet: barriers, warp operations, and functions that have some.

Operands are computed by each thread, in the region before the call; its result is an array. So
`y = __shfl_sync(~0u, 2 * x, 0);` becomes

    EACH THREAD { r_1[cudalab_t] = 2 * x; }
    regions::__shfl_sync(block, all, r, uniform(~0u), r_1, uniform(0));
    EACH THREAD { y = r[cudalab_t]; }
"""

from cudalab.backends.cpu.regions import unit
from cudalab.backends.cpu.regions.body import Body
from cudalab.backends.cpu.regions.functions import Function, Parameter
from cudalab.backends.cpu.regions.parts import Part, Piece, type_of, type_of_value
from cudalab.backends.cpu.regions.words import NotCoveredError, Words, calls
from cudalab.language.lockstep import STEP
from cudalab.language.tokens import has_lambda, spaced, split, texts

_ALL = "::cudalab::All()"
_TALLIES = {"__syncthreads": "barriers", "__syncwarp": "warp_barriers"}


def _type_of_operand(name: str, position: int) -> str:
    """The type of an operand of a built-in operation; empty for a shuffled value."""
    if name in unit.BLOCK_VOTES:
        return "int"
    if position == 0:
        return "unsigned"  # the mask
    if (position == 1 and name not in unit.VOTES) or name in unit.GROUP_WIDE:
        return ""
    return "int"


def barrier(body: Body, part: Part) -> None:
    """End the region and count who meets; report if a program relies on lanes in step."""
    words = part.statement.words
    body.flush()
    if not body.unit.is_program and words[0].text in _TALLIES:
        here = f"::cudalab::number_of(cudalab_B, {body.mask or _ALL})"
        body.writer.add(f"cudalab_B.{_TALLIES[words[0].text]} += {here};")
    if body.unit.is_program and texts(words[:3]) == [STEP, "(", "1"]:
        body.writer.add(f'::cudalab::tell_of_steps("{words[0].file}", {words[0].line});')


def call(body: Body, part: Part) -> None:
    """Write a call in which threads meet."""
    words = part.call
    opening = calls(words, {words[0].text})[0].opening
    arguments = split(words[opening + 1 : -1])
    name = words[0].text
    result: list[Piece] = []
    if body.unit.has_value(name):
        is_int = name in unit.BLOCK_VOTES  # whose names are macros elsewhere
        kind = "int" if is_int else type_of_value(words)
        result = [f", &{body.keep(part.result, kind)}[0]"]
    if name in unit.BUILT_IN:
        for i, argument in enumerate(arguments):
            operand = _operand(body, argument, _type_of_operand(name, i), f"{part.result}_{i}")
            result += [",", *operand]
        result += [f', "{words[0].file}", {words[0].line}']
        body.flush()
        body.writer.add(
            f"::cudalab::regions::{name}( cudalab_B , {body.mask or _ALL}", result, ");"
        )
        return
    function = body.unit.by_name[name][0]
    for i, parameter in enumerate(function.parameters):
        argument = arguments[i] if i < len(arguments) else parameter.default
        uniform = body.analysis.facts[function].is_uniform_parameter(parameter.name)
        if i >= len(arguments) and uniform:
            break
        temporary = f"{part.result}_{i}"
        result += [",", *_argument(body, function, parameter, argument, temporary)]
    body.flush()
    masked = bool(body.mask) or name in body.analysis.always_masked
    body.called.add((name, masked))
    called = words[0]._replace(text=body.analysis.name_for(function, masked))
    mask = f", {body.mask or '::cudalab::Mask(cudalab_B)'}" if masked else ""
    # In brackets, so that the functions of the arguments' namespaces are not looked at.
    body.writer.add("(", called, words[1:opening], f") ( cudalab_B {mask}", result, ");")


def step(body: Body, part: Part) -> None:
    """Write a statement whose value all lanes of a warp compute before any of them stores it."""
    words = part.statement.words
    found = calls(words, unit.STEPS)[0]
    value = body.unit.handing_over(words[found.opening + 3 : found.closing])
    result = f"cudalab_r_{body.number()}"
    body.flush()
    kind = type_of_value(value)
    body.writer.add(f"CUDALAB_VALUES({result}_w, 32, {kind});")
    body.writer.add("CUDALAB_EACH_WARP {")
    lanes = f"CUDALAB_LANES({body.mask or 'cudalab_B'})"
    store = f"::cudalab::construct<{kind}>({result}_w + cudalab_lane,"
    body.region.add(store, value, ");", of=words)
    body.flush(each=lanes)
    stored = [*words[: found.name], found.word._replace(text=f"{result}_w[cudalab_lane]")]
    body.region.add(body.unit.handing_over([*stored, *words[found.closing + 1 :]]), of=words)
    body.flush(each=lanes)
    body.writer.add("}")


def _operand(body: Body, argument: Words, kind: str, temporary: str) -> list[Piece]:
    """An operand of a built-in operation: one value for all, or the array of the threads' values.

    `kind` is the type that it is converted to; empty if the operation takes any.
    """
    if body.facts.is_scalar_value(argument):
        return [f"::cudalab::uniform<{kind}>(" if kind else "::cudalab::uniform(", *argument, ")"]
    whole = argument[0].text if len(argument) == 1 else ""
    if not kind and whole in body.homes and body.homes[whole].is_array:
        return [f"&{whole}"]
    return _temporary(body, argument, kind, temporary)


def _temporary(body: Body, argument: Words, kind: str, temporary: str) -> list[Piece]:
    """The array of the threads' values of an argument, of its own type if `kind` is empty."""
    value = body.unit.handing_over(argument)
    body.values(temporary, kind or type_of_value(value))
    body.region.add(f"{temporary}[cudalab_t] =", *value, ";", of=argument)
    return [f"&{temporary}[0]"]


def _lasting(
    body: Body, function: Function, parameter: Parameter, argument: Words, temporary: str
) -> list[Piece]:
    """What a reference to const is made of; a value without a place gets one for the call."""
    value = body.unit.handing_over(argument)
    kind = f"::std::remove_cv_t<::std::remove_pointer_t<{type_of(parameter)}>>"
    if function.template_names & set(texts(parameter.words)):
        kind = type_of_value(value)
    body.values(f"{temporary}_v", kind)
    body.values(temporary, f"const {kind}*")
    lasts = f"{temporary}[cudalab_t] = ::cudalab::lasting({temporary}_v + cudalab_t,"
    body.region.add(lasts, *value, ");", of=argument)
    return [f"&{temporary}[0]"]


def _argument(
    body: Body, function: Function, parameter: Parameter, argument: Words, temporary: str
) -> list[Piece]:
    facts = body.analysis.facts[function]
    scalar = parameter.name not in facts.own or body.facts.is_scalar_value(argument)
    if parameter.name in facts.lambda_parameters and not body.facts.is_lambda(argument):
        if scalar:
            return [*argument]
        return ["::cudalab::of_threads(", *_temporary(body, argument, "", temporary), ")"]
    if facts.is_uniform_parameter(parameter.name):
        return [*argument]
    if has_lambda(argument) or (len(argument) == 1 and argument[0].text in body.facts.lambdas):
        raise NotCoveredError(f"{argument[0].place}: a lambda for a function with barriers")
    if parameter.is_reference:
        if parameter.is_constant and len(argument) > 1 and "(" not in texts(parameter.words):
            return _lasting(body, function, parameter, argument, temporary)
        value = body.unit.handing_over(argument)
        const = "const " if "const" in texts(parameter.words) else ""
        body.values(temporary, f"{const}::std::remove_reference_t<decltype(({spaced(value)}))>*")
        body.region.add(f"{temporary}[cudalab_t] = &(", *value, ");", of=argument)
        return [f"&{temporary}[0]"]
    deduced = not function.template_names.isdisjoint(texts(parameter.words))
    kind = "" if deduced else f"::cudalab::Kept<{type_of(parameter)}>"
    return _temporary(body, argument, kind, temporary)
