"""What `cudalab run --sanitize` and `--profile` do: run an instrumented program, and report."""

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cudalab.cli import params
from cudalab.errors import ExitCode
from cudalab.language import kernel_file
from cudalab.microscope import document
from cudalab.microscope.remarks import of_profile
from cudalab.predict import local_memory
from cudalab.program.files import Part
from cudalab.program.observed import build, report, run
from cudalab.program.observed.verdict import judge
from cudalab.program.toolkit.rebuild import parts_of
from cudalab.system.supervise import prints_to_stderr


def observed(
    files: Sequence[str],
    words: list[str],
    arguments: list[str],
    *,
    sanitize: bool,
    leaks: bool,
    kill_after: float | None,
    json_path: Path | None,
    sarif: Path | None,
    github: bool,
) -> int:
    """Run the instrumented program; the report, or what stands in its place, goes to stderr.

    Stdout is the program's, unless a file of the report is.
    """
    program = parts_of(files, words)
    library = build.library(program)
    sources = [file for part in program for file in part.files]
    local = None if sanitize else in_local_memory(program)
    name, label = Path(files[0]).stem, sources[0].label
    alone = params.is_stdout(json_path, sarif)
    with prints_to_stderr() if alone else contextlib.nullcontext():
        status, trace = run.observe(
            library,
            [name, *arguments],
            detect=sanitize,
            kill_after=kill_after or run.KILL_AFTER_S,
            local=local or (),
        )
    shown = not (github or alone)
    with contextlib.redirect_stdout(sys.stderr):  # stdout belongs to the program
        if sanitize:
            found = judge(name, sources, trace, leaks=leaks)
            clean = found.errors == 0
            remarks, tool = found.remarks(label), "run --sanitize"
            content: Any = report.document(name, label, found, trace)
            if shown:
                report.sanitized(name, sources, found, trace)
        else:
            clean, whole = True, report.profile_of(name, sources, trace, local)
            remarks, tool = of_profile(whole), "run --profile"
            content = document.to_json(document.document(whole))
            if shown:
                report.profiled(name, sources, whole, trace)
        params.write_json(json_path, content)
        params.write_remarks(remarks, tool, sarif=sarif, github=github)
    if not clean:
        return ExitCode.WRONG_ANSWER
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    return os.WEXITSTATUS(status)


def in_local_memory(program: Sequence[Part]) -> frozenset[tuple[str, int, str]] | None:
    """The accesses that nvcc makes in local memory; None where it is not here to say so."""
    found = frozenset[tuple[str, int, str]]()
    for part in program:
        if not any(kernel_file.read(file.text).local_arrays for file in part.files):
            continue
        paths = [file.path for file in part.files[: part.sources]]
        texts = {file.label: file.text for file in part.files}
        accesses = local_memory.of_program(paths, texts, part.options)
        if accesses is None:
            return None
        found |= accesses
    return found
