"""A kernel file to start from: header, contract, and kernels with empty bodies.

The lab provides all of it: one of its variants has the header, and the docstring of that variant's
launch plan lists the kernels with their parameters. By the compile_commands.json beside it clangd
reads the file as the CPU device does.
"""

import inspect
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, wrap
from typing import Any

from cudalab.backends.base import C_TYPES
from cudalab.backends.cpu.compiler.flags import RUNTIME, for_kernels
from cudalab.checker.cases import case_for
from cudalab.errors import CudalabError
from cudalab.formats import save
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.language import source

_SIGNATURE = re.compile(r"^(?P<name>[a-z]\w*)\((?P<params>[^()]*)\)$", re.DOTALL)
_CONSTANT = re.compile(r"^__constant__ (?P<type>[\w ]+?) (?P<name>\w+)$", re.MULTILINE)
WIDTH = 97


@dataclass(frozen=True)
class Signature:
    """A kernel that the launch plan launches."""

    name: str
    params: str
    says: str


def original(lab: Lab) -> Variant:
    """The variant whose header and kernels the file has."""
    base = lab.teaching.skeleton
    return registry.find(lab, base.variant) if base else registry.variants(lab)[0]


def skeleton(lab: Lab, title: str) -> str:
    """The text of a file called `title`."""
    variant, base = original(lab), lab.teaching.skeleton
    includes = base.includes if base else ()
    plan = inspect.getdoc(lab.plan(variant.dispatch)) or ""
    included = {name for path in includes for name in _kernels_of(path)}
    missing = [one for one in signatures(plan) if one.name not in included]
    defines = ", ".join(f"{name} = {value!r}" for name, value in variant.defines.items())
    defaults = lab.complete({})
    applies = ", ".join(
        f'{axis} = ["{defaults[axis]}"]'
        for axis in lab.axes
        if axis not in {"dtype", *lab.derived} and len(lab.axes[axis]) > 1
    )
    kind = C_TYPES.get(defaults.get("dtype", ""))
    elements = [name for name, value in lab.kernel_defines(defaults).items() if value == kind]
    lines = [
        "// /// cudalab",
        f'// summary  = "{title}: my kernel"',
        "// order    = 100",
        f'// dispatch = "{variant.dispatch}"',
        *([f"// defines  = {{ {defines} }}"] if defines else []),
        *([f"// applies  = {{ {applies} }}"] if applies else []),
        "// ///",
        "//",
        *_comment(f"{lab.name}: {(inspect.getdoc(type(lab)) or '').strip()}"),
        "//",
        *_comment(f"The launch plan `{variant.dispatch}`:"),
        *(f"// {line}".rstrip() for line in plan.splitlines()),
        "//",
        *_comment(
            "The defines of the header are macros here and reach the launch as well."
            + "".join(f" {name} is the element type." for name in elements)
        ),
        f"// Judge it with: cudalab check {lab.name} --kernel {shlex.quote(title)}",
        *(f'#include "{path}"' for path in includes),
        "",
    ]
    lines += [f"__constant__ {m['type']} {m['name']};\n" for m in _CONSTANT.finditer(plan)]
    for one in missing:
        lines += [*_comment(f"{one.name}: {one.says}"), *_definition(one), ""]
    return "\n".join(lines).rstrip() + "\n"


def signatures(plan: str) -> Iterator[Signature]:
    """The kernels in a plan's docstring, with their parameters."""
    lines = plan.splitlines()
    number = 0
    while number < len(lines):
        if not re.match(r"[a-z]\w*\(", lines[number]):
            number += 1
            continue
        text = lines[number]
        number += 1
        while ")" not in text and number < len(lines):
            text += " " + lines[number].strip()
            number += 1
        match = _SIGNATURE.fullmatch(text.strip())
        body = []
        while number < len(lines) and (lines[number].startswith("    ") or not lines[number]):
            body.append(lines[number])
            number += 1
        if match:
            says = " ".join(dedent("\n".join(body)).split())
            yield Signature(match["name"], " ".join(match["params"].split()), says)


def _kernels_of(include: str) -> list[str]:
    text = (source.kernels_dir() / include).read_text(encoding="utf-8")
    nested = re.findall(r'^#include "([^"]+)"', text, re.MULTILINE)
    return [*source.find_kernels(text), *(name for path in nested for name in _kernels_of(path))]


def _definition(one: Signature) -> list[str]:
    start = f'extern "C" __global__ void {one.name}('
    whole = f"{start}{one.params}) {{"
    if len(whole) <= WIDTH + 3:
        head = [whole]
    else:
        pieces = wrap(one.params + ") {", WIDTH - 4, break_long_words=False)
        head = [start, *(f"    {piece}" for piece in pieces)]
    return [*head, "    // your code", "}"]


def _comment(text: str) -> list[str]:
    lines = []
    for paragraph in text.split("\n\n"):
        lines += [f"// {line}" for line in wrap(" ".join(paragraph.split()), WIDTH)] + ["//"]
    return lines[:-1]


DATABASE = "compile_commands.json"


def add_to_database(lab: Lab, path: Path) -> Path:
    """Add a kernel file to the compile_commands.json beside it, and return the latter.

    CudalabError if there is one that cannot be extended; it is not changed then.
    """
    path = path.resolve()
    database = path.with_name(DATABASE)
    others = [
        one
        for one in _read(database)
        if Path(str(one.get("directory", "")), str(one.get("file", ""))).resolve() != path
    ]
    entry = {"directory": str(path.parent), "file": path.name, "arguments": _arguments(lab, path)}
    save(database, json.dumps([*others, entry], indent=1) + "\n")
    return database


def _read(database: Path) -> list[dict[str, Any]]:
    """The entries of the file, or none if there is no file."""
    try:
        entries = json.loads(database.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise CudalabError(f"{database}: cannot be read: {error}") from None
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise CudalabError(f"{database}: not a list of compile commands")
    return entries


def _arguments(lab: Lab, path: Path) -> list[str]:
    """The command that would compile the file, with the macros of its header and default case."""
    header = registry.read_header(path, lab, path.name)
    case = lab.complete(case_for(lab, {}, header))
    macros = {**lab.kernel_defines(case), **header.defines}
    return [
        *("clang++", "-std=c++17", "-include", str(RUNTIME / "kernels" / "editor.h")),
        *("-I", str(source.kernels_dir()), *for_kernels()),
        *(f"-D{name}={value}" for name, value in macros.items()),
        *("-xc++", "-fsyntax-only", path.name),
    ]
