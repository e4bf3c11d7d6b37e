"""Kernels that try an operation with the operands at which it goes wrong.

They cost a compiler little and leave no operand to chance, so a search for a fault begins here.
"""

from __future__ import annotations

from tests.oracle.draws import INTEGERS, Scope
from tests.oracle.scarce import Scarce

WORDS = ("0", "1", "-1", "2", "31", "32", "0x7fffffff", "(int)0x80000000", "0xffff", "0x10000",
         "0x55555555", "0x0f0f0f0f", "0x12345678", "0xff00ff", "-2", "(int)0x80000001")  # fmt: skip
AMOUNTS = ("0", "1", "5", "7", "8", "9", "15", "16", "23", "24", "31", "32", "33", "40", "63", "64")
# The bits of doubles: NaN, the infinities, the ends of each integer's range and what is next to
# them, fractions, and what narrow integers cannot hold.
NUMBERS = (
    "0x7ff8000000000000", "0x7ff0000000000000", "0xfff0000000000000", "0x41dfffffffc00000",
    "0x41e0000000000000", "0xc1e0000000000000", "0x41f0000000000000", "0xc1f2345678900000",
    "0x43e0000000000000", "0xc3e0000000000000", "0x43f0000000000000", "0xc40fffffffffffff",
    "0xbfe8000000000000", "0x4072c80000000000", "0xc0f1234500000000", "0x3ff8000000000000",
)  # fmt: skip
INTRINSICS = (
    "__popc({a})", "__clz({a})", "__ffs({a})", "(int)__brev({a})", "__mulhi({a}, {b})",
    "(int)__umulhi({a}, {b})", "__mul24({a}, {b})", "(int)__umul24({a}, {b})", "__popcll({l})",
    "__clzll({l})", "__ffsll({l})", "(int)(__brevll({l}) >> 32)", "(int)__brevll({l})",
    "(int)(__umul64hi({l}, {m}) >> 7)", "(int)__byte_perm({a}, {b}, {c} & 0x7777)",
    "(int)__funnelshift_l({a}, {b}, {c})", "(int)__funnelshift_r({a}, {b}, {c})",
    "(int)__sad({a}, {b}, {c})", "(int)__usad({a}, {b}, {c})", "__dp4a({a}, {b}, {c})",
    "({a} < {b} ? {a} : {b})", "({a} / (({b} & 15) + 1))", "({a} % (({b} & 15) + 1))",
    "(int)((long long){a} * {b} >> 32)",
)  # fmt: skip


class Edges(Scarce):
    """Draws kernels of operands at the edge."""

    size: str  # of the kernel: "edges", "lanes" or another

    def value(self, depth: int = 2) -> str:
        """Draw an int: those that lanes compare differ from lane to lane, also in their sign."""
        if self.size != "lanes":
            return super().value(depth)
        k = self.random.randint(1, 9)
        data = [f"data[(tid + {k}) & 255]", f"data[tid * {k} & 255]"]
        return self.choice([*data, f"(tid - {k * 3})", f"({k} - tid)"])

    def of_lanes(self) -> None:
        """Draw what the lanes of a warp do together, around changes of the arrays of a thread."""
        for _ in range(2):
            if self.scope.arrays:
                array = self.choice(self.scope.arrays)
                self.phase(f"{array.name}[{self.value()} & 7] = ({array.kind})({self.value()});")
                self.barrier()
            draws = [self.among_some] * 3 + [self.counted]
            if self.threads % 32 == 0:
                draws += [self.neighbours, self.neighbours, self.reduction, self.reduction]
            self.choice(draws)()

    def edges(self) -> None:
        """Draw the whole of a kernel."""
        self.scope = Scope()
        draw = self.choice([self._shifts, self._shifts, self._conversions, self._conversions,
                            self._conversions, self._intrinsics])  # fmt: skip
        text = " ".join(f"r = r * 3u + (unsigned)({draw()});" for _ in range(3))
        place = f"bid * {self.threads} + tid"
        self.phase(
            f"unsigned r = 7; for (int e = 0; e < 16; ++e) {{ {text} }} out[{place}] = (int)r;"
        )

    def _array(self, kind: str, name: str, values: tuple[str, ...], index: str) -> str:
        """Declare an array beside the kernel, and give an element of it that no compiler knows."""
        self.functions.append(f"DEVICE {kind} {name}_{self.seed}[16] = {{{', '.join(values)}}};")
        return f"whole({name}_{self.seed}[{index} & 15])"

    def _index(self) -> str:
        return f"(e * {self.choice(['1', '3', '5', '7'])} + tid * {self.choice(['0', '1', '3'])})"

    def _word(self) -> str:
        return self._array("int", "words", WORDS, self._index())

    def _folded(self, kind: str, value: str) -> str:
        """Give the int of all bits of a value."""
        if "long" not in kind:
            return f"(int){value}"
        return f"[](unsigned long long q) {{ return (int)(q ^ q >> 32); }}({value})"

    def _shifts(self) -> str:
        """Draw a shift by any amount, of an expression or of a variable."""
        kind, operator = self.choice(INTEGERS), self.choice(["<<", ">>"])
        amount = self._array("int", "amounts", AMOUNTS, self._index())
        typed = self.choice(["int", "unsigned", "unsigned char", "long long"])
        start = f"({kind}){self._word()}"
        if "long" in kind:
            start = f"({kind})((unsigned long long){self._word()} << 31 ^ {self._word()})"
        function = "H_shl" if operator == "<<" else "H_shr"
        if self.chance(0.5):
            plain = f"whole(v {operator} ({typed}){amount})"
            shifted = self.both(plain, f"{function}(+v, ({typed}){amount})")
            return f"[&] {{ {kind} v = {start}; return {self._folded(kind, shifted)}; }}()"
        plain = f"v {operator}= ({typed}){amount}; v = ({kind})whole(v);"
        shifted = self.both(plain, f"v = ({kind}){function}(+v, ({typed}){amount});")
        return f"[&] {{ {kind} v = {start}; {shifted} return {self._folded(kind, 'v')}; }}()"

    def _conversions(self) -> str:
        """Draw a conversion of any number to an integer, by a cast or without a word."""
        kind, real = self.choice(INTEGERS), self.choice(["float", "double"])
        bits = self._array("long long", "numbers", tuple(f"(long long){n}" for n in NUMBERS),
                           self._index())  # fmt: skip
        operator = self.choice(["+", "-", "*"])
        plain, host = self.choice([
            (f"{kind} v = ({kind})x;", "x"), (f"{kind} v = static_cast<{kind}>(x);", "x"),
            (f"{kind} v = x;", "x"), (f"{kind} v; v = x;", "x"),
            (f"{kind} v = [&]() -> {kind} {{ return x; }}();", "x"),
            (f"{kind} v = 3; v {operator}= x;", f"3 {operator} x"),
            (f"{kind} v = tid & 1 ? x : 5;", "(tid & 1 ? x : 5)"),
        ])  # fmt: skip
        converted = self.both(f"{plain} v = ({kind})whole(v);", f"{kind} v = H_to<{kind}>({host});")
        return (f"[&] {{ const {real} x = ({real})__longlong_as_double({bits}); {converted}"
                f" return {self._folded(kind, 'v')}; }}()")  # fmt: skip

    def _intrinsics(self) -> str:
        """Draw a function of the hardware's."""
        a, b, c, d = (self._word() for _ in range(4))
        wide = "((unsigned long long)(unsigned){0} << 32 | (unsigned){1})"
        long, more = wide.format(a, b), wide.format(c, d)
        return self.choice(INTRINSICS).format(a=a, b=b, c=c, l=long, m=more)
