"""Statements in the less usual forms of the language, each of which changes a variable.

Both languages define them alike, so that they are one text for both sides.
"""

from __future__ import annotations

from tests.oracle.values import Values


class Forms(Values):
    """Draws statements that a rewriter may not expect."""

    def form(self) -> str:
        """Draw a statement that changes a variable of type int."""
        a, b, value = self.some_int(), self.some_int(), self.value(1)
        draw = self.choice([self.of_types, self.of_pointers, self.of_functions, self.of_jumps])
        return self.choice(draw(a, b, value, self.new("q")))

    def of_types(self, a: str, b: str, value: str, q: str) -> list[str]:
        """Give statements with types of their own."""
        return [
            (
                f"{{ union {{ int all; unsigned char few[4]; }} {q}; {q}.all = {value};"
                f" {a} ^= {q}.few[{b} & 3]; }}"
            ),
            (
                f"{{ struct Own {{ int a; short b; FN int both() const {{ return a ^ b; }} }} {q}"
                f" = {{{value}, 5}}; {a} ^= {q}.both(); }}"
            ),
            (
                f"{{ typedef unsigned short Word; using Int = int; Word {q} = (Word)({value});"
                f" {a} ^= (Int){q}; }}"
            ),
            f"{{ enum {{ ONE = 3, TWO = ONE + 4 }}; {a} ^= {b} & 1 ? ONE : TWO; }}",
            f"{{ bool {q} = {value}; {q} = !{q}; {q} |= {b} > 3; {a} ^= {q}; }}",
            (
                f"{{ long {q} = (long)({value}) * 3; unsigned long more = sizeof {q} +"
                f" (char)({value}); {a} ^= (int)({q} >> 2) ^ (int)more; }}"
            ),
            f"{{ int2 {q} = make_int2({value}, {b}); {q}.x ^= {q}.y; {a} ^= {q}.x; }}",
            (
                f"{{ uchar4 {q} = make_uchar4(({value}) & 255, {b} & 255, 3, 4); ++{q}.z;"
                f" {a} ^= {q}.x ^ {q}.y << 8 ^ {q}.z; }}"
            ),
            (
                f"{{ Grid {q} = {{{{{{1, 2, 3}}, {{4, 5, {b}}}}}}}; {q}({value}, {b}) ^= 9;"
                f" {a} ^= {q}(1, 2) ^ {q}[({value}) & 1]; }}"
            ),
            f"{{ Number {q}{{{value}}}; ++{q}; {q}++; {a} ^= {q} < Number{{{b}}} ? -{q} : {q}; }}",
            (
                f"{{ Outer {q} = {{made({value}, 3), {{{{1, 2, 3}}}}}}; {q}.inner.few[{b} & 1]"
                f" ^= 9; {q}.pair.add(2); {a} ^= {q}.inner.all() ^ {q}.pair.sum(); }}"
            ),
            f"{{ auto [{q}, more] = made({value}, {b}); {a} ^= {q} ^ more; }}",
            f"{{ const auto& {q} = made({value}, 2); {a} ^= {q}.sum(); }}",
            f"{a} ^= __float_as_int((float)({self.small(255)}));",
        ]

    def of_pointers(self, a: str, b: str, value: str, q: str) -> list[str]:
        """Give statements with pointers and arrays."""
        data = self.scope.data
        return [
            (f"{{ const int* {q} = {data} + (({value}) & 127); {a} ^= *{q}++;"
            f" {a} ^= {q}[{b} & 31]; }}"),
            (f"{{ Pair {q}[3] = {{made({value}, 1), made({b}, 2)}}; {q}[2] = {q}[{b} & 1];"
            f" {q}[({value}) & 1].add(3); {a} ^= {q}[2].sum() ^ {q}[0].a; }}"),
            (f"{{ int {q} = {value}, *p = &{q}, few[2] = {{{q}, 3}}; *p ^= few[1];"
            f" few[{b} & 1] = *p; {a} ^= {q} ^ few[0] ^ few[1]; }}"),
            f"{{ volatile int {q} = {value}; {q} = {q} ^ 3; {a} ^= {q}; }}",
            (f"{{ unsigned char {q}[8]; memcpy({q}, &{a}, 4); memset({q} + 4, {b} & 255, 4);"
            f" memcpy(&{a}, {q} + (({value}) & 4), 4); }}"),
            f"{{ static const short {q}[4] = {{1, -2, 300, 7}}; {a} ^= {q}[({value}) & 3]; }}",
            (f"{{ int {q}[2][2] = {{{{1, {value}}}, {{{b}, 4}}}}; int (&line)[2] = {q}[{b} & 1];"
            f" line[({value}) & 1] ^= 8; for (auto& e : {q}) {a} ^= e[0] ^ e[1]; }}"),
            (f"{{ Pair {q} = made({value}, {b}), *p = &{q}; p->a ^= 3; (*p).add(p->b); int Pair::*m"
            f" = {b} & 1 ? &Pair::a : &Pair::b; {a} ^= {q}.*m; }}"),
            (f"{{ short {q}[6] = {{1, 2, 3, 4, 5, 6}}; short* beyond = {q} + 6; for (short* p ="
             f" {q}; p != beyond; p += 2) *p ^= (short)({value}); {a} ^= {q}[{b} & 3] ^"
             f" (int)(beyond - {q}); }}"),
            f"(&{a})[0] ^= {value};", f"*({b} & 1 ? &{a} : &{b}) ^= 33;",
        ]  # fmt: skip

    def of_functions(self, a: str, b: str, value: str, q: str) -> list[str]:
        """Give statements that call."""
        return [
            (f"{{ auto {q} = [w = {value}]() mutable {{ w ^= 5; return w & 63; }};"
            f" {a} ^= {q}(); {a} ^= {q}() * 2; }}"),
            (f"{{ auto {q} = [](int p) {{ return [p](int r) {{ return p ^ r; }}; }};"
            f" {a} ^= {q}({value})({b}); }}"),
            f"{{ int (*{q})(int, int) = {b} & 1 ? mixed : blended; {a} ^= {q}({value}, 3); }}",
            f"{a} ^= stepped(mixed, {value}, {b}) ^ stepped(blended, 3, {a});",
            f"{a} ^= all_of({value}, (short)({b}), 7u);", f"{a} ^= all_of(5);",
            f"{a} ^= by_kind((long long)({value})) ^ by_kind((unsigned char)({b}));",
            f"{{ auto {q} = [&]() -> int& {{ return {a}; }}; {q}() ^= {value}; }}",
            f"{{ const Deed {q}({a}); {a} ^= {value}; }}",
            f"{a} ^= Counter<3, int>::start ^ Counted<5>::sum ^ Counted<0>::sum;",
            f"{a} ^= given({value}) ^ given({b}, 7);", f"{a} ^= nested::inner::deep({value});",
            f"{a} ^= (int)power<3>((unsigned)({value}));", f"{a} ^= Shape<int>().of({value});",
            f"{a} ^= Shape<short>().of({value}) ^ Shape<short>::side;",
        ]  # fmt: skip

    def of_jumps(self, a: str, b: str, value: str, q: str) -> list[str]:
        """Give statements that branch."""
        return [
            (f"{{ int {q} = ({value}) & 15; switch ({q} & 3) {{ case 0: do {{ {a} ^= {q}; case 3:"
            f" {a} ^= 21; case 2: {a} ^= {a} >> 7; case 1: --{q}; }} while ({q} > 0); }} }}"),
            (f"for (int {q} = 0, hi = ({value}) & 15; {q} < hi; ++{q}, --hi)"
            f" {a} ^= {self.scope.data}[{q} + hi * 3];"),
            f"for (int {q} = 0; {q} < 6; ++{q}) {{ if ({q} == ({b} & 7)) {q} += 2; {a} ^= {q}; }}",
            (f"{{ int {q} = 0; while (true) {{ if (++{q} > (({value}) & 7)) break; if ({q} & 1)"
            f" continue; {a} ^= {q} * 5; }} }}"),
            f"if (int {q} = {value}; {q} > {b}) {a} ^= {q}; else {a} ^= {q} & 7;",
            f"if (const int {q} = ({value}) & 12) {a} ^= {q};",
            (f"switch (const int {q} = ({value}) & 3; {q}) {{ case 1: {{ for (int e = 0; e < 3;"
            f" ++e) {{ if (e == {q}) break; {a} ^= e; }} }} [[fallthrough]]; case 2: {a} ^= 2; }}"),
            f"{a} ^= {b} > 3 ? {value} : {b} < -3 ? 7 : {b} ? 11 : 13;",
            f"if (threadIdx.x > 0 and not ({b} bitand 1)) {a} xor_eq {value};",
            f"do {{ if ({b} & 2) continue; {a} ^= 6; }} while (({a} ^= 1) & 1 && ({b} ^= 2) & 2);",
            f"{{ unsigned {q} = 5; for (; {q}; {q} &= {q} - 1) {a} ^= (int){q}; }}",
            (f"for (int {q} = 3; {q}-- > 0; {a} ^= {q}) if ({q} == ({b} & 1)) continue; else {b} ^="
            f" {value};"),
            f"if (({value}) > 5) if ({b} > 3) {a} ^= 2; else {a} ^= 4;",
            f"for (bool {q} = true; {q}; {q} = ({a} & 3) == 3) {a} ^= {b} | 1, {a} &= ~3;",
        ]  # fmt: skip
