"""Random kernels of a whole program, which have cooperative groups besides what others have.

Run as a program, it compares loops and fibers: `python -m tests.random_groups 1000`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cudalab.program import ways
from cudalab.program.build import executable
from tests.random_kernels import BLOCKS, HEADER, SLOTS, THREADS, Kernel

if TYPE_CHECKING:
    from collections.abc import Callable

_INCLUDES = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cstdio>
namespace cg = cooperative_groups;
"""
_MAIN = f"""
__device__ int summed(cg::thread_block_tile<8>& tile, int value) {{
    return cg::reduce(tile, value, cg::plus<int>{{}}) + tile.thread_rank();
}}
__device__ int passed_on(cg::coalesced_group group, int value) {{
    return group.shfl(value, group.size() - 1) + group.thread_rank();
}}
const int SIZE = {BLOCKS * THREADS * SLOTS};
static int *in, *out;
__managed__ int board[{BLOCKS}];
void prepare() {{
    cudaMallocManaged(&in, SIZE * sizeof(int));
    cudaMallocManaged(&out, SIZE * sizeof(int));
    for (int i = 0; i < SIZE; ++i) in[i] = i * 7919 % 101 - 50;
}}
template <class K>
void show(const char* name, K kernel, int m) {{
    for (int i = 0; i < SIZE; ++i) out[i] = -1;
    void* arguments[] = {{&in, &out, &m}};
    cudaLaunchCooperativeKernel(kernel, dim3({BLOCKS}), dim3({THREADS}), arguments, 0, 0);
    const cudaError_t error = cudaDeviceSynchronize();
    unsigned long long sum = 0;
    for (int i = 0; i < SIZE; ++i) sum = sum * 31 + (unsigned)out[i];
    printf("%s %llx %s\\n", name, sum, cudaGetErrorName(error));
}}
"""


