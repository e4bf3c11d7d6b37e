"""What a folder holds: a kernel file, a whole program or a command."""

import shlex
import sys
from pathlib import Path

from cudalab.backends import choose_device, device_for
from cudalab.checker.grading import unpack
from cudalab.checker.grading.task import Task
from cudalab.checker.sandbox import sandbox as sandboxes
from cudalab.checker.submit.kernel import Kernel
from cudalab.checker.submit.program import Program
from cudalab.checker.submit.submission import Command, Submission
from cudalab.checker.verdicts import ANY_DEVICE
from cudalab.labs.base import Lab

HEADER = "// /// cudalab"
MAIN = "main.py"  # which of several scripts is run


def submission_in(lab: Lab, task: Task, folder: Path, sandbox: sandboxes.Sandbox) -> Submission:
    """The submission in a folder. BadSubmissionError if there is none."""
    file = "/".join(map(unpack.usable, task.file.split("/")))
    kind, files = task.kind, [folder / file] if file else sorted(folder.glob("*.cu"))
    if file and not files[0].is_file():
        raise unpack.BadSubmissionError(f"there is no file {task.file}")
    if kind == "auto" and task.command:
        kind = "command"
    if kind == "auto":
        kind = _kind(files)
    if kind == "command":
        return Command(
            shlex.split(task.command) or _python(folder, file),
            sandbox,
            name=task.name,
            folder=folder,
            files=tuple(unpack.sources(folder)),
            device=ANY_DEVICE if task.judging.device == "auto" else task.judging.device,
        )
    if not files:
        raise unpack.BadSubmissionError("there is no .cu file", "--command runs other programs")
    device = task.judging.device
    if device == "auto" and kind == "kernel":
        device = choose_device()
    if kind == "kernel":
        kernels = [path for path in files if _has_header(path)] or files
        if len(kernels) > 1:
            names = ", ".join(path.name for path in kernels)
            raise unpack.BadSubmissionError(
                f"several kernel files: {names}", "--file names the one to judge"
            )
        return Kernel(
            lab=lab,
            path=kernels[0],
            sandbox=sandbox,
            device=device,
            label=kernels[0].name,
            threads=task.judging.threads,
        )
    return Program(files=files, sandbox=sandbox, name=task.name, device=device_for(device))


def _kind(files: list[Path]) -> str:
    if not files or all(path.suffix == ".py" for path in files):
        return "command"
    return "kernel" if any(map(_has_header, files)) else "program"


def _has_header(path: Path) -> bool:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        return any(line.rstrip() == HEADER for line in file)


def _python(folder: Path, file: str) -> list[str]:
    scripts = [folder / file] if file else sorted(folder.glob("*.py"))
    scripts = [path for path in scripts if path.name == MAIN] or scripts
    if len(scripts) != 1:
        raise unpack.BadSubmissionError(
            f"there is no .cu file, and neither one .py file nor a {MAIN}",
            "--command says what to run",
        )
    return [sys.executable, f"./{scripts[0].relative_to(folder)}"]  # not an option, as -c.py were
