"""Kernels whose few variables begin alike in all threads, and change in one place or two.

A rewriter may keep such a variable once for a block, so it must see whatever changes it.
"""

from __future__ import annotations

from tests.oracle.micro import Micro

SHARE_OF_RISKY_NAMES = 0.4


class Scarce(Micro):
    """Draws kernels in which each change of a variable matters."""

    changed: str  # a function that changes a variable and returns a reference to it

    def scarce_starts(self) -> list[str]:
        """Give first values that are the same in all threads of a block."""
        return ["0", "7", "1", f"{self.parameter} & 15", "(int)blockIdx.x"]

    def risk_names(self) -> None:
        """Take the names that the CPU device's own text has used before all others, perhaps."""
        if self.chance(SHARE_OF_RISKY_NAMES):
            self.names.sort(key=lambda name: name.endswith("_"))

    def scarce(self) -> None:
        """Draw what the threads of such a kernel do."""
        self.changed = f"changed_{self.seed}"
        self.functions.append(f"FN int& {self.changed}(int& it, int by) {{ it ^= by; return it; }}")
        for _ in range(self.random.randint(1, 2)):
            draws = [*[self._between] * 3, self._in_rounds, self.by_warps, self.by_warps]
            self.choice([*draws, self.exchange, self.collective])()

    def _between(self) -> None:
        """Change a variable between two barriers."""
        if self.chance(0.3):
            self.barrier()
        self.phase(self.once())
        self.barrier()
        if self.chance(0.3):
            self.phase(self.once())

    def _in_rounds(self) -> None:
        """Change a variable in a loop of a whole block."""
        i = self.new("r")
        self.lines.append(f"for (int {i} = 0; {i} < {self.choice(['2', '3'])}; ++{i}) {{")
        self.phase(self.once())
        self.barrier()
        if self.chance(0.4):
            self.lines.append(f"if ({i} == 1) {self.choice(['break', 'continue'])};")
            self.phase(self.once())
            self.barrier()
        self.lines.append("}")

    def once(self) -> str:
        """Draw a statement that changes a variable, perhaps not for all threads."""
        a, b, q = self.some_int(), self.some_int(), self.new("q")
        value = self.choice([self.value(1), "data[threadIdx.x & 255]", "(int)threadIdx.x", "tid"])
        condition = self.choice(["threadIdx.x & 1", f"({value}) & 1", f"{self.parameter} & 1"])
        draws = [self.of_choices, self.of_initializers, self.of_references, self.of_blocks]
        text = self.choice(self.choice(draws)(a, b, value, q, condition))
        if self.chance(0.2):
            text = self.choice([self.form, self.indirect, self.assigned])()
        return f"if ({self.guard()}) {{ {text} }}" if self.chance(0.15) else text

    def of_choices(self, a: str, b: str, value: str, q: str, condition: str) -> list[str]:
        """Give statements that change one of several variables."""
        inside = [  # another expression
            f"(({condition} ? {a} : {b})) ^= 5;",
            f"{b} ^= 3, ({condition} ? {a} : {b}) ^= {value};",
            f"{{ const int {q} = 7 & (({condition} ? {a} : {b}) ^= {value}); {b} ^= {q}; }}",
            f"if ((({condition} ? {a} : {b}) ^= {value}) & 1) {b} ^= 2;",
            f"{{ const int {q} = 3 & ({condition} ? {a} : {b})++; {b} ^= {q}; }}",
        ]
        return [
            *(inside if self.has_edges else []),
            f"({condition} ? {a} : {b}) ^= 21;",
            f"({condition} ? {a} : {b}) = {value};",
            f"*({condition} ? &{a} : &{b}) ^= 5;",
            f"({condition} ? {a} : {value} & 2 ? {b} : {a}) ^= 9;",
            f"({a} ^= {value}) ^= 3;",
            f"(({condition}), {b}) ^= 12;",
            f"({condition} ? {a} ^= 6 : {b} ^= 10);",
            f"{{ int& {q} = {condition} ? {a} : {b}; {q} ^= 17; }}",
        ]

    def of_initializers(self, a: str, b: str, value: str, q: str, condition: str) -> list[str]:
        """Give declarations that change another variable."""
        return [
            f"{{ const int {q} = ({a} ^= {value}); {b} ^= {q} & 3; }}",
            f"const int {q} = ({a} ^= {value}); (void){q};",
            f"const bool {q} = {condition} && ({a} ^= 3); (void){q};",
            f"int {q}[2] = {{{a} ^= {value}, 3}}; (void){q};",
            f"int {q} = 1, {q}_more = ({b} ^= {value}) + 0u; (void){q}; (void){q}_more;",
            f"for (int {q} = ({a} ^= {value}) & 0; {q} < 1; ++{q}) {b} ^= 2;",
            f"if (const int {q} = ({a} ^= {value}); {q} & 1) {b} ^= 1;",
            f"const auto {q} = [&] {{ {a} ^= {value}; return 3; }}(); (void){q};",
        ]

    def of_references(self, a: str, b: str, value: str, q: str, condition: str) -> list[str]:
        """Give references to a variable where they are easily missed."""
        return [
            (f"switch ({value} & 1) {{ case 0: {{ int& {q} = {a}; {q} ^= 3; }} break;"
             f" default: {{ int& {q} = {b}; {q} ^= {value}; }} }}"),
            f"switch ({value} & 3) {{ case 1: {{ auto& {q} = {a}; {q} ^= {value}; }} }}",
            f"[&] {{ int& {q} = {a}; {q} ^= {value}; }}();",
            f"auto {q} = [&{a}](int by) {{ auto& it = {a}; it ^= by; }}; {q}({value});",
            f"{{ auto&& {q} = {a}; {q} ^= {value}; }}",
            f"{{ int& (*{q})(int&, int) = {self.changed}; {q}({a}, {value}); }}",
            f"{self.changed}({a}, {value}) ^= 1;", f"{b} ^= {self.changed}({a}, 5) & 3;",
            f"if ({self.changed}({a}, {value}) & 1) {b} ^= 4;",
            f"add_to({condition} ? {a} : {b}, {value});",
            f"{{ int* {q} = {condition} ? &{a} : &{b}; *{q} ^= {value}; {q}[0] ^= 1; }}",
            f"{{ Deed {q}({a}); }} {b} ^= {value};",
        ]  # fmt: skip

    def of_blocks(self, a: str, b: str, value: str, q: str, condition: str) -> list[str]:
        """Give blocks of statements that change variables of those around them."""
        return [
            f"{{ int {q} = {value}; {b} = {q} ^ data[{a} & 255]; {a} ^= 1; }}",
            f"{{ {b} ^= {value}; {a} ^= 1; }}",
            f"{{ const int {q} = {value}; {{ {a} ^= 6; }} {b} ^= {a} + ({q} & 1); }}",
            f"do {{ {a} ^= 4; }} while (0); {b} ^= {value};",
            f"for (int {q} = 0; {q} < 2; ++{q}) {{ {a} ^= {q} + 4; {b} ^= {value}; }}",
            f"if ({condition}) {{ {a} ^= 1; }} else {{ {b} ^= 1; }}",
        ]
