"""Faults planted in a copy of the package, each of which the generator has to find.

The first ones are from the history of the package.
A fault replaces one text of one file. A text that is not there exactly once is an error, so that
no fault goes stale. `python -m tests.oracle faults` plants them one after another.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

RUNTIME = "cudalab/backends/cpu/runtime/"
REGIONS = RUNTIME + "kernels/regions.h"
ARITHMETIC = RUNTIME + "include/cudalab/arithmetic.h"
CONVERSIONS = RUNTIME + "kernels/conversions.h"
NUMBERS = RUNTIME + "kernels/numbers.h"
WARPS = RUNTIME + "grids/warp_ops.h"
KERNELS = RUNTIME + "kernels/runtime.h"
WRITER = "cudalab/backends/cpu/regions/"


@dataclass
class Fault:
    """One text in the place of another."""

    name: str
    path: str
    old: str
    new: str
    _: KW_ONLY
    everywhere: bool = False  # at each place, not at the only one

    def plant(self, package: Path) -> None:
        """Change a copy of the package."""
        file = package / self.path
        file.write_text(self.changed(file.read_text(encoding="utf-8")), encoding="utf-8")

    def changed(self, text: str) -> str:
        """Change the text of the file, or raise an error if the fault no longer applies."""
        if not text.count(self.old) or (text.count(self.old) > 1 and not self.everywhere):
            raise ValueError(f"{self.name}: {text.count(self.old)} places in {self.path}")
        return text.replace(self.old, self.new)


def _of_uses(name: str, old: str, new: str, file: str = "uses.py") -> Fault:
    return Fault(name, WRITER + file, old, new)


# What reads a variable, or changes it, is mistaken for the other.
OF_PLACES = (
    _of_uses(
        "the last of several expressions changes nothing", "lent=lent or changes)", "lent=changes)"
    ),
    _of_uses("an address is a plain read", 'lent=sign in ("&", "&&") or', "lent="),
    _of_uses(
        "no function changes its arguments", "lent=not self.given.reads(named, words, i))", ")"
    ),
    _of_uses(
        "no method changes its object",
        'lent=not reads and self.words.texts[callee.at] == ".")',
        ")",
    ),
    _of_uses(
        "no lambda expression changes its arguments",
        'lent=not known or bool({"&", "&&", "..."} & set(texts(words))))',
        "lent=not known)",
    ),
    _of_uses(
        "a capture with a name of its own reads",
        "self._lend_all(start, start + len(capture))",
        "pass",
    ),
    _of_uses("a returned variable is read", "lent=self.returns_reference)", ")"),
    _of_uses(
        "structured bindings are copies",
        'child, lent=bool({"&", "&&"} & set(texts(self.own[node.first : child.first])))',
        "child",
    ),
    _of_uses(
        "a cast to a reference copies",
        "self._each(node.children, lent=not self.given.copies(node.type, words))\n\n    def _c",
        "self._each(node.children)\n\n    def _c",
    ),
    _of_uses(
        "a cast in brackets copies",
        "self._each(node.children, lent=not copies)\n\n    def _named",
        "self._each(node.children)\n\n    def _named",
    ),
    _of_uses("a pointer to a member reads", 'node.text == ".*" or self', "self"),
    _of_uses(
        "an object that is shifted by is read",
        "lent=changes or (lent and is_operand))",
        "lent=changes)",
    ),
    _of_uses(
        "an object in an expression refers to nothing",
        "self._each(node.children, lent=not copies)\n\n    def _call(",
        "self._each(node.children)\n\n    def _call(",
    ),
    _of_uses(
        "an object behind new refers to nothing",
        "lent=bool(words) and not self.given.copies(node.type, words))",
        ")",
    ),
    _of_uses(
        "no conversion changes its object",
        'or decays or self._may_change("conversion", node)',
        "or decays",
    ),
    _of_uses(
        "a called object stays as it is",
        'if parameters is None and "()" in self.given.operators:',
        "if False:",
    ),
    _of_uses(
        "a loop over a range reads it", "self.visit(rest[0], lent=True)", "self.visit(rest[0])"
    ),
    _of_uses("an arrow reads its object", 'lent=self._may_change("->", base))', ")"),
    _of_uses(
        "no operator of a class changes its object",
        "changes |= _is_member(words, i)",
        "pass",
        "given.py",
    ),
    _of_uses(
        "no operator changes its operands",
        "changes = any(map(self._may_change, parameters[assigns and len(parameters) > 1 :]))",
        "changes = False",
        "given.py",
    ),
    _of_uses(
        "no type refers to anything",
        "{name for name, inside in named if any(_mutable_references(inside))}",
        "set()",
        "given.py",
    ),
    _of_uses("no type is deduced as a reference", '"decltype", "__decltype",', "", "given.py"),
)
FAULTS = (
    Fault(
        "the index of a thread has two names",
        KERNELS,
        "    CUDALAB_POSITION_OF(threadIdx, thread_idx) = index;",
        "#ifdef CUDALAB_BUILTIN_VARIABLES\n"
        "    *(uint3*)current.builtin_thread_idx = index;\n#else\n"
        "    current.thread_idx = index;\n#endif",
    ),
    Fault(
        "a lane stores before others have read",
        WRITER + "barriers.py",
        "of=words)\n    body.flush(each=lanes)\n    stored",
        "of=words)\n    stored",
    ),
    Fault(
        "a thread changes the parameters of all",
        WRITER + "body.py",
        "return uniform and changes and not",
        "return uniform and not changes and not",
    ),
    Fault(
        "a choice of two variables changes none",
        WRITER + "uses.py",
        "self._each(node.children[1:], lent=lent)",
        "self._each(node.children[1:])",
    ),
    Fault(
        "an initializer changes nothing",
        WRITER + "analysis.py",
        "declares = statement.declared or has_lambda(statement.words)\n            if declares or",
        "declares = has_lambda(statement.words)\n            if not statement.declared and",
    ),
    Fault(
        "a reference is to nothing",
        WRITER + "uses.py",
        "copies = copies or self.given.reads_reference(node.type, words)",
        "copies = True",
    ),
    Fault(
        "a block of statements changes a variable of all threads",
        WRITER + "analysis.py",
        'if statement.kind == "block" and self.is_cut(statement):',
        'if statement.kind == "block":',
    ),
    Fault(
        "a continue ends a loop",
        WRITER + "parallel_regions.py",
        'leave = f"{loop.round}.remove(cudalab_t);"',
        'leave = f"{loop.mask}.remove(cudalab_t);"',
    ),
    Fault(
        "a break goes on to the next round",
        WRITER + "parallel_regions.py",
        'if text == "break" and loop.round != loop.mask:',
        "if False:",
    ),
    Fault(
        "an else is for all threads",
        WRITER + "control.py",
        " {others}.drop({taken});",
        "",
    ),
    Fault(
        "a program keeps the host's shifts",
        "cudalab/language/arithmetic.py",
        "if not _may_be_integer(type_of(left)) or not _is_place(right) or is_stream:",
        "if True:",
    ),
    Fault(
        "a loop's counter has a name that a user may write",
        REGIONS,
        "cudalab_row",
        "row_",
        everywhere=True,
    ),
    Fault(
        "a wide shift left wraps",
        ARITHMETIC,
        "return count < 8 * sizeof number ? (decltype(number))((Bits)number << count)",
        "return true ? (decltype(number))((Bits)number << (count & 31))",
    ),
    Fault(
        "a wide signed shift right gives 0",
        ARITHMETIC,
        "return number >> (count < bits ? count : bits - 1);",
        "return count < bits ? number >> count : 0;",
    ),
    Fault(
        "a wide unsigned shift right wraps",
        ARITHMETIC,
        "return count < bits ? number >> count : decltype(number)();",
        "return number >> (count & (bits - 1));",
    ),
    Fault(
        "narrow operands are shifted by their own width",
        ARITHMETIC,
        "count = (unsigned)places.count, bits = 8 * sizeof number;",
        "count = (unsigned)places.count, bits = 8 * sizeof value;",
    ),
    Fault(
        "a float's value is not saturated in a compound assignment",
        ARITHMETIC,
        "return object = saturated<Bare<T>>(object sign(Bare<E>) value); ",
        "return object = (Bare<T>)(long long)(object sign(Bare<E>) value); ",
    ),
    Fault(
        "narrow integers are saturated by themselves",
        CONVERSIONS,
        "if constexpr (sizeof(I) < 4) {",
        "if constexpr (sizeof(I) < 1) {",
    ),
    Fault(
        "too large a number becomes the least integer",
        CONVERSIONS,
        "return x >= above ? (I)~least :",
        "return x >= above ? (I)least :",
    ),
    Fault(
        "a negative number becomes a large unsigned one",
        CONVERSIONS,
        "x <= (F)least ? least : of_nan",
        "x <= (F)least ? (I)(long long)x : of_nan",
    ),
    Fault(
        "no NaN of 64 bits",
        CONVERSIONS,
        "sizeof(I) + sizeof(F) > 8 ? (I)((I)1 << (sizeof(I) * 8 - 1)) : (I)0",
        "sizeof(I) + sizeof(F) > 80 ? (I)((I)1 << (sizeof(I) * 8 - 1)) : (I)0",
    ),
    Fault(
        "rows of a block are mixed up",
        REGIONS,
        "(unsigned)t / dim.x % dim.y; }",
        "(unsigned)t / dim.x; }",
    ),
    Fault(
        "the last warp has a lane too many",
        REGIONS,
        "~0u : (1u << (threads & 31)) - 1;",
        "~0u : (2u << (threads & 31)) - 1;",
    ),
    Fault(
        "threads are in the mask of the first warp",
        REGIONS,
        "void add(size_t t) { lanes[t >> 5] |=",
        "void add(size_t t) { lanes[0] |=",
    ),
    Fault(
        "masks do not intersect",
        REGIONS,
        "lanes[w] &= other.lanes[w];",
        "lanes[w] |= other.lanes[w];",
    ),
    Fault("those who left stay", REGIONS, "lanes[w] &= ~other.lanes[w];", "lanes[w] &= lanes[w];"),
    Fault(
        "an array of a thread is not written back",
        REGIONS,
        "{ __builtin_memcpy((void*)&home, &value, sizeof value); }",
        "{}",
    ),
    Fault(
        "shuffles down go up",
        REGIONS,
        "(__shfl_down_sync, FROM_ABOVE)",
        "(__shfl_down_sync, FROM_BELOW)",
    ),
    Fault("any is all", REGIONS, "(__any_sync, int, VOTE, ANY)", "(__any_sync, int, VOTE, ALL)"),
    Fault(
        "the least of unsigned numbers",
        REGIONS,
        "(__reduce_min_sync, int, MIN_SIGNED, NONE)",
        "(__reduce_min_sync, int, MIN_UNSIGNED, NONE)",
    ),
    Fault(
        "a block's count is a vote",
        REGIONS,
        "CUDALAB_BLOCK_VOTE(__syncthreads_count, COUNT)",
        "CUDALAB_BLOCK_VOTE(__syncthreads_count, ANY)",
    ),
    Fault("a shuffle reads its own lane", WARPS, "from = source[lane] & 31;", "from = lane & 31;"),
    Fault("a vote counts those outside of the mask", WARPS, "(votes & group);", "votes;"),
    Fault("a match forgets its mask", WARPS, "            same &= left;\n", ""),
    Fault(
        "a reduction leaves out a lane",
        WARPS,
        "unsigned g = group & (group - 1); g;",
        "unsigned g = group & (group - 2); g;",
    ),
    Fault(
        "the sum of a reduction is exclusive or",
        WARPS,
        "return (unsigned)a + (unsigned)b;",
        "return (unsigned)a ^ (unsigned)b;",
    ),
    Fault(
        "no leading zeros of 0",
        NUMBERS,
        "__builtin_clz((unsigned)x) : 32;",
        "__builtin_clz((unsigned)x) : 31;",
    ),
    Fault(
        "the high part is unsigned",
        NUMBERS,
        "return (int)((int64_t)a * b >> 32);",
        "return (int)((uint64_t)(unsigned)a * (unsigned)b >> 32);",
    ),
    Fault(
        "bits are not reversed in bytes",
        NUMBERS,
        "x = (x & 0x0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0fu);",
        "",
    ),
    *OF_PLACES,
    Fault(
        "an object that is shifted by is copied", ARITHMETIC, "N&& object) const", "N object) const"
    ),
    Fault(
        "nothing is lent beyond a region",
        WRITER + "cuts.py",
        "    keep_what_is_lent(body.facts, parts, used)\n",
        "",
    ),
    Fault(
        "what is lent is computed anew",
        WRITER + "analysis.py",
        "self.changed | self.lent |",
        "self.changed |",
    ),
    Fault(
        "callees are lent nothing",
        WRITER + "cuts.py",
        "yield from _lent_in(facts, argument, refers=parameter.is_reference)",
        "yield from ()",
    ),
    Fault(
        "a loop goes on when all its threads have returned",
        WRITER + "control.py",
        'body.writer.add(f"if (!{body.mask}.any()) break;")\n\n\ndef _agreed_loop',
        "pass\n\n\ndef _agreed_loop",
    ),
    Fault(
        "what a shuffle takes is the block's",
        WRITER + "uniformity.py",
        "else max(Level.WARP, lane)",
        "else lane",
    ),
)
