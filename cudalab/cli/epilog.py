"""The end of a command's help."""

from collections.abc import Sequence

from cudalab.output.prose import continued

WIDTH = 76  # of the longest example; click indents it by two columns more


def unwrapped(title: str, *lines: str) -> str:
    """A paragraph of a command's help whose lines click does not wrap."""
    return "\n".join(["\b", f"{title}:", *(f"  {line}" for line in lines)])


def examples(*commands: str, then: Sequence[str] = ()) -> str:
    """The end of a command's help: examples, and then paragraphs."""
    lines = [line for command in commands for line in continued(command, WIDTH).split("\n")]
    return "\n\n".join([unwrapped("Example", *lines), *then])
