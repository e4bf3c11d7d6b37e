"""compile_commands.json, by which clangd reads a kernel file as the CPU device does."""

import json
from pathlib import Path
from typing import Any

from cudalab.backends.cpu.flags import RUNTIME, for_kernels
from cudalab.checker.cases import case_for
from cudalab.errors import CudalabError
from cudalab.formats import save
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.language import source

NAME = "compile_commands.json"


def add(lab: Lab, path: Path) -> Path:
    """Add a kernel file to the compile_commands.json beside it, and return the latter.

    CudalabError if there is one that cannot be extended; it is not changed then.
    """
    path = path.resolve()
    database = path.with_name(NAME)
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
