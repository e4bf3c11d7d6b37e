"""Expressions, every operation of which CUDA defines.

Each method draws the text of an expression of one type. What C++ leaves undefined, and nvcc's
compiler may count on, passes through `whole`, which it cannot look into: so it is what the
hardware gives. Floating-point results are exact, or rounded once by an operation that IEEE 754
defines; products are by powers of two, so that a fused one has the same bits.
"""

from __future__ import annotations

from tests.oracle.draws import INTEGERS, NARROW, Draws, Variable

LITERALS = ("0b1011", "1'000", "017", "'{'", "'\"'", "'\\''", '(int)sizeof("}//{")', "0x7f'00")
CASTS = ("({0})({1})", "{0}({1})", "static_cast<{0}>({1})")


class Values(Draws):
    """Draws expressions."""

    def read(self, variable: Variable) -> str:
        """Give a variable's value as an int."""
        if variable.kind == "int" or (variable.kind in NARROW and self.chance(0.7)):
            return variable.name
        if variable.kind in ("float", "double"):
            return self.converted("int", variable.name)
        return f"(int){variable.name}"

    def index(self) -> str:
        """Draw an index of an array of eight elements."""
        inside = self.choice([*self.ints(), "threadIdx.x", self.atom()])
        return self.choice([f"({inside}) & 7", f"(unsigned)({inside}) % 8u"])

    def element(self, array: Variable) -> str:
        """Draw an element of an array."""
        return f"{array.name}[{self.index()}]"

    def atom(self) -> str:
        """Draw a simple int."""
        scope, kind = self.scope, self.random.random()
        if kind < 0.45 and scope.variables:
            return self.read(self.choice(scope.variables))
        if kind < 0.55 and scope.arrays:
            array = self.choice(scope.arrays)
            return self.read(Variable(f"{array.name}[{self.choice(self.ints())} & 7]", array.kind))
        if kind < 0.65 and scope.pairs:
            return self.choice(scope.pairs) + self.choice([".a", ".b", ".sum()"])
        if kind < 0.75 and scope.values:
            return self.choice(scope.values)
        if kind < 0.87:
            return f"{scope.data}[{self.choice([*self.ints(), 'threadIdx.x'])} & 255]"
        return self.choice(["(int)threadIdx.x", "(int)blockIdx.x", "(int)blockDim.x",
                            str(self.random.randint(-9, 99)), "0x7fffffff", "'a'",
                            f"(int)sizeof({self.choice(INTEGERS)})", *LITERALS])  # fmt: skip

    def small(self, max_value: int) -> str:
        """Draw an int from 0 to `max_value`, which is 2 to a power, less 1."""
        value = self.atom()
        if self.chance(0.3):
            value = f"({value}) {self.choice(['^', '|', '/ 3 ^'])} ({self.atom()})"
        return f"(({value}) & {max_value})"

    # Shifts and conversions: what C++ leaves undefined ------------------------------------------
    #
    # nvcc removes what follows an undefined value that it can prove, so it must know nothing about
    # the amount of a shift, nor about a number that is too large for an integer.

    def amount(self, max_shift: int) -> str:
        """Draw the amount of a shift, perhaps the width or more."""
        kind = self.choice(["int", "int", "unsigned", "long long", "unsigned char"])
        return self.choice(
            [
                f"whole({self.small(max_shift)})",
                f"(whole({self.atom()}) & {max_shift})",
                f"(({kind})whole({self.atom()}) & {max_shift})",
                f"whole({self.scope.data}[{self.some_int()} & 255] & {max_shift})",
            ]
        )

    def unknown(self, kind: str = "") -> str:
        """Draw a float or a double, which may be too large for any integer."""
        draw = self.double if kind == "double" or (not kind and self.chance(0.5)) else self.real
        operator = self.choice(["+", "-"])
        return self.choice([f"whole({draw(1)})", f"({draw(0)} {operator} whole({draw(1)}))"])

    def shifted(self, value: str, operator: str, max_shift: int) -> str:
        """Shift a value of any type, perhaps by its width or more."""
        amount, function = self.amount(max_shift), "H_shl" if operator == "<<" else "H_shr"
        plain = f"({value}) {operator} {amount}"
        return self.both(f"whole({plain})", f"whole({function}(+({value}), {amount}))")

    def converted(self, kind: str, number: str) -> str:
        """Convert a floating-point number to an integer, which it may not fit."""
        cast = self.choice(CASTS if " " not in kind else (CASTS[0], CASTS[2]))
        text = self.both(cast.format(kind, number), f"H_to<{kind}>({number})")
        return f"(int)whole({text})" if kind in ("int", "unsigned") else f"(int)({text})"

    # Types --------------------------------------------------------------------------------------

    def natural(self, depth: int) -> str:
        """Draw an unsigned."""
        own = [v.name for v in self.scope.variables if v.kind == "unsigned"]
        if depth == 0:
            return self.choice(
                [
                    *own,
                    *own,
                    "threadIdx.x",
                    "blockDim.x",
                    "gridDim.x",
                    "37u",
                    f"(unsigned)({self.atom()})",
                    f"(unsigned)({self.atom()})",
                ]
            )
        a, b = self.natural(depth - 1), self.natural(depth - 1)
        kind = self.random.randrange(9)
        if kind == 0:
            return self.shifted(a, self.choice(["<<", ">>"]), 63)
        if kind == 1:
            number = self.unknown("float")
            return self.both(f"whole((unsigned)({number}))", f"whole(H_to<unsigned>({number}))")
        operator = self.choice(["+", "-", "*", "^", "&", "|"])
        return self.choice([
            f"({a} {operator} {b})", f"({a} {operator} ({self.atom()}))", f"(~{a})",
            f"({a} / (({b} & 15) + 1u))", f"({a} % (({b} & 15u) + 1))",
            f"({a} < {b} ? {a} : {b})", f"(({a}) >> 3)", f"({a} << 5)",
        ])  # fmt: skip

    def wide(self, depth: int) -> str:
        """Draw an unsigned long long."""
        own = [v.name for v in self.scope.variables if v.kind == "unsigned long long"]
        own += [f"(unsigned long long){v.name}" for v in self.scope.variables
                if v.kind == "long long"]  # fmt: skip
        if depth == 0:
            return self.choice(
                [
                    *own,
                    f"(unsigned long long)({self.atom()})",
                    f"(unsigned long long){self.natural(0)}",
                    "0x123456789abcdefULL",
                ]
            )
        a, b = self.wide(depth - 1), self.wide(depth - 1)
        kind = self.random.randrange(7)
        if kind < 2:
            return self.shifted(a, self.choice(["<<", ">>"]), 127)
        if kind == 2:
            number = self.unknown()
            return self.both(
                f"(unsigned long long)({number})", f"H_to<unsigned long long>({number})"
            )
        operator = self.choice(["+", "-", "*", "^", "&", "|"])
        return self.choice(
            [
                f"({a} {operator} {b})",
                f"({a} {operator} {self.natural(1)})",
                f"({a} % (({b} & 255) + 1))",
                f"({a} / ({self.small(15)} + 1))",
            ]
        )

    def real(self, depth: int) -> str:
        """Draw a float."""
        own = [v.name for v in self.scope.variables if v.kind == "float"]
        if depth == 0:
            return self.choice(
                [
                    *own,
                    *own,
                    f"(float)(({self.atom()}) & 0xffff)",
                    f"(float)({self.atom()})",
                    "2.5f",
                    "-1.0f",
                ]
            )
        a, b = self.real(depth - 1), self.real(depth - 1)
        special = f"__int_as_float(specials[{self.some_int()} & 7])"
        return self.choice([
            f"({a} + {b})", f"({a} - {b})", f"({a} / (float)({self.small(15)} + 1))",
            f"({a} * 65536.0f)", f"({a} * -65536.0f)", f"({a} * 0.5f)", f"fmaxf({a}, {b})",
            f"({a} < {b} ? {a} : {b})", f"sqrtf(fabsf({a}))", f"truncf({a})", special,
        ])  # fmt: skip

    def double(self, depth: int) -> str:
        """Draw a double."""
        own = [v.name for v in self.scope.variables if v.kind == "double"]
        if depth == 0:
            return self.choice([*own, f"(double)({self.atom()})", f"(double){self.real(0)}", "0.5"])
        a, b = self.double(depth - 1), self.double(depth - 1)
        return self.choice(
            [
                f"({a} + {b})",
                f"({a} - {b})",
                f"({a} * 4294967296.0)",
                f"({a} * -0.25)",
                f"({a} / ({self.small(7)} + 1.0))",
            ]
        )

    def value(self, depth: int = 2) -> str:
        """Draw an int."""
        if depth == 0 or self.chance(0.12):
            return self.atom()
        return self.choice([
            self.arithmetic, self.arithmetic, self.arithmetic, self.odd, self.odd, self.called,
            self.of_other_type,
        ])(depth - 1)  # fmt: skip

    def arithmetic(self, depth: int) -> str:
        """Draw an int by operations on two others."""
        a, b = self.value(depth), self.value(depth)
        operator = self.choice(["+", "-", "*"])
        return self.choice([
            f"(int)((unsigned)({a}) {operator} (unsigned)({b}))",
            f"(int)((unsigned)({a}) + ({b}))", f"(({a}) ^ ({b}))", f"(({a}) & ({b}))",
            f"(({a}) | ({b}))", f"(({a}) / ((({b}) & 15) + 1))", f"(({a}) % ((({b}) & 15) + 1))",
            f"(({a}) % (-(({b}) & 7) - 2))", f"(({a}) < ({b}) ? ({b}) : ({a}))", f"(~({a}))",
            f"((({a}) & 0xffff) - (({b}) & 0xffff))", f"(({a}) == ({b}))", f"(!({a}))",
            f"(({a}) && ({b}))", f"((({a}) > 3) || ({b}) < 2)", f"(({a}) > {self.natural(0)})",
            f"((({a}) & 4095) * (({b}) & 4095))", f"(({a}) >> 5)", f"((({a}) & 0xfff) << 7)",
        ])  # fmt: skip

    def odd(self, depth: int) -> str:
        """Draw an int by a shift or a conversion."""
        a, b = self.value(depth), self.value(depth)
        kind = self.random.randrange(5)
        if kind == 0:
            return self.shifted(a, self.choice(["<<", ">>"]), self.choice([63, 63, 31, 127]))
        if kind == 1:
            narrow = self.choice(NARROW)
            return self.shifted(f"({narrow})({a})", self.choice(["<<", ">>"]), 63)
        if kind == 2:
            return self.converted(self.choice(INTEGERS), self.unknown())
        if kind == 3:
            text = self.shifted(f"((long long)({a}) * ({b}))", ">>", 127)
            return f"(int)({text})"
        return f"(int)({self.choice(INTEGERS)})({a})"

    def called(self, depth: int) -> str:
        """Draw a call."""
        a, b = self.value(depth), self.value(depth)
        kind, constant = self.choice(NARROW), self.random.randint(0, 40)
        texts = [
            f"mixed({a}, {b})", f"twice<int>({a})", f"(int)twice(({kind})({a}))", f"over({a})",
            f"over((unsigned)({a}))", f"over(({a}) > ({b}))", f"recursive(({a}) & 7, {b})",
            f"even({self.small(15)})", f"TIMES({a}, {b})", f"SHIFTED({a}, {b})",
            f"moved<int>({a}, {self.small(63)})", f"(int)moved(({kind})({a}), {self.small(63)})",
            f"(int)moved(({self.natural(0)}), {self.small(63)})", f"plus<{constant}>({a})",
            f"made({a}, {b}).sum()", f"(made({a}, {b}) + made({b}, 2)).a",
            f"summed(made({a}, {b}))",
            f"boxed(({a}), ({b})).folded()", f"nested::shifted({a}, {self.small(63)})",
            f"__popc({a})", f"__clz({a})", f"__ffs({a})", f"(int)__brev({a})",
            f"__mulhi({a}, {b})", f"table[({a}) & 15]", f"settings[({a}) & 7]",
            f"applied(Xor{{{self.small(255)}}}, {a})", f"(Counter<{constant}, int>::next({a}))",
            f"[&](int q) {{ return q ^ ({b}); }}({a})", f"(({a}), ({b}))", f"chosen(({a}) & 3)",
            f"[=](auto q) {{ return (int)(q + 1u) ^ ({b}); }}({self.natural(0)})",
        ]  # fmt: skip
        if not {"min", "max"} & {v.name for v in self.scope.variables + self.scope.arrays}:
            texts += [f"min({a}, {b})", f"max({a}, {b})"] if self.free("min", "max") else []
        if self.calls:
            texts += [call.format(a, b) for call in self.calls] * 4
        return self.choice(texts)

    def free(self, *names: str) -> bool:
        """Whether no name in scope hides these functions."""
        taken = [*self.scope.values, *self.scope.pairs]
        return all(name in self.names and name not in taken for name in names)

    def of_other_type(self, depth: int) -> str:
        """Draw an int that was of another type."""
        draw = self.choice([self.natural, self.natural, self.wide])
        return f"(int){draw(depth)}"
