"""Source code on stdout, highlighted, with what it costs and what is wrong with it."""

from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import Any

from rich.text import Text

from cudalab.output.listing import Finding, Listing
from cudalab.output.prose import MAX_WIDTH, filled, is_pipe
from cudalab.output.terminal import LOOKS, console

FINDINGS_SHOWN = 3  # maximum of one kind that are printed with their lines
SHALLOW = 4  # the indentation of code that is wrapped
MIN_CODE = 12  # columns of code; without room for them it goes on below its margin


def cuda_source(text: str, headers: Sequence[str]) -> None:
    """Print highlighted CUDA C++ with line numbers, and below it the headers that it includes."""
    from rich.syntax import Syntax  # noqa: PLC0415 - takes as long as half of rich

    console().print(Syntax(text, "cuda", line_numbers=True, word_wrap=True))
    if headers:
        console().print("\nIncluded headers (--whole prints them in place):", style="bold")
    for header in headers:
        console().print(f"  {header}", markup=False, highlight=False)


def listing(annotated: Listing, text: str) -> None:
    """Print source with a margin; long lines are wrapped if they must be whole, else cut."""
    from rich.syntax import Syntax  # noqa: PLC0415 - as above

    target = console()
    source = Syntax(text, "cuda", background_color="default").highlight(text).split("\n")
    target.print(Text(annotated.label, style="bold"))
    target.print(Text(annotated.head.rstrip(), style="dim"), soft_wrap=True)
    for row in annotated.rows:
        if row.remark:
            indent = " " * (len(row.remark) - len(row.remark.lstrip()) + 2)
            filled = fill(row.remark, target.width, subsequent_indent=indent)
            target.print(Text(filled, style="dim"))
            continue
        line = Text()
        for cell in row.margin:
            line.append(cell.text, LOOKS[cell.style])
        if target.width - line.cell_len < MIN_CODE:
            line.rstrip()
        if target.width - line.cell_len < MIN_CODE:
            target.print(line, soft_wrap=True)
            line = Text(" " * SHALLOW)
        line.append("  ")
        code = source[row.line - 1]
        code.expand_tabs(4)
        for part in _wrapped(code, row.whole, target.width - line.cell_len):
            shown = line + part
            shown.rstrip()
            target.print(shown, no_wrap=True, overflow="ellipsis", crop=True)
            line = Text(" " * line.cell_len)
    target.print()


def _wrapped(code: Text, whole: int, room: int) -> list[Text]:
    """A line of code in lines of `room` columns that show its first `whole` letters."""
    indentation = len(code.plain) - len(code.plain.lstrip())
    if indentation + whole <= room:
        return [code]
    left = min(indentation, SHALLOW)
    parts = code[indentation : indentation + whole].wrap(console(), room - left - 2)
    for part in parts:
        part.rstrip()
    return [Text(" " * (left + 2 * (i > 0))) + part for i, part in enumerate(parts)]


def findings(title: str, groups: Iterable[Sequence[Finding]]) -> None:
    """Print the findings of `sanitize`; those of a group share one number, reason and cure."""
    target = console()
    width = target.width if is_pipe() else min(target.width, MAX_WIDTH + 10)

    def print_filled(text: str) -> None:
        layout: dict[str, Any] = {"initial_indent": "   ", "subsequent_indent": "   "}
        text = fill(text, width, break_long_words=False, break_on_hyphens=False, **layout)
        target.print(Text(text), soft_wrap=True)

    target.print(Text(filled(title, 2, room=target.width)), style="bold")
    for number, alike in enumerate(groups, 1):
        one, seen = alike[0], sum(row.count for row in alike)
        times = f", seen {seen:,} times" if seen > 1 else ""
        target.print()
        head = f"{number}. {'note: ' if one.note else ''}{one.title}{times}"
        target.print(Text(head, style="bold" if one.note else "bold red"), soft_wrap=True)
        different = list({row.what: row for row in reversed(alike)}.values())[::-1]
        for row in different[:FINDINGS_SHOWN]:
            print_filled(row.what)
            other_end = row.other_line or row.line, row.other_code or row.code
            for line, code in sorted({(row.line, row.code), other_end}):
                if code:
                    target.print(_quoted(line, code, target.width), soft_wrap=True)
        if len(different) > FINDINGS_SHOWN:
            print_filled(f"... and {len(different) - FINDINGS_SHOWN} more like these.")
        print_filled(f"Why: {one.why}")
        print_filled(f"Cure: {one.cure}")


def _quoted(line: int, code: str, width: int) -> Text:
    """A line of code with its number, continued below itself where the screen ends."""
    head = f"   {line:>6} | "
    layout: dict[str, Any] = {"initial_indent": head, "subsequent_indent": " " * (len(head) + 2)}
    shown = Text(fill(code, width, break_long_words=False, break_on_hyphens=False, **layout))
    shown.stylize("cyan", len(head))
    shown.stylize("dim", 0, len(head))
    return shown
