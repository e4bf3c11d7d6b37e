"""Kernels whose warps, and whose blocks, go through loops that end in every way there is.

A loop goes on for ever but for a `break`, a `continue` that leads to its end, or a `return` of the
whole kernel; what decides is a shuffle, a vote, a function that has one, or a word that a warp
reads, so that warps of one block part. The host runs a warp behind the other, lane by lane.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.oracle.draws import Scope
from tests.oracle.vectors import Vectors

SIZES = (32, 64, 64, 96, 128, 48, 100)
DEEPEST = 3
LANES = "for (int H_t = H_w; H_t < H_end; ++H_t)"
ALL = "for (int H_t = 0; H_t < H_threads; ++H_t) if (!H_gone[H_t])"
OWN = "const int tid = H_t; (void)tid; unsigned &a_ = H_a[H_t], &b_ = H_b[H_t]; (void)b_;"


class Text(NamedTuple):
    """A piece of a kernel, and of its host function."""

    cuda: str
    host: str

    def into(self, form: str) -> Text:
        """Both in a form that has one place, {}."""
        return Text(form.format(self.cuda), form.format(self.host))


def joined(parts: list[Text]) -> Text:
    """One behind the other."""
    return Text(" ".join(each.cuda for each in parts), " ".join(each.host for each in parts))


class Turns(Vectors):
    """Draws loops of warps and of blocks."""

    mask: str  # of all lanes of a warp
    last: int  # the lanes of the last warp
    reads: bool  # whether a word in memory may decide: such kernels are no loops over threads

    def turns(self) -> None:
        """Draw such a kernel."""
        self.block = (self.choice(SIZES), 1, 1)
        self.threads = self.block[0]
        self.last = (self.threads - 1) % 32 + 1
        whole = self.last == 32 and self.chance(0.8)
        self.mask = "~0u" if whole else f"lanes_below(32, {self.threads}, tid)"
        self.scope, self.reads = Scope(), self.chance(0.1)
        self.functions.append(self.both(
            f"__device__ unsigned first{self.seed}(unsigned m, unsigned v) {{ return"
            f" __shfl_sync(m, v, 0); }} __device__ bool any{self.seed}(unsigned m, bool v) {{"
            " return __any_sync(m, v); }", ""))  # fmt: skip
        host = f"static unsigned H_a[128], H_b[128]; const int H_threads = {self.threads};"
        self.top.append(f"{self.both('__shared__', 'static')} unsigned shared[128];")
        self.top.append(self.both("", host))
        start = f"a_ = tid * 7u + {self.random.randrange(9)}u; b_ = (unsigned)data[tid];"
        parts = [
            Text(f"unsigned a_, b_; {start} shared[tid] = tid; __syncthreads();",
                 f"{ALL} {{ {OWN} {start} shared[tid] = tid; }}"),
            *(self._of_block(0) for _ in range(self.random.randint(0, 1))),
            self._loop_of_block(1),
            Text(f"out[bid * {self.threads} + tid] = (int)(a_ ^ b_ * 3u);",
                 f"{ALL} {{ {OWN} out[bid * {self.threads} + tid] = (int)(a_ ^ b_ * 3u); }}"),
        ]  # fmt: skip
        text = joined(parts)
        self.lines.append(self.both(text.cuda, text.host))

    # What all threads of a block do -------------------------------------------------------------

    def _of_block(self, depth: int) -> Text:
        """A few things one behind the other, which all warps that are left go through."""
        draws = [self._warps, self._warps, self._exchange]
        if depth < DEEPEST:
            draws += [self._loop_of_block, self._branch_of_block]
        return joined([self.choice(draws)(depth + 1) for _ in range(self.random.randint(1, 2))])

    def _exchange(self, _depth: int) -> Text:
        """All meet, and each takes what another has given."""
        step = self.random.randint(1, self.threads)
        given, taken = "shared[tid] = a_;", f"a_ += shared[(tid + {step}) % {self.threads}] * 3u;"
        return Text(
            f"{given} __syncthreads(); {taken} __syncthreads();",
            f"{ALL} {{ {OWN} {given} }} {ALL} {{ {OWN} {taken} }}",
        )

    def _of_all(self) -> Text:
        """A condition that is the same in all threads."""
        k, place = self.random.randint(2, 5), self.random.randrange(64)
        given = Text(*[self.choice([f"{self.parameter} % {k} != 1", "blockIdx.x == 0"])] * 2)
        counted = Text(
            f"__syncthreads_count(a_ & 1) % {k} != 0",
            f"[&] {{ int H_n = 0; {ALL} H_n += H_a[H_t] & 1; return H_n; }}() % {k} != 0",
        )
        word = Text(*[f"(data[{place}] & {k})"] * 2)
        return self.choice([given, counted, word]) if self.reads else given

    def _branch_of_block(self, depth: int) -> Text:
        one, other, when = self._of_block(depth), self._of_block(depth), self._of_all()
        return Text(f"if ({when.cuda}) {{ {one.cuda} }} else {{ {other.cuda} }}",
                    f"if ({when.host}) {{ {one.host} }} else {{ {other.host} }}")  # fmt: skip

    def _loop_of_block(self, depth: int) -> Text:
        """A loop of all threads; one that ends with a return ends the kernel."""
        left = "atomicAdd(&total[2], (int)(a_ & 1023u));"
        gone = f"{{ {ALL} {{ {OWN} {left} H_gone[H_t] = 1; }} break; }}"
        end = self.choice([Text("break;", "break;"), Text(f"{{ {left} return; }}", gone)])
        when = self._of_all()
        early = self.choice(["", "", f"if ({{}}) {self.choice(['break', 'continue'])};"])
        body = joined([self._of_block(depth), when.into(early), self._of_block(depth)])
        return self._loop(body, end, self._of_all())

    # What the lanes of a warp do ----------------------------------------------------------------

    def _warps(self, depth: int) -> Text:
        """What each warp does, whatever the others do."""
        text = self._of_warp(depth, loop=False)
        return Text(text.cuda, (
            "for (int H_w = 0; H_w < H_threads; H_w += 32) if (!H_gone[H_w]) [&] { const int H_end"
            f" = H_w + 32 < H_threads ? H_w + 32 : H_threads; {text.host} }}();"))  # fmt: skip

    def _of_warp(self, depth: int, *, loop: bool) -> Text:
        draws = [self._lanes, self._lanes, self._meeting, self._meeting]
        if depth <= DEEPEST:
            draws += [self._loop_of_warp, self._loop_of_warp]
        parts = [self.choice(draws)(depth + 1) for _ in range(self.random.randint(1, 2))]
        if depth <= DEEPEST and self.chance(0.4):
            one, other = (self._of_warp(depth + 1, loop=loop) for _ in range(2))
            when = self._of_lanes()
            parts.append(Text(
                f"if ({when.cuda}) {{ {one.cuda} }} else {{ {other.cuda} }}",
                f"if ({when.host}) {{ {one.host} }} else {{ {other.host} }}"))  # fmt: skip
        if loop and self.chance(0.4):
            leave = self.choice([Text("break;", "break;"), Text("continue;", "continue;"),
                                 self._return()])  # fmt: skip
            when = self._of_lanes()
            parts.append(Text(f"if ({when.cuda}) {{ {leave.cuda} }}",
                              f"if ({when.host}) {{ {leave.host} }}"))  # fmt: skip
            parts.append(self._lanes(depth))
        return joined(parts)

    def _return(self) -> Text:
        left = "atomicAdd(&total[3], (int)(a_ & 1023u));"
        return Text(f"{left} return;", f"{LANES} {{ {OWN} {left} H_gone[H_t] = 1; }} return;")

    def _loop_of_warp(self, depth: int) -> Text:
        """A loop that each warp leaves when it wants to."""
        end = self.choice([Text("break;", "break;"), self._return().into("{{ {} }}")])
        return self._loop(self._of_warp(depth, loop=True), end, self._of_lanes())

    def _lanes(self, _depth: int) -> Text:
        """What each lane does for itself."""
        k, more = self.random.randint(2, 6), self.random.randrange(9)
        text = self.choice([
            f"a_ = a_ * 5u + {more}u;", "a_ ^= (unsigned)tid;", f"b_ += tid / 32 * {k}u;",
            f"if (a_ % {k}u == 0) a_ += {more}u;", f"if (tid % {k} < 2) b_ ^= a_; else b_ += 3u;",
            f"for (int i = 0; i < tid % {k}; ++i) a_ += b_ ^ (unsigned)i;",
            f"a_ += (unsigned)data[(tid + {more}) & 63] & 255u;",
        ])  # fmt: skip
        return Text(text, f"{LANES} {{ {OWN} {text} }}")

    def _meeting(self, _depth: int) -> Text:
        """What the lanes of a warp do at once."""
        lane, m = self.random.randrange(self.last), self.mask
        votes = f"int H_n = 0; {LANES} H_n += H_a[H_t] & 1;"
        return self.choice([
            Text(f"__syncwarp({m});", ""),
            Text(f"a_ += __shfl_sync({m}, a_, {lane});",
                 f"{{ const unsigned H_v = H_a[H_w + {lane}]; {LANES} H_a[H_t] += H_v; }}"),
            Text(f"b_ ^= first{self.seed}({m}, a_);",
                 f"{{ const unsigned H_v = H_a[H_w]; {LANES} H_b[H_t] ^= H_v; }}"),
            Text(f"a_ += __popc(__ballot_sync({m}, a_ & 1));",
                 f"{{ {votes} {LANES} H_a[H_t] += (unsigned)H_n; }}"),
        ])  # fmt: skip

    def _of_lanes(self) -> Text:
        """A condition that is the same in all lanes of a warp."""
        k, lane, m = self.random.randint(2, 6), self.random.randrange(self.last), self.mask
        some = f"bool H_some = false; {LANES} H_some |= H_a[H_t] % 37u == {k}; return H_some;"
        return self.choice([
            Text(f"__shfl_sync({m}, a_, {lane}) % {k}u == 0", f"H_a[H_w + {lane}] % {k}u == 0"),
            Text(f"((int)threadIdx.x / 32 + {lane}) % {k} == 0", f"(H_w / 32 + {lane}) % {k} == 0"),
            Text(f"(data[threadIdx.x / 32 + {lane}] & {k})", f"(data[H_w / 32 + {lane}] & {k})")
            if self.reads
            else Text(f"threadIdx.x >> 5 == {k % 4}", f"(H_w >> 5) == {k % 4}"),
            Text(f"first{self.seed}({m}, b_) % {k}u != 0", f"H_b[H_w] % {k}u != 0"),
            Text(f"__any_sync({m}, a_ % 37u == {k})", f"[&] {{ {some} }}()"),
            Text(f"any{self.seed}({m}, a_ % 37u == {k})", f"[&] {{ {some} }}()"),
        ])  # fmt: skip

    # Loops --------------------------------------------------------------------------------------

    def _loop(self, body: Text, end: Text, when: Text) -> Text:
        """A loop of one of the kinds, which a count ends by `end` if nothing else does."""
        r, most = self.new("r"), self.random.randint(1, 4)
        once = self.chance(0.8)  # else the count changes where it is asked for
        ends = f"{'++{r}; if ({r}' if once else 'if (++{r}'} > {{most}}) {{end}}"
        form = self.choice([
            "{{ int {r} = 0; for (;;) {{ ENDS {body} }} }}",
            "{{ int {r} = 0; while (true) {{ {{ {body} }} ENDS }} }}",
            "{{ int {r} = 0; do {{ ENDS {body} }} while ({when}); }}",
            "{{ int {r} = 0; while ({when}) {{ ENDS {body} }} }}",
            "for (int {r} = 0; {r} < {most}; ++{r}) {{ {body} }}",
        ]).replace("ENDS", ends)  # fmt: skip
        if "continue;" in body.cuda and "true" in form:  # it would lead around the end
            form = "for (int {r} = 0;; ++{r}) {{ if ({r} == {most}) {end} {body} }}"
        return Text(*(
            form.format(r=r, most=most, body=body[side], end=end[side], when=when[side])
            for side in (0, 1)
        ))  # fmt: skip
