"""The end of a command's help."""

from collections.abc import Sequence


def unwrapped(title: str, *lines: str) -> str:
    """A paragraph of a command's help whose lines click does not wrap."""
    return "\n".join(["\b", f"{title}:", *(f"  {line}" for line in lines)])


def examples(*commands: str, then: Sequence[str] = ()) -> str:
    """The end of a command's help: examples, and then paragraphs."""
    return "\n\n".join([unwrapped("Example", *commands), *then])
