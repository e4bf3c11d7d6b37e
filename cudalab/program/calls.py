"""Calls of kernels as if they were functions, which nvcc refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.errors import KernelCompileError
from cudalab.language.tokens import closing

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cudalab.program.parsed import Parsed

_BEFORE = frozenset({";", "{", "}", ")", "else", "do"})


def refuse_plain_calls(files: Sequence[Parsed], kernels: Collection[str]) -> None:
    """KernelCompileError for statements such as `kernel(a, n);`, in nvcc's words.

    `kernels` are names that no other function has.
    """
    messages = []
    for file in files:
        tokens = file.tokens
        for start, end in file.structure.functions:
            for i in range(start + 1, end):
                if tokens[i].text not in kernels or tokens[i + 1].text != "(":
                    continue
                last = closing(tokens, i + 1)
                if tokens[i - 1].text in _BEFORE and last and tokens[last + 1].text == ";":
                    line = file.lines[tokens[i].start]
                    messages.append(
                        f"{file.file.label}:{line}: error: "
                        "a __global__ function call must be configured\n"
                        f"    {file.file.text.splitlines()[line - 1].strip()}"
                    )
    if messages:
        raise KernelCompileError(
            f"{files[0].file.label} does not compile:\n" + "\n".join(messages),
            hint="a kernel is launched by kernel<<<blocks, threads>>>(arguments)",
        )
