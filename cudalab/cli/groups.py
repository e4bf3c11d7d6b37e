"""Groups of commands that are imported when they are used."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any

import click

from cudalab import labs
from cudalab.errors import nearest


class LabGroup(click.Group):
    """A group with a subcommand for each lab, made on demand, and commands from other modules."""

    def __init__(
        self,
        *args: Any,
        make: str,
        prepare: Callable[[Sequence[str]], None] = lambda _: None,
        places: Mapping[str, tuple[str, str]] = MappingProxyType({}),
        **options: Any,
    ) -> None:
        """The function `make` turns a lab into its command; `prepare` sees the arguments first.

        `places` has commands, as module:name, each with its line of this group's help.
        """
        super().__init__(*args, **options)
        self.make, self.prepare, self.places = make, prepare, places

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The labs, then the group's own commands."""
        return [*labs.names(), *super().list_commands(ctx), *self.places]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find the command; a lab is imported only now, because it imports NumPy."""
        if cmd_name in labs.names():
            made: click.Command = _load(self.make)(labs.get(cmd_name))
            return made
        if cmd_name in self.places:
            place, summary = self.places[cmd_name]
            command: click.Command = _load(place)
            command.short_help = summary
            return command
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the nearest names if there is no such command."""
        known = self.list_commands(ctx)
        if not args[0].startswith("-") and args[0] not in known:
            ctx.fail(f"No such command '{args[0]}': {nearest(args[0], known)}")
        if args[0] in labs.names() and not ctx.resilient_parsing:
            self.prepare(args[1:])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write two sections; neither the labs nor the commands are imported for their lines."""
        del ctx
        with formatter.section("Labs"):
            formatter.write_dl([(name, labs.summary(name)) for name in labs.names()])
        own = [(name, command.get_short_help_str(80)) for name, command in self.commands.items()]
        own += [(name, summary) for name, (_, summary) in self.places.items()]
        if own:
            with formatter.section("Commands"):
                formatter.write_dl(own)


def _load(place: str) -> Any:
    """What a module of this package calls by a name: module:name."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"cudalab.cli.{module}"), name)
