"""What the failures of a check mean, whatever the submission: the rules of its annotations."""

import re

from cudalab.checker.verdicts import Result, Stage, Why
from cudalab.output.annotations import Rule

_SMALLER = "Try the smallest input that fails, by the commands that the report shows."
_LIMIT = "The sandbox ends what exceeds it, so that other submissions are judged, too."
_GRADER = (
    "Nothing is known of the submission: the fault is the grader's or the machine's.",
    "Judge it again; if it happens again, show the message to whoever runs the grader.",
)
# why it matters, and its cure
_HELP = {
    Why.NOTHING: (
        "A stage has failed, and its message says why.",
        "Read the message; the report has more of it.",
    ),
    Why.WRONG: ("The answer is not what the lab asks for.", _SMALLER),
    Why.OVERRUN: (
        "A kernel wrote to memory that is not its own. Elsewhere that damages other data.",
        "Check each index against the size before the access, most of all in the last block.",
    ),
    Why.INPUT_CHANGED: (
        "The lab may use its input again, and a kernel that writes it gives another answer then.",
        "Declare the inputs const, and write into the output or into memory of your own.",
    ),
    Why.CRASH: ("A signal ended the run, so that there is no answer.", _SMALLER),
    Why.EXIT: (
        "The run ended by an error, so that its answer does not count.",
        "The last lines on stderr say what failed.",
    ),
    Why.CONTRACT: (
        "The lab launches its kernels itself: their names and parameters are agreed upon.",
        "Compare with the file that `cudalab new` writes for the lab.",
    ),
    Why.TIME: (
        _LIMIT,
        "Look for a loop that does not end, and for work that each thread does for all.",
    ),
    Why.CPU: (
        _LIMIT,
        "Look for a loop that does not end, and for work that each thread does for all.",
    ),
    Why.MEMORY: (_LIMIT, "Allocate what the input needs, once, and free it."),
    Why.OUTPUT: (_LIMIT, "Write the answer alone, and take out what prints from a loop."),
    Why.PROCESSES: (_LIMIT, "Start no processes, and no thread for each item."),
    Why.DISK: (_LIMIT, "Write the answer to stdout, and no files."),
    Why.ACCEPTED_BAD_INPUT: (
        "An input that ends too early has no answer; a program that gives one hides the fault.",
        "Check how much was read, and end with a message and a status other than 0.",
    ),
    Why.COMPILE: (
        "What does not compile cannot be judged.",
        "Begin with the first message: those below often follow from it.",
    ),
    Why.FOREIGN: (
        "A kernel file has device code alone; host code in it would run in the grader's process.",
        "Keep kernels and device functions; a whole program is handed in with --program.",
    ),
    Why.LOST: _GRADER,
    Why.SANITIZER: (
        "The program does what CUDA does not define, so that a right answer is luck.",
        "Each finding names its line, its threads and what usually cures it.",
    ),
    Why.NO_KERNEL: (
        "The answer stays right without the program's kernels, or whatever they are given.",
        "Compute on the device, and copy the result back.",
    ),
    Why.LANGUAGE: (
        "The file is no CUDA source, so that no compiler was asked.",
        "Hand in the .cu file itself, as text in UTF-8.",
    ),
    Why.GRADER: _GRADER,
    Why.NO_DEVICE: (
        "Without the device there is no verdict, and never a pass.",
        "Judge on a machine with the device, or with --device cpu.",
    ),
}
POINTS = Rule("points", "points", "The points of the submission.", "Nothing.")


def rule_of(one: Result | Stage) -> Rule:
    """The rule of a failure, whose name is its kind: `wrong_answer`."""
    title = str(one.why or one.status)
    return Rule(re.sub(r"\W+", "_", title), title, *_HELP[one.why])
