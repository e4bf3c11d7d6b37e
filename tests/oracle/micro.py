"""Kernels with almost nothing in them: what a compiler may do to them shows nowhere else."""

from __future__ import annotations

from tests.oracle.draws import Scope, Variable
from tests.oracle.warps import Warps

SUMS = {"int": "r", "float": "x", "double": "x", "unsigned": "r", "long long": "r"}


class Micro(Warps):
    """Draws the smallest kernels."""

    def whole(self, text: str) -> None:
        """Write a kernel of one phase; its variables are in its text."""
        self.scope = Scope()
        self.phase(text)

    def one(self) -> str:
        """Draw a condition that one thread of a block meets, or none."""
        which = self.random.randrange(self.threads + 1)
        return self.choice([
            f"threadIdx.x == {which}", f"threadIdx.x == {which % 2}", "threadIdx.x == 0",
            "!threadIdx.x", "threadIdx.x < 1", "threadIdx.x == blockDim.x - 1",
            f"!(threadIdx.x != {which})", f"threadIdx.x == ({self.parameter} & 7)",
            "threadIdx.x + threadIdx.y == 0", f"(int)threadIdx.x - {which} == 0",
        ])  # fmt: skip

    def micro(self) -> None:
        """Draw the whole of a kernel."""
        self.choice(
            [
                self.sum_of_one,
                self.sum_of_one,
                self.leaving_first,
                self.by_stride,
                self.own,
                self.own,
                self.two_threads,
                self.switched,
                self.added,
                self.by_lanes if self.threads % 32 == 0 else self.by_stride,
            ]
        )()

    def counted_loop(self, i: str, inside: str) -> str:
        """Draw a loop over a few elements."""
        n = self.parameter
        return self.choice([
            f"for (int {i} = 0; {i} < {n}; {i}++) {inside}",
            f"for (int {i} = 0; {i} < {n}; ++{i}) {{ {inside} }}",
            f"for (int {i} = {n} - 1; {i} >= 0; --{i}) {inside}",
            f"for (unsigned {i} = 0; {i} < 9u; ++{i}) {inside}",
            f"int {i} = 0; while ({i} < {n}) {{ {inside} {i}++; }}",
            f"int {i} = {n}; while ({i}--) {{ {inside} }}",
            f"int {i} = 0; do {{ {inside} }} while (++{i} < {n});",
            f"for (int {i} = 0; ; {i} += 2) {{ if ({i} >= {n}) break; {inside} }}",
        ])  # fmt: skip

    def _summing(self) -> tuple[str, str, str, str]:
        """Draw a type: its name, an empty sum, the loop that sums, and where the sum goes."""
        kind, s, i = self.choice(list(SUMS)), self.name(), self.name()
        array = "reals" if kind in ("float", "double") else "data"
        change = self.choice([f"{s} += {array}[{i}];", f"{s} -= {array}[{i} & 63];"])
        if kind in ("int", "long long"):
            change = self.choice(
                [
                    f"{s} += {array}[{i}] & 255;",
                    f"{s} ^= {array}[{i} & 7];",
                    f"{s} = {s} < {array}[{i}] ? {array}[{i}] : {s};",
                ]
            )
        loop = self.counted_loop(i, change)
        return kind, s, loop, f"out[blockIdx.x] = (int){s};"

    def sum_of_one(self) -> None:
        """Let one thread sum in a loop."""
        kind, s, loop, store = self._summing()
        if self.chance(0.3):
            i = self.name()
            loop = self.counted_loop(i, f"out[blockIdx.x] += data[{i}] & 1023;")
            self.whole(f"if ({self.one()}) {{ {loop} }}")
            return
        self.whole(f"if ({self.one()}) {{ {kind} {s} = 0; {loop} {store} }}")

    def leaving_first(self) -> None:
        """Let all threads but one return, and that one loop."""
        kind, s, loop, store = self._summing()
        self.whole(f"if (!({self.one()})) return; {kind} {s} = 0; {loop} {store}")

    def two_threads(self) -> None:
        """Let two threads do different things."""
        kind, s, loop, _ = self._summing()
        k = self.random.randrange(4)
        text = f"{kind} {s} = 0; {loop} out[blockIdx.x * 2] = (int){s};"
        j, p = self.name(), self.name()
        other = f"int {p} = 3; for (int {j} = 0; {j} < 5; ++{j}) {p} ^= data[{j}]; "
        other += f"out[blockIdx.x * 2 + 1] = {p};"
        word = self.choice(["else if", "", "else if"])
        self.whole(f"if (threadIdx.x == {k}) {{ {text} }} {word or 'if'}"
                   f" (threadIdx.x == {k + 1}) {{ {other} }}")  # fmt: skip

    def switched(self) -> None:
        """Let a switch tell threads apart."""
        kind, s, loop, _ = self._summing()
        guard = self.choice(["threadIdx.x", "threadIdx.x", "threadIdx.x % 3"])
        stored = f"out[blockIdx.x * blockDim.x + threadIdx.x] = (int){s};"
        self.whole(f"{kind} {s} = 0; switch ({guard}) {{ case 1: {{ {loop} }} break; case 2: {s} ="
                   f" 5; default: {s} += 2; }} {stored}")  # fmt: skip

    def by_stride(self) -> None:
        """Let all threads go over an array by strides."""
        i, limit = self.name(), self.choice(["200", f"{self.parameter} * 6", "97"])
        start = "blockIdx.x * blockDim.x + threadIdx.x"
        self.scope = Scope([], [], [], [self.parameter, f"(int){i}"], "data")
        value = f"(int)((unsigned)data[{i}] * 3u + (unsigned)data[({i} + 1) & 255])"
        condition = self.choice(["", f"if ({i} % 3 == 1) continue; ", f"if ({i} > 90) break; ",
                                 f"if (data[{i}] < 0) return; "])  # fmt: skip
        kind = self.choice(["int", "unsigned", "long long"])
        self.whole(f"for ({kind} {i} = {start}; {i} < {limit}; {i} += gridDim.x * blockDim.x)"
                   f" {{ {condition}out[{i}] = {value}; }}")  # fmt: skip

    def by_lanes(self) -> None:
        """Let the lanes of each warp add in step."""
        self.scope, array, place = Scope(), self.name(), "blockIdx.x * blockDim.x + threadIdx.x"
        self.butterflies(array, "threadIdx.x", f"(unsigned)data[{place}]")
        self.phase(f"out[{place}] = (int){array}[threadIdx.x];")

    def added(self) -> None:
        """Let threads add to one word in a loop."""
        i = self.name()
        loop = self.counted_loop(i, f"atomicAdd(total, data[{i}] & 255);")
        self.whole(f"if ({self.guard_of_none()}) {{ {loop} }}")

    def guard_of_none(self) -> str:
        """Draw a condition without local variables."""
        return self.choice(
            [
                self.one(),
                f"threadIdx.x < {self.random.randint(0, 9)}",
                "threadIdx.x & 1",
                "blockIdx.x == 0",
                f"{self.parameter} > 9",
            ]
        )

    def own(self) -> None:
        """Draw a statement or two over few variables."""
        variables = [Variable(self.name(), "int")]
        if self.chance(0.5):
            variables.append(
                Variable(self.name(), self.choice(["unsigned", "int", "short", "float"]))
            )
        starts = "".join(
            f"{v.kind} {v.name} = {self.choice(['0', '7', 'data[threadIdx.x] & 255'])};"
            for v in variables
        )  # fmt: skip
        self.scope = Scope(variables, [], [], [self.parameter], "data")
        text = self.statements(self.random.randint(1, 2), 1)
        leave = f"if ({self.guard()}) return;" if self.chance(0.25) else ""
        guard = self.choice(["", f"if ({self.one()}) "])
        place = "blockIdx.x * blockDim.x + threadIdx.x"
        value = " ^ ".join(self.read(v) for v in variables)
        if guard and self.chance(0.5):
            self.whole(f"{guard}{{ {starts} {text} out[{place}] = {value}; }}")
        else:
            self.whole(f"{starts} {leave} {text} {guard}out[{place}] = {value};")
