"""Calls of kernels as if they were functions, which nvcc refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.errors import KernelCompileError
from cudalab.language.types import is_local

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cudalab.program.parsed import Parsed


def refuse_plain_calls(files: Sequence[Parsed], kernels: Collection[str]) -> None:
    """KernelCompileError for statements such as `kernel(a, n);`, in nvcc's words.

    `kernels` are names that no other function has.
    """
    messages = [
        f"{file.place(file.tokens[node.first].start)}: error: "
        "a __global__ function call must be configured\n"
        f"    {file.file.text.splitlines()[file.lines[file.tokens[node.first].start] - 1].strip()}"
        for file in files
        for node in file.root.of_kind("expression")
        for call in node.children
        if call.kind == "call" and call.children[0].kind == "name"
        if call.children[0].text in kernels and not is_local(call.children[0])
    ]
    if messages:
        raise KernelCompileError(
            f"{files[0].file.label} does not compile:\n" + "\n".join(messages),
            hint="a kernel is launched by kernel<<<blocks, threads>>>(arguments)",
        )
