"""The grammar: kernels and their launches for each seed, as CUDA and as sequential host functions.

A seed is drawn twice, once for each side, with the same random numbers. What both languages define
alike is one text; `both` takes what CUDA alone defines, such as a shift beyond the width.
"""

from __future__ import annotations

import random
import re

from tests.oracle.draws import INTEGERS, Scope, Variable
from tests.oracle.meetings import ATOMICS
from tests.oracle.turns import Turns

BLOCKS = ((1,), (7,), (31,), (32,), (33,), (48,), (64,), (100,), (8, 4), (5, 3, 2))
QUALIFIERS = (
    *["__global__ void"] * 4, "static __global__ void", "__launch_bounds__(128) __global__ void",
    "__global__ __launch_bounds__(128) void", "__global__ static void",
    'extern "C" __global__ void', "[[maybe_unused]] __global__ void", "void __global__",
)  # fmt: skip
PARAMETERS = [
    ("Pair", "Pair{{{0}, 4}}"), ("Box", "boxed({0}, 9)"), ("unsigned char", "{0}"),
    ("long long", "{0} * 5000000000LL"), ("short", "-{0}"), ("float", "{0}.5f"),
    ("unsigned", "{0}u"), ("Many", "many({0})"), ("bool", "{0} > 40"), ("double", "{0} * 0.5"),
    ("int2", "make_int2({0}, 3)"), ("Choice", "(Choice)({0} % 3)"), ("const int*", "d + {0}"),
    ("unsigned long long", "{0}ull << 33"), ("Nested", "Nested{{{{1, 2}}, {{{0}, 4, 5}}}}"),
]  # fmt: skip
SIZES = ("micro", "micro", "tiny", "tiny", "large")
MOSTLY_SCARCE = (*["scarce"] * 4, "micro", "tiny", "tiny", "large")
MOSTLY_EDGES = (*["edges"] * 3, "micro", "micro", "scarce", "scarce")
ALL_SHARP = ("edges", "edges", "micro", "scarce", "scarce", "scarce", "lanes", "lanes", "lanes")
MOSTLY_ALONE = (*["alone"] * 6, "lanes", "edges", "scarce", "micro")
MOSTLY_LENT = (*["lent"] * 8, "alone", "scarce")
MOSTLY_VECTORS = (*["vectors"] * 9, "lent")
STEPPED_TOO = (*["scarce"] * 4, *["micro"] * 3, "lanes", "lanes", "vectors", "tiny")
WHOLE = ("edges", "alone", "lent", "vectors", "turns")  # sizes that are drawn in one piece
GLOBAL_ATOMICS = (
    *ATOMICS,
    "atomicAdd((unsigned*)&{1}[8], (unsigned)({0}));", "atomicInc((unsigned*)&{1}[12], 9u);",
    "atomicAdd((unsigned long long*)&{1}[10], (unsigned long long)({0}));",
    "atomicMax((unsigned long long*)&{1}[16], (unsigned long long)({0}));",
    "atomicMin((long long*)&{1}[18], (long long)({0}) * -3);",
    "atomicOr((unsigned long long*)&{1}[20], (unsigned long long)({0}) << 7);",
    "atomicAdd((double*)&{1}[22], (double)(({0}) & 255));",
    "atomicAdd((float*)&{1}[13], (float)(({0}) & 255));", "atomicDec((unsigned*)&{1}[12], 7u);",
    "atomicMax((unsigned*)&{1}[14], (unsigned)({0}));",
)  # fmt: skip


