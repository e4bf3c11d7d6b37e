"""Styles: ways to write a kernel file differently that leave its meaning as it is.

A style is a function of a text that has been parsed far enough to know its kernels. It returns the
new text, or None where it does not apply. All of them are CUDA that nvcc compiles.
"""

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from cudalab.language.tokens import Token, closing, tokenize

HEADER_END = "// ///\n"
_NAME = re.compile(r"\b([A-Za-z_]\w*)\s*$")


@dataclass(frozen=True, kw_only=True)
class Function:
    """A kernel's definition: places in the text."""

    name: str
    start: int  # of `extern "C"`
    open: int  # of the parameters' bracket
    close: int  # after it
    body: int  # of the brace
    end: int  # after its partner

    def parameters(self, text: str) -> list[str]:
        """The parameters' declarations."""
        inside = " ".join(text[self.open + 1 : self.close - 1].split())
        return [one.strip() for one in inside.split(",")] if inside else []

    def names(self, text: str) -> list[str]:
        """The parameters' names; a parameter without one is left out."""
        found = [_NAME.search(one) for one in self.parameters(text)]
        return [match[1] for match in found if match]


class File:
    """The text of a kernel file."""

    def __init__(self, text: str) -> None:
        """Take the text; its header ends with a line of its own."""
        self.text = text
        self.start = text.index(HEADER_END, 1) + len(HEADER_END)

    @property
    def code(self) -> str:
        """The text after the header."""
        return self.text[self.start :]

    def with_code(self, code: str) -> str:
        """The file with other code."""
        return self.text[: self.start] + code

    @cached_property
    def tokens(self) -> list[Token]:
        """The tokens of the code."""
        return [token for token in tokenize(self.code) if token.kind != "directive"]

    @cached_property
    def kernels(self) -> list[Function]:
        """The kernels that are defined outside of every macro."""
        found, tokens = [], self.tokens
        for place, token in enumerate(tokens):
            if token.text != "__global__" or tokens[place - 1].text != '"C"':
                continue
            at = place + 1
            while tokens[at + 1].text != "(" or tokens[at].text == "__launch_bounds__":
                at += 1
                if tokens[at].text == "(":
                    at = closing(tokens, at) or at
            close = closing(tokens, at + 1)
            if close is None or tokens[close + 1].text != "{":
                continue
            end = closing(tokens, close + 1)
            if end is not None:
                found.append(
                    Function(
                        name=tokens[at].text,
                        start=tokens[place - 2].start,
                        open=tokens[at + 1].start,
                        close=tokens[close].end,
                        body=tokens[close + 1].start,
                        end=tokens[end].end,
                    )
                )
        return found

    def each_kernel(self, change: Callable[[Function, str], str | None]) -> str | None:
        """The file, with each kernel as `change` writes its text; None if that is none."""
        code, changed = self.code, False
        for kernel in reversed(self.kernels):
            new = change(kernel, code)
            if new is not None:
                code, changed = code[: kernel.start] + new + code[kernel.end :], True
        return self.with_code(code) if changed else None

    def replaced(self, pattern: str, new: str) -> str | None:
        """The file with a pattern replaced outside of directives, comments and strings."""
        code, changed = self.code, False
        for token in reversed(self.tokens):
            if token.kind == "name" and (match := re.compile(pattern).match(code, token.start)):
                code, changed = code[: token.start] + new + code[match.end() :], True
        return self.with_code(code) if changed else None


def _moved(kernel: Function, code: str, before: str, call: str, *, body: str = "") -> str:
    """A kernel whose body is in something that stands before it."""
    head = code[kernel.start : kernel.body]
    return before.replace("BODY", body or code[kernel.body : kernel.end]) + f"{head}{{ {call} }}"


def _plain(kernel: Function, code: str) -> str:
    return code[kernel.open + 1 : kernel.close - 1]


def in_function(file: File) -> str | None:
    """Each kernel calls a device function that does its work."""

    def change(kernel: Function, code: str) -> str:
        head = f"static __device__ void do_{kernel.name}({_plain(kernel, code)}) BODY\n"
        call = f"do_{kernel.name}({', '.join(kernel.names(code))});"
        return _moved(kernel, code, head, call)

    return file.each_kernel(change)


