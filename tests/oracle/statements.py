"""Statements of one thread: assignments, branches, loops that end, jumps."""

from __future__ import annotations

from tests.oracle.draws import INTEGERS, NARROW, Scope, Variable
from tests.oracle.forms import Forms


class Statements(Forms):
    """Draws statements."""

    def guard(self) -> str:
        """Draw a condition, perhaps one that changes something."""
        which, limit = self.random.randrange(4), self.random.randint(1, 40)
        ints = self.ints()
        name, other = self.choice(ints), self.choice(ints)
        naturals = [v.name for v in self.scope.variables if v.kind == "unsigned"]
        changing = f"({name} ^= {limit}) & 1"
        if naturals:
            natural = self.choice(naturals)
            changing = self.choice(
                [
                    changing,
                    f"{natural}++ & 1",
                    f"--{natural} % 3 == 1",
                    f"(++{natural}, {natural}) & 2",
                ]
            )
        scope = self.scope
        bound = self.choice(scope.values) if scope.values else str(limit)
        return self.choice([
            f"threadIdx.x == {which}", "!threadIdx.x", "threadIdx.x < 1", f"threadIdx.x < {limit}",
            "threadIdx.x == blockDim.x - 1", f"threadIdx.x != {which}", f"!(threadIdx.x & {which})",
            f"threadIdx.x % 3 == {which % 3}", f"({self.value(1)}) > ({self.atom()})", changing,
            f"(int)threadIdx.x >= {bound} / 2", f"blockIdx.x == 0 && threadIdx.x == {which}",
            f"{name} & {1 << which}", f"{name} < {other}", f"!{name}",
            f"({self.value(1)}) == {which}",
            f"threadIdx.x > {which} || ({changing})", f"({changing}) && {other} > {which}",
        ])  # fmt: skip

    # Assignments --------------------------------------------------------------------------------

    def typed(self, kind: str, depth: int = 2) -> str:
        """Draw a value for a variable of this type."""
        if kind in ("float", "double"):
            return f"({kind})({self.small(4095)})"
        if kind in ("unsigned", "unsigned long long"):
            return (self.natural if kind == "unsigned" else self.wide)(min(depth, 1))
        return f"({kind})({self.value(depth)})" if self.chance(0.5) else self.value(depth)

    def assigned(self) -> str:
        """Draw a statement that changes a local variable."""
        if self.has_warps and self.chance(0.15):
            return self.beyond()
        scope = self.scope
        variables = [*scope.variables, *scope.variables]
        variables += [Variable(self.element(a), a.kind) for a in scope.arrays]
        variables += [Variable(f"{name}.b", "int") for name in scope.pairs]
        target = self.choice(variables)
        kind = self.random.random()
        if kind < 0.3:
            return f"{target.name} = {self.typed(target.kind)};"
        if kind < 0.75:
            return self.compound(target)
        if kind < 0.85 and scope.pairs:
            pair = self.choice(scope.pairs)
            return self.choice([
                f"{pair}.add({self.value(1)});", f"{pair} = made({self.value(1)}, {self.atom()});",
                f"{pair} += {self.value(1)};",
                f"{{ Pair copy = {pair}; copy.a ^= 3; {pair} = copy; }}",
                f"{pair}.scaled({self.small(7)}).add({self.atom()});",
            ])  # fmt: skip
        return self.form() if self.chance(0.4) else self.indirect()

    def beyond(self) -> str:
        """Draw a shift or a conversion that a narrower or wider type would make another one of."""
        name, other = self.some_int(), self.some_int()
        number = f"__int_as_float(specials[{other} & 7])"
        amount, kind = (
            f"whole(32 + ({other} & 31))",
            self.choice(["long long", "unsigned long long"]),
        )
        return self.choice([
            self.both(f"{name} += {number}; {name} = whole({name});",
                      f"{name} = H_to<int>({name} + {number});"),
            self.both(f"{name} ^= (int)(whole(({kind})({number})) >> 34);",
                      f"{name} ^= (int)(H_to<{kind}>({number}) >> 34);"),
            self.both(f"{name} ^= (int)whole((unsigned)({name}) >> {amount});",
                      f"{name} ^= (int)whole(H_shr((unsigned)({name}), {amount}));"),
            self.both(f"{name} ^= (int)whole((unsigned)({name}) << {amount});",
                      f"{name} ^= (int)whole(H_shl((unsigned)({name}), {amount}));"),
        ])  # fmt: skip

    def compound(self, target: Variable) -> str:
        """Draw a compound assignment; nothing overflows that must not."""
        name, kind = target.name, target.kind
        value = self.value(1)
        if kind in ("float", "double"):
            suffix = "f" if kind == "float" else ""
            return self.choice(
                [
                    f"{name} += ({kind})({self.small(255)});",
                    f"{name} *= 0.5{suffix};",
                    f"{name} -= {self.small(255)};",
                    f"{name} /= {self.small(7)} + 1;",
                ]
            )
        if self.chance(0.25):
            operator, width = self.choice(["<<", ">>"]), 127 if "long" in kind else 63
            amount, function = self.amount(width), "H_shl" if operator == "<<" else "H_shr"
            plain = f"{name} {operator}= {amount};"
            host = f"{name} = ({kind}){function}(+{name}, {amount});"
            return f"{self.both(plain, host)} {name} = ({kind})whole({name});"
        if self.chance(0.1):
            number = self.unknown("float")
            return self.both(f"{name} = {number};", f"{name} = H_to<{kind}>({number});")
        operator = self.choice(["+", "-", "*"])
        if kind in ("int", "long long"):  # signed: in small numbers only
            sums = f"{name} &= 0xffffff; {name} {operator}= {self.small(63)};"
        elif kind.startswith("unsigned") and kind not in NARROW:
            sums = f"{name} {operator}= {value};"
        else:
            sums = f"{name} {operator}= ({value}) & 0x7fff;"
        return self.choice([
            sums, sums, f"{name} ^= {value};", f"{name} &= {value};", f"{name} |= {value};",
            f"{name} /= {self.small(15)} + 1;", f"{name} %= {self.small(15)} + 2;",
            f"{name} ^= {name} >> 3;",
        ])  # fmt: skip

    def indirect(self) -> str:
        """Draw a statement that changes a variable of type int in another way."""
        name, other, value = self.some_int(), self.some_int(), self.value(1)
        hidden, number = self.new("p"), self.unknown("float")
        return self.choice([
            self.both(f"{name} += {number};", f"{name} = H_to<int>({name} + {number});"),
            f"add_to({name}, {value});", f"{{ int& {hidden} = {name}; {hidden} ^= {value}; }}",
            f"{{ int* {hidden} = &{name}; *{hidden} ^= {value}; }}", f"store(&{name}, {value});",
            f"BUMP({name}, {value});", f"[&] {{ {name} ^= {value}; }}();",
            (f"auto {hidden} = [&](int by) {{ {name} ^= by; return by + 0u; }};"
            f" {hidden}({value}); (void){hidden}({other} & 3);"),
            f"(({value}) & 1 ? {name} : {other}) ^= 21;", f"exchange({name}, {other});",
            (f"{{ const int {hidden}[3] = {{{value}, {other}, 4}}; for (int e : {hidden})"
            f" {name} ^= e; }}"),
            (f"{{ int {hidden}[2][3] = {{{{1, 2, 3}}, {{4, 5, {value}}}}}; {name} ^="
            f" {hidden}[{other} & 1][(({value}) & 0xff) % 3]; }}"),
            (f"{{ Box {hidden} = boxed({value}, {other}); {hidden}.words[{other} & 3] ^= 77u;"
            f" {name} ^= {hidden}.folded(); }}"),
            (f"{{ unsigned char {hidden}[4]; for (int e = 0; e < 4; ++e) {hidden}[e] ="
            f" (unsigned char)(({value}) ^ e); {name} ^= {hidden}[{other} & 3]; }}"),
            f"if (({value}) & 1) {name} = {other}, {other} = 5;",
            f"{name} = {other} = {value};", f"{name} = ({other} ^= 9, {value});",
        ])  # fmt: skip

    # Loops --------------------------------------------------------------------------------------

    def bound(self) -> str:
        """Draw the number of a loop's rounds: of one constant, of a parameter, of a thread."""
        values = self.scope.values
        uniform = f"({self.choice(values)} & 7)" if values else "6"
        return self.choice(
            [
                "5",
                "8",
                "1",
                "0",
                uniform,
                uniform,
                self.small(7),
                "((int)threadIdx.x & 3)",
                "((int)blockIdx.x + 1)",
            ]
        )

    def loop(self, depth: int) -> str:
        """Draw a loop that ends."""
        i = self.name() if self.chance(0.3) else self.new("i")
        bound = self.bound()
        read = self.choice([i, i, f"(int){i}"])
        self.scope.values.append(read)
        inside = self.statements(depth - 1, self.random.randint(1, 2))
        name = self.some_int()
        inside += self.choice([
            f" {name} = (int)((unsigned){name} + (unsigned){self.scope.data}[{i} & 255]);",
            f" {name} ^= (int){i};", "",
        ])  # fmt: skip
        if self.chance(0.35):
            leave = self.choice(["break", "continue", "continue"])
            inside = f"if ({self.guard()}) {leave}; {inside}"
        label, guard = self.new("again"), self.guard()
        self.scope.values.remove(read)
        if read != i:
            return self.choice([
                f"for (unsigned {i} = 0; {i} < (unsigned){bound}; ++{i}) {{ {inside} }}",
                f"for (unsigned {i} = 1; {i} < 64; {i} <<= 1) {{ {inside} }}",
                f"for (unsigned char {i} = {bound}; {i}; --{i}) {{ {inside} }}",
                f"for (long long {i} = {bound}; {i} >= 0; {i} -= 2) {{ {inside} }}",
            ])  # fmt: skip
        return self.choice([
            f"for (int {i} = 0; {i} < {bound}; {i}++) {{ {inside} }}",
            f"for (int {i} = {bound}; {i}-- > 0;) {{ {inside} }}",
            f"for (int {i} = {bound}; {i} > 0; {i} >>= 1) {{ {inside} }}",
            f"for (int {i} = 0, stop = {bound}; {i} != stop; ++{i}) {{ {inside} }}",
            f"for (int {i} = threadIdx.x; {i} < 200; {i} += (int)blockDim.x + 20) {{ {inside} }}",
            f"{{ int {i} = 0; for (;;) {{ if ({i}++ >= {bound} || ({guard})) break; {inside} }} }}",
            f"{{ int {i} = 0; while ({i}++ < {bound}) {{ {inside} }} }}",
            f"{{ int {i} = 7; while ({i} && --{i} > {bound}) {{ {inside} }} }}",
            f"{{ int {i} = 0; do {{ {inside} }} while (++{i} < {bound}); }}",
            f"LOOP({i}, {bound}) {{ {inside} }}",
            *([f"{{ int {i} = 0; {label}: {{ {inside} }} if (++{i} < {bound}) goto {label}; }}"]
              if "break;" not in inside and "continue;" not in inside and not self.plain else []),
        ])  # fmt: skip

    def around(self, depth: int) -> str:
        """Draw loops in one another, with a jump out of both."""
        i, j, label = self.new("i"), self.new("j"), self.new("out")
        inside, guard, bound = self.statements(depth - 1, 1), self.guard(), self.bound()
        leave = self.choice([f"goto {label}", "break", "continue"][self.plain :])
        behind = "" if self.plain else f" {label}:;"
        return (f"for (int {i} = 0; {i} < 4; ++{i}) for (int {j} = {i}; {j} < {bound}; ++{j}) {{"
                f" if ({guard}) {leave}; {inside} }}{behind}")  # fmt: skip

    def statement(self, depth: int) -> str:
        """Draw a statement."""
        kind = self.random.random()
        if depth == 0 or kind < 0.3:
            return self.assigned()
        draws = {0.52: self.loop, 0.56: self.around, 0.8: self.branch, 0.9: self.cases,
                 0.95: self.local, 1.0: self.jump}  # fmt: skip
        return next(draw for limit, draw in draws.items() if kind < limit)(depth)

    def jump(self, depth: int) -> str:
        """Draw a jump over some statements."""
        if self.plain:
            return self.branch(depth)
        inside, label = self.statements(depth - 1, self.random.randint(1, 2)), self.new("l")
        return f"if ({self.guard()}) goto {label}; {{ {inside} }} {label}:;"

    def branch(self, depth: int) -> str:
        """Draw an `if`, often around a loop."""
        condition = self.guard()
        inside = self.loop(depth) if self.chance(0.5) else self.statements(depth - 1, 1)
        if self.chance(0.15):
            return (
                f"if ({condition}) {{ {inside} }} else if ({self.guard()}) {self.assigned_alone()}"
            )
        other = f" else {{ {self.statement(depth - 1)} }}" if self.chance(0.3) else ""
        return f"if ({condition}) {{ {inside} }}{other}"

    def assigned_alone(self) -> str:
        """Draw an assignment as one statement."""
        return f"{{ {self.assigned()} }}"

    def cases(self, depth: int) -> str:
        """Draw a `switch`."""
        inside, first, last = (
            self.statement(depth - 1),
            self.assigned_alone(),
            self.assigned_alone(),
        )
        fall, middle = self.choice(["", "break; "]), self.choice(["", "break; "])
        selector = self.choice(
            [
                f"({self.value(1)}) & 3",
                "threadIdx.x % 4",
                f"(unsigned char)({self.value(1)}) % 5",
                self.some_int(),
            ]
        )
        return self.choice([
            (f"switch ({selector}) {{ case 0: {first} {fall}case 2: {{ {inside} }} {middle}"
            f"default: {last} }}"),
            (f"switch ({selector}) {{ default: {first} {fall}case 1: case 3: {{ {inside} }} break;"
            f" case 7: {last} }}"),
            f"switch ({selector}) {{ case 0: {{ {inside} }} break; case 1: {first} }}",
        ])  # fmt: skip

    def local(self, depth: int) -> str:
        """Draw a block with a variable of its own."""
        scope = self.scope
        name = self.name() if self.chance(0.5) else self.new("v")
        variable = Variable(name, self.choice([*INTEGERS, "int", "float", "double"]))
        start = self.typed(variable.kind, 1)
        form = self.choice(["{0} {1} = {2};", "{0} {1}({2});", "{0} {1}; {1} = {2};"])
        if self.chance(0.15):
            variable.kind, form, start = "int", "const int {1} = {2};", self.value(1)
            self.scope = Scope(scope.variables, scope.arrays, scope.pairs,
                               [*scope.values, name], scope.data, scope.results)  # fmt: skip
        else:
            self.scope = Scope([*scope.variables, variable], scope.arrays, scope.pairs,
                               scope.values, scope.data, scope.results)  # fmt: skip
        inside = self.statements(depth - 1, 2)
        used = self.some_int()
        self.scope = scope
        head = form.format(variable.kind, name, start)
        return f"{{ {head} {inside} {used} ^= 1; }}"

    def statements(self, depth: int, count: int) -> str:
        """Draw several statements."""
        return " ".join(self.statement(depth) for _ in range(count))
