"""Kernels in which pointers, references and objects lead to a thread's variables beyond a barrier.

The text names a variable only before the barrier; the host function knows no pointers, it keeps the
values. So whoever lets go of a variable with its last name is found out.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.oracle.alone import Alone
from tests.oracle.draws import Scope, Variable


class Loan(NamedTuple):
    """How something leads to a variable X: its declaration, what it reads, and X's value there."""

    declares: str
    reads: str
    value: str


OF_INTS = (
    Loan("const int* P = &X;", "*P", "X"),
    Loan("const int* const P = address(X);", "*P", "X"),
    Loan("auto P = address(X);", "P[0]", "X"),
    Loan("const int& P = X;", "P", "X"),
    Loan("auto& P = X;", "P", "X"),
    Loan("Borrowed P = {&X, K};", "P.read()", "X ^ K"),
    Loan("const Borrowed P{address(X), K};", "P.read()", "X ^ K"),
    Loan("Referring P = {X};", "P.to", "X"),
    Loan("const int* P; point(&P, X);", "*P", "X"),
    Loan("const int* P; P = &X;", "*P", "X"),
    Loan("const int* P = nullptr; if (tid >= 0) P = &X;", "*P", "X"),
    Loan("const int* P[2]; P[0] = &X, P[1] = address(X);", "*P[tid & 1]", "X"),
    Loan("Borrowed P = {nullptr, K}; Borrowed* P_of = &P; P_of->to = &X;", "P.read()", "X ^ K"),
    Loan("const int P_other = K; const int& P = one_of(X, P_other, tid & 1);", "P",
         "(tid & 1 ? K : X)"),
    Loan("const int P_other = tid; const int& P = tid & 1 ? X : P_other;", "P",
         "(tid & 1 ? X : tid)"),
    Loan("const int* P_first = &X; const int* const* P = &P_first;", "**P", "X"),
    Loan("const int* P_first = &X; const int* P = P_first;", "*P", "X"),
    Loan("struct { const int* at[2]; } P; P.at[1] = &X;", "*P.at[1]", "X"),
    Loan("", "met(X)", "X"),
    Loan("", "met_any(X)", "X"),
    Loan("const int& P = X;", "met(P)", "X"),
    Loan("", "met_at(&X, 0)", "X"),
    Loan("const int P = met(X);", "add(P, X)", "add(X, X)"),
    Loan("const int P = met_any(X);", "add(P, X)", "add(X, X)"),
    Loan("const int P = met_at(&X, 0);", "add(P, X)", "add(X, X)"),
)  # fmt: skip
OF_ARRAYS = (
    Loan("const int* P = X;", "P[K]", "X[K]"),
    Loan("auto P = X;", "*(P + K)", "X[K]"),
    Loan("const int* P = X + 1;", "P[2]", "X[3]"),
    Loan("const int* P = &X[tid & 3];", "P[K]", "X[(tid & 3) + K]"),
    Loan("const int (&P)[8] = X;", "P[K]", "X[K]"),
    Loan("int* P = X; P[K] ^= 9;", "P[K]", "(X[K] ^ 9)"),
    Loan("const int& P = X[tid & 7];", "P", "X[tid & 7]"),
    Loan("Borrowed P = {X, K};", "P.read()", "X[0] ^ K"),
    Loan("", "met_at(X, K)", "X[K]"),
    Loan("", "met_at(X + 2, 1)", "X[3]"),
    Loan("", "met(X[K])", "X[K]"),
)
OF_CELLS = (
    Loan("const int* P = X.list;", "P[1]", "add(X, 1)"),
    Loan("const int* P = X.all();", "P[2]", "add(X, 2)"),
    Loan("const int& P = X.second();", "P", "add(X, 1)"),
    Loan("const int& P = X.one;", "P", "add(X, 3)"),
    Loan("const Cells& P = X;", "P.one ^ P.list[1]", "add(X, 3) ^ add(X, 1)"),
    Loan("const auto* P = &X;", "P->list[2]", "add(X, 2)"),
    Loan("", "met_cells(X, 2)", "add(X, 3) ^ add(X, 2)"),
    Loan("", "met_at(X.list, 1)", "add(X, 1)"),
    Loan("", "met(X.one)", "add(X, 3)"),
    Loan("int Cells::* P_at = &Cells::one; const int& P = X.*P_at;", "P", "add(X, 3)"),
    Loan("const int P = met(X.one);", "add(P, X.one)", "add(add(X, 3), add(X, 3))"),
    Loan("const int P = met_cells(X, 2);", "P ^ X.one", "add(X, 2)"),
)
# What is done to a variable through something else, before the barrier: X is read behind it.
OF_CHANGES = (
    Loan("int Cells::* P = &Cells::one; raise_by(X.*P, 5);", "X.one", "add(X, 8)"),
    Loan("int Cells::* P_at = &Cells::one; int& P = X.*P_at; P = add(P, 5);", "X.one", "add(X, 8)"),
    Loan("auto& [P_list, P] = X; P = add(P, 5);", "X.one", "add(X, 8)"),
    Loan("auto&& [P_list, P] = X; P_list[1] = 9;", "X.list[1]", "(9 + 0 * X)"),
    Loan("X(5);", "X.one", "add(X, 8)"),
    Loan("const int P = X(5);", "X.one ^ P", "(add(X, 8) ^ add(X, 8))"),
    Loan("X << 5;", "X.one", "add(X, 8)"),
    Loan("X << 5 << tid;", "X.one", "add(add(X, 8), tid)"),
    Loan("5 >> X;", "X.one", "add(X, 8)"),
    Loan("-X;", "X.one", "add(X, 8)"),
    Loan("X.raise(5);", "X.one", "add(X, 8)"),
    Loan("auto P = [&] { X.one = add(X.one, 5); }; P();", "X.one", "add(X, 8)"),
)
# What raises the second of an object's two numbers by B: X is its value before.
OF_FEW = (
    "auto& [P_one, P] = X; P = add(P, B);",
    "auto&& [P_one, P] = X; P = add(P, B);",
    "auto [P_one, P] = X; X.two = add(P, B);",
    "int Few::* P = &Few::two; raise_by(X.*P, B);",
    "int Few::* P_at = &Few::two; int& P = X.*P_at; P = add(P, B);",
    "int Few::* P = &Few::two; X.*P = add(X.*P, B);",
    "int Few::* P_at = &Few::two; Few* P = &X; P->*P_at = add(P->*P_at, B);",
    "X(B);",
    "const int P = X(B); wiped(P);",
    "wiped(X(B));",
    "X += B;",
    "X << B;",
    "B >> X;",
    "const int P = B >> X; wiped(P);",
    "X.raise(B);",
    "(&X)->raise(B);",
    "Few P{0, B}; P <<= X;",
    "raise_few(X, B);",
    "raise_by(X.two, B);",
    "auto P = [&] { X.two = add(X.two, B); }; P();",
    "auto P = [&X](int P_by) { X.two = add(X.two, P_by); }; P(B);",
    "[&] { X << B; }();",
    "Few* P = &X; P->two = add(P->two, B);",
    "Few& P = X; P.raise(B);",
    "auto& P = X.two; P = add(P, B);",
    "int* P = &X.two; *P = add(*P, B);",
    "void (Few::*P)(int) = &Few::raise; (X.*P)(B);",
    "void (*P)(Few&, int) = raise_few; P(X, B);",
    "X = Few{X.one, add(X.two, B)};",
    "Few P = X; P.raise(B); X = P;",
)
AMOUNTS = ("5", "5", "tid", "(tid & 1)")
LOANS = {"int": OF_INTS, "array": OF_ARRAYS, "cells": OF_CELLS, "changed": OF_CHANGES}


