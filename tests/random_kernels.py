"""Random kernels whose threads meet: drawn from a grammar, free of data races, always ending.

Run as a program, it compares both ways in which the CPU device runs kernels, for as many kernels as
its argument says: `python -m tests.random_kernels 10000`.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cudalab.backends.cpu.device import CpuDevice
from cudalab.language.source import Source, find_kernels

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCKS, THREADS = 2, 96
SLOTS = 4  # words of the output for each thread
HEADER = f"""
__device__ int mixed(int a, int b) {{ return a * 31 + (b ^ (a >> 3)); }}
__device__ int placed(int a) {{ return a + (int)threadIdx.x * 3 - (int)blockIdx.x; }}
template <class V>
__device__ V sum_of_warp(V value) {{
#pragma unroll
    for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(0xffffffffu, value, d);
    return value;
}}
template <unsigned N, class V>
__device__ V before_in_block(V value, V& total) {{
    __shared__ V sums[N / 32];
    if (threadIdx.x < N / 32) sums[threadIdx.x] = 0;  // of warps that have returned
    __syncthreads();
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    V inclusive = value;
    for (unsigned d = 1; d < 32; d *= 2) {{
        const V left = __shfl_up_sync(0xffffffffu, inclusive, d);
        if (lane >= d) inclusive += left;
    }}
    if (lane == 31) sums[warp] = inclusive;
    __syncthreads();
    V before = 0;
    total = 0;
    for (unsigned w = 0; w < N / 32; ++w) {{
        if (w < warp) before += sums[w];
        total += sums[w];
    }}
    __syncthreads();
    return before + inclusive - value;
}}
constexpr unsigned THREADS = {THREADS};
"""


class Kernel:
    """One random kernel."""

    def __init__(self, name: str, seed: int) -> None:
        """Draw its statements."""
        self.random = random.Random(seed)  # noqa: S311 - a test, repeatable by its seed
        self.count = 0
        self.own = ["n", "t"]  # variables of each thread
        self.changeable: list[str] = []
        self.uniform = ["m", "(int)blockIdx.x"]
        self.counters = ["c", "d"]  # of no loop around
        self.depth = 0
        self.returns = self.random.random() < 0.4
        body = self.statements(self.random.randint(3, 7))
        self.text = f"""
