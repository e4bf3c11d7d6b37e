"""Whole programs in check mode: `cudalab run --sanitize` and `--profile`.

A child process loads the program, which build.py has made a library, and calls its main
function. Each launch calls back into Python, which runs the grid in check mode and sends the
observations through a pipe, so the report is complete even if the program crashes later.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NoReturn

from cudalab.backends.cpu import check, layout
from cudalab.backends.cpu.check import module, rows
from cudalab.backends.trace import Finding, LaunchTrace, Looks, Place, merge_findings
from cudalab.errors import CudalabError
from cudalab.microscope.explanations import where
from cudalab.program import messages
from cudalab.program.observed import order
from cudalab.program.observed.build import Library
from cudalab.system import elf, machine

BUDGET_S = 15.0  # time for tracing with --profile; a kernel's first blocks are always traced
KILL_AFTER_S = 30.0  # processor time for which a kernel is observed with --sanitize
COUNTED = 4  # times that, until a launch that is counted and does not get on has no end
LATER = 30  # after that, each further launch is observed for one part in so many of that time
_NUMBER = re.compile(r"#(\d+)#")  # of a place
_CRASH = re.compile(r"cudalab: (?:([^\n]+):(\d+): )?(.*)")
ROOM = 0.5  # how much of the memory that is free when the program begins observing it may take


@dataclass
class Launch:
    """One launch of the program."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    place: str  # the file and line that launched it
    _: KW_ONLY
    examined: int | None = None  # how many of its blocks, if not all
    findings: list[Finding] = field(default_factory=list)


@dataclass
class Observed:
    """The observations of one run."""

    traces: list[LaunchTrace] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)  # of all launches
    launches: list[Launch] = field(default_factory=list)
    messages: list[tuple[str, str]] = field(default_factory=list)  # one of MESSAGE_KINDS, and text
    _: KW_ONLY
    looks: Looks = field(default_factory=Looks)
    unobserved: tuple[str, ...] = ()  # what the instrument did not see
    ended_by: str = ""  # the signal that ended the program, if any
    started: bool = False  # whether its main function was called
    refused: str = ""  # why not, if its library cannot be loaded

    def told(self, kind: str) -> list[str]:
        """The texts of the messages of a kind."""
        return [text for each, text in self.messages if each == kind]

    def add(self, kind: str, what: Any) -> None:
        """Add one observation from the program's process."""
        if kind == "trace":
            self.traces.append(what)
        elif kind == "findings":
            self.launches[-1].findings = what
            merge_findings(self.findings, what)
        elif kind == "order":
            merge_findings(self.findings, [what])
        elif kind == "launch":
            self.launches.append(what)
        elif kind == "examined":
            self.launches[-1].examined = what
        elif kind == "message":
            self.messages.append(what)
        elif kind == "looks":
            self.looks.add(what)
        elif kind == "started":
            self.started = True
        elif kind == "refused":
            self.refused = what

    def add_crash(self, text: str, labels: Sequence[str]) -> None:
        """Add what host code has done that ended the program, as callers.h writes it.

        A library of the cache names the folder in which it was compiled: `labels` are the files.
        """
        if match := _CRASH.match(text):
            file, line, what = match.groups(default="")
            file = next((label for label in labels if file.endswith(f"/{label}")), file)
            place = Place(file, int(line or 0))
            self.findings.append(Finding("host_crash", "", place, order.NOBODY, detail=what))


def observe(
    library: Library,
    arguments: Sequence[str],
    *,
    detect: bool,
    kill_after: float = KILL_AFTER_S,
    local: Collection[tuple[str, int, str]] = (),
) -> tuple[int, Observed]:
    """Run the program in a child process; return its wait status and the observations.

    Mistakes are detected, or else accesses counted. A kernel is observed for `kill_after` seconds
    of processor time, each later launch for a fraction of that, and only while memory lasts; a
    launch that makes no progress, for half of the time. The rest runs without the instrument. If
    there is no progress there either, the launch ends as an endless loop. `local` are the accesses
    to local memory that are counted: file, line, "load" or "store".
    """
    with tempfile.TemporaryFile() as crash:
        crash_file = crash.fileno() if detect else sys.stderr.fileno()

        def load(pipe: int) -> _Program:
            return _Program(library, pipe, crash_file, kill_after, local, detect=detect)

        status, seen = _observed(partial(_run_program, load, arguments))
        if seen.refused:
            raise messages.not_loaded(seen.refused)
        if not seen.started:
            raise CudalabError("the instrument could not start: nothing was observed")
        crash.seek(0)
        seen.add_crash(crash.read().decode(errors="replace"), library.labels)
    seen.unobserved = library.unobserved
    seen.looks.own -= library.launches
    seen.looks.local -= library.launches
    return status, seen