class Loans(Alone):
    """Draws kernels of loans."""

    def lent(self) -> None:
        """Draw what the threads of such a kernel do: some loans, one after another."""
        total = self.name()
        self.scope = Scope([Variable(total, "int")], values=[self.parameter])
        self.cuda(f"int {total} = 0;")
        self.first += [f"{total} = 0;"] if self.host else []
        loans = [self._drawn() for _ in range(self.random.randint(2, 4))]
        self.hold_locals()
        for begins, cuda, ends, host in loans:
            self.lines.append(begins)
            self.cuda(cuda[0])
            self.barrier()
            self.phase(
                self.both("", host[0]) + f"{total} = add({total} * 3u,"
                f" {self.both(cuda[1], host[1])});"
            )
            self.lines.append(ends)
        self.barrier()
        self.phase(f"out[bid * {self.threads} + tid] = {total};")

    def _drawn(self) -> tuple[str, tuple[str, str], str, tuple[str, str]]:
        """A loan's loop, if any, and for each side its declarations and what is read of it."""
        x, p, k = self.name(), self.name(), str(self.random.randint(0, 4))
        same = ["7", self.parameter, "data[3]"]  # for all threads: such a variable may be shared
        value = self.choice(["tid * 3 + 1", "(data[tid & 255] ^ tid)", "2 * tid", *same,
                             f"({self.parameter} ^ tid)", "data[(tid + 5) & 255]"])  # fmt: skip
        i = self.new("r")
        begins, ends = self.choice([("", ""), ("", ""), ("{", "}"),
                                    (f"for (int {i} = 0; {i} < 2; ++{i}) {{", "}")])  # fmt: skip
        if self.has_few:
            cuda, host = self._raised(x, p, value)
            return begins, cuda, ends, host
        const = self.choice(["const ", "const ", ""])
        kind = self.choice(list(LOANS))
        loan = self.choice(LOANS[kind])
        declared = {
            "int": f"{const}int X = {value};",
            "array": f"int X[8]; LOOP(e, 8) X[e] = {value} ^ e;",
            "cells": f"{const}Cells X = cells({value});",
            "changed": f"Cells X = cells({value});",
        }[kind]
        host = f"LOOP(e, 8) X[e] = {value} ^ e;" if kind == "array" else f"X = {value};"
        (self.scope.arrays if kind == "array" else self.scope.variables).append(Variable(x, "int"))

        def named(text: str) -> str:
            text = re.sub(r"\bP_(\w+)", rf"{p}_\1", text)
            for letter, word in (("P", p), ("X", x), ("K", k)):
                text = re.sub(rf"\b{letter}\b", word, text)
            return text

        first = f"{declared} {loan.declares}"
        wipes = f"wiped({loan.reads});" if "met" not in loan.reads else ""
        cuda = named(f"{first} {wipes}"), named(loan.reads)
        return begins, cuda, ends, (named(host), named(loan.value))

    def _raised(self, x: str, p: str, value: str) -> tuple[tuple[str, str], tuple[str, str]]:
        """An object whose number is raised before the barrier, by some threads or by all."""
        self.scope.variables.append(Variable(x, "int"))
        by, some = self.choice(AMOUNTS), self.choice(["", "", "tid & 2", "tid < 3"])
        words = {"X": x, "B": by, "P": p, "P_one": f"{p}_one", "P_at": f"{p}_at", "P_by": f"{p}_by"}
        raised = re.sub(r"\b[XBP](_\w+)?\b", lambda word: words[word[0]], self.choice(OF_FEW))
        made = self.choice([f"Few {x}{{3, {value}}};", f"Few {x} = {{3, {value}}};"])
        cuda = f"{made} {f'if ({some}) {{ {raised} }}' if some else raised}"
        after = f"({some} ? add({x}, {by}) : {x})" if some else f"add({x}, {by})"
        return (cuda, f"{x}.two ^ {x}.one"), (f"{x} = {value};", f"{after} ^ 3")
