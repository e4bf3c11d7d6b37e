"""The command `watch`: a verdict each time that a file is saved."""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cudalab import labs
from cudalab.cli.options import (
    CASE_HELP,
    EXISTING,
    CaseCommand,
    lines,
    quiet_option,
    seconds_option,
)
from cudalab.errors import CudalabError, ExitCode, UsageError, nearest
from cudalab.output.notes import is_silent
from cudalab.output.prose import columns, filled

if TYPE_CHECKING:
    from cudalab.watch.changes import Version
    from cudalab.watch.program import ProgramWatcher
    from cudalab.watch.resident import Desk
    from cudalab.watch.watching import KernelWatcher

STYLES: dict[str, dict[str, Any]] = {
    "bad": {"fg": "red", "bold": True},
    "good": {"fg": "green", "bold": True},
    "cost": {"fg": "yellow"},
    "dim": {"dim": True},
    "printed": {"dim": True},
    "": {},
}
LIMITS = (
    "It looks at inputs with n up to 4,096, for matrices 65, on the CPU device; `cudalab check` "
    "has the last word. "
    "Exit status with --once: that of `check`, for a program that of `run --sanitize`."
)
ARGUMENTS, NVCC = "cudalab: the program's arguments", "cudalab: nvcc's options"
MARGIN = 10  # of what follows a verdict's time


class WatchCommand(CaseCommand):
    """A command about a lab's kernel, or about a program with nvcc's options and arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split at `--`; without a lab, the words are those of `cudalab run`."""
        from cudalab.program.options import split

        at = args.index("--") if "--" in args else len(args)
        args, ctx.meta[ARGUMENTS] = args[:at], args[at + 1 :]
        ctx.meta[NVCC] = []
        if not any(arg in labs.names() for arg in args):
            args, ctx.meta[NVCC] = split(args)
        return super().parse_args(ctx, args)


@click.command(
    "watch",
    cls=WatchCommand,
    epilog="\n\n".join(
        [
            lines(
                "Example",
                "cudalab new reduce my.cu",
                "cudalab watch reduce my.cu",
                "cudalab watch reduce my.cu --show",
                "cudalab watch reduce my.cu --once; echo $?",
                "cudalab watch program.cu --stdin in.txt -- argument",
            ),
            CASE_HELP,
            LIMITS,
        ]
    ),
)
@click.argument("words", nargs=-1, required=True, metavar="[LAB] FILE.cu [-- ARGUMENTS]")
@click.option("--once", is_flag=True, help="Judge the file as it is, and end.")
@click.option("--show", is_flag=True, help="Also print the code of the next rung.")
@seconds_option(
    "--kill-after", "Limit of each test and launch; a program has four times that.", 5.0
)
@click.option("--stdin", type=EXISTING, metavar="FILE", help="What a program reads.")
@click.option("-I", "include", multiple=True, metavar="DIR", help="Where a program has headers.")
@click.option("-D", "define", multiple=True, metavar="NAME[=VALUE]", help="A program's macro.")
@quiet_option
@click.pass_context
def watch(
    ctx: click.Context, /, *, words: tuple[str, ...], once: bool, show: bool, **options: Any
) -> int:
    """Judge FILE.cu each time that it is saved, and say what has changed.

    A verdict names compile errors, wrong answers, races and the like with their lines. Once there
    are none, it names bank conflicts, accesses that are not coalesced and divergent branches, the
    rung of the lab's ladder that the kernel is at, and the idea of the next one. Ctrl-C ends it.

    Without LAB the file is a whole program, with nvcc's options as for `run`: what it prints, how
    it ends, what is wrong with it and what it costs.
    """
    from cudalab.watch.resident import Desk

    name, path = lab_and_file(words)
    with Desk() as desk:
        judge: KernelWatcher | ProgramWatcher = (
            _kernel(ctx, name, path, desk, options)
            if name
            else _program(ctx, path, options, show=show)
        )
        if once:
            if not path.is_file():
                make = f"cudalab new {name} {path}" if name else None
                raise CudalabError(f"{path}: there is no such file", hint=make)
            version = judge.judge()
            _show(version, None, stamp=False)
            return version.exit_code
        return _follow(judge, path, show=show)


