"""The grammar: one kernel for each seed, as CUDA and as a sequential host function.

A seed is drawn twice, once for each side, with the same random numbers. What both languages define
alike is one text; `both` takes what CUDA alone defines, such as a shift beyond the width.
The host function runs a block phase by phase, a phase for all of its threads before the next one.
"""

from __future__ import annotations

import random

VERSION = 1
BLOCKS = ((1,), (7,), (31,), (32,), (33,), (48,), (64,), (100,), (8, 4), (5, 3, 2))
NAMES = [
    "t_", "x_", "y_", "z_", "row_", "lane_", "first_", "index", "B_",
    "min_", "max_", "swap", "lane", "row", "first", "last", "value", "block",
    "count", "step", "self", "body", "word", "mask", "result", "thread",
]  # fmt: skip
TINY = 0.5  # the share of kernels that have one or two statements


class Kernel:
    """One random kernel as text for one side: "cuda" or "host"."""

    def __init__(self, seed: int, side: str):
        """Draw the kernel of a seed."""
        self.random = random.Random(seed * 7919 + VERSION)  # noqa: S311 -- texts
        self.seed, self.host = seed, side == "host"
        self.block = (*self.random.choice(BLOCKS), 1, 1)[:3]
        self.threads = self.block[0] * self.block[1] * self.block[2]
        self.grid = self.random.randint(1, 3)
        self.labels = 0
        names = self.random.sample(NAMES, 6)
        self.ints, self.array, self.member, self.parameter = names[:3], names[3], names[4], names[5]
        self.tiny = self.random.random() < TINY
        self.shared = self.random.choice(["static", "dynamic", "rows", "struct"])
        self.lines: list[str] = []
        self.returns = False
        self._body()

    def both(self, cuda: str, host: str) -> str:
        """Give the text of this side."""
        return host if self.host else cuda

    def chance(self, share: float) -> bool:
        """Draw true with this probability."""
        return self.random.random() < share

    def atom(self) -> str:
        """Draw a value."""
        return self.random.choice([
            *self.ints, *self.ints, f"{self.array}[{self.random.choice(self.ints)} & 7]",
            f"{self.member}.a", f"{self.member}.sum()", self.parameter, "tid", "(int)threadIdx.x",
            "(int)blockIdx.x", "(int)blockDim.x", f"data[{self.random.choice(self.ints)} & 255]",
            str(self.random.randint(-9, 99)),
        ])  # fmt: skip

    def value(self, depth: int = 2) -> str:
        """Draw an int, every operation of which is defined."""
        if depth == 0:
            return self.atom()
        a, b = self.value(depth - 1), self.value(depth - 1)
        amount = f"(({b}) & 63)"
        wide = (
            f"((float)(({a}) & 0xffff) * {self.random.choice(['65536.0f', '-65536.0f', '0.5f'])})"
        )
        target, saturated = self.random.choice([("int", "to_int"), ("unsigned", "to_unsigned")])
        call = self.random.choice(["mixed", "twice<int>", "TIMES", "over", "recursive"])
        arguments = {"mixed": f"{a}, {b}", "TIMES": f"{a}, {b}", "recursive": f"({a}) & 7, {b}"}
        return self.random.choice([
            f"(int)((unsigned)({a}) + (unsigned)({b}))",
            f"(int)((unsigned)({a}) * (unsigned)({b}))",
            f"(({a}) ^ ({b}))", f"(({a}) & ({b}))", f"(({a}) | ({b}))",
            f"(({a}) / ((({b}) & 15) + 1))", f"(({a}) % ((({b}) & 15) + 1))",
            f"(({a}) < ({b}) ? ({b}) : ({a}))",
            self.both(f"(({a}) << {amount})", f"shifted_left({a}, {amount})"),
            self.both(f"(({a}) >> {amount})", f"shifted_right({a}, {amount})"),
            self.both(f"(int)((unsigned)({a}) >> {amount})", f"shifted_zeros({a}, {amount})"),
            self.both(f"(int)({target}){wide}", f"(int){saturated}({wide})"),
            f"(int)(short)({a})", f"(int)(unsigned char)({a})",
            f"(int)(((long long)({a}) * ({b})) >> 7)",
            f"{call}({arguments.get(call, a)})",
            f"[&](int q) {{ return q ^ ({b}); }}({a})",
        ])  # fmt: skip

    def guard(self) -> str:
        """Draw a condition."""
        which, limit = self.random.randrange(4), self.random.randint(1, 40)
        return self.random.choice([
            f"threadIdx.x == {which}", "!threadIdx.x", "threadIdx.x < 1", f"tid < {limit}",
            "threadIdx.x == blockDim.x - 1", f"threadIdx.x != {which}", f"tid % 3 == {which % 3}",
            f"({self.value(1)}) > ({self.atom()})", f"{self.random.choice(self.ints)}++ & 1",
            f"tid >= {self.parameter} / 2", f"blockIdx.x == 0 && tid == {which}",
        ])  # fmt: skip

    def assigned(self) -> str:
        """Draw a statement that changes a local."""
        name = self.random.choice(self.ints)
        target = self.random.choice(
            [name, name, f"{self.array}[{self.random.choice(self.ints)} & 7]", f"{self.member}.b"]
        )
        return self.random.choice([
            f"{target} = {self.value()};", f"{target} ^= {self.value(1)};",
            f"{target} = {self.value()};", f"add_to({target}, {self.value(1)});",
            f"{self.member}.add({self.value(1)});", f"{target} &= {self.value(1)};",
            f"{self.member} = made({self.value(1)}, {self.atom()});", f"{target} |= {self.atom()};",
        ])  # fmt: skip

    def loop(self, depth: int) -> str:
        """Draw a loop that ends."""
        self.labels += 1
        i = f"i{self.labels}"
        bound = self.random.choice(
            ["5", f"({self.parameter} & 7)", f"(({self.value(1)}) & 7)", "((int)threadIdx.x & 3)",
             "((int)blockIdx.x + 1)", "8"])  # fmt: skip
        inside = self.statements(depth - 1, self.random.randint(1, 2))
        name = self.random.choice(self.ints)
        inside += f" {name} = (int)((unsigned){name} + (unsigned)data[{i} & 255]);"
        leave = self.random.choice(["break", "continue"])
        if self.chance(0.3):
            inside = f"if ({self.guard()}) {leave}; {inside}"
        return self.random.choice([
            f"for (int {i} = 0; {i} < {bound}; {i}++) {{ {inside} }}",
            f"for (int {i} = tid; {i} < 200; {i} += (int)blockDim.x + 20) {{ {inside} }}",
            f"{{ int {i} = 0; while ({i}++ < {bound}) {{ {inside} }} }}",
            f"{{ int {i} = 0; do {{ {inside} }} while (++{i} < {bound}); }}",
        ])  # fmt: skip

    def statement(self, depth: int) -> str:
        """Draw a statement."""
        kind = self.random.random()
        if depth == 0 or kind < 0.3:
            return self.assigned()
        if kind < 0.55:
            return self.loop(depth)
        inside = self.statements(depth - 1, self.random.randint(1, 2))
        if kind < 0.85:
            other = f" else {{ {self.assigned()} }}" if self.chance(0.3) else ""
            inside = self.loop(depth) if self.chance(0.5) else inside
            return f"if ({self.guard()}) {{ {inside} }}{other}"
        if kind < 0.93:
            fall = self.random.choice(["", "break; "])
            return (f"switch (({self.value(1)}) & 3) {{ case 0: {self.assigned()} {fall}"
                    f"case 2: {inside} break; default: {self.assigned()} }}")  # fmt: skip
        self.labels += 1
        return f"if ({self.guard()}) goto l{self.labels}; {{ {inside} }} l{self.labels}:;"

    def statements(self, depth: int, count: int) -> str:
        """Draw several statements."""
        return " ".join(self.statement(depth) for _ in range(count))

    def phase(self, text: str) -> None:
        """Write what each thread does between two barriers."""
        if not self.host:
            self.lines.append(text)
            return
        names = " ".join(f"int& {name} = H_ints[H_t][{i}];" for i, name in enumerate(self.ints))
        self.lines.append(
            f"for (int H_t = 0; H_t < {self.threads}; ++H_t) {{ if (H_gone[H_t]) continue;"
            f" enter(H_t); const int tid = H_t; {names} int (&{self.array})[8] = H_array[H_t];"
            f" Pair& {self.member} = H_pair[H_t]; int& H_leaving = H_gone[H_t]; int& got ="
            f" H_got[H_t]; (void)H_leaving; (void)got; [&] {{ {text} }}(); }}"
        )

    def barrier(self) -> None:
        """Write a barrier, directly or in a function."""
        text = self.random.choice(["__syncthreads();", "meet();", "(void)__syncthreads_count(1);"])
        if not self.host:
            self.lines.append(text)

    def slot(self, index: str) -> str:
        """Name a word of shared memory."""
        forms = {"rows": f"s[({index}) / 16][({index}) % 16]", "struct": f"s.words[{index}]"}
        return forms.get(self.shared, f"s[{index}]")

    def exchange(self) -> None:
        """Write to shared memory, meet, and read what another thread has written."""
        name, step = self.random.choice(self.ints), self.random.randint(1, 40)
        if self.chance(0.4):
            self.phase(self.statement(1))
        self.phase(f"{self.slot('tid')} = {self.value(1)};")
        self.barrier()
        other = self.slot(f"(tid + {step}) % {self.threads}")
        text = f"{name} = (int)((unsigned){name} * 3u + (unsigned){other});"
        self.phase(f"if ({self.guard()}) {{ {text} }}" if self.chance(0.3) else text)
        self.barrier()

    def collective(self) -> None:
        """Write a vote or a shuffle among the lanes that the last warp has, or some of them."""
        name, give = self.random.choice(self.ints), self.value(1)
        part = self.random.choice([32, 32, 16, 5])
        step = self.random.randint(1, 31)
        operation = self.random.choice(["shfl", "ballot", "any", "all", "up", "xor"])
        mask = f"lanes_below({part}, {self.threads}, tid)"
        call = {
            "shfl": f"__shfl_sync(m, v, {step} % lanes({part}, {self.threads}, tid))",
            "up": f"__shfl_up_sync(m, v, {step})", "xor": "__shfl_xor_sync(m, v, 1)",
            "ballot": "(int)__ballot_sync(m, v & 1)", "any": "__any_sync(m, v == 3)",
            "all": "__all_sync(m, v & 1)",
        }[operation]  # fmt: skip
        if operation == "xor" and (self.threads % 2 or part % 2):  # the partner may be absent
            call, operation = "(int)__ballot_sync(m, v & 1)", "ballot"
        if not self.host:
            self.lines.append(
                f"if (tid % 32 < {part}) {{ const unsigned m = {mask}; const int v = {give};"
                f" {name} = {call}; }}"
            )
            return
        self.phase(f"got = {give};")
        self.lines.append(
            f"for (int H_t = 0; H_t < {self.threads}; ++H_t) if (H_t % 32 < {part}) H_ints[H_t]"
            f'[{self.ints.index(name)}] = collective("{operation}", H_got, H_t,'
            f" lanes({part}, {self.threads}, H_t), {step});"
        )

    def _body(self) -> None:
        self._declare()
        if self.tiny:
            kind = self.random.random()
            if kind < 0.15:
                self.exchange()
            elif kind < 0.3:
                self.collective()
            else:
                if self.chance(0.2):
                    leave = self.both("return;", "{ H_leaving = 1; return; }")
                    self.phase(f"if ({self.guard()}) {leave}")
                self.phase(self.statement(2))
        else:
            for _ in range(self.random.randint(2, 5)):
                self._part()
        self._finish()

    def _part(self) -> None:
        part = self.random.choice(["statements", "statements", "exchange", "collective", "rounds"])
        if part == "exchange":
            self.exchange()
        elif part == "collective":
            self.collective()
        elif part == "rounds":
            self.labels += 1
            i = f"r{self.labels}"
            bound = self.random.choice(["3", f"({self.parameter} & 3)", "(int)blockIdx.x + 1"])
            self.lines.append(f"for (int {i} = 0; {i} < {bound}; ++{i}) {{")
            self.exchange()
            if self.chance(0.5):
                self.collective()
            self.lines.append("}")
        else:
            self.phase(self.statements(2, self.random.randint(1, 3)))

    def _declare(self) -> None:
        forms = {"static": "int s[256];", "dynamic": "int s[256];", "rows": "int s[16][16];",
                 "struct": "struct { int words[256]; } s;"}  # fmt: skip
        text = forms[self.shared]
        if self.host:
            self.lines += [
                f"static {text}",
                "static int H_ints[256][3], H_array[256][8], H_gone[256], H_got[256];",
                "static Pair H_pair[256]; memset(H_gone, 0, sizeof H_gone);",
            ]  # fmt: skip
        elif self.shared == "dynamic":
            self.lines.append("extern __shared__ int s[];")
        else:
            self.lines.append(f"__shared__ {text}")
        if not self.host:
            self.lines += [
                ("const int tid = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y *"
                 " threadIdx.z);"), f"int {', '.join(self.ints)}; int {self.array}[8];",
                f"Pair {self.member};",
            ]  # fmt: skip
        starts = [self.random.choice(["tid", "0", "7", "data[tid]"]) for _ in self.ints]
        text = " ".join(f"{a} = {b};" for a, b in zip(self.ints, starts, strict=True))
        self.phase(
            f"{text} for (int i = 0; i < 8; ++i) {self.array}[i] = i * 5;"
            f" {self.member}.a = 1; {self.member}.b = tid;"
        )

    def _finish(self) -> None:
        a, b, c = self.ints
        place = f"(int)blockIdx.x * {self.threads} + tid"
        if self.chance(0.5):
            add = self.both(f"atomicAdd(total, {a});", f"*total = (int)((unsigned)*total + {a});")
            self.phase(add)
        everything = (
            f"{a} ^ {b} ^ (int)((unsigned){c} * 7u) ^ {self.array}[{b} & 7] ^ {self.member}.sum()"
        )
        self.phase(f"out[{place}] = {a if self.tiny and self.chance(0.5) else everything};")

    def text(self) -> str:
        """Write the kernel or its host function."""
        head = f"k{self.seed}(const int* data, int* out, int* total, int {self.parameter})"
        body = "\n    ".join(self.lines)
        if not self.host:
            return f"__global__ void {head} {{\n    {body}\n}}\n"
        sizes = ", ".join(map(str, self.block))
        return (f"static void {head} {{\n    gridDim = {{{self.grid}, 1, 1}};"
                f" blockDim = {{{sizes}}};"
                f"\n    for (blockIdx.x = 0; blockIdx.x < {self.grid}; ++blockIdx.x) {{\n    {body}"
                "\n    }\n}\n")  # fmt: skip
