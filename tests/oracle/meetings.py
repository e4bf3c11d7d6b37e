"""What the threads of a block do together: phases, barriers, shared memory, votes, shuffles.

The host function runs a block phase by phase, a phase for all of its threads before the next one.
It knows barriers in no other way: they, and the functions that have them, are not in its text.
"""

from __future__ import annotations

from tests.oracle.functions import Functions

SHARED = ("int", "int", "unsigned", "long long", "float", "short", "unsigned char", "double")
FORMS = ("direct", "direct", "direct", "function", "own", "template", "member", "static", "functor",
         "lambda", "derived", "friend")  # fmt: skip
PLAIN_FORMS = ("direct", "direct", "function", "own", "template")
# Each has a word of its own: in whatever order they come, the result is the same.
ATOMICS = (
    "atomicAdd(&{1}[0], {0});", "atomicMax(&{1}[1], {0});", "atomicMin(&{1}[2], {0});",
    "atomicOr(&{1}[3], {0});", "atomicXor(&{1}[4], {0});", "atomicAnd(&{1}[5], {0});",
    "atomicExch(&{1}[6], 17);", "add_by_cas(&{1}[7], {0});", "atomicSub({1} + 0, {0});",
)  # fmt: skip


BARRIERS = (
    "__syncthreads();", "__syncthreads();", "meet();", "(void)__syncthreads_count(1);",
    "SYNC;", "Meeting::all();", "Meeting().here();", "Meeting()();", "nested::meet();",
    "meet_of<int>();", "(void)__syncthreads_and(1);", "{ __syncthreads(); }",
    "do { meet(); } while (0);", "for (int once = 0; once < 1; ++once) __syncthreads();",
    "[] { __syncthreads(); }();", "{ auto all = [&] { meet(); }; all(); }",
    "{ Leaving all; }", "Arriving();", "Meeting() + 1;", "meet_if<true>();",
    "switch (1) { default: SYNC; }", "if (true) __syncthreads();", "meet_all(1, 2);",
    "(void)__syncthreads_or(0);", "Meeting::Inner::all();", "(meet(), (void)0);",
)  # fmt: skip
PLAIN_BARRIERS = tuple(
    each for each in BARRIERS if not any(w in each for w in ("ing", "[", "switch", "::", "all("))
)


