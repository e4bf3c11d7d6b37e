"""One function as a block of threads goes through it: its statements, cut where threads meet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import TYPE_CHECKING

from cudalab.backends.cpu.regions import lambdas
from cudalab.backends.cpu.regions.by_steps import steps_of
from cudalab.backends.cpu.regions.in_step import arguments, is_guard, one_by_one
from cudalab.backends.cpu.regions.lambdas import has_lambda
from cudalab.backends.cpu.regions.levels import Level
from cudalab.backends.cpu.regions.parts import (
    Home,
    Loop,
    Part,
    Region,
    by_itself,
    handed_over,
    in_lambda,
    is_argument,
    nearby,
    regions_of,
    widths,
    without_defaults,
)
from cudalab.backends.cpu.regions.rounds import leads_to_rounds
from cudalab.backends.cpu.regions.strides import Strides
from cudalab.backends.cpu.regions.syntax import Statement, locals_of
from cudalab.backends.cpu.regions.unit import BUILT_IN, STEPS
from cudalab.backends.cpu.regions.waiting import may_wait
from cudalab.backends.cpu.regions.words import NotCoveredError, Words, calls, texts
from cudalab.backends.cpu.regions.writer import Piece, Writer
from cudalab.language.lockstep import STEP
from cudalab.language.tokens import Token

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cudalab.backends.cpu.regions.analysis import Analysis
    from cudalab.backends.cpu.regions.syntax import Function, Local, Parameter

# Statements that belong to the block: what they declare is the same for all threads.
_OUTER = frozenset({"using", "typedef", "static_assert", "static", "constexpr", "__shared__"})


class Body(ABC):
    """The text of one function for all threads of a block, or for those of a mask."""

    def __init__(self, analysis: Analysis, function: Function, *, masked: bool) -> None:
        """Prepare to write `function`; `masked`: it is handed the threads that are in it."""
        self.analysis, self.unit = analysis, analysis.unit
        self.function, self.facts = function, analysis.facts[function]
        self.levels = self.facts.levels
        self.strides = Strides(self.facts)
        self.masked = masked
        self.leaving = analysis.has_early_returns(function)
        self.writer = Writer()
        self.region = Region()
        self.homes: dict[str, Home] = {}
        # Each within the one before; none: all threads.
        self.masks = ["cudalab_mask"] if masked else []
        self.loops: list[Loop] = []
        self.count = 0
        self.max_threads = f"({function.bounds})" if function.is_kernel else "1024"
        self.called: set[tuple[str, bool]] = set()
        self.shared: list[str] = []  # the sizes of the kernel's shared variables

    # The whole function ---------------------------------------------------------------------------

    def text(self) -> str:
        """The definition."""
        function = self.function
        writer = self.writer
        if self.facts.in_step:
            writer.add(one_by_one(function))
        template = function.template
        writer.add(without_defaults(template) if function.is_kernel else template)
        often = self.analysis.is_repeated(function)
        writer.add("" if function.specialized else "static", "CUDALAB_ONCE" if often else "inline")
        writer.add(f"void {self.analysis.name_for(function, self.masked)}", function.specialized)
        writer.add("(", self._parameters(), ") { CUDALAB_ENTER ;")
        for width in widths(function):
            writer.add(f"::cudalab::assume_no_wrap(blockIdx.x, {width});")
        if self.leaving:
            before = "cudalab_mask" if self.masked else "cudalab_B"
            writer.add(f"::cudalab::Mask cudalab_live({before});")
            if function.is_kernel:
                writer.add("cudalab_B.live = &cudalab_live;")
            if self.masked:
                self.masks = ["cudalab_live"]
        for parameter in function.parameters:
            self._begin_parameter(parameter)
        if self.facts.in_step:
            writer.add(f"if (CUDALAB_RAGGED) {{ {self.one_by_one} }}")
        self.statements(self.facts.statements, last=True)
        writer.add("}\n")
        return writer.text()

    def _parameters(self) -> list[Piece]:
        """The declarations of its parameters."""
        function = self.function
        pieces: list[Piece] = ["" if function.is_kernel else "const", "::cudalab::Block& cudalab_B"]
        if self.masked:
            pieces += [", const ::cudalab::Mask& cudalab_mask"]
        if not function.is_kernel and not function.returns_nothing:
            pieces += [",", *function.returns, "* cudalab_ret"]
        for parameter in function.parameters:
            pieces += [",", *self._parameter(parameter)]
        return pieces

    def _is_kept(self, parameter: Parameter) -> bool:
        """Whether threads change a parameter that is handed over once for all of them."""
        uniform = self.function.is_kernel or self.facts.is_uniform_parameter(parameter.name)
        changes = parameter.name in self.facts.changed | self.levels.escaping
        uniform &= parameter.name not in self.facts.lambda_parameters
        return uniform and changes and not self.facts.is_scalar_name(parameter.name)

    def _parameter(self, parameter: Parameter) -> list[Piece]:
        """The declaration of a parameter."""
        name = parameter.name
        if self.function.is_kernel or self.facts.is_uniform_parameter(name):
            has_default = parameter.default and not self.function.is_kernel
            default: list[Piece] = ["=", *parameter.default] if has_default else []
            words: list[Piece] = [*parameter.words]
            if self._is_kept(parameter):
                words = [
                    word._replace(text=f"{name}_cudalab_0") if word.text == name else word
                    for word in parameter.words
                ]
            return [*words, *default]
        return [handed_over(parameter)]

    def _begin_parameter(self, parameter: Parameter) -> None:
        """Make a parameter of each thread known to the regions."""
        name, facts = parameter.name, self.facts
        if self._is_kept(parameter):
            home = self.keep(name, f"::cudalab::Kept<decltype({name}_cudalab_0)>")
            self.writer.add(
                f"CUDALAB_EACH {{ CUDALAB_THREAD ::cudalab::construct<::cudalab::Kept<decltype("
                f"{name}_cudalab_0)>>({home} + cudalab_t, {name}_cudalab_0); }}"
            )
        elif name in facts.lambda_parameters:
            self.writer.add(lambdas.known(name))
            self.homes[name] = Home([lambdas.binding(name)])
        elif not self.function.is_kernel and not facts.is_uniform_parameter(name):
            pointed = "*" if parameter.is_reference else ""
            binding: list[Piece] = [f"auto& {name} = {pointed}{name}_cudalab_p[cudalab_t];"]
            self.homes[name] = Home(binding, is_array=not pointed)
            if facts.is_nearby(name):
                self.homes[name].nearby = nearby(name, f"*{name}_cudalab_p[cudalab_t]")
            self.writer.add(f"auto& {name} = {pointed}{name}_cudalab_p[0]; (void){name};")

    @property
    def mask(self) -> str:
        """The name of the mask of the threads that are here; nothing if all are."""
        return self.masks[-1] if self.masks else ""

    @property
    def one_by_one(self) -> str:
        """Text that runs the kernel's threads one after another."""
        call = arguments(self.function, "cudalab_B")
        return f"return {self.function.name}_cudalab_one_by_one{call});"

    def number(self) -> int:
        """A number that no other name in this function has."""
        self.count += 1
        return self.count

    # Lists of statements --------------------------------------------------------------------------

    def statements(self, statements: list[Statement], *, last: bool = False) -> None:
        """Write statements between which threads may meet; `last`: none follow in the function."""
        pieces = [piece for statement in statements for piece in self._pieces(statement)]
        used = regions_of(pieces)
        self._use_again(pieces, used)
        for i, piece in enumerate(pieces):
            is_last = last and i == len(pieces) - 1
            if piece.kind == "barrier":
                self.flush()
                self.note_steps(piece.statement.words)
            elif piece.kind == "step":
                self.step(piece.statement)
            elif piece.kind == "call":
                self.call(piece)
            elif piece.kind == "scalar":
                if piece.cuts:
                    self.flush()
                self.writer.add(piece.statement.words)
            elif piece.kind == "construct":
                self.flush()
                self.construct(piece.statement, last=is_last)
            else:
                if piece.cuts:  # others need not wait for what they have done before
                    self.flush()
                    self.region.ordered = True
                self._plain(piece.statement, used, last=is_last)
        self.flush(last=last)

    def _use_again(self, pieces: list[Part], used: dict[str, set[int]]) -> None:
        """Note which names the later regions need besides those in their text.

        Each region writes a lambda anew, and needs the value of an `auto` for its type.
        """
        plain = [piece.statement for piece in pieces if piece.kind == "plain"]
        for local in reversed([local for each in plain for local in each.declared]):
            regions = used.get(local.name, set())
            if local.name in self.facts.handed_over:
                regions = {-1, -2}  # beyond any region
            elif not (local.name in self.facts.lambdas or "auto" in texts(local.spec)):
                continue
            for word in local.value:
                used.setdefault(word.text, set()).update(regions)

    def _pieces(self, statement: Statement) -> list[Part]:
        words = statement.words
        if apart := self._apart(statement):
            return [piece for each in apart for piece in self._pieces(each)]
        if not self.unit.is_collective(words):
            if self._must_be_cut(statement):
                return [Part("construct", statement)]
            scalar = statement.kind == "simple" and self._is_scalar(words)
            cuts = scalar and not (locals_of(words) and not self.levels.reads_memory(words))
            cuts |= statement.kind != "simple" and may_wait(words)
            return [Part("scalar" if scalar else "plain", statement, cuts=cuts)]
        if statement.kind == "other":
            raise NotCoveredError(f"{words[0].place}: a barrier in a switch or a loop over a range")
        if statement.kind != "simple":
            return [Part("construct", statement)]
        if words[0].text in ("__syncthreads", "__syncwarp", STEP):
            return [Part("barrier", statement)]
        pieces, rest = self.hoisted(words)
        if len(rest) > 2:
            kind = "step" if calls(rest, STEPS) else "plain"
            pieces.append(Part(kind, Statement("simple", rest)))
        return pieces

    def _apart(self, statement: Statement) -> list[Statement]:
        """The variables of a declaration one by one.

        They are declared apart if some belong to the block and others to a thread, or if threads
        meet between them.
        """
        declared = statement.declared if statement.kind == "simple" else []
        if len(declared) < 2 or statement.own[0].text in _OUTER:
            return []
        mixed = len(set(map(self.facts.is_scalar, declared))) > 1
        if not (mixed or self.unit.is_collective(statement.own)):
            return []
        end = statement.own[-1]
        return [Statement("simple", [*each.align, *by_itself(each), end]) for each in declared]

    def _must_be_cut(self, statement: Statement) -> bool:
        """Whether a statement without barriers ends a loop around regions, or the function."""
        if self._has_rounds(statement):
            return True
        if self.mask.startswith("cudalab_m_"):
            return False
        if statement.kind == "block":
            return any(self._leaves([part]) or self._must_be_cut(part) for part in statement.parts)
        if not statement.kind.startswith("if") or self.levels.of(statement.condition) > Level.BLOCK:
            return False
        return self._leaves(statement.walk())

    def _has_rounds(self, statement: Statement) -> bool:
        """Whether a statement is a loop around regions without barriers, or has to do with one."""
        if self.facts.in_step and (statement.kind == "for" or is_guard(statement)):
            return True
        if not self.mask and steps_of(statement, self.facts, self.strides):
            return True
        return leads_to_rounds(statement, self.facts, self.strides)

    def _leaves(self, statements: Iterable[Statement]) -> bool:
        """Whether one of the statements leaves a loop around regions, or the function."""
        words = {each.words[0].text for each in statements if each.kind == "simple"}
        in_loop = bool(self.loops) and not self.loops[-1].mask
        return (in_loop and bool(words & {"break", "continue"})) or (
            "return" in words and self.unit.is_collective(self.function.body)
        )

    def hoisted(self, words: Words) -> tuple[list[Part], Words]:
        """The calls of a statement in which threads meet, and what is left of the statement."""
        pieces: list[Part] = []
        names = (self.unit.collective | BUILT_IN) - STEPS
        while found := calls(words, names):
            name, opening, end = next(
                call for call in found if not calls(words[call.opening + 1 : call.closing], names)
            )
            before = texts(words[:name])
            if "[" in before and in_lambda(words, name):
                raise NotCoveredError(f"{words[name].place}: {words[name].text} in a lambda")
            if {"?", "&&", "||"} & set(before) and not is_argument(words, name):
                raise NotCoveredError(f"{words[name].place}: a conditional {words[name].text}")
            result = f"cudalab_r_{self.number()}"
            call = words[name : end + 1]
            pieces.append(Part("call", Statement("simple", call), call, result))
            del opening
            words = [*words[:name], words[name]._replace(text=result), *words[end + 1 :]]
        return pieces, words

    # Regions --------------------------------------------------------------------------------------

    def flush(self, *, last: bool = False, each: str = "") -> None:
        """Write the region that has been collected, a loop over all threads or `each` that is."""
        region, self.region = self.region, Region()
        if region.empty:
            return
        words = [each for each in region.pieces if isinstance(each, Token)]
        for call in calls(words, self.unit.meeting):  # whose threads would not wait
            raise NotCoveredError(f"{words[call.name].place}: {words[call.name].text} in a region")
        each = each or (f"CUDALAB_SOME({self.mask})" if self.mask else "CUDALAB_EACH")
        names = self.needed(region.names)
        loops = bool(names & self.analysis.with_loops)
        near = loops and any(self.homes[name].nearby for name in names & self.homes.keys())
        private = near or self._has_private_arrays(region.names)
        current = self.analysis.needs_current(names)  # which is one variable
        if private or current or region.ordered or region.leaves:
            for kind in ("SOME", "EACH", "LANES"):
                each = each.replace(kind, f"{kind}_ORDERED")
        elif self.facts.in_step:
            each = "CUDALAB_EACH_ROW"
        self.writer.add(each, "{ CUDALAB_THREAD")
        if current:
            self.writer.add("::cudalab::set_thread(threadIdx, (unsigned)cudalab_t);")
        label = f"cudalab_next_{region.number}: ;" if region.number else ""
        apart = private and loops
        bindings = self.bindings(names, region.declared, nearby=near)
        self.writer.add("[&]() CUDALAB_APART {" if apart else "", bindings, "{")
        pieces = self.strides.with_neighbours(region.pieces)
        self.writer.add(pieces, "}", label, "}(); }" if apart else "}")
        if region.leaves and not last:
            self._after_leaving()

    def _after_leaving(self) -> None:
        """Take the threads that have left out of all masks."""
        if self.leaving and not self.masks:
            self.masks = ["cudalab_live"]
        for around, mask in pairwise(self.masks):
            self.writer.add(f"{mask}.keep({around});")
        if self.masks == ["cudalab_live"] and not self.loops:
            self.writer.add("if (!cudalab_live.any()) return;")

    def needed(self, names: set[str]) -> set[str]:
        """The names, and those in what makes a thread's own values known."""
        needed = set(names)
        for name in reversed(self.homes):
            if name in needed:
                needed |= self.homes[name].needs
        return needed

    def bindings(self, needed: set[str], declared: set[str], *, nearby: bool) -> list[Piece]:
        bound: list[Piece] = []
        for name, home in self.homes.items():
            if name in needed and name not in declared:
                bound += (home.nearby if nearby else []) or home.binding
        return bound

    def _has_private_arrays(self, names: set[str]) -> bool:
        """Whether a thread has arrays within a region: each thread uses the same memory then."""
        if names & self.levels.arrays and any(
            name not in self.homes for name in names & self.levels.arrays
        ):
            return True
        return bool(names & self.analysis.with_arrays)

    def _plain(self, statement: Statement, used: dict[str, set[int]], *, last: bool) -> None:
        """Add a statement without barriers to the region."""
        words = statement.words
        if statement.kind == "other" and words[0].text in ("struct", "class", "union", "enum"):
            self.writer.add(words)
            return
        if statement.kind == "simple":
            if words[0].text in _OUTER:
                self.outer(words)
                return
            if words[0].text in ("return", "break", "continue") and self._at_once(words, last=last):
                return
            declared = locals_of(words)
            if declared:
                for local in declared:
                    self.declare(local, used)
                return
        self.region.add(self.in_region(statement, depth=0, last=last))
        self.region.names |= set(texts(words))

    def _at_once(self, words: Words, *, last: bool) -> bool:
        """Write a `return`, `break` or `continue` that all threads here take together."""
        text = words[0].text
        loop = self.loops[-1] if self.loops else Loop()
        if text == "return" and last and not self.loops:
            return False
        if self.mask.startswith("cudalab_m_"):
            return False
        if text == "return":
            if len(words) > 2:
                self.region.add(self._returned(words))
                self.region.names |= set(texts(words))
            self.flush()
            self.writer.add("return;")
            return True
        if loop.mask:
            return False
        self.flush()
        self.writer.add(f"goto {loop.label};" if text == "continue" and loop.label else f"{text};")
        return True

    def _returned(self, words: Words) -> list[Piece]:
        if len(words) == 2:
            return []
        return ["cudalab_ret[cudalab_t] =", *self.unit.handing_over(words[1:-1]), ";"]

    def in_region(  # noqa: PLR0911 - a form of statement each
        self, statement: Statement, depth: int, *, last: bool
    ) -> list[Piece]:
        """The text of a statement for one thread; `depth`: of loops inside the region."""
        own = statement.own
        if statement.kind == "block":
            inside = [self.in_region(part, depth, last=False) for part in statement.parts]
            return ["{", *(piece for pieces in inside for piece in pieces), "}"]
        if statement.kind == "simple":
            return self._simple(own, depth, last=last)
        if statement.kind == "other":
            if "return" in texts(own) and not has_lambda(own):
                raise NotCoveredError(
                    f"{own[0].place}: a return in a switch or a loop over a range"
                )
            return [*self.unit.handing_over(own)]
        if statement.kind.startswith("if"):
            head = [*own[: -1 if statement.parts[1:] else None]]
            opening = len(head) - 1
            pieces: list[Piece] = [
                *head[:opening],
                *self.unit.handing_over(statement.condition),
                head[-1],
            ]
            pieces += ["{", *self.in_region(statement.parts[0], depth, last=False), "}"]
            for part in statement.parts[1:]:
                pieces += [own[-1], "{", *self.in_region(part, depth, last=False), "}"]
            return pieces
        body = ["{", *self.in_region(statement.parts[0], depth + 1, last=False), "}"]
        if statement.kind == "do":
            return [
                own[0],
                *body,
                *own[1:3],
                *self.unit.handing_over(statement.condition),
                *own[3:],
            ]
        if statement.kind == "while":
            return [*own[:2], *self.unit.handing_over(statement.condition), own[2], *body]
        head = [*own[:2], *statement.first, own[2], *statement.condition, own[3], *statement.step]
        return [*self.unit.handing_over(head), own[4], *body]

    def _simple(self, words: Words, depth: int, *, last: bool) -> list[Piece]:
        text, loop = words[0].text, self.loops[-1] if self.loops else Loop()
        if text == "return":
            if self.function.is_kernel and len(words) > 2:
                raise NotCoveredError(f"{words[0].place}: a kernel that returns a value")
            if last:
                return self._returned(words)
            self.region.number = self.region.number or self.number()
            leave = "cudalab_live.remove(cudalab_t);" if self.leaving else ""
            self.region.leaves |= self.leaving
            leave += f" goto cudalab_next_{self.region.number}; }}"
            return ["{", *self._returned(words), leave]
        if text in ("break", "continue") and depth == 0:
            if not loop.mask:
                raise NotCoveredError(f"{words[0].place}: a {text} that only some threads reach")
            self.region.number = self.region.number or self.number()
            self.region.leaves = True
            leave = f"{loop.round}.remove(cudalab_t);"
            if text == "break" and loop.round != loop.mask:
                leave += f" {loop.mask}.remove(cudalab_t);"
            return ["{", f"{leave} goto cudalab_next_{self.region.number}; }}"]
        return [*self.unit.handing_over(words)]

    # Locals ---------------------------------------------------------------------------------------

    def _is_scalar(self, words: Words) -> bool:
        """Whether a statement declares or changes variables of which the block has one each."""
        if words[0].text in _OUTER:
            return False
        declared = locals_of(words)
        if declared:
            return all(map(self.facts.is_scalar, declared))
        return self.facts.scalar_change(words) is not None

    def keep(self, name: str, kind: str, pointed: str = "") -> str:
        """Declare an array over the threads; the name of the array."""
        home = f"{name}_cudalab_{self.number()}"
        self.writer.add(f"CUDALAB_VALUES({home}, {self.max_threads}, {kind});")
        self.writer.add(f"auto& {name} = {pointed}{home}[0]; (void){name};")
        binding = f"auto& {name} = {pointed}{home}[cudalab_t];"
        self.homes[name] = Home([binding], is_array=not pointed)
        return home

    @abstractmethod
    def outer(self, words: Words) -> None:
        """Declare for the whole block."""

    @abstractmethod
    def declare(self, local: Local, used: dict[str, set[int]]) -> None:
        """Declare a variable of each thread: in the region, anew in each, or as an array."""

    @abstractmethod
    def keep_local(self, local: Local) -> None:
        """Keep a variable that lives across a barrier in an array over the threads."""

    @abstractmethod
    def call(self, part: Part) -> None:
        """Write a call in which threads meet."""

    @abstractmethod
    def step(self, statement: Statement) -> None:
        """Write a statement through which the lanes of a warp go together."""

    @abstractmethod
    def note_steps(self, words: Words) -> None:
        """Say that the program counts on lanes that move in step, if a barrier is of that kind."""

    @abstractmethod
    def construct(self, statement: Statement, *, last: bool) -> None:
        """Write a branch or a loop in which threads meet, or that they take together."""