class GroupKernel(Kernel):
    """One random kernel with groups."""

    def __init__(self, name: str, seed: int) -> None:
        """Draw its statements, and perhaps a loop that lanes leave one by one."""
        self.gathers = self.waits = True  # so far neither has been drawn
        super().__init__(name, seed)
        head, body = self.text.split("__shared__ int cells", 1)
        body = body.rstrip().removesuffix("}") + (self.last_loop() if seed % 3 == 0 else "") + "}\n"
        self.text = f"""{head.replace('extern "C" ', "")}
    auto block = cg::this_thread_block();
    auto grid = cg::this_grid();
    const auto warp = cg::tiled_partition<32>(block);
    cg::thread_block_tile<8> eight = cg::tiled_partition<8>(block);
    auto pair = cg::tiled_partition<2>(eight);
    __shared__ int cells{body}"""

    def kinds(self) -> list[Callable[[], str]]:
        """What a statement may be here."""
        kinds = [*super().kinds(), self.place, self.exchange_in_tile, self.fold, self.part]
        kinds += [self.strided_loop] * 3 + [self.serial_loop] * 3
        if self.depth == 0 and self.gathers:
            kinds += [self.gathering, self.gathering_loop]
        if self.depth == 0 and self.returns is False and self.waits:
            kinds.append(self.grid_wide)
        return kinds

    def added(self, value: str) -> str:
        """A new variable of each thread."""
        name = self.new()
        self.own.append(name)
        return f"const int {name} = {value};"

    def tile(self) -> str:
        return self.random.choice(["warp", "eight", "pair"])

    def operation(self) -> str:
        return f"cg::{self.random.choice(['plus', 'less', 'greater', 'bit_xor'])}<int>()"

    def place(self) -> str:
        names = ["thread_rank", "meta_group_rank", "meta_group_size", "size"]
        group = self.random.choice([self.tile(), "grid", "block"])
        name = self.random.choice(names if group not in ("grid", "block") else names[::3])
        return self.added(f"(int){group}.{name}()")

    def exchange_in_tile(self) -> str:
        tile, value = self.tile(), self.value(1)
        return self.added(
            self.random.choice(
                [
                    f"{tile}.shfl({value}, {self.random.randint(0, 1)})",
                    f"{tile}.shfl_up({value}, 1)",
                    f"{tile}.shfl_down({value}, 1)",
                    f"{tile}.shfl_xor({value}, 1)",
                    f"{tile}.any({value} > 40) + {tile}.all({value} > -60)",
                    f"(int){tile}.ballot({value} & 1)",
                    f"(int){tile}.match_any({value} & 3)",
                ]
            )
        )

    def fold(self) -> str:
        tile, value, operation = self.tile(), self.value(1), self.operation()
        if self.random.random() < 0.2:
            return self.added(f"summed(eight, {value})")
        kind = self.random.choice(["reduce", "inclusive_scan", "exclusive_scan"])
        return self.added(f"cg::{kind}({tile}, (int)({value}), {operation})")

    def uses(self, group: str, target: str) -> str:
        """Operations of a group whose lanes are not known."""
        value, other = self.value(1), self.value(1)
        lines = [
            f"{target} += {group}.shfl({value}, 1) + {group}.thread_rank() * {group}.size();",
            f"{target} ^= {group}.shfl_up({value}, 2) - {group}.shfl_down({other}, 1);",
            f"{target} += {group}.shfl_xor({value}, 1) + {group}.meta_group_rank() * 3;",
            f"{target} += passed_on({group}, {value});",
            f"{target} ^= {group}.ballot({value} & 1) + {group}.any({other} == 7);",
            f"{target} += cg::reduce({group}, (int)({value}), {self.operation()});",
            f"{target} ^= cg::inclusive_scan({group}, (int)({value})) + {group}.meta_group_size();",
            f"{group}.sync();",
        ]
        return "\n".join(self.random.sample(lines, 3))

    def strided_loop(self) -> str:
        """A loop by steps of many threads, whose last round some of them do not do."""
        i, kind = self.new("i"), self.random.choice(["int", "unsigned", "long", "size_t"])
        first = self.random.choice(["t", "blockIdx.x * THREADS + t", "grid.thread_rank()"])
        step = self.random.choice(["THREADS", "grid.size()", "blockDim.x * gridDim.x", "m * 9"])
        end = self.random.choice(["SIZE - 40", "m * 40", "(n & 255)", "gridDim.x * 100", "3"])
        change = f"n += in[{i}] ^ {self.value(0)};"
        if self.random.random() < 0.5:
            change += f"\nif ({i} + 30 < SIZE - {self.random.randint(0, 300)}) n ^= in[{i} + 30];"
        return f"for ({kind} {i} = {first}; {i} < {end}; {i} += {step}) {{\n{change}\n}}"

    def serial_loop(self) -> str:
        """A loop whose rounds need the ones before, perhaps another number of them in each thread.

        Perhaps in a branch or in another loop, and with other ways out.
        """
        i, v, pick = self.new("i"), self.new(), self.random.choice
        end = pick(["m * 9", "(n & 31)", f"(({self.value(1)}) & 63)", "(cells[0][t] & 15)"])
        start = pick(["0", "m", "(int)blockIdx.x", "t / 3"])
        step = pick([f"++{i}", f"{i} += 2", f"{i} = {i} * 2 + 1"])
        together = self.depth == 0 and self.returns is False  # who may wait before the next store
        cell = f"{i} % THREADS" if together else "t"
        lines = [
            f"n = n * 3 ^ in[{i}];",
            f"{v} = in[{i} + t] - n + {v} / 3;",
            f"{v} += cells[1][t] ^ cells[0][{cell}];",
            f"if ({self.value(1)} > {v}) {{ n -= 7; }} else {v} ^= in[{i}];",
            f"if ((n & 7) == {pick('01234567')}) {{ ++{v}; {pick(['break', 'continue'])}; }}",
            f"{{ const int kept = {v} & 255; n += kept > 40 ? kept : in[t]; }}",
            f"{v} = min({v}, in[{i}] * n);",
        ]
        body = "\n".join(self.random.sample(lines, self.random.randint(1, 4)))
        text = f"for (int {i} = {start}; {i} < {end}; {step}) {{\n{body}\n}}"
        if self.random.random() < 0.3:
            body = body.replace(f"in[{i}", "in[t")
            text = f"int {i} = {start};\nwhile ({i} < {end}) {{\n{step};\n{body}\n}}"
        if self.random.random() < 0.2:
            text = f"for (int a = 0; a < (n & 3); ++a) {{\n{text}\n}}"
        elif self.random.random() < 0.4:
            text = f"if ({self.value(1)} > {self.value(1)}) {{\n{text}\n}}"
        first = f"int {v} = {self.value(1)};"
        self.own.append(v)
        return f"{first}\n{text}" + "\n__syncthreads();" * together

    def part(self) -> str:
        tile, name, label = self.tile(), self.new("g"), f"({self.value(1)}) & 3"
        made = f"auto {name} = cg::labeled_partition({tile}, {label});"
        if self.random.random() < 0.5:
            made = f"auto {name} = cg::binary_partition({tile}, {self.value(1)} > 5);"
        return f"{{\n{made}\n{self.uses(name, 'n')}\n}}"

    def gathering(self) -> str:
        """Lanes that take a branch together."""
        self.gathers = False
        name, part, target = self.new("g"), self.new("g"), self.new()
        inside = f"cg::coalesced_group {name} = cg::coalesced_threads();\n{self.uses(name, target)}"
        if self.random.random() < 0.5:
            inside += f"\nauto {part} = cg::labeled_partition({name}, ({self.value(1)}) & 1);\n"
            inside += self.uses(part, target)
        text = f"int {target} = 1;\nif ({self.value(1)} > {self.value(1)}) {{\n{inside}\n}}"
        self.own.append(target)
        return text

    def gathering_loop(self) -> str:
        """Lanes that come together in rounds of a loop, each in its own."""
        self.gathers = False
        i, e, name, target = self.new("i"), self.new(), self.new("g"), self.new()
        take = self.value(1)
        inside = f"auto {name} = cg::coalesced_threads();\n{self.uses(name, target)}"
        if self.random.random() < 0.7:
            inside = f"if (({e} ^ {i}) & 1) {{\n{inside}\n}}"
        body = f"const int {e} = mixed({i}, {take});\n{inside}\nn ^= {i};"
        text = f"int {target} = 1;\nfor (int {i} = t % 5; {i} < 6; ++{i}) {{\n{body}\n}}"
        self.own.append(target)
        return text

    def grid_wide(self) -> str:
        write = "if (t == 0) board[blockIdx.x] = n;"
        return f"{write}\ngrid.sync();\nn += board[1 - blockIdx.x] & 15;\ncg::sync(grid);"

    def last_loop(self) -> str:
        """A loop at the end of the kernel, which lanes leave one by one."""
        self.own, self.uniform = ["n", "t"], ["m"]
        split = self.uses("part", "mine[1]")
        body = f"auto part = cg::binary_partition(warp, i & 1);\nif (i & 1) {{\n{split}\n}}"
        if self.random.random() < 0.5:
            body += f" else {{\n{self.uses('part', 'mine[2]')}\n}}"
        body += f"\nmine[3] ^= warp.shfl_down({self.value(1)}, 1);\ncg::sync(warp);"
        return f"for (int i = t; i < 150; i += 23) {{\n{body}\n}}\n"


