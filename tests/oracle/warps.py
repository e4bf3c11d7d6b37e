"""What the lanes of a warp do together: votes, shuffles and reductions, of some lanes or of all."""

from __future__ import annotations

from tests.oracle.meetings import Meetings

KINDS = ("int", "int", "unsigned", "float", "long long", "double", "unsigned long long")
# The call among the lanes of a mask {m} with a value {v} of lane {l}, and the host's function.
OPERATIONS = {
    "ballot": ("__ballot_sync({m}, {v} != 3)", "H_ballot"),
    "any": ("(__any_sync({m}, {v} == 3) != 0)", "H_any"),
    "every": ("(__all_sync({m}, {v} != 3) != 0)", "H_every"),
    "first": ("__shfl_sync({m}, {v}, __ffs({m}) - 1)", "H_first"),
    "last": ("__shfl_sync({m}, {v}, 31 - __clz({m}))", "H_last"),
    "next": ("__shfl_sync({m}, {v}, next_lane({m}, {l}))", "H_next"),
    "own": ("__shfl_sync({m}, {v}, {l})", "H_own"),
    "rank": ("__popc({m} & ((1u << {l}) - 1))", "H_rank"),
    "same": ("__match_any_sync({m}, (int){v} & 3)", "H_same"),
    "add": ("__reduce_add_sync({m}, (unsigned){v})", "H_sum"),
    "min": ("__reduce_min_sync({m}, (int){v})", "H_min"),
    "max": ("__reduce_max_sync({m}, (int){v})", "H_max"),
    "or": ("__reduce_or_sync({m}, (unsigned){v})", "H_or"),
    "xor": ("__reduce_xor_sync({m}, (unsigned){v})", "H_xor"),
    "and": ("__reduce_and_sync({m}, (unsigned){v})", "H_and"),
    "least": ("__reduce_min_sync({m}, (unsigned){v})", "H_least"),
    "most": ("__reduce_max_sync({m}, (unsigned){v})", "H_most"),
    "alike": ("alike({m}, (int){v} & 1)", "H_alike"),
    "active": ("__shfl_xor_sync({m}, {v}, 0)", "H_own"),
}  # fmt: skip