class Meetings(Functions):
    """Draws what threads do together."""

    block: tuple[int, int, int]
    threads: int
    grid: tuple[int, int]
    parameter: str
    leaving: bool  # whether threads may have returned
    dynamic: bool  # whether dynamic shared memory is in use
    lines: list[str]
    top: list[str]  # declarations at the kernel's beginning
    first: list[str]  # what each thread does first

    # Phases -------------------------------------------------------------------------------------

    def phase(self, text: str, *, declare: str = "") -> None:
        """Write what each thread does between two barriers."""
        if not self.host:
            self.lines.append(declare + text)
            return
        state = "".join(
            f" {v.kind}& {v.name} = H_s[H_t].{v.name};"
            for v in [*self.scope.variables, *self.scope.objects]
        ) + "".join(
            f" {a.kind} (&{a.name})[8] = H_s[H_t].{a.name};" for a in self.scope.arrays
        ) + "".join(f" Pair& {name} = H_s[H_t].{name};" for name in self.scope.pairs)  # fmt: skip
        self.lines.append(
            f"for (int H_t = 0; H_t < {self.threads}; ++H_t) {{ if (H_gone[H_t]) continue;"
            f" enter(H_t); const int tid = H_t; (void)tid; {state} [&] {{ {text} }}(); }}"
        )

    def lanes(self, text: str) -> None:
        """Write what the host does for each thread with the values of its warp."""
        if self.host:
            self.lines.append(
                f"for (int H_t = 0; H_t < {self.threads}; ++H_t) {{ if (H_gone[H_t]) continue;"
                f" const int H_w = H_t / 32 * 32, H_l = H_t % 32; (void)H_w; (void)H_l; {text} }}"
            )

    def cuda(self, text: str) -> None:
        """Write what only the kernel has."""
        if not self.host:
            self.lines.append(text)

    def barrier(self) -> None:
        """Write a barrier, directly or in a function."""
        self.stepped()
        self.cuda(self.choice(PLAIN_BARRIERS if self.plain else BARRIERS))

    def stepped(self) -> None:
        """Step a variable up or down just before threads meet, perhaps."""
        if self.steps and self.ints() and self.chance(0.4):
            self.phase(f"{self.some_int()}{self.choice(['++', '--'])};")

    def fold(self, name: str, text: str) -> str:
        """Give the statement that folds an int into a variable."""
        return f"{name} = (int)((unsigned){name} * 3u + (unsigned)(int)({text}));"

    # Exchanges ----------------------------------------------------------------------------------

    def shared(self, kind: str) -> tuple[str, str]:
        """Declare an array in shared memory: its name, and the text of an element of it."""
        name = self.name() if self.chance(0.4) else self.new("s")
        form = self.choice(["static", "static", "rows", "padded", "struct", "volatile", "pairs",
                            "cube", "aligned", "pointer", "reference"])  # fmt: skip
        if not self.dynamic and self.chance(0.25):
            self.dynamic, form, name = True, "dynamic", f"dynamic_{self.seed}"
        texts = {
            "static": (f"{kind} {name}[128];", "{1}[{0}]"),
            "volatile": (f"volatile {kind} {name}[128];", "{1}[{0}]"),
            "rows": (f"{kind} {name}[8][16];", "{1}[({0}) / 16][({0}) % 16]"),
            "padded": (f"{kind} {name}[16][9];", "{1}[({0}) % 16][({0}) / 16]"),
            "struct": (f"struct {{ int before; {kind} words[128]; }} {name};", "{1}.words[{0}]"),
            "pairs": (f"struct {{ {kind} a, b; }} {name}[128];", "{1}[{0}].b"),
            "cube": (f"{kind} {name}[4][8][4];", "{1}[({0}) / 32][({0}) / 4 % 8][({0}) % 4]"),
            "aligned": (f"__align__(16) {kind} {name}[128];", "{1}[{0}]"),
            "pointer": (f"{kind} {name}[140];", "(&{1}[9])[{0}]"),
            "reference": (f"{kind} {name}[2][130];", "(*({1} + 1))[{0}]"),
            "dynamic": (f"{kind} {name}[];", "{1}[{0}]"),
        }
        declaration, access = texts[form]
        if self.host:
            self.top.append(f"static {declaration.replace('[]', '[128]')}")
        else:
            words = "extern __shared__" if form == "dynamic" else "__shared__"
            self.top.append(f"{words} {declaration}")
        if self.leaving:  # those that have returned write nothing any more
            self.first.append(access.format("tid", name) + f" = ({kind})tid;")
        return name, access

    def given(self, kind: str) -> str:
        """Draw a value to put into shared memory."""
        if kind in ("float", "double"):
            return f"({kind})({self.small(4095)})"
        return f"({kind})({self.value(1)})"

    def exchange(self) -> None:
        """Write to shared memory, meet, and read what another thread has written."""
        kind, form = self.choice(SHARED), self.choice(PLAIN_FORMS if self.plain else FORMS)
        name, step = self.some_int(), self.random.randint(1, 40)
        other = f"(tid + {step}) % {self.threads}"
        if self.chance(0.4):
            self.phase(self.statement(1))
        if form == "direct" or self.leaving:
            array, access = self.shared(kind)
            self.phase(f"{access.format('tid', array)} = {self.given(kind)};")
            self.barrier()
            text = self.fold(name, access.format(other, array))
            self.phase(f"if ({self.guard()}) {{ {text} }}" if self.chance(0.4) else text)
            self.barrier()
            return
        given = self.given(kind)
        call = self._passing(form, kind, step)
        if self.host:
            array = self.new("H_a")
            self.top.append(f"static {kind} {array}[128];")
            self.phase(f"{array}[tid] = {given};")
            self.phase(self.fold(name, f"{array}[{other}]"))
        else:
            self.lines.append(self.fold(name, call.format(given)))

    def _passing(self, form: str, kind: str, step: int) -> str:
        """Draw a function that passes a value to another thread, and give its call."""
        name, k, n = self.new(f"pass{self.seed}_"), kind, self.threads
        own = f"__shared__ {k} own[128]; own[tid] = v; __syncthreads();"
        back = f"{k} r = own[(tid + {step}) % {n}]; __syncthreads(); return r;"
        at = self.choice(["meet();", "__syncthreads();", "SYNC;"])
        to = f"s[tid] = v; {at} const {k} r = s[(tid + {step}) % {n}]; __syncthreads(); return r;"
        array = self.new("s")
        texts = {
            "function": (f"__device__ {k} {name}({k}* s, int tid, {k} v) {{ {to} }}",
                         f"{name}({array}, tid, {{0}})"),
            "own": (f"__device__ {k} {name}(int tid, {k} v) {{ {own} {back} }}",
                    f"{name}(tid, {{0}})"),
            "template": ((f"template <class T, int S> __device__ T {name}(T* s, int tid, T v) {{"
                         f" s[tid] = v; {at} const T r = s[(tid + S) % {n}]; {at} return r; }}"),
                         f"{name}<{k}, {step}>({array}, tid, {{0}})"),
            "member": (f"struct {name} {{ {k}* s; int tid; __device__ {k} go({k} v) {{ {to} }} }};",
                       f"{name}{{{{{array}, tid}}}}.go({{0}})"),
            "derived": ((f"template <class D> struct {name}_base {{ __device__ {k} go({k} v) {{"
                        f" return static_cast<D*>(this)->through(v); }} }}; struct {name} :"
                        f" {name}_base<{name}> {{ {k}* s; int tid; __device__ {name}({k}* p, int"
                        f" t) : s(p), tid(t) {{}} __device__ {k} through({k} v) {{ {to} }} }};"),
                        f"{name}({array}, tid).go({{0}})"),
            "static": ((f"struct {name} {{ static __device__ {k} go({k}* s, int tid, {k} v) {{ {to}"
                       f" }} }};"), f"{name}::go({array}, tid, {{0}})"),
            "functor": ((f"struct {name} {{ {k}* s; __device__ {k} operator()(int tid, {k} v) const"
                        f" {{ {to} }} }};"), f"{name}{{{{{array}}}}}(tid, {{0}})"),
            "friend": ((f"namespace n{name} {{ __device__ {k} {name}({k} (&s)[128], int tid, {k} v)"
                       f" {{ {to} }} }}"), f"n{name}::{name}({array}, tid, {{0}})"),
            "lambda": ("", (f"[&]({k} v) -> {k} {{{{ {array}[tid] = v; {at} const {k} r = {array}"
                       f"[(tid + {step}) % {n}]; __syncthreads(); return r; }}}}({{0}})")),
        }  # fmt: skip
        text, call = texts[form]
        if not self.host:
            self.functions += [text] if text else []
            if form != "own":
                self.top.append(f"__shared__ {k} {array}[128];")
        return call

    def counted(self) -> None:
        """Write a barrier that counts."""
        name, condition = self.some_int(), self.value(1)
        kind = self.choice(["count", "and", "or"])
        if self.host:
            self.phase(f"H_got[tid] = ({condition}) != 0;")
            start = {"count": "0", "and": "1", "or": "0"}[kind]
            step = {"count": "+=", "and": "&=", "or": "|="}[kind]
            self.lines.append(f"H_uniform = {start};")
            self.lanes(f"H_uniform {step} (int)H_got[H_t];")
            self.phase(self.fold(name, "H_uniform"))
            return
        call = f"__syncthreads_{kind}({condition})"
        self.lines.append(self.fold(name, call if kind == "count" else f"({call}) != 0"))

    # Patterns -----------------------------------------------------------------------------------

    def pattern(self) -> None:
        """Write one of the usual ways of working together; all threads must be there."""
        if self.leaving:
            return self.counted()
        return self.choice([self.tree, self.scan, self.histogram, self.serial, self.broadcast,
                     self.pairs_of_threads, self.shared_atomics])()  # fmt: skip

    def tree(self) -> None:
        """Write a reduction in shared memory."""
        name, array = self.some_int(), self.new("s")
        self.top.append(f"{self.both('__shared__', 'static')} unsigned {array}[128];")
        self.phase(f"{array}[tid] = (unsigned)({self.value(1)});")
        self.barrier()
        head = self.choice(["for (int d = 64; d > 0; d >>= 1)", "for (unsigned d = 64; d; d /= 2)"])
        self.lines.append(f"{head} {{")
        self.phase(f"if (tid < d && tid + d < {self.threads}) {array}[tid] += {array}[tid + d];")
        self.barrier()
        self.lines.append("}")
        self.phase(f"if (tid < 3) {{ {self.fold(name, f'{array}[tid * 0]')} }}")
        self.barrier()

    def scan(self) -> None:
        """Write a scan in shared memory."""
        name, array, i = self.some_int(), self.new("s"), self.new("d")
        self.top.append(f"{self.both('__shared__', 'static')} int {array}[128];")
        self.phase(f"{array}[tid] = {self.small(1023)};")
        self.barrier()
        kept = self.some_int()
        self.lines.append(f"for (int {i} = 1; {i} < {self.threads}; {i} *= 2) {{")
        self.phase(f"{kept} = tid >= {i} ? {array}[tid - {i}] : 0;")
        self.barrier()
        self.phase(f"{array}[tid] += {kept};")
        self.barrier()
        self.lines.append("}")
        self.phase(self.fold(name, f"{array}[tid]"))
        self.barrier()

    def histogram(self) -> None:
        """Count values by atomic operations in shared memory."""
        name, array = self.some_int(), self.new("s")
        self.top.append(f"{self.both('__shared__', 'static')} int {array}[8];")
        zero = self.choice(["for (int e = tid; e < 8; e += (int)blockDim.x * 100)",
                            "if (tid == 0) for (int e = 0; e < 8; ++e)"])  # fmt: skip
        self.phase("if (tid < 8)" * ("tid;" in zero) + f" {zero} {array}[e] = 0;")
        self.phase(f"if (tid == 0) for (int e = {self.threads}; e < 8; ++e) {array}[e] = 0;")
        self.barrier()
        self.phase(f"atomicAdd(&{array}[({self.value(1)}) & 7], {self.small(15)} + 1);")
        self.barrier()
        self.phase(self.fold(name, f"{array}[tid & 7] * (tid + 3)"))
        self.barrier()

    def shared_atomics(self) -> None:
        """Let all threads change words of shared memory, whichever of them comes first."""
        name, array = self.some_int(), self.new("s")
        self.top.append(f"{self.both('__shared__', 'static')} int {array}[8];")
        self.phase(f"if (tid == 0) for (int e = 0; e < 8; ++e) {array}[e] = e * {self.parameter};")
        self.barrier()
        for atomic in self.random.sample(ATOMICS, 3):
            self.phase(atomic.format(self.value(1), f"{array}"))
        self.barrier()
        self.phase(self.fold(name, f"{array}[{self.random.randrange(7)}] ^ {array}[6]"))
        self.barrier()

    def serial(self) -> None:
        """Let one thread loop over what all have written."""
        name, array = self.some_int(), self.new("s")
        one, kept = self.choice(["tid == 0", "!tid", "tid < 1"]), self.new("sum")
        words = self.both("__shared__", "static")
        self.top.append(f"{words} int {array}[128]; {words} int {array}_sum;")
        self.phase(f"{array}[tid] = {self.small(255)};")
        self.barrier()
        self.phase(f"if ({one}) {{ int {kept} = 0; for (int i = 0; i < {self.threads}; ++i)"
                   f" {kept} += {array}[i]; {array}_sum = {kept}; }}")  # fmt: skip
        self.barrier()
        self.phase(self.fold(name, f"{array}_sum"))
        self.barrier()

    def broadcast(self) -> None:
        """Let one thread say how many rounds all of them go."""
        limit, r = self.new("limit"), self.new("r")
        self.top.append(f"{self.both('__shared__', 'static')} int {limit};")
        which = self.random.randrange(self.threads)
        self.phase(f"if (tid == {which}) {limit} = {self.small(3)};")
        self.barrier()
        self.lines.append(f"for (int {r} = 0; {r} < {limit}; ++{r}) {{")
        self.exchange()
        self.lines.append("}")
        self.barrier()

    def pairs_of_threads(self) -> None:
        """Sort neighbours, odd ones and even ones in turn."""
        name, array, i = self.some_int(), self.new("s"), self.new("r")
        self.top.append(f"{self.both('__shared__', 'static')} int {array}[130];")
        self.phase(f"{array}[tid] = {self.value(1)};")
        self.barrier()
        self.lines.append(f"for (int {i} = 0; {i} < {self.random.randint(1, 5)}; ++{i}) {{")
        self.phase(
            f"if (tid % 2 == ({i} & 1) && tid + 1 < {self.threads} &&"
            f" {array}[tid] > {array}[tid + 1]) exchange({array}[tid], {array}[tid + 1]);"
        )
        self.barrier()
        self.lines.append("}")
        self.phase(self.fold(name, f"{array}[tid]"))
        self.barrier()
