"""Kernels in which one statement changes a variable that is the same in all threads of a block.

What a rewriter misses there, nothing else in the kernel makes up for: the variable has the same
value before and behind it in each thread, and is kept across a barrier.
"""

from __future__ import annotations

from tests.oracle.draws import Scope, Variable
from tests.oracle.edges import Edges

HELPERS = """struct Keeps_{0} {{ int& at; FN operator int() const {{ return at ^= 1; }} }};
typedef int& Refers_{0};
template <class... A> FN void change_all_{0}(int by, A&... all) {{ ((all ^= by), ...); }}
template <class F> FN void apply_{0}(int& it, F f) {{ f(it); }}
template <class T> FN void bump_{0}(T& it, int by) {{ it ^= by; }}
FN int read_{0}(const int* it) {{ return *it ^ 1; }}
FN int& same_{0}(int& it) {{ return it; }}
struct Turns_{0} {{ int it; FN int operator<<(int by) {{ return it ^= by; }}
    FN int operator++() {{ return it ^= 4; }} FN int operator[](int by) {{ return it ^= by; }}
    FN int operator()(int by) {{ return it ^= by; }} FN void set(int by) {{ it ^= by; }}
    FN operator int() {{ return it ^= 2; }} FN Turns_{0}* operator->() {{ it ^= 8; return this; }}
    FN int& operator*() {{ return it; }} FN int operator~() {{ return it ^= 16; }}
    FN int* begin() {{ return &it; }} FN int* end() {{ return &it + 1; }}
    FN int shown() const {{ return it; }} }};
FN int operator%(Turns_{0}& of, int by) {{ return of.it ^= by; }}
FN int operator,(Turns_{0}& of, const Pair& by) {{ return of.it ^= by.a; }}"""


class Alone(Edges):
    """Draws kernels of one change."""

    def alone(self) -> None:
        """Draw what the threads of such a kernel do."""
        self.functions.append(HELPERS.format(self.seed))
        a, b = Variable(self.name(), "int"), Variable(self.name(), "int")
        kinds = ["int", "short", "unsigned char", "long long"]
        arrays = [Variable(self.name(), self.choice(kinds))] if self.chance(0.4) else []
        self.scope = Scope([a, b], arrays, [self.name()], [self.parameter], "data")
        turns = Variable(self.name(), f"Turns_{self.seed}")
        pair, self.scope.objects = self.scope.pairs[0], [turns]
        starts = [self.choice(self.scarce_starts()) for _ in range(4)]
        self.cuda(f"int {a.name} = {starts[0]}, {b.name} = {starts[1]};")
        self.cuda(f"Pair {pair} = made({starts[2]}, 3); {turns.kind} {turns.name}{{{starts[3]}}};")
        self.cuda("".join(f"{each.kind} {each.name}[8];" for each in arrays))
        if self.host:
            self.first += [f"{a.name} = {starts[0]}; {b.name} = {starts[1]};"]
            self.first += [f"{pair} = made({starts[2]}, 3); {turns.name}.it = {starts[3]};"]
        for each in arrays:
            self.first.append(f"LOOP(e, 8) {each.name}[e] = ({each.kind})(e * 5 + tid);")
        self.hold_locals()
        for _ in range(self.choice([1, 1, 2])):
            if arrays and self.chance(0.7):
                self.barrier()
                self.phase(self._loop_over(arrays[0]))
            self.barrier()
            self.phase(self._change(a.name, b.name, pair))
            self.barrier()
        self._show(a.name, b.name, pair)

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

    def _show(self, a: str, b: str, pair: str) -> None:
        """Write what a thread has."""
        values = [a, f"{b} * 3u", f"{pair}.a * 5u", f"{pair}.b * 7u"]
        values += [f"{each.name}.shown() * 9u" for each in self.scope.objects]
        values += [f"(unsigned){each.name}[{k}]" for each in self.scope.arrays for k in (0, 3, 7)]
        text = " ^ ".join(f"(unsigned)({each})" for each in values)
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
            f"const int {q} = same_{self.seed}({a})++; (void){q};",
        ]

    def _references(self, a: str, b: str, p: str, value: str, q: str) -> list[str]:
        """Give references and pointers."""
        change = f"{q} ^= {value};"
        return [
            f"{{ int& {q} = ((void){b}, {a}); {change} }}",
            f"{{ int* {q} = &{a}; *{change} }}",
            f"int& {q} = {a}; {change}",
            f"auto& {q} = {p}; {q}.a ^= {value};",
            f"{{ auto& [{q}, {q}_more] = {p}; {change} (void){q}_more; }}",
            f"{{ Refers_{self.seed} {q} = {a}; {change} }}",
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
            f"same_{self.seed}({a}) ^= {value};",
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
            f"[&] {{ {p}.add({value}); }}();",
            f"[&]() -> auto& {{ return {a}; }}() ^= {value};",
            f"{b} ^= [&](int by) {{ return {a} ^= by; }}({value});",
            f"{{ auto {q} = [&] {{ return [&] {{ {a} ^= {value}; }}; }}; {q}()(); }}",
            f"{{ auto {q} = [&, at = &{a}](int by) {{ *at ^= by; }}; {q}({value}); }}",
            f"{{ auto {q} = [](auto&... all) {{ ((all ^= 9), ...); }}; {q}({a}, {b}); }}",
            f"{{ auto {q} = [{a}]() mutable {{ {a} ^= 5; return {a}; }}; {b} ^= {q}(); }}",
            f"apply_{self.seed}({a}, [](int& it) {{ it ^= 3; }});",
            f"apply_{self.seed}({a}, [&](int it) {{ {b} ^= it; }});",
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
            f"{{ const Keeps_{self.seed} {q}{{{a}}}; {b} ^= {q} + 1; }}",
            f"{{ Keeps_{self.seed} {q}{{{a}}}; {q}.at ^= {value}; }}",
            f"(void)(Keeps_{self.seed}{{{a}}}.at ^= {value});",
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
            f"{t} = Turns_{self.seed}{{{value}}};",
        ]

    def _calls(self, a: str, b: str, p: str, value: str, q: str) -> list[str]:
        """Give calls."""
        n = self.seed
        return [
            f"store(&{a}, {value});",
            f"add_to({a}, {value});",
            f"exchange({a}, {b});",
            f"change_all_{n}({value}, {a}, {b});",
            f"bump_{n}({a}, {value});",
            f"bump_{n}<int>({p}.a, {value});",
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
            f"{b} ^= read_{self.seed}(&{a});",
            f"{{ Pair {q} = {p}; {q}.add({value}); {b} ^= {q}.a; }}",
            f"{{ auto [{q}, {q}_more] = {p}; {q} ^= 1; {b} ^= {q} ^ {q}_more; }}",
            f"{{ int {q} = {a}; {q} ^= {value}; {b} ^= {q}; }}",
        ]
