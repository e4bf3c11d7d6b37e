"""Make a page of the site for each command, from click, and for each topic of `cudalab explain`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape
from textwrap import dedent
from typing import TYPE_CHECKING

import click

from cudalab import explain, labs
from cudalab.cli.app import cli
from cudalab.output.page import Commands, Drawing, Heading, Part, Text

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files


_RUN_BY_LAB = ("gen", "verify")  # groups: their commands stand on the pages of the labs
_QUOTED = re.compile(r"(`[^`]*`)")
_SPECIAL = re.compile(r"([\\*_\[\]|])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - an extra

    for name, text in {**command_pages(), **topic_pages()}.items():
        files.append(File.generated(config, name, content=text))
    return files


# Commands ----------------------------------------------------------------------------------------


def command_pages() -> dict[str, str]:
    """The page of each command; that of a lab has three commands."""
    top = click.Context(cli, info_name="cudalab")
    pages = {}
    for name in cli.list_commands(top):
        if name in _RUN_BY_LAB:
            continue
        groups = ["", *_RUN_BY_LAB] if name in labs.names() else [""]
        sections = (command_section(top, group, name) for group in groups)
        pages[f"commands/{name}.md"] = f"# {name}\n\n" + "\n".join(sections)
    return pages


def command_section(top: click.Context, group: str, name: str) -> str:
    """What `--help` prints for one command, as Markdown."""
    parent = top
    if group:
        found = cli.get_command(top, group)
        assert found is not None
        parent = click.Context(found, parent=top, info_name=group)
    owner = parent.command
    assert isinstance(owner, click.Group)
    command = owner.get_command(parent, name)
    assert command is not None
    ctx = click.Context(command, parent=parent, info_name=name, terminal_width=10_000)
    usage = command.get_usage(ctx).removeprefix("Usage: ")
    parts = [f"## `{ctx.command_path}`", paragraphs(command.help or ""), fenced("text", [usage])]
    options = [one for one in command.get_params(ctx) if isinstance(one, click.Option)]
    records = filter(None, (option.get_help_record(ctx) for option in options))
    rows = [[f"`{names}`", written(text)] for names, text in records]
    parts += [table(["option", "meaning"], rows), paragraphs(command.epilog or "")]
    return "\n\n".join(parts)


def paragraphs(help_text: str) -> str:
    """The paragraphs of a command's help; those that click must not wrap are lines of a shell."""
    parts = []
    for part in dedent(help_text).strip().split("\n\n"):
        if part.startswith("\b\n"):
            title, *lines = part.splitlines()[1:]
            parts += [written(title), fenced("sh", dedent("\n".join(lines)).splitlines())]
        else:
            parts.append(written(" ".join(part.split())))
    return "\n\n".join(parts)


# Topics ------------------------------------------------------------------------------------------


def topic_pages() -> dict[str, str]:
    """The page of each topic, computed as by `cudalab explain`."""
    return {f"explain/{topic}.md": topic_page(topic) for topic in explain.TOPICS}


def topic_page(topic: str) -> str:
    """A topic as Markdown."""
    title, _, rest = explain.summary(topic).partition(": ")
    subtitle = [f"*{rest[:1].upper()}{rest[1:]}.*"] if rest else []
    command = f"In the terminal: `cudalab explain {topic}`"
    return "\n\n".join([f"# {title}", *subtitle, *markdown(explain.page(topic)), command])


def markdown(parts: Iterable[Part]) -> Iterator[str]:
    """The parts of a page, one after another."""
    for part in parts:
        if isinstance(part, Heading):
            yield f"## {written(part.text.rstrip(':'))}"
        elif isinstance(part, Text):
            yield from map(written, part.paragraphs)
        elif isinstance(part, Drawing):
            yield fenced("text", part.lines)
        elif isinstance(part, Commands):
            yield fenced("sh", part.lines)
        else:
            yield table(part.columns, (list(map(written, row)) for row in part.rows))


# Markdown ----------------------------------------------------------------------------------------


def written(text: str) -> str:
    """Plain text as Markdown: only what stands between backticks has a meaning."""
    parts = _QUOTED.split(text)
    parts[::2] = [_SPECIAL.sub(r"\\\1", escape(part, quote=False)) for part in parts[::2]]
    return "".join(parts)


def fenced(language: str, lines: Iterable[str]) -> str:
    """Lines as they are, highlighted."""
    return "\n".join([f"```{language}", *lines, "```"])


def table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; its cells are Markdown."""
    columns = list(columns)
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
