"""Kernels of plain arithmetic on tables, which a compiler may turn into vectors.

Elsewhere most values are hidden from the compiler, so that each operation stays what it is; here
nothing is, so that what it makes of many together is tried as well.
"""

from __future__ import annotations

import re

from tests.oracle.draws import Scope
from tests.oracle.loans import Loans

ELEMENTS = ("int", "int", "unsigned", "short", "unsigned short", "signed char", "unsigned char",
            "long long", "bool")  # fmt: skip
NARROW = ("short", "unsigned short", "signed char", "unsigned char")
PLACES = 128  # of a table; a block has at most 100 threads
FOLDED = "r = (int)((unsigned)r <sum> (unsigned)(<int>));"
STATEMENTS = (
    "r = <int>;", "r ^= <int>;", FOLDED, "if (<truth>) r = <int>;", "r ^= <table>[<index>];",
    f"if (<truth>) {FOLDED} else r ^= <int>;", "r ^= <read>[<index>];",
    "const int* {i} = data + (<index>); r ^= *{i}++; r ^= {i}[<few>];", "r ^= <read>[<index>];",
    "for (int {i} = 0; {i} < 1 + <few>; ++{i}) { r ^= <table>[({i} + tid) & 63];" + FOLDED + "}",
    "for (int {i} = 0; {i} < 16; ++{i}) if (<truth> && <table>[{i} * 3] > {i}) r ^= {i};",
    "for (int {i} = 0; {i} < <n>; ++{i}) r += <table>[{i} & 63] <than> <few>;",
)  # fmt: skip
INDICES = (
    "(<truth>)",
    "(<truth>) + <few>",
    "(<truth>) * 2",
    "(<truth>) << <few> % 5",
    "(<truth>)",
    "tid % 32 + (<truth>)",
    "(<truth>) + (<truth>)",
    "((<truth>) ? <few> : tid & 15)",
    "(<int>) & 63",
)
COMPARISONS = ("<int> <than> <int>", "<int> <than> <few>", "!(<int>)",
               "reals[(tid + <few>) & 255] <than> 3.f")  # fmt: skip
TOGETHER = ("(<truth>) <joined> (<truth>)", "(<truth>) <joined> (<truth>)",
            "<n> > 9 && (<truth>)", "!(<truth>)")  # fmt: skip
INTS = (
    "(int)((unsigned)(<int>) <sum> (unsigned)(<int>))", "((<int>) <bits> (<int>))",
    "(int)((unsigned)(<int>) << <few>)", "((<int>) >> <few>)", "(<kind>)(<int>)",
    "(int)((unsigned)(<int>) >> <few>)", "((<int>) <than> (<int>) ? (<int>) : (<int>))",
    "((<truth>) ? (<int>) : (<int>))", "(<truth>)", "((<truth>) + (<int> & 255))",
    "-(<truth>)", "(int)((long long)(<int>) * (<int>) >> <few>)",
    "((<int>) / (((<int>) & 7) + 1))", "(((<int>) & 0xffff) % (((<int>) & 7) + 1))",
    "(<table>[<index>] & 0xffff)", "(int)((float)((<int>) & 1023) * 0.5f)",
)  # fmt: skip


class Vectors(Loans):
    """Draws kernels without a word that keeps a compiler from vectors."""

    tables: list[str]

    def vectors(self) -> None:
        """Draw the whole of a kernel."""
        self.scope, self.tables = Scope(), []
        for _ in range(self.random.randint(1, 3)):
            self._table(f"{self.new('table')}_{self.seed}", self.choice(ELEMENTS))
        for _ in range(self.random.randint(1, 2)):
            place = f"out[bid * {self.threads} + tid]"
            drawn = [self._statement() for _ in range(self.choice([1, 1, 1, 2, 3]))]
            start = self.choice(["0", "1", place])
            self.phase(f"{{ int r = {start}; {' '.join(drawn)} {place} = r; }}")
            if self.chance(0.3):
                self.barrier()

    def _table(self, name: str, kind: str) -> None:
        """Declare a table beside the kernel."""
        small = [str(self.random.randint(0, 3)) for _ in range(PLACES)]
        signed = [str(self.random.randint(-120, 120)) for _ in range(PLACES)]
        wide = [str(self.random.randint(-(2**31), 2**31 - 1)) for _ in range(PLACES)]
        values = self.choice([small, small, signed, wide])
        listed = ", ".join(f"({kind}){value}" for value in values)
        self.functions.append(f"DEVICE {kind} {name}[{PLACES}] = {{{listed}}};")
        self.tables.append(name)

    def _statement(self) -> str:
        """Draw a statement that changes r."""
        depth = self.choice([0, 0, 1, 1, 2])
        return self._filled(self.choice(STATEMENTS), depth).replace("{i}", self.new("i"))

    def _filled(self, text: str, depth: int) -> str:
        """Draw what stands at the places of a text."""
        draws = {
            "int": lambda: self._int(depth),
            "truth": lambda: self._truth(depth),
            "index": lambda: self._filled(self.choice(INDICES), depth - 1),
            "table": lambda: self.choice(self.tables),
            "read": lambda: self.choice([*self.tables, "data"]),
            "element": self._element,
            "n": lambda: self.parameter,
            "few": lambda: str(self.random.randint(0, 7)),
            "kind": lambda: self.choice(NARROW),
            "sum": lambda: self.choice(["+", "-", "*", "&", "|", "^"]),
            "bits": lambda: self.choice(["&", "|", "^"]),
            "than": lambda: self.choice(["<", ">", "<=", ">=", "==", "!="]),
            "joined": lambda: self.choice(["&&", "||", "&", "|", "^", "==", "!="]),
        }
        return re.sub(r"<(\w+)>", lambda place: draws[place[1]](), text)

    def _element(self) -> str:
        """Draw an element of a table or of the data: neighbours, strides, from the end."""
        table = self.choice([*self.tables, *self.tables, "data", "reals"])
        k = self.random.randint(1, 5)
        at = self.choice(["tid", "tid", f"tid * {k} & 63", f"tid + {k}", "127 - tid", str(k)])
        return f"(int){table}[{at}]"

    def _truth(self, depth: int) -> str:
        """Draw a comparison, or several together."""
        small = depth <= 0 or self.chance(0.4)
        return self._filled(self.choice(COMPARISONS if small else TOGETHER), depth - 1)

    def _int(self, depth: int) -> str:
        """Draw an int that is defined whatever its operands are."""
        if depth <= 0:
            leaf = ["tid", self.parameter, str(self.random.randint(-9, 99))]
            return self.choice([*(self._element() for _ in range(3)), *leaf])
        return self._filled(self.choice(INTS), depth - 1)
