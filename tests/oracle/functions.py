"""Functions, classes and templates that belong to one kernel."""

from __future__ import annotations

from tests.oracle.draws import Scope, Variable
from tests.oracle.statements import Statements

QUALIFIERS = ("FN", "FN", "static FN", "FN __noinline__", "FN __forceinline__", "FN inline")


class Functions(Statements):
    """Draws functions, and the expressions that call them."""

    def function(self) -> None:
        """Draw a function of the kernel's own."""
        name = f"f{self.seed}_{len(self.calls)}"
        draw = self.choice(
            [
                self._plain,
                self._plain,
                self._recursive,
                self._of_type,
                self._of_value,
                self._class,
                self._reference,
                self._overloaded,
            ]
        )
        outer, calls = self.scope, self.calls
        self.calls = []  # a function calls none that the kernel has
        call = draw(name)
        self.scope, self.calls = outer, [*calls, call]

    def body(self, variables: list[Variable], values: list[str], depth: int = 2) -> str:
        """Draw a function's body, which returns an int."""
        local = Variable(self.name(), self.choice(["unsigned", "short", "long long", "float"]))
        array = Variable(self.name(), self.choice(["int", "unsigned char", "short"]))
        start = f"{local.kind} {local.name} = {self.random.randint(0, 99)};"
        self.scope = Scope([*variables, local], [], [], values, "data", results=True)
        if self.chance(0.3):
            self.scope.arrays = [array]
            start += f" {array.kind} {array.name}[8]; LOOP(e, 8) {array.name}[e] = e * 3;"
        text = self.statements(depth, self.random.randint(1, 2))
        if self.chance(0.4):
            text = f"if ({self.guard()}) return {self.value(1)}; {text}"
        if self.chance(0.2):
            i = self.new("i")
            text += f" LOOP({i}, {self.bound()}) {{ if ({self.guard()}) return {self.atom()};"
            text += f" {self.assigned()} }}"
        own = " ^ ".join(self.read(v) for v in self.scope.variables)
        return f"{start} {text} return {own};"

    def _plain(self, name: str) -> str:
        a, b = Variable(self.name(), "int"), Variable(self.name(), "int")
        b.kind = self.choice(["int", "unsigned", "unsigned char", "long long"])
        scope = self.choice(["", "", f"namespace n{name} {{ "])
        head = f"{self.choice(QUALIFIERS)} int {name}"
        head += f"(const int* data, int {a.name}, {b.kind} {b.name})"
        self.functions.append(f"{scope}{head} {{ {self.body([a, b], [])} }}{' }' if scope else ''}")
        return f"{f'n{name}::' if scope else ''}{name}(data, {{0}}, ({b.kind})({{1}}))"

    def _recursive(self, name: str) -> str:
        a, left = Variable(self.name(), "int"), self.new("depth")
        body = self.body([a], [left], 1)
        self.functions.append(
            f"FN int {name}(const int* data, int {left}, int {a.name}) {{ if ({left} <= 0) return"
            f" {a.name}; {a.name} ^= {name}(data, {left} - 1, {a.name} ^ {left}); {body} }}"
        )
        return f"{name}(data, ({{1}}) & 3, {{0}})"

    def _of_type(self, name: str) -> str:
        a, given, kind = Variable(self.name(), "int"), self.name(), self.name()
        changes = self.choice([
            self.both(f"{given} <<= whole({a.name} & 63);",
                      f"{given} = ({kind})H_shl(+{given}, {a.name} & 63);"),
            self.both(f"{given} = ({kind})(({given} >> (whole({a.name}) & 63)));",
                      f"{given} = ({kind})(H_shr(+{given}, {a.name} & 63));"),
            f"{given} = ({kind})({given} / ({kind})3);", f"{given} = ({kind})({given} ^ {a.name});",
        ])  # fmt: skip
        body = self.body([a], [f"(int){given}"])
        self.functions.append(
            f"template <class {kind}> FN int {name}(const int* data, {kind} {given}, int {a.name})"
            f" {{ {changes} {given} = ({kind})whole({given}); {body} }}"
        )
        kinds = self.random.sample(["int", "unsigned", "short", "unsigned char", "long long"], 2)
        return (f"({name}(data, ({kinds[0]})({{0}}), {{1}}) ^"
                f" {name}<{kinds[1]}>(data, ({{1}}), 7))")  # fmt: skip

    def _of_value(self, name: str) -> str:
        a, kind, number = Variable(self.name(), "int"), self.name(), self.name()
        a.kind = "int"
        self.functions.append(
            f"template <int {number}, class {kind} = unsigned> FN int {name}(const int* data, int"
            f" {a.name}) {{ {kind} sum = {number}; LOOP(i, {number}) sum = ({kind})"
            f"(sum * 3 + ({kind}){a.name}); {a.name} ^= (int)sum; "
            f"{self.body([a], [number])} }}"
        )
        return f"({name}<{self.random.randint(0, 5)}>(data, {{0}}) ^ {name}<7, short>(data, {{1}}))"

    def _class(self, name: str) -> str:
        a, b, given = self.name(), self.name(), self.name()
        members = [Variable(a, "int"), Variable(b, "unsigned")]
        constant = self.choice(["operator()", "go", "go"])
        body = self.body([*members, Variable(given, "int")], [])
        base = self.choice(["", f" : Base<{name}>"])
        self.functions.append(
            f"struct {name}{base} {{ int {a}; unsigned {b}; FN {name}(int first, unsigned second)"
            f" : {a}(first), {b}(second) {{}} FN int {constant}(const int* data, int {given} = 4)"
            f" {{ {body} }} static FN int created(const int* data, int first) {{ return"
            f" {name}(first, 3u).{constant}(data); }} }};"
        )
        more = f" ^ {name}({{1}}, 2u).based()" if base else ""
        return f"({name}({{0}}, 9u).{constant}(data, {{1}}) ^ {name}::created(data, {{0}}){more})"

    def _reference(self, name: str) -> str:
        a, b = Variable(self.name(), "int"), Variable(self.name(), "int")
        body = self.body([a, b], [], 1)
        given = "handed" if "given(" in body else "given"
        self.functions.append(
            f"FN int {name}(const int* data, int& {a.name}, const int& {given}) {{ int {b.name} ="
            f" {given}; {body} }}"
        )
        return f"[&] {{{{ int v = {{0}}; const int w = {name}(data, v, {{1}}); return v ^ w; }}}}()"

    def _overloaded(self, name: str) -> str:
        for kind in ("int", "unsigned", "float"):
            a, b = Variable(self.name(), kind), Variable(self.name(), "int")
            body = self.body([a, b], [], 1)
            head = f"FN int {name}(const int* data, {kind} {a.name}, int {b.name})"
            self.functions.append(f"{head} {{ {body} }}")
        return (f"({name}(data, {{0}}, 3) ^ {name}(data, (unsigned)({{1}}), {{0}}) ^"
                f" {name}(data, (float)(({{1}}) & 255), 4))")  # fmt: skip