def _kernel(
    ctx: click.Context, name: str, path: Path, desk: Desk, options: dict[str, Any]
) -> KernelWatcher:
    """What judges a lab's kernel; `options` are the lab's, and this command's."""
    from cudalab.watch.watching import KernelWatcher

    kill_after = options.pop("kill_after")
    stdin, include, define = (options.pop(one) for one in ("stdin", "include", "define"))
    if stdin or include or define or ctx.meta[ARGUMENTS]:
        raise UsageError("--stdin, -I, -D and arguments are for a whole program, without LAB")
    return KernelWatcher(
        labs.get(name), path, str(path), desk, options=options, kill_after=kill_after,
        on_rungs=lambda: show_passing("counting the ladder's rungs, once"),
    )  # fmt: skip


def _program(
    ctx: click.Context, path: Path, options: dict[str, Any], *, show: bool
) -> ProgramWatcher:
    """What judges a whole program."""
    from cudalab.watch.program import ProgramWatcher

    if show:
        raise UsageError("--show is for a lab's kernel: cudalab watch LAB FILE.cu --show")
    own = [f"-I{one}" for one in options["include"]] + [f"-D{one}" for one in options["define"]]
    return ProgramWatcher(
        path, str(path), options["kill_after"], options=[*own, *ctx.meta[NVCC]],
        arguments=ctx.meta[ARGUMENTS], stdin=options["stdin"],
    )  # fmt: skip


def _follow(judge: KernelWatcher | ProgramWatcher, path: Path, *, show: bool) -> int:
    """Judge version after version, until Ctrl-C."""
    from cudalab.watch.following import Follower

    before: Version | None = None
    follower = Follower(path)
    if not is_silent():
        there = "" if path.exists() else ", which is not there yet"
        click.echo(f"watching {path}{there}; save it for a verdict, Ctrl-C leaves", err=True)
    try:
        for _text in follower.versions():
            show_passing("judging")
            version = judge.judge()
            follower.include(judge.headers())
            _show(version, before, stamp=sys.stdout.isatty())
            if show and version.place and (not before or version.place != before.place):
                _show_rung(judge, version)
            before = version
    except KeyboardInterrupt:
        show_passing("")
        return ExitCode.INTERRUPTED
    return ExitCode.OK


def lab_and_file(words: tuple[str, ...]) -> tuple[str, Path]:
    """The lab, empty for a program, and the file of a command line; either may come first."""
    named = [word for word in words if word in labs.names()]
    files = [word for word in words if word not in named]
    if len(words) > 2 or len(files) != 1:
        raise UsageError("one file, and its lab: cudalab watch LAB FILE.cu")
    path = Path(files[0])
    if path.is_dir() or path.suffix != ".cu":
        raise UsageError(f"{path}: a .cu file is watched", hint=nearest(files[0], labs.names()))
    return named[0] if named else "", path


def show_passing(what: str) -> None:
    """Say on a terminal what is being done, in a line that the next one replaces."""
    if sys.stderr.isatty() and not is_silent():
        click.echo(f"\r\x1b[K{what}\r", nl=False, err=True)


def _show(version: Version, before: Version | None, *, stamp: bool) -> None:
    from cudalab.watch.changes import lines as changes

    show_passing("")
    print_lines(changes(version, before), time.strftime("%H:%M:%S") if stamp else "")
    for note in version.notes:
        click.echo(f"note: {note}", err=True)


def print_lines(texts: Iterable[tuple[str, str]], stamp: str) -> None:
    """Print lines behind the time of the verdict, as wide as the terminal; a pipe's are whole."""
    margin = " " * MARGIN if stamp else ""
    room = max(columns() - len(margin), 0)
    head = f"{stamp:<{MARGIN}}" if stamp else ""
    for text, style in texts:
        below = 0 if text.startswith(" ") else 2
        cut = style == "printed" and room
        for line in [text[:room]] if cut else filled(text, below, room=room).split("\n"):
            click.echo(click.style(head, dim=True) + click.style(line, **STYLES[style]))
            head = margin
    sys.stdout.flush()


def _show_rung(one: Any, version: Version) -> None:
    """Print the code of the next rung."""
    place = version.place
    for rung in one.rungs():
        if place is not None and rung.name == place.next_rung:
            click.echo(f"\n{rung.path.read_text(encoding='utf-8')}")
