"""The oracle: random kernels in every way, compared with plain C++ and with a GPU's answers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from tests.oracle.faults import FAULTS, kernels_until_found
from tests.oracle.gpu import compared, documents, measure
from tests.oracle.programs import cuda_program
from tests.oracle.runner import WAYS, batches, compare


@click.group()
def main() -> None:
    """Compare random kernels with sequential host functions and with a GPU."""


@main.command()
@click.argument("first", type=int)
@click.argument("count", type=int)
@click.option("--size", default=50, help="Kernels in a program.")
@click.option("--ways", default="loops,fibers", help=f"All: {','.join(WAYS)}.")
@click.option("--jobs", default=os.cpu_count() or 1, help="Programs at a time.")
def host(first: int, count: int, size: int, ways: str, jobs: int) -> None:
    """Compare COUNT seeds from FIRST with plain C++ at -O0."""
    wrong = refused = 0
    chosen = ways.split(",")
    for seeds, found in compare(batches(first, count, size), chosen, jobs):
        for difference in found:
            refused += difference.refused
            wrong += not difference.refused
            click.echo(f"{difference.way}: {difference.seed}: {difference.line[:3000]}")
        click.echo(f"up to {seeds[-1]}: {wrong} differ, {refused} refused", err=True)
    click.echo(f"{count} seeds, {len(chosen)} ways: {wrong} differ, {refused} refused")
    sys.exit(bool(wrong))


@main.command()
@click.argument("seeds", type=int, nargs=-1)
def show(seeds: tuple[int, ...]) -> None:
    """Print the program of some seeds."""
    click.echo(cuda_program(list(seeds)))


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("first", type=int)
@click.argument("count", type=int)
@click.option("--size", default=50, help="Kernels in a program.")
def write(folder: Path, first: int, count: int, size: int) -> None:
    """Write programs into a folder, for any other compiler."""
    for seeds in batches(first, count, size):
        (folder / f"{seeds[0]}.cu").write_text(cuda_program(seeds))


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("first", type=int)
@click.argument("count", type=int)
@click.option("--jobs", default=os.cpu_count() or 1, help="Programs at a time.")
def gpu(folder: Path, first: int, count: int, jobs: int) -> None:
    """Run COUNT seeds from FIRST on this machine's GPU, and store their answers.

    FOLDER keeps the programs.
    """
    click.echo(measure(folder, first, count, jobs))


@main.command()
@click.option("--programs", default=10**6, help="So many programs of a hundred seeds.")
def stored(programs: int) -> None:
    """Compare the stored answers of GPUs with plain C++ at -O0."""
    differ = 0
    for path, document in documents():
        count, left_out, wrong = compared(document, programs)
        differ += len(wrong)
        said = (
            f"{path.name}: {count} compared, {len(wrong)} differ; {left_out} left out, whose shifts"
        )
        click.echo("\n".join([*wrong, f"{said} nvcc knows to be too wide"]))
    sys.exit(bool(differ))


@main.command()
@click.argument("numbers", type=int, nargs=-1)
@click.option("--limit", default=300.0, help="The processor's seconds for each.")
@click.option("--ways", default="loops,fibers", help=f"All: {','.join(WAYS)}.")
def faults(numbers: tuple[int, ...], limit: float, ways: str) -> None:
    """Plant faults in a copy of the package; say after how many kernels each is found."""
    missed = 0
    for number in numbers or range(len(FAULTS)):
        fault = FAULTS[number]
        count, seconds = kernels_until_found(fault, ways.split(","), limit)
        missed += count is None
        result = f"not found in {seconds:.0f} s" if count is None else f"found by kernel {count}"
        click.echo(f"{number}: {fault.name}: {result} ({seconds:.0f} s)")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
