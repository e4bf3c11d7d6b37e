"""Make docs/shell/cudalab.1 from click: the manual page that `man cudalab` shows of a wheel."""

from textwrap import dedent

import click

from cudalab import labs
from cudalab.cli.app import cli
from tools import results

PAGE = results.ROOT / "docs" / "shell" / "cudalab.1"
_BY_LAB = ("gen", "verify")  # groups: their commands differ from lab to lab
_BEGIN = r""".TH CUDALAB 1 "" "" "cudalab"
.SH NAME
cudalab \- run the labs of a CUDA course, on a GPU or without one
.SH SYNOPSIS
.B cudalab
.I COMMAND
.RI [ OPTION ]...
"""


def text() -> str:
    """The manual page in the man macros of roff: a section for each command."""
    top = click.Context(cli, info_name="cudalab")
    sections = [_BEGIN, ".SH DESCRIPTION\n", paragraphs(cli.help or "")]
    for name in cli.list_commands(top):
        command = cli.get_command(top, name)
        assert command is not None
        ctx = click.Context(command, parent=top, info_name=name)
        if name in _BY_LAB and isinstance(command, click.Group):
            sections.append(section(ctx))
            for lab in labs.names():
                of_lab = command.get_command(ctx, lab)
                assert of_lab is not None
                below = click.Context(of_lab, parent=ctx, info_name=lab)
                sections.append(section(below))
        else:
            sections.append(section(ctx))
    return "".join(sections)


def section(ctx: click.Context) -> str:
    """What `--help` says of one command."""
    command = ctx.command
    arguments = [
        one.human_readable_name for one in command.params if one.param_type_name == "argument"
    ]
    usage = " ".join([ctx.command_path, "[OPTION]...", *arguments])
    title = ctx.command_path.removeprefix("cudalab ").upper()
    parts = [f'.SH "{roff(title)}"\n', f".B {roff(usage)}\n", paragraphs(command.help or "")]
    parts += [
        f".TP\n.B {breakable(roff(names(option)))}\n{roff(option.help or '')}\n"
        for option in command.params
        if isinstance(option, click.Option) and not option.hidden
    ]
    return "".join([*parts, paragraphs(command.epilog or "")])


def names(option: click.Option) -> str:
    """The spellings of an option and what it takes: `--dtype int32|float32`."""
    spelled = ", ".join([*option.opts, *option.secondary_opts])
    if option.is_flag or option.count:
        return spelled
    if isinstance(option.type, click.Choice):
        return f"{spelled} {'|'.join(map(str, option.type.choices))}"
    return f"{spelled} {option.metavar or option.type.name.upper()}"


def breakable(choices: str) -> str:
    """Choices that may be parted where a line ends."""
    return choices.replace("|", r"|\:")


def paragraphs(text: str) -> str:
    """The paragraphs of a command's help; those that click must not wrap keep their lines."""
    result = ""
    for part in filter(None, dedent(text).strip().split("\n\n")):
        if part.startswith("\b\n"):
            result += f".PP\n.nf\n{roff(part[2:])}\n.fi\n"
        else:
            result += f".PP\n{roff(' '.join(part.split()))}\n"
    return result


def roff(text: str) -> str:
    """Text without a meaning for roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(
        f"\\&{line}" if line.startswith((".", "'")) else line for line in text.split("\n")
    )
