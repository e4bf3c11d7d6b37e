"""Errors about a program from the host compiler's messages about its rewritten text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cudalab.errors import CudalabError, KernelCompileError, NoDeviceError
from cudalab.system.cache import disk_full

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cudalab.program.files import File

# An unknown name, in the words of g++ and clang++.
_UNKNOWN = re.compile(
    r"^(?P<place>[^\s:][^:\n]*:\d+):(?:\d+:)? (?:fatal )?error: .*?"
    r"(?:[\u2018'](?P<name>\w+)[\u2019'](?: was not declared| does not name| has not been declared)"
    r"|(?:use of undeclared identifier|unknown type name|no template named|no member named)"
    r" '(?P<other>\w+)')",
    re.MULTILINE,
)
_ASSEMBLER = re.compile(r"^(?P<place>[^\s:][^:\n]*:\d+): Error: ", re.MULTILINE)
_NO_MAIN = re.compile(r"undefined (?:reference to|symbol:) [`']?main\b")
_LACKING = (
    ("cudaGraph", "CUDA graphs"),
    ("cudaTexture", "textures"),
    ("cudaSurface", "surfaces"),
    ("cudaArray", "CUDA arrays"),
    ("cudaMallocArray", "CUDA arrays"),
    ("cudaBindTexture", "textures"),
    ("cudaChannelFormat", "textures"),
    ("cudaCreateChannelDesc", "textures"),
    ("cudaCreateTexture", "textures"),
    ("texture", "textures"),
    ("tex1D", "textures"),
    ("tex2D", "textures"),
    ("tex3D", "textures"),
    ("surf", "surfaces"),
    ("cudaIpc", "memory shared between processes"),
    ("cudaMemPool", "memory pools"),
    ("cudaGraphics", "graphics interoperation"),
    ("cooperative_groups", "this part of cooperative groups"),
    ("curand", "this part of cuRAND"),
    ("cublas", "cuBLAS"),
    ("thrust", "Thrust"),
    ("cub", "CUB"),
    ("nvcuda", "tensor cores"),
    ("wmma", "tensor cores"),
)
_CUDA_NAME = re.compile(r"cu(?:da)?[A-Z]\w+|__\w+|atomic\w+|tex\d\w*|surf\d\w*")
_MESSAGE = re.compile(
    r"^(?P<path>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? "
    r"(?P<kind>(?:fatal )?error|note): (?P<words>.*)$",
    re.MULTILINE,
)
# A launch whose arguments do not match, in the words of g++ and clang++.
_ARGUMENTS = re.compile(
    r"no match(?:ing function)? for call to (?:object of type )?"
    r"[\u2018'(]+(?:cudalab::)?TypedCall<.*?lambda.*?\)>?(?:, (?P<params>.*?))? ?>"
    r"(?:\) \((?P<arguments>.*)\)[\u2019']|')$"
)
_INTERNAL = re.compile(r"\bcudalab_a\b|cudalab::|required from|in instantiation of")
RUNTIME = "/cpu/runtime/"


def explain(messages: str, files: Sequence[File]) -> CudalabError:
    """The error for a failed compilation."""
    full = disk_full(messages)
    if full:
        return full
    own = {file.label for file in files}
    for match in _UNKNOWN.finditer(messages):
        place = match["place"]
        name = match["name"] or match["other"]
        if place.rpartition(":")[0] not in own:
            continue
        for prefix, what in _LACKING:
            if name.startswith(prefix) and not _defined(name, files):
                shown = what if what.endswith(("TMA", "groups", "cuRAND")) else f"{what}: {name}"
                return _lacking(f"{shown}" if name in shown else f"{shown} ({name})", place)
        if _CUDA_NAME.fullmatch(name) and not _defined(name, files):
            return _lacking(name, place)
    assembly = _ASSEMBLER.search(messages)
    if assembly:
        return _lacking("inline PTX", assembly["place"])
    if _NO_MAIN.search(messages):
        return KernelCompileError(
            f"{files[0].label} has no main function",
            hint="a file of kernels for a lab is run by `cudalab LAB --kernel FILE.cu`",
        )
    return KernelCompileError(f"{files[0].label} does not compile:\n{_readable(messages, files)}")


def _lacking(what: str, place: str) -> NoDeviceError:
    return NoDeviceError(f"not supported on the CPU device: {what} ({place})")


def _defined(name: str, files: Sequence[File]) -> bool:
    """Whether the program seems to define `name` itself, so that the mistake is its own."""
    return any(
        re.search(rf"#\s*define\s+{name}\b|\b(?:struct|class)\s+{name}\b", file.text)
        for file in files
    )


def _readable(messages: str, files: Sequence[File]) -> str:
    """The errors, each with the program's own line, without messages about the runtime.

    Columns and carets are left out, too, since they refer to the rewritten line.
    """
    texts = {file.label: file.text.splitlines() for file in files}
    errors: list[str] = []
    elsewhere: list[str] = []
    for match in _MESSAGE.finditer(messages):
        path, line, kind, words = match["path"], int(match["line"]), match["kind"], match["words"]
        if path not in texts:
            if kind != "note" and RUNTIME not in path:
                elsewhere.append(match[0])
            continue
        words = _ARGUMENTS.sub(_arguments, words)
        if kind == "note" and (not errors or _INTERNAL.search(words)):
            continue
        source = texts[path][line - 1].strip() if line <= len(texts[path]) else ""
        errors.append(f"{path}:{line}: {kind}: {words}\n    {source}")
    return "\n".join([*elsewhere, *dict.fromkeys(errors)]) or messages.strip()


def _arguments(match: re.Match[str]) -> str:
    types = f" ({match['arguments']})" if match["arguments"] is not None else ""
    return f"the arguments{types} do not match the kernel's parameters ({match['params'] or ''})"