extern "C" __global__ void __launch_bounds__(THREADS) {name}(const int* in, int* out, int m) {{
    __shared__ int cells[2][THREADS];
    const int t = threadIdx.x;
    int n = in[blockIdx.x * THREADS + t], c, d, u = m;
    cells[0][t] = n;
    cells[1][t] = -t;
    __syncthreads();
{body}
    int* const mine = out + (blockIdx.x * THREADS + t) * {SLOTS};
    mine[0] = n;
    mine[1] = cells[0][(t + 1) % THREADS];
    mine[2] = cells[1][t];
    mine[3] = {" + ".join(self.own)};
}}
"""

    # Expressions ----------------------------------------------------------------------------------

    def value(self, depth: int = 2) -> str:
        """An expression of a thread."""
        if depth == 0 or self.random.random() < 0.3:
            return self.random.choice([*self.own, *self.uniform, str(self.random.randint(-9, 99))])
        a, b = self.value(depth - 1), self.value(depth - 1)
        return self.random.choice(
            [
                f"({a} + {b})",
                f"({a} ^ {b})",
                f"({a} * 3 - {b})",
                f"({a} > {b} ? {a} : {b})",
                f"mixed({a}, {b})",
                f"placed({a})",
                f"min({a}, {b})",
            ]
        )

    def same(self) -> str:
        """An expression that is the same in all threads."""
        a, b = (self.random.choice([*self.uniform, "2", "5"]) for _ in range(2))
        return self.random.choice([f"({a} + {b})", f"({a} & 3)", a, f"({a} ^ {b})"])

    def new(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    # Statements -----------------------------------------------------------------------------------

    def statements(self, number: int) -> str:
        """Some statements of a block, whose variables end with it."""
        kept = list(self.own), list(self.changeable), list(self.uniform)
        lines = [self.statement() for _ in range(number)]
        if self.depth:
            self.own, self.changeable, self.uniform = kept
        return "\n".join(lines)

    def nested(self, number: int) -> str:
        self.depth += 1
        text = self.statements(number)
        self.depth -= 1
        return text

    def statement(self) -> str:
        return self.random.choice(self.kinds())()

    def kinds(self) -> list[Callable[[], str]]:
        """What a statement may be here."""
        kinds = [self.local, self.local, self.change, self.change, self.exchange, self.shuffle]
        kinds += [self.call, self.plain_branch, self.plain_loop, self.vote, self.array]
        kinds += [self.toggle, self.reference, self.once, self.counted, self.counted_alone]
        if self.depth < 2:
            kinds += [self.loop, self.loop, self.branch, self.warp_branch, self.while_loop]
            kinds += [self.warp_loop]
        if self.returns and self.depth == 0:
            kinds += [self.early_return]
        return kinds

    def local(self) -> str:
        name, value = self.new(), self.value()
        form = self.random.choice(["int {} = {};", "const int {} = {};", "const auto {} = {};"])
        if self.random.random() < 0.2:
            form, value = "const int {} = {};", self.same()
            self.uniform.append(name)
        else:
            self.own.append(name)
            if form.startswith("int"):
                self.changeable.append(name)
        return form.format(name, value)

    def change(self) -> str:
        name = self.random.choice(["n", *self.changeable])
        operation = self.random.choice(["=", "+=", "^=", "-="])
        return f"{name} {operation} {self.value()};"

    def toggle(self) -> str:
        if self.depth:
            return self.change()
        name = self.new("u")
        self.uniform.append(name)
        again = (
            f"int {name} = {self.random.randint(0, 3)};\n{self.exchange()}\n{name} = 3 - {name};"
        )
        return f"{again}\n{self.exchange()}"

    def once(self) -> str:
        """What is done once for all threads, unless the branch that it stands in differs."""
        if self.depth:
            return self.change()
        if "u" not in self.uniform:
            self.uniform.append("u")
        a, b = self.same(), self.same()
        head = self.random.choice(
            [
                "for (c = 1; c <= 4; c = 2 * c)",
                "for (int k = 0; k < m; ++k)",
                f"if ({a} > {b})",
                "while (u > 3)",
            ]
        )
        inside = {"i": "u += m;", "w": "u /= 2;"}.get(head[0], f"if (u + {a} > 1) {{ u -= {b}; }}")
        return f"{head} {{ {inside} }}" + (" else u = 2;" if head[0] == "i" else "")

    def counted(self) -> str:
        """A loop with barriers whose counter other loops have, too."""
        if not self.counters or self.depth > 1:
            return self.change()
        name = self.counters.pop()
        kept = list(self.uniform)
        self.uniform.append(name)
        head = f"for ({name} = {self.random.randint(0, 2)}; {name} < 3; ++{name})"
        body = self.nested(self.random.randint(1, 2))
        self.uniform = kept
        self.counters.append(name)
        return f"{head} {{\n{body}\n{self.exchange()}\n}}"

    def counted_alone(self) -> str:
        """A loop of each thread whose counter other loops have, too, or somebody behind it."""
        if not self.counters:
            return self.change()
        name = self.random.choice(self.counters)
        first = self.random.choice(["0", "t & 1", "-1"])
        text = f"for ({name} = {first}; {name} < (n & 3); ++{name}) n += {name} ^ {self.value(1)};"
        if self.random.random() < 0.3:
            text = f"if (t == {self.random.randint(0, 40)}) {text}"
        if self.random.random() < 0.1:
            text = f"{{ int* const at = &{name}; {name} = 1; {text} n ^= *at; }}"
        elif self.random.random() < 0.1:
            text = f"{name} = 0; {text} n -= {name};"
        return text

    def exchange(self) -> str:
        which, other = (
            self.random.randint(0, 1),
            self.random.choice(["THREADS - 1 - t", "(t * 5 + 1) % THREADS"]),
        )
        text = f"cells[{which}][t] = {self.value()};\n__syncthreads();\n"
        text += f"n += cells[{which}][{other}];\n__syncthreads();"
        return text

    def shuffle(self) -> str:
        name, value, more = self.new(), self.value(1), self.value(1)
        self.own.append(name)
        call = self.random.choice(
            [
                f"__shfl_sync(0xffffffffu, {value}, {self.random.randint(0, 31)})",
                f"__shfl_sync(0xffffffffu, {value}, (t + 5) % 32)",
                f"__shfl_down_sync(0xffffffffu, {value}, {self.random.randint(1, 31)})",
                f"__shfl_up_sync(0xffffffffu, {value}, {self.random.randint(1, 16)}, 16)",
                f"__shfl_xor_sync(0xffffffffu, {value}, {self.random.randint(1, 31)})",
                f"sum_of_warp({value})",
            ]
        )
        return f"const int {name} = {call} + {more};\n__syncwarp();"

    def vote(self) -> str:
        name, value = self.new(), self.value(1)
        self.own.append(name)
        call = self.random.choice(
            [
                f"(int)__ballot_sync(0xffffffffu, {value} > 20)",
                f"__any_sync(0xffffffffu, {value} == 3)",
                f"__all_sync(0xffffffffu, {value} > -100)",
                f"__reduce_max_sync(0xffffffffu, {value})",
                f"__popc(__match_any_sync(0xffffffffu, {value} & 3))",
                f"__syncthreads_count({value} % 2)",
                f"__syncthreads_or({value} == 17)",
            ]
        )
        return f"int {name} = {call};"

    def call(self) -> str:
        name, total, value = self.new(), self.new(), self.value(1)
        self.own += [name, total]
        return f"int {total};\nconst int {name} = before_in_block<THREADS>({value}, {total});"

    def array(self) -> str:
        name, at = self.new("a"), self.random.randint(2, 4)
        text = (
            f"int {name}[{at}];\nfor (int k = 0; k < {at}; ++k) {name}[k] = {self.value(1)} + k;\n"
        )
        text += self.exchange()
        return text + f"\nfor (int k = 0; k < {at}; ++k) n ^= {name}[k];"

    def reference(self) -> str:
        name = self.new("r")
        target = self.random.choice(["n", *self.changeable, "cells[1][t]"])
        text = f"int& {name} = {target};\n{name} += {self.value(1)};"
        if self.random.random() < 0.5:
            text += f"\n__syncthreads();\n{name} -= 2;"
        return f"{{\n{text}\n}}\n__syncthreads();"

    def plain_branch(self) -> str:
        text = f"if ({self.value(1)} > {self.value(1)}) {self.change()}"
        return text + (f" else {{ {self.change()} }}" if self.random.random() < 0.5 else "")

    def plain_loop(self) -> str:
        ends = self.random.choice(["t % 4", "3", "(n & 3)"])
        leave = self.random.choice(["", "if (n > 50) break;", "if (n < 0) continue;"])
        return f"for (int i = 0; i < {ends}; ++i) {{ {leave} n += i ^ {self.value(1)}; }}"

    def loop(self) -> str:
        name = self.new("i")
        head = self.random.choice(
            [
                f"for (int {name} = 0; {name} < {self.random.randint(1, 3)}; ++{name})",
                f"for (int {name} = 4; {name} > 0; {name} /= 2)",
                f"for (int {name} = 0; {name} < m; {name} += 2)",
            ]
        )
        kept = list(self.uniform)
        self.uniform.append(name)
        body = self.nested(self.random.randint(1, 3))
        leave = self.random.choice(
            ["", "", f"if ({name} == 2) break;", f"if ({name} == 1) continue;"]
        )
        self.uniform = kept
        return f"{head} {{\n{body}\n{leave}\n{self.exchange()}\n}}"

    def while_loop(self) -> str:
        name = self.new("w")
        body = self.nested(self.random.randint(1, 2))
        if self.random.random() < 0.5:
            return (
                f"int {name} = 2;\nwhile ({name} > 0) {{\n{body}\n--{name};\n{self.exchange()}\n}}"
            )
        turn = f"{body}\n{name} += 1;\n{self.exchange()}"
        return f"int {name} = 0;\ndo {{\n{turn}\n}} while ({name} < 2);"

    def branch(self) -> str:
        text = f"if ({self.same()} > 2) {{\n{self.nested(2)}\n}}"
        return text + (f" else {{\n{self.nested(2)}\n}}" if self.random.random() < 0.5 else "")

    def warp_branch(self) -> str:
        condition = self.random.choice(["t / 32 == 1", "t < 32", "threadIdx.x / 32 > 0"])
        added = self.value(1)
        text = f"if ({condition}) {{\nn += sum_of_warp({added});\n{self.change()}\n}}"
        other = f" else {{\nn ^= __shfl_sync(0xffffffffu, {self.value(1)}, 7);\n}}"
        return text + (other if self.random.random() < 0.5 else "")

    def warp_loop(self) -> str:
        name = self.new("j")
        leave = self.random.choice(["", f"if ({name} == 2) continue;", f"if ({name} == 3) break;"])
        body = f"n += __shfl_down_sync(0xffffffffu, {self.value(1)}, 3);"
        return f"for (unsigned {name} = t / 32; {name} < 5; {name} += 2) {{\n{leave}\n{body}\n}}"

    def early_return(self) -> str:
        self.returns = False
        condition = self.random.choice(["t >= 64", "m == 77", "blockIdx.x == 1", "t == 95"])
        if condition == "t == 95":  # lanes of a warp: the rest has no warp operations
            condition = "t >= 32"
        return f"if ({condition}) {{ out[(blockIdx.x * THREADS + t) * {SLOTS}] = n; return; }}"


def source(kernels: list[Kernel]) -> Source:
    """A file of kernels."""
    text = HEADER + "".join(kernel.text for kernel in kernels)
    text = f'#line 1 "random.cu"\n{text}'
    return Source(Path("random.cu"), "random.cu", text, kernels=find_kernels(text))


def compare(seeds: range) -> tuple[int, int, list[str]]:
    """The numbers of kernels and of those with loops; and the names of those that differ."""
    kernels = [Kernel(f"k{seed}", seed) for seed in seeds]
    file = source(kernels)
    rng = np.random.default_rng(seeds.start)
    inputs = rng.integers(-50, 50, BLOCKS * THREADS, np.int32)
    names = [f"k{seed}" for seed in seeds]
    answers: list[dict[str, bytes]] = []
    loops = 0
    for with_loops in (True, False):
        device = CpuDevice(1, loops=with_loops)
        module = device.compile(file, {})
        loops += sum(module[name].has_loops for name in names) if with_loops else 0
        answers.append({})
        for name in names:
            out = device.to_device(np.zeros(BLOCKS * THREADS * SLOTS, np.int32))
            arguments = device.to_device(inputs), out, np.int32(3)
            device.launch(module[name], BLOCKS, THREADS, *arguments)
            answers[-1][name] = device.to_host(out).tobytes()
    different = [name for name in names if answers[0][name] != answers[1][name]]
    return len(names), loops, different


def main() -> None:
    """Compare as many kernels as the first argument says."""
    total, first = int(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else 0
    all_loops, wrong = 0, []
    for start in range(first, first + total, 25):
        _, loops, different = compare(range(start, min(start + 25, first + total)))
        all_loops += loops
        wrong += different
        for name in different:
            sys.stdout.write(f"different: {name}\n")
    sys.stdout.write(f"{total} kernels, {all_loops} with loops, {len(wrong)} different\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