class Kernel(Turns):
    """The random kernels of a seed as text for one side, and their launches."""

    def __init__(self, seed: int, side: str) -> None:
        """Draw the kernels of a seed."""
        super().__init__(seed, side)
        sizes = MOSTLY_SCARCE if self.has_warps else SIZES[self.plain * 2 :]
        sharp = MOSTLY_ALONE if self.is_alone else ALL_SHARP if self.sharp else MOSTLY_EDGES
        sharp = MOSTLY_VECTORS if self.in_vectors else MOSTLY_LENT if self.lends else sharp
        sharp = ("lent",) if self.has_few else STEPPED_TOO if self.steps else sharp
        sharp = ("turns",) if self.is_endless else sharp
        self.size = self.choice(sharp if self.has_edges else sizes)
        self.is_small = self.size in ("micro", "scarce", "lanes", *WHOLE)
        self.namespace = not self.is_endless and self.chance(0.08)
        self.texts: list[str] = []
        self.launches: list[str] = []
        self.launched_with: list[tuple[tuple[int, int], tuple[int, int, int], int]] = []
        self.dynamic, self.counted_blocks = False, False
        self.counting = 0  # kernels that count their blocks in the first word for it
        if self.size == "scarce":
            self.risk_names()
        for _ in range(0 if self.is_small else self.choice([0, 0, 1, 1, 2])):
            self.function()
        for number in range(2 if not self.is_endless and self.chance(0.15) else 1):
            self._kernel(number)

    @property
    def races(self) -> bool:
        """Whether the second kernel takes another block than its last for the last one."""
        return self.counting > 1

    def _kernel(self, number: int) -> None:
        """Draw one kernel of the seed and its launches."""
        self.block = (*self.choice(BLOCKS[:8] if self.size == "micro" else BLOCKS), 1, 1)[:3]
        self.threads = self.block[0] * self.block[1] * self.block[2]
        grids = [(1, 1), (1, 1), (2, 1), (3, 1), (1, 2)]
        self.grid = self.choice(grids[: 4 if self.size == "micro" else 5])
        self.parameter, self.leaving = self.name(), False
        self.lines, self.top, self.first = [], [], []
        self.alive = f"lanes_below(32, {self.threads}, tid)"
        self.more = [] if self.is_small else self._parameters()
        name = self.name() if self.namespace else f"k{self.seed}{'ab'[number]}"
        self._template()
        if self.size == "micro":
            self.scope = Scope([], [], [], [self.parameter], "data")
            self.micro()
        elif self.size in WHOLE:
            getattr(self, self.size)()
        else:
            self._body()
        self.texts.append(self._text(name))
        self._launch(name, number)

    # Parameters and launches --------------------------------------------------------------------

    def _parameters(self) -> list[tuple[str, str, str]]:
        """Draw further parameters: type, name, argument."""
        drawn = self.random.sample(PARAMETERS, self.choice([0, 0, 1, 1, 2]))
        return [(kind, self.name(), value) for kind, value in drawn]

    def _template(self) -> None:
        """Draw the parameters of a template, or none."""
        self.template, self.instances, self.kind = "", [""], self.name()
        self.number = self.name()
        if not self.is_small and self.chance(0.2):
            kinds = self.random.sample(["int", "unsigned", "short", "long long", "float"], 2)
            numbers = [self.random.randint(1, 5), self.random.randint(1, 5)]
            self.template = f"template <class {self.kind}, int {self.number}> "
            self.instances = [f"<{k}, {n}>" for k, n in zip(kinds, numbers, strict=True)]
            if self.chance(0.4):
                self.more.append((self.kind, self.name(), "{0}"))

    def _launch(self, name: str, number: int) -> None:
        """Draw the launches: each instance, and some again with another argument."""
        qualified = f"n{self.seed}::{name}" if self.namespace else name
        data, out = ("d", "o") if number == 0 else ("o", "o + 512")
        host = f"H_launch({self.grid[0]}, {self.grid[1]}, {', '.join(map(str, self.block))});"
        for instance in self.instances:
            for _ in range(self.choice([1, 1, 1, 2, 3])):
                given = [value.format(self.random.randint(1, 99)) for _, _, value in self.more]
                parameter = self.random.randint(3, 31)
                arguments = [data, "r", out, "o + 480", str(parameter), *given]
                self.launched_with.append((self.grid, self.block, parameter))
                cuda = self._launched(qualified + instance, arguments)
                call = f"{qualified}{instance}({', '.join(arguments)});"
                self.launches.append(self.both(cuda, f"{host} {call}"))

    def _launched(self, kernel: str, arguments: list[str]) -> str:
        """Draw one of the ways to launch a kernel."""
        grid, block = f"dim3({self.grid[0]}, {self.grid[1]})", f"dim3{self.block}"
        if self.grid[1] == 1 and self.block[1:] == (1, 1) and self.chance(0.6):
            grid, block = str(self.grid[0]), str(self.block[0])
        shared, call = 1024 * self.dynamic, ", ".join(arguments)
        sizes = f"{grid}, {block}{', 1024' * self.dynamic}"
        if self.template or "::" in kernel:
            return f"{kernel}<<<{sizes}>>>({call});"
        kinds = ["const int*", "const float*", "int*", "int*", "int", *(k for k, _, _ in self.more)]
        given = [f"{k} a{i} = {v};" for i, (k, v) in enumerate(zip(kinds, arguments, strict=True))]
        listed = ", ".join(f"(void*)&a{i}" for i in range(len(kinds)))
        by_address = f"(void*){kernel}, dim3({grid}), dim3({block}), all, {shared}, 0"
        return self.choice([
            *[f"{kernel}<<<{sizes}>>>({call});"] * 4,
            f"{{ auto f = {kernel}; f<<<{sizes}>>>({call}); }}",
            f"{kernel}<<<{grid}, {block}, {shared}, 0>>>({call});",
            f"launched({kernel}, {grid}, {block}, {shared}, {call});",
            (f"{{ {' '.join(given)} void* all[] = {{{listed}}};"
             f" cudaLaunchKernel({by_address}); }}"),
        ])  # fmt: skip

    # Bodies -------------------------------------------------------------------------------------

    def _body(self) -> None:
        """Draw the body of a kernel that is not one of the smallest."""
        self._declare()
        large = self.size == "large"
        if self.size in ("scarce", "lanes"):
            (self.scarce if self.size == "scarce" else self.of_lanes)()
            self._finish()
            return
        for index in range(self.random.randint(2, 5) if large else 1):
            if large and index == 1 and self.chance(0.3):
                self._leave()
            self._part()
        self._finish()

    def _leave(self) -> None:
        """Let some threads return, and note in each warp which ones stay."""
        leave, alive, condition = self.new("leave"), self.new("alive"), self.guard()
        if self.host:
            self.phase(f"if ({condition}) H_gone[tid] = 1;")
        else:
            self.lines.append(
                f"const bool {leave} = {condition}; const unsigned {alive} ="
                f" __ballot_sync({self.alive}, !{leave}); if ({leave}) return;"
            )
        self.alive, self.leaving = alive, True

    def _part(self) -> None:
        """Draw a part of a body."""
        meets = self.plain and self.size == "tiny"
        part = self.choice(["statements", "statements", "exchange", "collective", "rounds",
                            "pattern", "counted", "same"][2 * meets :])  # fmt: skip
        if part == "rounds":
            self._rounds()
        elif part == "same":
            self._same()
        elif part == "statements":
            self.phase(self.statements(2, self.random.randint(1, 2 + (self.size == "large"))))
        else:
            getattr(self, part)()

    def _meet(self) -> None:
        self.choice([self.exchange, self.exchange, self.collective, self.counted])()

    def _rounds(self) -> None:
        """Draw a loop that all threads go through together."""
        i, n = self.new("r"), self.parameter
        head = self.choice([
            f"for (int {i} = 0; {i} < 3; ++{i}) {{",
            f"for (int {i} = ({n} & 3); {i} > 0; {i}--) {{",
            f"for (int {i} = 0; {i} < (int)blockIdx.x + 1; ++{i}) {{",
            f"for (unsigned {i} = 1; {i} < blockDim.x; {i} *= 4) {{",
            f"int {i} = 0; while ({i}++ < ({n} & 3)) {{", f"LOOP({i}, 2) {{",
        ])  # fmt: skip
        self.lines.append(head)
        self._meet()
        if self.chance(0.3):
            self.lines.append(f"if ({i} == 2) {self.choice(['break', 'continue'])};")
        if self.chance(0.5):
            self._meet()
        if self.chance(0.2):
            j = self.new("r")
            self.lines.append(f"for (int {j} = 0; {j} < 2; ++{j}) {{")
            self._meet()
            self.lines.append("}")
        self.lines.append("}")

    def _same(self) -> None:
        """Draw branches that all threads of a block take together."""
        n = self.parameter
        if self.chance(0.3) and not self.plain:
            self.lines.append(f"switch ({n} & 3) {{ case 0: {{")
            self._meet()
            self.lines.append(f"}} {self.choice(['break;', ''])} case 1: {{")
            self._meet()
            self.lines.append("} break; default: {")
            self._meet()
            self.lines.append("} }")
            return
        condition = self.choice([f"{n} & 1", "blockIdx.x == 0", f"{n} > 12", "gridDim.x > 1"])
        self.lines.append(f"if ({condition}) {{")
        self._meet()
        if self.chance(0.4):
            self.lines.append("} else {")
            self._meet()
        self.lines.append("}")

    def _declare(self) -> None:
        """Declare the variables of a thread and give them their first values."""
        large = self.size == "large"
        scarce = self.size in ("scarce", "lanes")
        kinds = ["int", "int"] + ["int"] * large
        share_of_arrays = {"scarce": 0, "lanes": 0.7}.get(self.size, 0.3)
        others = [*INTEGERS[1:], "float", "double", "unsigned"]
        if not scarce:
            kinds += [self.choice(others) for _ in range(self.random.randint(0, 3 if large else 1))]
        variables = [Variable(self.name(), kind) for kind in kinds]
        arrays = [
            Variable(
                self.name(),
                self.choice(["int", "int", "short", "unsigned char", "unsigned", "long long"]),
            )
            for _ in range(self.random.randint(0, 2) if large else self.chance(share_of_arrays))
        ]
        pairs = [self.name()] if self.chance(0.5 if large else 0.2) else []
        values = [self.parameter, "tid", *self._read_parameters()]
        self.scope = Scope(variables, arrays, pairs, values, "data")
        changed = self._changed_parameters()
        for variable in variables:
            kind = variable.kind
            starts = self.scarce_starts() if scarce else ["tid", "0", "7", "data[tid]"]
            start = self.choice(starts)
            if kind in ("float", "double"):
                start = f"({kind})({start} & 255)"
            self.cuda(f"{kind} {variable.name} = ({kind})({start});")
            self.first += [f"{variable.name} = ({kind})({start});"] if self.host else []
        for array in arrays:
            self.cuda(f"{array.kind} {array.name}[8];")
            self.first.append(f"LOOP(e, 8) {array.name}[e] = ({array.kind})(e * 5 + tid);")
        for pair in pairs:
            self.cuda(f"Pair {pair};")
            self.first.append(f"{pair}.a = 1; {pair}.b = tid;")
        variables += [Variable(name, kind) for kind, name in changed if kind != "Pair"]
        pairs += [name for kind, name in changed if kind == "Pair"]
        self.hold_locals()

    def _changed_parameters(self) -> list[tuple[str, str]]:
        """Draw parameters that each thread changes for itself: type and name."""
        kinds = self.random.sample([("int", "{0}"), ("Pair", "Pair{{{0}, 2}}"), ("short", "{0}")],
                                   self.choice([0, 0, 0, 1, 2]))  # fmt: skip
        named = [(kind, self.name(), value) for kind, value in kinds]
        self.more += [(kind, self.both(name, f"H_of_{name}"), value) for kind, name, value in named]
        self.first += [f"{name} = H_of_{name};" for _, name, _ in named] if self.host else []
        return [(kind, name) for kind, name, _ in named]

    def _read_parameters(self) -> list[str]:
        """Give the expressions of an int that read the further parameters."""
        reads = {
            "Pair": "{0}.sum()",
            "Box": "{0}.folded()",
            "float": "(int){0}",
            "Many": "{0}.at(threadIdx.x)",
            "int2": "({0}.x ^ {0}.y)",
            "Choice": "chosen((int){0})",
            "const int*": "{0}[threadIdx.x]",
            "Nested": "{0}.of(threadIdx.x)",
            "double": "(int){0}",
        }
        texts = [reads.get(kind, "(int){0}").format(name) for kind, name, _ in self.more]
        if self.template:
            texts += [self.number, f"(int)sizeof({self.kind})", f"(int)({self.kind})3.75f",
                      f"(int)({self.kind})({self.parameter} / 2)"]  # fmt: skip
        return texts

    def _finish(self) -> None:
        """Write what a thread has computed."""
        place = self.choice([f"bid * {self.threads} + tid", f"tid + {self.threads} * bid"])
        values = [self.read(v) for v in self.scope.variables]
        values += [f"{name}.sum()" for name in self.scope.pairs]
        values += [f"{self.choice(['', '(int)'])}{a.name}[{self.choice(self.ints())} & 7]"
                   for a in self.scope.arrays]  # fmt: skip
        if self.chance(0.1 if self.size == "scarce" else 0.5):
            atomic = self.choice(GLOBAL_ATOMICS).format(values[0], "total")
            self.phase(atomic if self.chance(0.6) else f"if ({self.guard()}) {{ {atomic} }}")
        if self.size == "tiny" and self.chance(0.5):
            values = values[:1]
        text = " ^ ".join(f"(int)((unsigned)({v}) * {2 * i + 1}u)" for i, v in enumerate(values))
        if self.chance(0.2):  # a variable that the next launch finds
            saved = f"saved_{self.seed}[{place}]"
            self.functions.append(f"DEVICE int saved_{self.seed}[512];")
            text = f"({saved} = (int)((unsigned){saved} * 3u + (unsigned)({text})))"
        if self.chance(0.3):
            text = f"(int)((unsigned)out[{place}] * 31u + (unsigned)({text}))"
        self.phase(f"out[{place}] = {text};")
        if not self.leaving and self.size == "large" and self.chance(0.2):
            self._last()

    def _last(self) -> None:
        """Let the last block read what all have written."""
        blocks, counter = self.grid[0] * self.grid[1], 25 if self.counted_blocks else 9
        self.counted_blocks = self.has_warps  # kernels of the first seeds count in one word
        self.counting += counter == 9
        self.phase("__threadfence();")
        self.cuda("__syncthreads();")
        self.phase(
            f"if (tid == 0 && atomicAdd(&total[{counter}], 1) == {blocks - 1}) {{ __threadfence();"
            f" int sum = 0; for (int i = 0; i < {blocks * self.threads}; ++i) sum ="
            " (int)((unsigned)sum * 3u + (unsigned)((volatile int*)out)[i]); total[15] = sum; }"
        )

    # Text ---------------------------------------------------------------------------------------

    def _text(self, name: str) -> str:
        """Write a kernel or its host function."""
        more = "".join(f", {kind} {parameter}" for kind, parameter, _ in self.more)
        head = (f"{name}(const int* data, const float* reals, int* out, int* total,"
                f" int {self.parameter}{more})")  # fmt: skip
        lines, words = self.lines, self.choice(QUALIFIERS)
        if "H_FIRST" in lines:
            at = lines.index("H_FIRST")
            self.lines = []
            self.phase(" ".join(self.first))
            lines = lines[:at] + self.lines + lines[at + 1 :]
            if self.leaving:
                lines.insert(at + 1, self.both("__syncthreads();", ""))
        if not self.host:
            tid = "const int tid = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y *"
            bid = "const int bid = blockIdx.x + gridDim.x * blockIdx.y;"
            start = [f"{tid} threadIdx.z); (void)tid; {bid} (void)bid;"]
            body = "\n    ".join(([] if self.size == "micro" else start) + self.top + lines)
            if self.template or self.namespace:
                words = words.replace('extern "C" ', "")
            text = f"{self.template}{words} {head} {{\n    {body}\n}}\n"
        else:
            gone = ["static int H_gone[128]; memset(H_gone, 0, sizeof H_gone);"]
            bid = ["const int bid = blockIdx.x + gridDim.x * blockIdx.y; (void)bid;"]
            body = "\n    ".join(self.top + gone + bid + lines)
            text = (f"{self.template}static void {head} {{\n    for (blockIdx.y = 0; blockIdx.y <"
                    " gridDim.y; ++blockIdx.y) for (blockIdx.x = 0; blockIdx.x < gridDim.x;"
                    f" ++blockIdx.x) {{\n    {body}\n    }}\n}}\n")  # fmt: skip
        return f"namespace n{self.seed} {{\n{text}}}\n" if self.namespace else text

    def text(self) -> str:
        """Write the functions and the kernels."""
        text = "\n".join([*dict.fromkeys(self.functions), *self.texts])
        if self.host:
            return text
        text = text.replace("FN ", "__device__ ") if self.seed % 2 else text
        return self._spaced(text) if self.seed % 5 == 0 else text

    def _spaced(self, text: str) -> str:
        """Put newlines and comments between words."""
        draw = random.Random(self.seed)  # noqa: S311 -- texts
        spaces = (" ", " ", " ", "\n", "\n    ", " /* } */ ", " // {\n", "\t", " \\\n")
        return re.sub(r"(?<=[{;,]) ", lambda _: draw.choice(spaces), text)
