"""The definition of a function that a block of threads goes through together."""

from cudalab.backends.cpu.regions import lambdas
from cudalab.backends.cpu.regions.body import Body
from cudalab.backends.cpu.regions.in_step import LEAVING, one_by_one
from cudalab.backends.cpu.regions.parts import Home, handed_over, nearby, widths, without_defaults
from cudalab.backends.cpu.regions.rows import are_alike
from cudalab.backends.cpu.regions.syntax import Parameter
from cudalab.backends.cpu.regions.writer import Piece


def definition(body: Body, *, leaving: bool = False) -> str:
    """The definition of the body's function, or of the one for blocks of which threads leave."""
    function = body.function
    writer = body.writer
    if body.facts.in_step:
        writer.add(one_by_one(function))
    template = function.template
    writer.add(without_defaults(template) if function.is_kernel else template)
    often = body.analysis.is_repeated(function)
    writer.add("" if function.specialized else "static", "CUDALAB_ONCE" if often else "inline")
    name = f"{function.name}_cudalab_{LEAVING}" if leaving else ""
    name = name or body.analysis.name_for(function, body.masked)
    writer.add(f"void {name}", function.specialized)
    writer.add("(", _parameters(body), ") { CUDALAB_ENTER ;")
    for width in widths(function):
        writer.add(f"::cudalab::assume_no_wrap(blockIdx.x, {width});")
    if body.leaving:
        before = "cudalab_mask" if body.masked else "cudalab_B"
        writer.add(f"::cudalab::Mask cudalab_live({before});")
        if function.is_kernel:
            writer.add("cudalab_B.live = &cudalab_live;")
        if body.masked:
            body.masks = ["cudalab_live"]
    for parameter in function.parameters:
        _begin_parameter(body, parameter)
    if body.facts.in_step:
        # Threads of several rows that know no row change the same elements; alike, they are one.
        unit = body.facts.unit
        several = unit.is_flat(function) and not are_alike(unit, function)
        alike = "|| !cudalab_B.flat()" if several else ""
        writer.add(f"if (CUDALAB_RAGGED {alike}) {{ {body.otherwise} }}")
    body.statements(body.facts.statements, last=True)
    writer.add("}\n")
    return writer.text()


def _parameters(body: Body) -> list[Piece]:
    """The declarations of the parameters."""
    function = body.function
    pieces: list[Piece] = ["" if function.is_kernel else "const", "::cudalab::Block& cudalab_B"]
    if body.masked:
        pieces += [", const ::cudalab::Mask& cudalab_mask"]
    if not function.is_kernel and not function.returns_nothing:
        pieces += [",", *function.returns, "* cudalab_ret"]
    for parameter in function.parameters:
        pieces += [",", *_parameter(body, parameter)]
    return pieces


def _is_kept(body: Body, parameter: Parameter) -> bool:
    """Whether threads change a parameter that is passed once for all of them."""
    uniform = body.function.is_kernel or body.facts.is_uniform_parameter(parameter.name)
    changes = parameter.name in body.facts.changed | body.levels.escaping
    uniform &= parameter.name not in body.facts.lambda_parameters
    return uniform and changes and not body.facts.is_scalar_name(parameter.name)


def _parameter(body: Body, parameter: Parameter) -> list[Piece]:
    """The declaration of a parameter."""
    name = parameter.name
    if body.function.is_kernel or body.facts.is_uniform_parameter(name):
        has_default = parameter.default and not body.function.is_kernel
        default: list[Piece] = ["=", *parameter.default] if has_default else []
        words: list[Piece] = [*parameter.words]
        if _is_kept(body, parameter):
            words = [
                word._replace(text=f"{name}_cudalab_0") if word.text == name else word
                for word in parameter.words
            ]
        return [*words, *default]
    return [handed_over(parameter)]


def _begin_parameter(body: Body, parameter: Parameter) -> None:
    """Bind a parameter of each thread for the regions."""
    name, facts = parameter.name, body.facts
    if _is_kept(body, parameter):
        home = body.keep(name, f"::cudalab::Kept<decltype({name}_cudalab_0)>")
        body.writer.add(
            f"CUDALAB_EACH {{ CUDALAB_THREAD ::cudalab::construct<::cudalab::Kept<decltype("
            f"{name}_cudalab_0)>>({home} + cudalab_t, {name}_cudalab_0); }}"
        )
    elif name in facts.lambda_parameters:
        body.writer.add(lambdas.known(name))
        body.homes[name] = Home([lambdas.binding(name)])
    elif not body.function.is_kernel and not facts.is_uniform_parameter(name):
        pointed = "*" if parameter.is_reference else ""
        binding: list[Piece] = [f"auto& {name} = {pointed}{name}_cudalab_p[cudalab_t];"]
        body.homes[name] = Home(binding, is_array=not pointed)
        if facts.is_nearby(name):
            body.homes[name].nearby = nearby(name, f"*{name}_cudalab_p[cudalab_t]")
        body.writer.add(f"auto& {name} = {pointed}{name}_cudalab_p[0]; (void){name};")
