"""The command `doctor`. Nothing heavy is imported before it runs."""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

from pathlib import Path

import click

from cudalab.cli.inventory import show_check
from cudalab.cli.options import is_stdout, json_option, lines, quiet_option, write_json
from cudalab.errors import ExitCode


@click.command(
    "doctor",
    epilog="\n\n".join(
        [
            lines("Example", "cudalab doctor", "cudalab doctor --json -"),
            f"Exit status {ExitCode.NO_DEVICE} if something is missing that every command needs.",
        ]
    ),
)
@json_option()
@quiet_option
def doctor(*, json_path: Path | None) -> int:
    """Look at what cudalab needs of this machine, and print the line that mends what is wrong.

    Versions, memory, cache and disks, the compiler of the CPU device, the sandbox of `check` and
    `grade`, and the GPU, from its driver to PyCUDA. `MISSING` is what nothing works without; `no`
    is what only some commands need.
    """
    from cudalab.checker import doctor as checks

    found, part, usable = [], "", True
    for row in checks.rows():
        found.append(row)
        usable = usable and (row.ok or not row.needed)
        if not is_stdout(json_path):
            if row.part != part:
                click.echo(f"{row.part}:" if not part else f"\n{row.part}:")
                part = row.part
            show_check(row.mark, row.name, row.message, row.cure)
    write_json(json_path, checks.Document(usable=usable, checks=found))
    return ExitCode.OK if usable else ExitCode.NO_DEVICE
