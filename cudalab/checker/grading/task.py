"""What a grader needs to know to judge a submission."""

from dataclasses import dataclass

from cudalab.checker.options import JudgingOptions
from cudalab.labs.inputs import Case


@dataclass(frozen=True, kw_only=True)
class Task:
    """Everything needed to judge one submission, here or on another machine."""

    lab: str
    name: str
    kind: str  # auto, kernel, program or command
    command: str  # for kind command: run in the submission's folder
    file: str  # within the submission; empty: to be detected
    options: Case
    judging: JudgingOptions  # including the seed that all submissions share
    payload: tuple[str, bytes] | None = None  # file name and bytes, for another machine
    tests_text: str | None = None  # the instructor's file, for another machine
