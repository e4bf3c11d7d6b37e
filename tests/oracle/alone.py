"""Kernels in which one statement changes a variable that is the same in all threads of a block.

What a rewriter misses there, nothing else in the kernel makes up for: the variable has the same
value before and behind it in each thread, is kept across barriers, and no other statement has it.
A kernel has some such statements.
"""

from __future__ import annotations

import re

from tests.oracle.draws import Scope, Variable
from tests.oracle.edges import Edges


class Alone(Edges):
    """Draws kernels of one change."""

    def alone(self) -> None:
        """Draw what the threads of such a kernel do: some changes, each of variables of its own."""
        kinds = ["int", "short", "unsigned char", "long long"]
        arrays = [Variable(self.name(), self.choice(kinds))] if self.chance(0.3) else []
        everything = Scope(arrays=arrays, values=[self.parameter])
        changes = [self._with_variables(everything) for _ in range(self.random.randint(3, 6))]
        self.scope = everything
        self.cuda("".join(f"{each.kind} {each.name}[8];" for each in arrays))
        for each in arrays:
            self.first.append(f"LOOP(e, 8) {each.name}[e] = ({each.kind})(e * 5 + tid);")
        self.hold_locals()
        if arrays:
            self.barrier()
            self.phase(self._loop_over(arrays[0]))
        for change in changes:
            self.barrier()
            self.phase(change)
        self.barrier()
        self._show()

    def _with_variables(self, everything: Scope) -> str:
        """Draw a change, and declare the variables that it names: the same in all threads."""
        a, b, pair, turns = (self.name() for _ in range(4))
        self.scope = Scope(values=[self.parameter], objects=[Variable(turns, "")])
        change = self._change(a, b, pair)
        named = set(re.findall(r"\w+", change))
        for name in (each for each in (a, b) if each in named):
            start = self.choice(self.scarce_starts())
            self.cuda(f"int {name} = {start};")
            self.first += [f"{name} = {start};"] if self.host else []
            everything.variables.append(Variable(name, "int"))
        if pair in named:
            start = f"made({self.choice(self.scarce_starts())}, 3)"
            self.cuda(f"Pair {pair} = {start};")
            self.first += [f"{pair} = {start};"] if self.host else []
            everything.pairs.append(pair)
        if turns in named:
            kind, start = "Turns", self.choice(self.scarce_starts())
            self.cuda(f"{kind} {turns}{{{start}}};")
            self.first += [f"{turns}.it = {start};"] if self.host else []
            everything.objects.append(Variable(turns, kind))
        return change

    def hold_locals(self) -> None:
        """Write where the host function keeps the variables of all threads."""
        scope = self.scope
        if self.host:
            variables = [*scope.variables, *scope.objects]
            fields = "".join(f" {v.kind} {v.name};" for v in variables)
            fields += "".join(f" {a.kind} {a.name}[8];" for a in scope.arrays)
            fields += "".join(f" Pair {name};" for name in scope.pairs)
            self.top += [f"struct H_Locals {{{fields} }}; static H_Locals H_s[128];",
                         "static long long H_got[128]; static int H_in[128]; int H_uniform = 0;",
                         "(void)H_got; (void)H_in; (void)H_uniform;"]  # fmt: skip
        self.lines.append("H_FIRST")

    def _loop_over(self, array: Variable) -> str:
        """Draw a loop that changes the elements of a thread's array."""
        i, kind, name = self.new("i"), array.kind, array.name
        value = self.choice([f"{i} + tid", f"{name}[({i} + 1) & 7] ^ {i}", "tid * 3"])
        return self.choice([
            f"for (int {i} = 0; {i} < 8; ++{i}) {name}[{i}] = ({kind})({value});",
            f"for (int {i} = 7; {i} >= 0; {i} -= 2) {name}[{i}] = ({kind})({name}[{i}] ^ {i});",
            f"int {i} = tid & 7; while ({i} < 8) {{ {name}[{i}] = ({kind})({value}); ++{i}; }}",
        ])  # fmt: skip

    def _show(self) -> None:
        """Write what a thread has."""
        values = [each.name for each in self.scope.variables]
        values += [f"{name}.{part}" for name in self.scope.pairs for part in "ab"]
        values += [f"{each.name}.shown()" for each in self.scope.objects]
        values += [f"{each.name}[{k}]" for each in self.scope.arrays for k in (0, 3, 7)]
        text = " ^ ".join(f"(unsigned)({v}) * {2 * i + 1}u" for i, v in enumerate(values))
        self.phase(f"out[bid * {self.threads} + tid] = (int)({text});")

    def _change(self, a: str, b: str, p: str) -> str:
        """Draw a statement."""
        uniform = ["5", "1", f"({self.parameter} & 7)", "((int)blockIdx.x + 3)", "(data[3] & 255)"]
        value = self.choice(uniform) if self.chance(0.7) else "tid"
        draws = [self._declarations, self._references, self._lambdas, self._objects,
                 self._operators, self._calls, self._inside, self._not_changed]  # fmt: skip
        return self.choice(self.choice(draws)(a, b, p, value, self.new("q")))

    def _declarations(self, a: str, b: str, p: str, value: str, q: str) -> list[str]:
        """Give declarations that change another variable."""
        return [
            f"int {q} = ({a} ^= {value}) + 1; (void){q};",
            f"const int {q} = {a}++; (void){q};",
            f"int {q} = 1, {q}_more = ({a} ^= {value}); (void){q}; (void){q}_more;",
            f"const int {q}(({a} ^= {value})), {q}_more = {q}; (void){q}_more;",
            f"int {q}{{{a} ^= {value}}}; {b} ^= {q};",
            f"const Pair {q} = made({a} ^= 3, 1); (void){q};",
            f"int {q}[2] = {{{a} ^= {value}, 3}}; (void){q};",
            f"Pair {q}{{{a} ^= 3, 4}}; (void){q};",
            f"const int {q} = {p}.scaled(3).a; (void){q};",
            f"bool {q} = ({p} += {value}).a; (void){q};",
            f"const int {q} = [&] {{ return {a} ^= {value}; }}(); (void){q};",
            f"const int {q} = same_as({a})++; (void){q};",
        ]

    def _references(self, a: str, b: str, p: str, value: str, q: str) -> list[str]:
        """Give references and pointers."""
        change = f"{q} ^= {value};"
        return [
            f"{{ int& {q} = ((void){b}, {a}); {change} }}",
            f"{{ int& {q} = ({b} ^= 1, {a}); {change} }}",
            f"*&((void){b}, {a}) ^= {value};",
            f"same_as(({b} ^= 3, {a})) ^= {value};",
            f"{{ int* {q} = &{a}; *{change} }}",
            f"int& {q} = {a}; {change}",
            f"auto& {q} = {p}; {q}.a ^= {value};",
            f"{{ auto& [{q}, {q}_more] = {p}; {change} (void){q}_more; }}",
            f"{{ Refers {q} = {a}; {change} }}",
            f"{{ using R = int&; R {q} = {a}; {change} }}",
            f"{{ auto&& {q} = {a}; {change} }}",
            f"{{ decltype(auto) {q} = ({a}); {change} }}",
            f"{{ decltype(({a})) {q} = {a}; {change} }}",
            f"{{ const int& {q} = {a}; const_cast<int&>({q}) ^= {value}; }}",
            f"static_cast<int&>({a}) ^= {value};",
            f"(int&){a} ^= {value};",
            f"{{ int* {q}_at = &{a}; int** {q} = &{q}_at; **{change} }}",
            f"for (int* {q} = &{a}; {q}; {q} = nullptr) *{q} ^= {value};",
            f"*&{a} ^= {value};",
            f"{{ int Pair::*{q} = &Pair::a; {p}.*{q} ^= {value}; }}",
            f"(&{p})->add({value});",
            f"{{ Pair* {q} = &{p}; {q}->b ^= {value}; }}",
            f"same_as({a}) ^= {value};",
            f"{{ int* {q}[2] = {{&{a}, &{b}}}; *{q}[{value} & 1] ^= 3; }}",
            f"{{ struct Own {{ int& at; }} {q}{{{a}}}; {q}.at ^= {value}; }}",
            f"memcpy(&{a}, &{b}, 2);",
            f"memset(&{p}, 1, 3);",
            f"{p}.a ^= {value};",
            f"{{ unsigned& {q} = (unsigned&){a}; {change} }}",
            f"{{ unsigned char* {q} = (unsigned char*)&{a}; {q}[1] ^= {value}; }}",
        ]

    def _lambdas(self, a: str, b: str, p: str, value: str, q: str) -> list[str]:
        """Give lambda expressions."""
        return [
            f"{{ auto {q} = [](int& it) {{ it ^= 6; }}; {q}({a}); }}",
            f"[&, &{q} = {a}] {{ {q} ^= {value}; }}();",
            f"[&{a}] {{ {a} ^= 9; }}();",
            f"[&]() -> int& {{ return {a}; }}() ^= {value};",
            f"[&]() -> int& {{ return {b} ^= 1, {a}; }}() ^= {value};",
            f"[&] {{ {p}.add({value}); }}();",
            f"[&]() -> auto& {{ return {a}; }}() ^= {value};",
            f"{b} ^= [&](int by) {{ return {a} ^= by; }}({value});",
            f"{{ auto {q} = [&] {{ return [&] {{ {a} ^= {value}; }}; }}; {q}()(); }}",
            f"{{ auto {q} = [&, at = &{a}](int by) {{ *at ^= by; }}; {q}({value}); }}",
            f"{{ auto {q} = [](auto&... all) {{ ((all ^= 9), ...); }}; {q}({a}, {b}); }}",
            f"{{ auto {q} = [{a}]() mutable {{ {a} ^= 5; return {a}; }}; {b} ^= {q}(); }}",
            f"apply_to({a}, [](int& it) {{ it ^= 3; }});",
            f"apply_to({a}, [&](int it) {{ {b} ^= it; }});",
        ]

    def _objects(self, a: str, b: str, p: str, value: str, q: str) -> list[str]:
        """Give objects that change others, and those that are changed as a whole."""
        return [
            f"{p} += {value};",
            f"{p}.add({value});",
            f"{p}.scaled(3);",
            f"({p} += 1) += {value};",
            f"{{ Deed {q}({a}); }}",
            f"(void)Deed({a});",
            f"delete new Deed({a});",
            f"{{ const Keeps {q}{{{a}}}; {b} ^= {q} + 1; }}",
            f"{{ Keeps {q}{{{a}}}; {q}.at ^= {value}; }}",
            f"(void)(Keeps{{{a}}}.at ^= {value});",
            f"{{ Pair {q} = {p}; {q} += 1; {p} = {q}; }}",
            f"{p} = made({value}, {a});",
            f"{{ Pair {q} = made(1, 2); exchange({p}, {q}); }}",
            f"{p} = {p} + made(1, {value});",
        ]

    def _operators(self, _: str, b: str, p: str, value: str, q: str) -> list[str]:
        """Give operators and methods that change an object."""
        t = self.scope.objects[0].name
        return [
            f"{b} ^= {t} << {value};",
            f"++{t};",
            f"{b} ^= {t}[{value}];",
            f"{b} ^= {t}({value});",
            f"{t}.set({value});",
            f"{b} ^= {t};",
            f"{b} ^= 1 + {t};",
            f"{b} ^= (int){t};",
            f"{t}->set({value});",
            f"*{t} ^= {value};",
            f"{b} ^= ~{t};",
            f"for (int& {q} : {t}) {q} ^= {value};",
            f"{b} ^= {t} % {value};",
            f"{b} ^= ({t}, {p});",
            f"if ({t}) {b} ^= 1;",
            f"{b} ^= mixed({t}, 3);",
            f"{{ int {q} = {t}; {b} ^= {q}; }}",
            f"{b} ^= {t}.shown();",
            f"{{ auto& {q} = {t}; {q}.it ^= {value}; }}",
            f"{{ auto {q} = {t}; {q}.it ^= {value}; {b} ^= {q}.it; }}",
            f"{t} = Turns{{{value}}};",
        ]

    def _calls(self, a: str, b: str, p: str, value: str, q: str) -> list[str]:
        """Give calls."""
        return [
            f"store(&{a}, {value});",
            f"add_to({a}, {value});",
            f"add_to(((void){b}, {a}), {value});",
            f"exchange({a}, {b});",
            f"change_all({value}, {a}, {b});",
            f"bump_it({a}, {value});",
            f"bump_it<int>({p}.a, {value});",
            f"add_to({p}.b, {value});",
            f"BUMP({a}, {value});",
            f"{b} ^= mixed({a} ^= {value}, 2);",
            f"{b} ^= twice<int>({a}++) & 7;",
            f"{{ int (*{q})(int, int) = mixed; {b} ^= {q}({a} ^= 1, 2); }}",
            f"{{ void (*{q})(int&, int) = add_to; {q}({a}, {value}); }}",
        ]

    def _inside(self, a: str, b: str, p: str, value: str, q: str) -> list[str]:
        """Give changes inside of expressions and of the heads of statements."""
        return [
            f"++{a};",
            f"{a} = {b} = {value};",
            f"++{p}.a;",
            f"{b} ^= {p}.b--;",
            f"({a} = {value}) ^= 3;",
            f"++{a} ^= 4;",
            f"switch ({a} ^= {value}) {{ default: {b} ^= 2; }}",
            f"{a} xor_eq {value};",
            f"while (({a} ^= 1) & 1) {b} ^= 2;",
            f"do {b} ^= 1; while (({a} ^= 1) & 1);",
            f"{b} ^= {a}++ & 1;",
            f"{b} = ({a} ^= 3, {value});",
            f"{b} ^= data[({a} ^= {value}) & 255];",
            f"for (int {q} = 0; {q} < 2; ++{q}, {a} ^= {q}) {b} ^= 1;",
            f"{value} & 1 ? (void)({a} ^= 1) : (void)({b} ^= 1);",
            f"{b} ^= {value} & 1 ? {a}++ : 3;",
            f"({value} & 1 ? {a} : {b}) ^= 9;",
            f"({value} & 1 ? ({b} ^= 1, {a}) : {b}) ^= 9;",
            f"({value} && ({a} ^= 3)) ? (void)0 : (void){b}++;",
            f"if (({a} ^= {value}) & 1) {b} ^= 2;",
            f"if ({a} ^= {value}; {b} < 99) {b} ^= 4;",
            f"for (int {q} = ({a} ^= {value}) & 1; {q} < 2; ++{q}) {b} ^= 2;",
            (
                f"{{ int {q}_of[2] = {{1, 2}}; for (int& {q} : {q}_of) {q} ^= {a} ^= 1;"
                f" {b} ^= {q}_of[0]; }}"
            ),
        ]

    def _not_changed(self, a: str, b: str, p: str, value: str, q: str) -> list[str]:
        """Give what looks like a change of a variable and is none."""
        return [
            f"{b} ^= (int)sizeof({a} ^= 1);",
            f"{b} ^= noexcept({a} ^= 1);",
            f"{b} ^= true || ({a} ^= 1);",
            f"{{ decltype({a} ^= 1) {q} = {b}; {q} ^= {value}; }}",
            f"{{ int {a} = 3; {a} ^= {value}; {b} ^= {a}; }}",
            f"{b} ^= read_only(&{a});",
            f"{{ Pair {q} = {p}; {q}.add({value}); {b} ^= {q}.a; }}",
            f"{{ auto [{q}, {q}_more] = {p}; {q} ^= 1; {b} ^= {q} ^ {q}_more; }}",
            f"{{ int {q} = {a}; {q} ^= {value}; {b} ^= {q}; }}",
        ]