def in_template(file: File) -> str | None:
    """The work is in a template for the number of threads."""

    def change(kernel: Function, code: str) -> str:
        head = (
            f"template <int kind>\n__device__ void do_{kernel.name}({_plain(kernel, code)}) BODY\n"
        )
        call = f"do_{kernel.name}<1>({', '.join(kernel.names(code))});"
        return _moved(kernel, code, head, call)

    return file.each_kernel(change)


def in_static_member(file: File) -> str | None:
    """The work is in a static member function."""

    def change(kernel: Function, code: str) -> str:
        head = (
            f"struct Does_{kernel.name} {{\n"
            f"static __device__ __forceinline__ void run({_plain(kernel, code)}) BODY\n}};\n"
        )
        call = f"Does_{kernel.name}::run({', '.join(kernel.names(code))});"
        return _moved(kernel, code, head, call)

    return file.each_kernel(change)


def in_member(file: File) -> str | None:
    """The work is in a member function, the parameters are members."""

    def change(kernel: Function, code: str) -> str:
        fields = [re.sub(r"\b__restrict__\b", "", one) for one in kernel.parameters(code)]
        members = "".join(f"    {one};\n" for one in fields)
        head = f"struct Work_{kernel.name} {{\n{members}    __device__ void run() BODY\n}};\n"
        call = f"Work_{kernel.name} task_{{{', '.join(kernel.names(code))}}}; task_.run();"
        return _moved(kernel, code, head, call)

    return file.each_kernel(change)


def in_namespace(file: File) -> str | None:
    """The work is in a function of a namespace."""

    def change(kernel: Function, code: str) -> str:
        head = (
            f"namespace lab {{ namespace detail {{\n"
            f"__device__ __forceinline__ void do_{kernel.name}({_plain(kernel, code)}) BODY\n"
            "} }\n"
        )
        call = f"lab::detail::do_{kernel.name}({', '.join(kernel.names(code))});"
        return _moved(kernel, code, head, call)

    return file.each_kernel(change)


def in_lambda(file: File) -> str | None:
    """The work is in a lambda that the kernel calls at once."""

    def change(kernel: Function, code: str) -> str | None:
        body = code[kernel.body : kernel.end]
        if "__shared__" in body:
            return None  # nvcc has no such variables in lambdas of every version
        return f"{code[kernel.start : kernel.body]}{{ auto work_ = [&]() {body}; work_(); }}"

    return file.each_kernel(change)


def macros(file: File) -> str | None:
    """Macros for the thread, the block and the barrier."""
    first = file.replaced(r"threadIdx\s*\.\s*x\b", "TX")
    second = File(first or file.text).replaced(r"blockIdx\s*\.\s*x\b", "BX")
    third = File(second or first or file.text).replaced(r"__syncthreads\s*\(\s*\)", "WAIT()")
    names = "#define TX threadIdx.x\n#define BX (blockIdx.x)\n#define WAIT() __syncthreads()\n"
    made = third or second or first
    return made and File(made).with_code(names + File(made).code)


def named_thread(file: File) -> str | None:
    """A kernel gives its thread and its block names at its beginning."""

    def change(kernel: Function, code: str) -> str | None:
        body = code[kernel.body + 1 : kernel.end]
        if re.search(r"\[\s*\]\s*\(", body):  # a lambda that captures nothing
            return None
        for word, name in (("threadIdx", "tx_"), ("blockIdx", "bx_"), ("blockDim", "bd_")):
            body = re.sub(rf"\b{word}\s*\.\s*x\b", name, body)
        names = "const unsigned tx_ = threadIdx.x, bx_ = blockIdx.x, bd_ = blockDim.x;"
        unused = "(void)tx_; (void)bx_; (void)bd_;"
        return f"{code[kernel.start : kernel.body]}{{\n    {names} {unused}\n{body}"

    return file.each_kernel(change)


def groups(file: File) -> str | None:
    """Barriers by cooperative groups."""
    made = file.replaced(r"__syncthreads\s*\(\s*\)", "cg::this_thread_block().sync()")
    lines = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
    return made and File(made).with_code(lines + File(made).code)


def headers(file: File) -> str:
    """The includes that students write."""
    names = ("cuda_runtime.h", "device_launch_parameters.h", "stdio.h", "cstdint", "cmath")
    return file.with_code("".join(f"#include <{name}>\n" for name in names) + file.code)


def bounds(file: File) -> str | None:
    """Launch bounds that every block meets."""

    def change(kernel: Function, code: str) -> str | None:
        head = code[kernel.start : kernel.open]
        if "__launch_bounds__" in head:
            return None
        new = re.sub(r"\bvoid\b", "void __launch_bounds__(1024)", head, count=1)
        return new + code[kernel.open : kernel.end]

    return file.each_kernel(change)