class Warps(Meetings):
    """Draws what the lanes of a warp do together."""

    alive: str  # the mask of a warp's lanes that are there

    def collective(self) -> None:
        """Write a vote, a shuffle or a reduction."""
        self.stepped()
        full = self.threads % 32 == 0 and not self.leaving
        draws = [self.among_some, self.among_some, self.among_some, self.drain, self.leaders]
        if full:
            draws += [self.neighbours, self.reduction, self.through_memory,
                      self.butterfly, self.butterfly]  # fmt: skip
        if self.has_warps:
            draws += [self.by_warps] * 4
        self.choice(draws)()

    def by_warps(self) -> None:
        """Write a branch or a loop that the lanes of a warp go through together."""
        name, kind, r = self.some_int(), self.choice(KINDS), self.new("r")
        value, vote = self._value(kind), self.chance(0.5) or self.block[1:] != (1, 1)
        condition = f"({self.value(1)}) & 1" if vote else "false"
        folds = [self.choice([o for o in OPERATIONS if o != "alike"]) for _ in range(3)]
        leave, at = self.choice(["continue", "continue", "break"]), self.random.randrange(3)
        which = self.choice(["(int)threadIdx.x / 32", "(int)(threadIdx.x >> 5)"])
        turns = "for (int {r} = 0; {r} < ({w} & 3) + 1; ++{r})"
        form = self.choice([
            "if ({w} & 1) {{ {0} }} else {{ {1} }}",
            f"{turns} {{{{ {{0}} if (({{r}} + {{w}}) % 3 == {{at}}) {{leave}}; {{1}} }}}}",
            (f"{turns} {{{{ if (({{r}} + {{w}}) % 3 == {{at}}) continue; {{0}}"
             " if ({r} >= ({w} & 1)) break; {1} }} {2}"),
        ])  # fmt: skip
        if self.host:
            given = self.new("H_v")
            self.top.append(f"static {kind} {given}[128];")
            self.lines.append("memset(H_in, 0, sizeof H_in);")
            self.phase(
                f"H_in[tid] = 1; H_got[tid] = {condition}; {given}[tid] = ({kind})({value});"
            )
            count = "for (int i = H_w; i < H_w + 32 && i < 128; ++i) H_n += H_in[i] && H_got[i];"
            texts = [self.fold(name, f"{OPERATIONS[o][1]}({given} + H_w, H_in + H_w, 1, H_l)")
                     + self._counting(f"{given}[H_t]") for o in folds]  # fmt: skip
            start = f"0; {count}" if vote else "H_w / 32;"
            body = form.format(*texts, w="H_n", r=r, at=at, leave=leave)
            self.lanes(f"int& {name} = H_s[H_t].{name}; int H_n = {start} {body}")
            return
        w, v = self.new("w"), self.new("v")
        texts = [self.fold(name, OPERATIONS[o][0].format(m=self.alive, v=v, l="(tid & 31)"))
                 + self._counting(v) for o in folds]  # fmt: skip
        start = f"__popc(__ballot_sync({self.alive}, {condition}))" if vote else which
        body = form.format(*texts, w=w, r=r, at=at, leave=leave)
        self.lines.append(
            f"{{ const int {w} = {start}; const {kind} {v} = ({kind})({value}); (void){v};"
            f" {body} }}"
        )

    def _counting(self, value: str) -> str:
        """Give a statement that shows how many threads have come there, and which."""
        return f" atomicAdd(total, ((int){value} & 63) + 1);" if self.sharp else ""

    def _value(self, kind: str) -> str:
        return self.given(kind) if kind != "int" else self.value(1)

    def among_some(self) -> None:
        """Write an operation among the lanes for which something holds, and one of the others."""
        name, kind = self.some_int(), self.choice(KINDS)
        part = self.random.randint(1, 32)
        which = self.choice(
            [
                f"tid % 32 < {part}",
                "true",
                f"({self.value(1)}) & 1",
                f"tid % 3 == {part % 3}",
                f"({self.value(1)}) > {part}",
            ]
        )
        value = self._value(kind)
        inside, outside = self.choice(list(OPERATIONS)), self.choice(list(OPERATIONS))
        both = self.chance(0.4)
        if self.host:
            given = self.new("H_v")
            self.top.append(f"static {kind} {given}[128];")
            self.lines.append("memset(H_in, 0, sizeof H_in);")
            self.phase(f"H_in[tid] = ({which}) ? 1 : 2; {given}[tid] = ({kind})({value});")
            for side, operation in ((1, inside), (2, outside))[: 1 + both]:
                call = f"{OPERATIONS[operation][1]}({given} + H_w, H_in + H_w, {side}, H_l)"
                self.lanes(f"int& {name} = H_s[H_t].{name}; if (H_in[H_t] == {side})"
                           f" {self.fold(name, call)}")  # fmt: skip
            return
        m, v, p = self.new("m"), self.new("v"), self.new("p")
        texts = [
            self.fold(name, OPERATIONS[operation][0].format(m=mask, v=v, l="(tid & 31)"))
            for mask, operation in ((m, inside), (f"({self.alive} & ~{m})", outside))
        ]
        other = f" else {{ {texts[1]} }}" if both else ""
        self.lines.append(
            f"{{ const bool {p} = {which}; const unsigned {m} = __ballot_sync({self.alive}, {p});"
            f" const {kind} {v} = ({kind})({value}); (void){v}; if ({p}) {{ {texts[0]} }}{other} }}"
        )

    def neighbours(self) -> None:
        """Write a shuffle among the lanes of a whole warp, or of equal parts of it."""
        name, kind, width = self.some_int(), self.choice(KINDS), self.choice([32, 32, 16, 8, 4, 2])
        step, value = self.random.randint(1, width - 1), self._value(kind)
        direction = self.choice(["up", "down", "xor", ""])
        if self.host:
            given = self.new("H_v")
            self.top.append(f"static {kind} {given}[128];")
            self.phase(f"{given}[tid] = ({kind})({value});")
            here = f"H_t % {width}"
            source = {"up": f"{here} >= {step} ? H_t - {step} : H_t", "xor": f"H_t ^ {step}",
                      "down": f"{here} + {step} < {width} ? H_t + {step} : H_t",
                      "": f"H_t - {here} + {step}"}[direction]  # fmt: skip
            self.lanes(f"int& {name} = H_s[H_t].{name};"
                       f" {self.fold(name, f'{given}[{source}]')}")  # fmt: skip
            return
        call = f"__shfl{'_' * bool(direction)}{direction}_sync(0xffffffffu, ({kind})({value})"
        last = f", {width}" if width < 32 else ""
        self.lines.append(self.fold(name, f"{call}, {step}{last})"))

    def reduction(self) -> None:
        """Write a sum of a warp, in a function or in a loop."""
        name, kind = self.some_int(), self.choice(["int", "unsigned", "long long", "float"])
        value, form = f"({kind})({self.small(255)})", self.choice(["loop", "sum", "total"])
        if self.host:
            given = self.new("H_v")
            self.top.append(f"static {kind} {given}[128];")
            self.phase(f"{given}[tid] = {value};")
            function = "H_down_sum" if form != "total" else "H_total"
            self.lanes(f"int& {name} = H_s[H_t].{name};"
                       f" {self.fold(name, f'{function}({given} + H_w, H_l)')}")  # fmt: skip
            return
        if form == "loop":
            v, d = self.new("v"), self.new("d")
            self.lines.append(
                f"{{ {kind} {v} = {value}; for (int {d} = 16; {d} > 0; {d} /= 2) {v} +="
                f" __shfl_down_sync(0xffffffffu, {v}, {d}); {self.fold(name, v)} }}"
            )
        else:
            self.lines.append(self.fold(name, f"warp_{form}({value})"))

    def drain(self) -> None:
        """Let a warp go on while any of its lanes has something left."""
        name, left, rounds = self.some_int(), self.new("left"), self.new("rounds")
        start, step = self.small(15), self.choice(["(tid & 3) + 1", "1", "3"])
        if self.host:
            self.phase(f"H_got[tid] = {start};")
            self.lanes(f"int H_r = 0; for (int i = H_w; i < H_w + 32 && i < {self.threads}; ++i)"
                       f" if (!H_gone[i]) {{ const int tid = i; (void)tid; const int r ="
                       f" (int)((H_got[i] + ({step}) - 1) / ({step})); if (r > H_r) H_r = r; }}"
                       f" int& {name} = H_s[H_t].{name}; {self.fold(name, 'H_r')}")  # fmt: skip
            return
        self.lines.append(
            f"{{ int {left} = {start}, {rounds} = 0; while (__any_sync({self.alive}, {left} > 0))"
            f" {{ {left} -= {step}; ++{rounds}; }} {self.fold(name, rounds)} }}"
        )

    def leaders(self) -> None:
        """Let the lanes of a mask say their values in turn."""
        name, m, at, sum_ = self.some_int(), self.new("m"), self.new("at"), self.new("sum")
        which, value = f"({self.value(1)}) & 1", self.value(1)
        if self.host:
            self.lines.append("memset(H_in, 0, sizeof H_in);")
            self.phase(f"H_in[tid] = ({which}) ? 1 : 2; H_got[tid] = {value};")
            self.lanes(f"int H_r = 0; for (int i = H_w; i < H_w + 32 && i < {self.threads}; ++i) if"
                       f" (H_in[i] == 1) H_r = (int)((unsigned)H_r * 5u + (unsigned)H_got[i]);"
                       f" int& {name} = H_s[H_t].{name}; {self.fold(name, 'H_r')}")  # fmt: skip
            return
        v = self.new("v")
        self.lines.append(
            f"{{ const int {v} = {value}; int {sum_} = 0; for (unsigned {m} = __ballot_sync("
            f"{self.alive}, {which}); {m}; {m} &= {m} - 1) {{ const int {at} = __shfl_sync("
            f"{self.alive}, {v}, __ffs({m}) - 1); {sum_} = (int)((unsigned){sum_} * 5u +"
            f" (unsigned){at}); }} {self.fold(name, sum_)} }}"
        )

    def through_memory(self) -> None:
        """Pass values within a warp through shared memory."""
        name, array, d = self.some_int(), self.new("s"), self.choice([1, 2, 4, 8, 16])
        volatile = self.choice(["", "volatile "])
        self.top.append(f"{self.both('__shared__', 'static')} {volatile}int {array}[128];")
        kept = self.some_int()
        self.phase(f"{array}[tid] = {self.value(1)};")
        self.cuda("__syncwarp();")
        self.phase(f"{kept} = {array}[tid ^ {d}];")
        self.cuda("__syncwarp();")
        self.phase(f"{array}[tid] = {kept} ^ 5;")
        self.cuda(self.choice(["__syncwarp();", "__syncwarp(0xffffffffu);"]))
        self.phase(self.fold(name, f"{array}[tid ^ {31 - d}]"))
        self.cuda("__syncwarp();")

    def butterfly(self) -> None:
        """Let the lanes of a warp add in one statement what other lanes have, as they had it."""
        name, array = self.some_int(), self.new("s")
        self.butterflies(array, "tid", f"(unsigned)({self.value(1)})")
        self.phase(self.fold(name, f"{array}[tid]"))
        self.cuda("__syncwarp();")

    def butterflies(self, array: str, own: str, start: str) -> None:
        """Write such statements in an array, where `own` is the place of a thread."""
        volatile, i = self.choice(["", "volatile "]), self.new("d")
        operator = self.choice(["+=", "^=", "-="])
        distances = self.choice([[16, 8, 4, 2, 1], [16, 8, 4, 2, 1], [1, 2], [5], [16]])
        self.top.append(f"{self.both('__shared__', 'static')} {volatile}unsigned {array}[128];")
        self.phase(f"{array}[{own}] = {start};")
        self.cuda("__syncwarp();")
        loop = len(distances) == 5 and self.chance(0.5)
        if self.host:
            self.top.append(f"static unsigned {array}_was[128];")
            for d in distances:
                self.lines.append(f"for (int i = 0; i < 128; ++i) {array}_was[i] = {array}[i];")
                self.phase(f"{array}[{own}] {operator} {array}_was[{own} ^ {d}];")
        elif loop:
            self.lines.append(f"for (int {i} = 16; {i} > 0; {i} /= 2) {{ {array}[{own}] {operator}"
                              f" {array}[{own} ^ {i}]; __syncwarp(); }}")  # fmt: skip
        else:
            for d in distances:
                self.lines.append(f"{array}[{own}] {operator} {array}[{own} ^ {d}]; __syncwarp();")
