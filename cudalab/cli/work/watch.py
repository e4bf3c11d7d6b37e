"""What `watch` does: judge version after version of a file, and print what is new."""

import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from cudalab import labs
from cudalab.cli.work.verdict import print_lines, show_passing
from cudalab.errors import CudalabError, ExitCode, UsageError, nearest
from cudalab.output.notes import is_silent
from cudalab.program.files import is_kernel_file
from cudalab.watch.changes import Version, lines
from cudalab.watch.following import Follower
from cudalab.watch.program import ProgramWatcher
from cudalab.watch.resident import Desk
from cudalab.watch.watching import KernelWatcher


def watch(
    arguments: list[str],
    nvcc_options: list[str],
    *,
    words: tuple[str, ...],
    once: bool,
    show: bool,
    **options: Any,
) -> int:
    """Watch a kernel file or a program, or judge it once."""
    name, path = lab_and_file(words)
    with Desk() as desk:
        judge: KernelWatcher | ProgramWatcher
        if name:
            judge = kernel_watcher(name, path, desk, arguments, **options)
        else:
            judge = program_watcher(path, arguments, nvcc_options, show=show, **options)
        if once:
            if not path.is_file():
                make = f"cudalab new {name} {path}" if name else None
                raise CudalabError(f"{path}: there is no such file", hint=make)
            version = judge.judge()
            _show(version, None, stamp=False)
            return version.exit_code
        return _follow(judge, path, show=show)


def kernel_watcher(
    name: str,
    path: Path,
    desk: Desk,
    arguments: Sequence[str],
    *,
    kill_after: float,
    stdin: Path | None,
    include: tuple[str, ...],
    define: tuple[str, ...],
    **options: Any,
) -> KernelWatcher:
    """What judges a lab's kernel; `options` are the lab's."""
    if stdin or include or define or arguments:
        raise UsageError("--stdin, -I, -D and arguments are for a whole program, without LAB")
    return KernelWatcher(
        labs.get(name), path, str(path), desk, options=options, kill_after=kill_after,
        on_rungs=lambda: show_passing("counting the ladder's rungs, once"),
    )  # fmt: skip


def program_watcher(
    path: Path,
    arguments: Sequence[str],
    nvcc_options: Sequence[str],
    *,
    show: bool,
    kill_after: float,
    stdin: Path | None,
    include: tuple[str, ...],
    define: tuple[str, ...],
) -> ProgramWatcher:
    """What judges a whole program."""
    if show:
        raise UsageError("--show is for a lab's kernel: cudalab watch LAB FILE.cu --show")
    own = [f"-I{one}" for one in include] + [f"-D{one}" for one in define]
    return ProgramWatcher(
        path, str(path), kill_after, options=[*own, *nvcc_options], arguments=arguments,
        stdin=stdin,
    )  # fmt: skip


def _follow(judge: KernelWatcher | ProgramWatcher, path: Path, *, show: bool) -> int:
    """Judge version after version, until Ctrl-C."""
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
    files = [word for word in words if word.endswith(".cu")]
    for word in words:
        if word not in (*named, *files):
            known = nearest(word, labs.names())
            raise UsageError(f"{word} is no lab, and no .cu file", hint=known)
    if len(files) != 1 or len(named) > 1:
        lab = named[0] if named else "LAB"
        raise UsageError("one .cu file is watched", hint=f"cudalab watch {lab} FILE.cu")
    path = Path(files[0])
    if path.is_dir():
        raise UsageError(f"{path} is a folder")
    if not named and path.is_file() and is_kernel_file(path.read_text("utf-8", "replace")):
        hint = f"name its lab: cudalab watch LAB {shlex.quote(str(path))}"
        raise UsageError(f"{path} is a kernel file, not a program", hint)
    return named[0] if named else "", path


def _show(version: Version, before: Version | None, *, stamp: bool) -> None:
    show_passing("")
    print_lines(lines(version, before), time.strftime("%H:%M:%S") if stamp else "")
    for note in version.notes:
        click.echo(f"note: {note}", err=True)


def _show_rung(one: Any, version: Version) -> None:
    """Print the code of the next rung."""
    place = version.place
    for rung in one.rungs():
        if place is not None and rung.name == place.next_rung:
            click.echo(f"\n{rung.path.read_text(encoding='utf-8')}")