def linkage_block(file: File) -> str | None:
    """The kernels stand in braces after extern "C"."""

    def change(kernel: Function, code: str) -> str:
        text = re.sub(r'^extern\s+"C"\s+', "", code[kernel.start : kernel.end])
        return f'extern "C" {{\n{text}\n}}'

    return file.each_kernel(change)


def declared(file: File) -> str | None:
    """Each kernel is declared before it is defined."""

    def change(kernel: Function, code: str) -> str:
        return f"{code[kernel.start : kernel.close]};\n{code[kernel.start : kernel.end]}"

    return file.each_kernel(change)


def renamed(file: File) -> str | None:
    """Parameters have other names."""

    def change(kernel: Function, code: str) -> str:
        text = code[kernel.start : kernel.end]
        names = set(kernel.names(code))
        tokens = tokenize(text)
        for place in reversed(range(len(tokens))):
            token = tokens[place]
            member = tokens[place - 1].text in (".", "->", "::")
            if token.kind == "name" and token.text in names and not member:
                text = f"{text[: token.start]}my_{token.text}{text[token.end :]}"
        return text

    if re.search(r"^\s*#(?!pragma|include|line)", file.code, re.MULTILINE):
        return None  # a macro may name a parameter
    return file.each_kernel(change)


def alias(file: File) -> str | None:
    """The element type has a name of the student's own in the kernels."""

    def change(kernel: Function, code: str) -> str | None:
        text = code[kernel.start : kernel.end]
        new = re.sub(r"(?<![\w<])T(?=\s*\*)", "element_t", text)
        return new if new != text else None

    made = file.each_kernel(change)
    return made and File(made).with_code("typedef T element_t;\n" + File(made).code)


def guards(file: File) -> str | None:
    """Each define of the header has a default, for an editor that does not know it."""
    lines = [line[3:] for line in file.text[: file.start].splitlines()[1:-1]]
    defines = tomllib.loads("\n".join(lines)).get("defines", {})
    text = "".join(f"#ifndef {name}\n#define {name} 128\n#endif\n" for name in defines)
    return file.with_code(text + file.code) if text else None


def asserted(file: File) -> str | None:
    """A kernel asserts what always holds."""

    def change(kernel: Function, code: str) -> str:
        text = "{\n    assert(blockDim.x * blockDim.y * blockDim.z <= 1024);"
        return code[kernel.start : kernel.body] + text + code[kernel.body + 1 : kernel.end]

    made = file.each_kernel(change)
    return made and File(made).with_code("#include <cassert>\n" + File(made).code)


def rolled(file: File) -> str | None:
    """No loop is unrolled."""
    code, changed = file.code, False
    tokens = [token for token in tokenize(file.code) if token.kind != "comment"]
    for place in reversed(range(1, len(tokens))):
        token, before = tokens[place], tokens[place - 1]
        if token.text == "for" and before.text in (";", "{", "}"):
            code = f"{code[: token.start]}\n#pragma unroll 1\n{code[token.start :]}"
            changed = True
    return file.with_code(code) if changed else None


def windows(file: File) -> str:
    """An editor of Windows: carriage returns, tabs, and a mark at the beginning."""
    return "\ufeff" + re.sub(r"^(?: {4})+", _tabs, file.text, flags=re.MULTILINE).replace(
        "\n", "\r\n"
    )


def _tabs(match: re.Match[str]) -> str:
    return "\t" * (len(match[0]) // 4)


STYLES: dict[str, Callable[[File], str | None]] = {
    "as shipped": lambda file: file.text,
    "parameters renamed": renamed,
    "macros for threads and barriers": macros,
    "names for the thread and the block": named_thread,
    "work in a device function": in_function,
    "work in a template": in_template,
    "work in a static member": in_static_member,
    "work in a member of a class": in_member,
    "work in a namespace": in_namespace,
    "work in a lambda": in_lambda,
    "barriers by cooperative groups": groups,
    "includes of a whole program": headers,
    "launch bounds": bounds,
    "extern C with braces": linkage_block,
    "declared before": declared,
    "own name for the type": alias,
    "defaults for the defines": guards,
    "assertions": asserted,
    "loops not unrolled": rolled,
    "an editor of Windows": windows,
}