def _observed(run: Callable[[int], NoReturn]) -> tuple[int, Observed]:
    """The wait status of a child process, and the observations that it sends through a pipe."""
    seen = Observed()
    reading, writing = os.pipe()
    # Both signals are for the program alone: this process must live to write the report. They are
    # blocked until it handles them, for the program may run before this process goes on.
    ends = {signal.SIGINT, signal.SIGTERM}
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    child = os.fork()
    if child == 0:
        os.close(reading)
        for end in ends:
            signal.signal(end, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        run(writing)
    os.close(writing)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    before_end = signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_SETMASK, masked)
    with os.fdopen(reading, "rb") as pipe, suppress(EOFError, pickle.UnpicklingError):
        while True:
            seen.add(*pickle.load(pipe))  # noqa: S301 - from our own child
    signal.signal(signal.SIGINT, before)
    signal.signal(signal.SIGTERM, before_end)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        seen.ended_by = signal.Signals(os.WTERMSIG(status)).name
    return status, seen


def _run_program(load: Callable[[int], _Program], arguments: Sequence[str], pipe: int) -> NoReturn:
    """Load the program, call main, and exit with its status."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    status = 125
    try:
        c_library = ctypes.CDLL(None)
        program = load(pipe)
        argv = (ctypes.c_char_p * (len(arguments) + 1))(*map(os.fsencode, arguments), None)
        main = program.main()
        with suppress(ValueError):  # a C library without this variable
            name = ctypes.c_char_p.in_dll(c_library, "program_invocation_short_name")
            name.value = os.fsencode(Path(arguments[0]).name)  # assert() prints it
        program.send("started", None)
        status = main(len(arguments), argv)
        c_library.exit(status)
    except BaseException:  # noqa: BLE001 - nothing may unwind into the parent's frames
        sys.excepthook(*sys.exc_info())
    os._exit(status)


# cudalab::MessageKind of internal.h
MESSAGE_KINDS = (
    *("failed kernel", "unread error", "leak", "failed call", "overrun", "refusal"),
    *("errors read", "unread call", "unwritten copy", "early time", "unawaited kernel"),
    *("unread result", "time read", "byte fill"),
)
_MessageCallback = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p)
_Visitor = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
_LaunchCallback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(layout.ObservedLaunch))


class _Program:
    """The loaded library, in the child process."""

    def __init__(
        self,
        library: Library,
        pipe: int,
        crash_file: int,
        kill_after: float,
        local: Collection[tuple[str, int, str]],
        *,
        detect: bool,
    ) -> None:
        """Load the parts in order, and register the callbacks for launches and messages.

        A crash of host code is written to the descriptor `crash_file`.
        """
        self.library, self.pipe = library, pipe
        self.kill_after, self.detect = kill_after, detect
        self.variables: dict[int, str] = {}  # region -> name
        self.made: dict[int, tuple[int, str]] = {}  # region -> bytes, and where it was allocated
        self.checker = module.load_runtime()
        ctypes.CDLL(self.checker._name, mode=ctypes.RTLD_GLOBAL)  # noqa: SLF001 - for the others
        self.host = ctypes.CDLL(str(library.host), mode=ctypes.RTLD_GLOBAL)
        for function, mirrors in layout.OF_PROGRAMS.items():
            layout.check(self.host, mirrors, function)
        self.host.cudalab_observed_memory.restype = ctypes.POINTER(layout.ObservedMemory)
        self.local = local
        self.known_looks, self.whole = b"", True  # whether all has been observed to its end
        self.spent_s = 0.0
        self.observed_s: dict[str, float] = {}  # by kernel, with --sanitize
        self.most_resident = machine.resident_memory() + int(ROOM * machine.available_memory())
        # The library calls these, so they must live as long as this object.
        self._launch_callback = _LaunchCallback(self._launch)
        self._message_callback = _MessageCallback(
            lambda kind, text: self.send("message", (MESSAGE_KINDS[kind], self._named(text)))
        )
        self.host.cudalab_observe(
            self._launch_callback, self._message_callback, int(self.detect), crash_file
        )
        if self.detect:
            self._order_callback = order.Listener(
                lambda unordered: self.send(
                    "order",
                    order.finding(unordered.contents, self.tables, self.variables, library.streams),
                )
            )
            self.host.cudalab_order(self._order_callback, int(library.own_default))
        try:
            self.code = ctypes.CDLL(str(library.path), mode=ctypes.RTLD_GLOBAL)
        except OSError as error:  # "PATH: undefined symbol: NAME"
            self.send("refused", str(error).removeprefix(f"{library.path}: "))
            os._exit(125)
        self.tables  # noqa: B018 - knows the variables before main

    @cached_property
    def tables(self) -> rows.Tables:
        """The tables of the program's code, whose global objects may launch kernels on loading."""
        code = ctypes.CDLL(str(self.library.path), mode=ctypes.RTLD_GLOBAL)
        tables = rows.Tables(self.library.path, code, self.checker)
        tables.count_local(self.local)
        self.host.cudalab_variables(_Visitor(self._add_variable))
        return tables

    def main(self) -> Any:
        """The program's main function; without one it is refused, as by a linker."""
        try:
            return self.code.main
        except AttributeError:
            self.send("refused", "it has no main function")
            os._exit(125)

    def _add_variable(self, mangled: bytes, address: int, num_bytes: int) -> None:
        """Register a variable, or a table of functions, as memory that kernels may use."""
        name = elf.demangled(mangled.decode())
        space = rows.SPACES.index("constant" if name in self.library.constants else "global")
        region = self.checker.cudalab_check_add(
            ctypes.c_void_p(address), num_bytes, 0, space, int(self.detect)
        )
        self.checker.cudalab_check_written(region)
        self.variables[region] = name
        if self.detect:
            self.host.cudalab_order_variable(
                ctypes.c_void_p(address), ctypes.c_size_t(num_bytes), region
            )

    def _named(self, text: bytes) -> str:
        """A message with the lines that check mode has written as numbers."""
        return _NUMBER.sub(
            lambda match: where(self.tables.place(int(match[1]))), text.decode(errors="replace")
        )

    def send(self, kind: str, what: Any) -> None:
        """Send an observation to the parent process."""
        data = pickle.dumps((kind, what))
        while data:
            data = data[os.write(self.pipe, data) :]

    def _launch(self, pointer: Any) -> int:
        """Run a launch of the program; 0 if the grid ends without an error.

        An error of the instrument ends the process: ctypes would ignore it, and find nothing.
        """
        try:
            return self._observe(pointer.contents)
        except BaseException:  # noqa: BLE001 - nothing may unwind into the program
            sys.excepthook(*sys.exc_info())
            os._exit(125)

    def _observe(self, launch: Any) -> int:
        grid, block = tuple(launch.grid), tuple(launch.block)
        blocks = grid[0] * grid[1] * grid[2]
        began, fresh, traced = time.monotonic(), True, 0
        name = launch.kernel.contents.name.decode(errors="replace")
        place = f"{launch.file.decode(errors='replace')}:{launch.line}"
        self.send("launch", Launch(name, grid, block, place))
        state = 1
        if self.detect or launch.cooperative:  # blocks that wait for each other run together
            state, traced = self._run(launch, 0, blocks, fresh, observed=True), blocks
        else:
            left = max(BUDGET_S - self.spent_s, 0) / 2
            done = 0
            for index in check.spread(min(blocks, 64), blocks):
                if traced and time.monotonic() - began > left:
                    break
                if state > 0 and done < index:
                    state = self._run(launch, done, index - done, fresh=False, observed=False)
                if state > 0:
                    state = self._run(launch, index, 1, fresh, observed=True)
                    fresh, done, traced = False, index + 1, traced + 1
            self.spent_s += time.monotonic() - began
            if state > 0 and done < blocks:
                state = self._run(launch, done, blocks - done, fresh=False, observed=False)
        self._report(launch, blocks, traced)
        return 0 if state > 0 else 1

    def _run(self, launch: Any, first: int, count: int, fresh: bool, *, observed: bool) -> int:
        """Run blocks in the instrumented build, with the instrument on or off."""
        progress = module.launch(
            self.checker,
            self.tables,
            launch.kernel,
            launch.args,
            grid=launch.grid,
            block=launch.block,
            first_block=first,
            num_blocks=count,
            shared_bytes=launch.shared,
            detects=self.detect and observed,
            counts=not self.detect and observed,
            in_step=True,
            banks=32,
            fresh=fresh,
            cooperative=launch.cooperative,
        )
        looks = self.detect and observed
        kernel = launch.kernel.contents.name
        before_s = self.observed_s.get(kernel, 0.0)
        left_s = max(self.kill_after - before_s, self.kill_after / LATER)
        while (state := self.checker.cudalab_check_wait(100)) == 0:
            progress.update()
            if progress.stuck_s > self.kill_after * (1 if self.detect else COUNTED):
                self.checker.cudalab_check_stop()
            elif looks and (
                progress.spent_s > left_s
                or progress.stuck_s > self.kill_after / 2
                or machine.resident_memory() > self.most_resident
            ):
                looks = False
                self.whole = False
                self.send("examined", progress.blocks)
                self.checker.cudalab_check_look_away()
                self.observed_s[kernel] = before_s + progress.spent_s
        if looks:
            progress.update()
            self.whole &= state > 0
            self.observed_s[kernel] = before_s + progress.spent_s
        if self.detect and machine.resident_memory() > self.most_resident / 2:
            self.checker.cudalab_check_release()
        return int(state)

    def _report(self, launch: Any, blocks: int, traced: int) -> None:
        kernel = launch.kernel.contents
        name = kernel.name.decode(errors="replace")
        called = self._called(launch, kernel, name)
        names = rows.Names(
            kernel=name,
            tables=self.tables,
            grid=tuple(launch.grid),
            block=tuple(launch.block),
            buffers={region: (called[region], 0) for region in called},
            about=self._about,
        )
        if self.detect:
            self.send("findings", rows.findings(self.checker, names))
        self.known_looks, lines = rows.looks(
            self.checker, self.tables, self.known_looks, whole=self.whole
        )
        if lines:
            self.send("looks", lines)
        if not self.detect:
            self.send("trace", rows.trace(self.checker, names, blocks, traced))

    def _called(self, launch: Any, kernel: Any, name: str) -> dict[int, str]:
        """Names for memory: the kernel's parameter, or the line that allocated it."""
        called = dict(self.variables)
        parameters = self.library.parameters.get(name.partition("<")[0].rpartition("::")[2], [])
        for i in range(kernel.num_params):
            if not kernel.param_sizes[i] & 128:
                continue
            address = ctypes.cast(launch.args[i], ctypes.POINTER(ctypes.c_void_p)).contents.value
            memory = self.host.cudalab_observed_memory(ctypes.c_void_p(address or 0))
            if memory:
                named = parameters[i] if i < len(parameters) else ""
                made = f"{memory.contents.file.decode()}:{memory.contents.line}"
                called.setdefault(memory.contents.region, named or f"the memory of {made}")
                self.made[memory.contents.region] = memory.contents.bytes, made
        return called

    def _about(self, kind: str, region: int) -> str:
        """What a finding of this kind says of memory besides its name."""
        num_bytes, made = self.made.get(region, (0, ""))
        is_known = kind == "out_of_bounds" and num_bytes
        return f"{num_bytes:,} bytes, allocated at {made}" if is_known else ""
