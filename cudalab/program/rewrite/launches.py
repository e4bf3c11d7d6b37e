"""Kernels and their launches: the runtime knows the ones, and the others become calls of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from cudalab.language import macros, scopes, source, structure
from cudalab.language.tokens import Words, split
from cudalab.language.types import is_local
from cudalab.program.rewrite.parsed import Launch, Parsed


@dataclass(frozen=True, kw_only=True)
class Known:
    """What launches need to know about the kernels of all files."""

    plain: set[str]  # names that stand for one kernel that is no template
    templates: set[str]
    arguments: dict[str, int]  # of a template that is not overloaded, if their number is certain
    defaults: set[str]  # names of kernels with default arguments
    references: dict[str, set[int]]  # `references` of a kernel's declarations
    qualified: dict[str, str]  # kernels whose names have a second meaning, as expressions


def known(files: Sequence[Parsed]) -> Known:
    """Collect what the files declare about their kernels."""
    kernels: dict[str, list[structure.Kernel]] = {}
    for each in files:
        for kernel in each.structure.kernels:
            kernels.setdefault(kernel.name, []).append(kernel)
    host = _of_host(files)
    others = {
        short_name(one.node)
        for each in files
        for one in each.structure.device_functions
        if "__global__" not in one.node.words
    }
    templates = {name for name, own in kernels.items() if any(each.is_template for each in own)}
    single = {
        name
        for name, own in kernels.items()
        if name not in templates and len({each.signature for each in own}) == 1
    }
    expressions = qualified(files, single, templates)
    return Known(
        plain=single - (host - expressions.keys()),
        templates=templates,
        arguments={
            name: own[0].template_parameters
            for name, own in kernels.items()
            if name not in host | others
            and len({(one.signature, one.template_parameters) for one in own}) == 1
        },
        defaults={name for name, own in kernels.items() if any(each.has_defaults for each in own)},
        references={name: {each.references for each in own} for name, own in kernels.items()},
        qualified=expressions,
    )


def _of_host(files: Sequence[Parsed]) -> set[str]:
    """The names of functions for the host, to which files of C add none."""
    return {x for each in files if not each.file.is_c for x in each.structure.host_functions}


def qualified(files: Sequence[Parsed], single: set[str], templates: set[str]) -> dict[str, str]:
    """Kernels whose names may be ambiguous, each as an expression of C++.

    They are those of a program with a `using namespace`, such as `swap`, `count` or `max`, and
    those that the host has functions of the same name for. nvcc resolves them by the launch's
    arguments. Here the launch names the kernel in full: the one outside all namespaces, with the
    types of its parameters. A template's expression is its name.
    """
    uses = any(
        (one.text, other.text) == ("using", "namespace")
        for each in files
        for one, other in pairwise(each.tokens)
    )
    host = _of_host(files)
    found: dict[str, str | None] = {}
    inside: set[str] = set()
    for kernel in (one for each in files for one in each.structure.kernels if not one.scope):
        name, types = kernel.name, ", ".join(kernel.types)
        known = found.get(name, types) == types and not any(sign in types for sign in "([{")
        found[name] = types if known else None
        inside |= {name} if kernel.is_inside else set()
    return {
        name: f"::{name}" if name in templates else f"static_cast<void (*)({types})>(::{name})"
        for name, types in found.items()
        if name not in inside
        and (uses or name in host - templates)
        and (name in templates or (types is not None and name in single))
    }


def enlist(parsed: Parsed, of: Known) -> None:
    """Register the kernels with the runtime, which looks them up by address."""
    for kernel in parsed.structure.kernels:
        if kernel.body_end is not None and kernel.name in of.plain:
            bounds = f", (unsigned)({kernel.bounds})" if kernel.bounds else ""
            written = of.qualified.get(kernel.name, f"{kernel.scope}{kernel.name}")
            parsed.replace(
                kernel.body_end,
                kernel.body_end,
                f" static ::cudalab::cudalab_kernel cudalab_enlisted_{kernel.name}_{kernel.line}"
                f'({written}, "{kernel.name}"{bounds});',
            )
    called = {each.children[0] for each in parsed.root.of_kind("call", "launch")}
    for node in parsed.root.of_kind("name"):  # instances of templates whose address is taken
        tokens, text = parsed.tokens[node.first : node.last], parsed.file.text
        if node in called or tokens[-1].text != ">" or short_name(node) not in of.templates:
            continue
        before, end = parsed.tokens[node.first - 1], tokens[-1].end
        begin = before.start if before.text == "&" else tokens[0].start
        name = " ".join(text[tokens[0].start : end].split())
        parsed.addresses.append(
            Launch(edit=len(parsed.edits), kernel=name, name=short_name(node), position=begin)
        )
        enlisted = f"::cudalab::cudalab_enlisted({text[begin:end]}, {source.quoted(name)})"
        parsed.replace(begin, end, enlisted)


def rewrite(
    parsed: Parsed, root: scopes.Node, words: Words, of: Known, macro: macros.Macro | None = None
) -> None:
    """Turn `k<<<config>>>(args)` into cudalab_typed_call(k, call of k, "k", config)(args).

    A kernel that may be overloaded or a template is launched by cudalab_any_call. A pointer to a
    kernel has no call. `root` is the tree of the file, or of the body of a `macro`.
    """
    newline, tokens = "\\\n" if macro else "\n", words.tokens
    for node in root.of_kind("launch"):
        kernel, text = node.children[0], parsed.file.text
        begin, end = tokens[kernel.first].start, tokens[kernel.last - 1].end
        written = " ".join(text[begin:end].split()).replace(" \\ ", " ")
        name = f"#{written}" if macro and written in macro.parameters else source.quoted(written)
        first = words.texts[kernel.first]
        if of.qualified.get(first) == f"::{first}" and not is_local(kernel):
            written = f"::{written}"
        launch = _launch(parsed, node, written, of)
        if "cudalab_any_call" in launch:
            parsed.launches.append(
                Launch(
                    edit=len(parsed.edits), kernel=written, name=short_name(kernel),
                    position=begin, macro=macro.name if macro else "",
                )
            )  # fmt: skip
        config = tokens[node.at + 2].end
        parsed.replace(begin, config, f"{launch}, {name}, ::cudalab::cudalab_config(", newline)
        parsed.replace(tokens[node.last - 3].start, tokens[node.last - 1].end, "))")


def _launch(parsed: Parsed, node: scopes.Node, written: str, of: Known) -> str:
    """The beginning of a launch, which depends on what is known about the kernel."""
    kernel, name = node.children[0], short_name(node.children[0])
    if kernel.kind != "name":  # a pointer, evaluated at the launch
        return f"::cudalab::cudalab_typed_call({written}"
    call = call_of(written)
    if written.removeprefix("::") in of.plain - of.defaults:
        if written in of.qualified and not is_local(kernel):
            written = of.qualified[written]
            call = call_of(f"({written})")
        return f"::cudalab::cudalab_typed_call({written}, {call}"
    references, *others = of.references.get(name, {0})
    if others:
        begin = parsed.words.tokens[kernel.first].start
        parsed.lacking.add("references of overloaded kernels", parsed.place(begin))
    if name not in of.defaults:
        # Its type says whether the kernel is complete; g++ 13 fails itself at some such types.
        result = "auto" if _is_complete(parsed.words, kernel, of) else f"cudalab_t({written})"
        typed = f"[=](auto cudalab_t) -> decltype({result})"
        call = f"{typed} {{ return cudalab_t({written}); }}, {call}"
    return f"::cudalab::cudalab_any_call{f'<{references}>' if references else ''}({call}"


def call_of(kernel: str) -> str:
    """The closure that a launch hands over: it calls the kernel for one thread."""
    return f"[=](auto&... cudalab_a) CUDALAB_CLOSURE {{ {kernel}(cudalab_a...); }}"


def _is_complete(words: Words, kernel: scopes.Node, of: Known) -> bool:
    """Whether a launch names all arguments of a template that has no overloads."""
    texts = words.texts[kernel.first : kernel.last]
    if "<" not in texts or texts.count("<") > 1:
        return False
    inside = words.tokens[kernel.first + texts.index("<") + 1 : kernel.last - 1]
    return len(split(inside)) == of.arguments.get(short_name(kernel), 0)


def short_name(kernel: scopes.Node) -> str:
    """The name of a kernel without its namespace."""
    return kernel.text.rpartition("::")[2]