def text_of(kernels: list[GroupKernel], names: list[str]) -> str:
    """The text of a program that prints what each kernel computes."""
    shown = "".join(f'    show("{name}", {name}, 5);\n' for name in names)
    main = f"int main() {{\n    prepare();\n{shown}}}\n"
    return _INCLUDES + HEADER + _MAIN + "".join(each.text for each in kernels) + main


def outcome(binary: Path, ways: str, *arguments: str) -> tuple[int, str, str]:
    """How a program ends and what it prints, with loops ("1") or with fibers ("0")."""
    environment = {**os.environ, "CUDALAB_LOOPS": ways}
    command = [binary, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return done.returncode, done.stdout, done.stderr


def compare(seeds: range) -> tuple[dict[str, str], list[str]]:
    """Why kernels have no loops, by kernel; and the lines that differ."""
    names = [f"k{seed}" for seed in seeds]
    kernels = [GroupKernel(name, seed) for name, seed in zip(names, seeds, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "groups.cu")
        source.write_text(text_of(kernels, names), encoding="utf-8")
        binary = executable([str(source)], "cpu")
    printed = [outcome(binary, way)[1].splitlines() for way in "10"]
    assert len(printed[0]) == len(names), printed
    reasons = ways.stored(binary).reasons
    different = [f"{one} | {two}" for one, two in zip(*printed, strict=True) if one != two]
    return {name: reason for name, reason in reasons.items() if reason}, different


def main() -> None:
    """Compare as many kernels as the first argument says, from the seed in the second one on."""
    number, start = int(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else 0
    for first in range(start, start + number, 20):
        reasons, different = compare(range(first, min(first + 20, start + number)))
        lines = [f"{first}: {len(reasons)} with fibers", *map(str, reasons.items()), *different]
        sys.stdout.write("\n".join([*lines, ""]))
        sys.stdout.flush()
        if different:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
