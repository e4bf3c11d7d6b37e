"""The oracle: random kernels in every way, compared with plain C++ and with a GPU's answers."""

from __future__ import annotations

import os
import sys
from math import inf
from pathlib import Path

import click

from tests.oracle.draws import VERSION
from tests.oracle.faults import FAULTS
from tests.oracle.foreign import compare as compare_foreign
from tests.oracle.foreign import store as store_foreign
from tests.oracle.gpu import compared, documents, measure
from tests.oracle.hunts import STORED, hunts, store
from tests.oracle.programs import cuda_program
from tests.oracle.runner import WAYS, Comparison, batches, compare


@click.group()
def main() -> None:
    """Compare random kernels with sequential host functions and with a GPU."""


@main.command()
@click.argument("first", type=int)
@click.argument("count", type=int)
@click.option("--size", default=50, help="Kernels in a program.")
@click.option("--ways", default="loops,fibers", help=f"All: {','.join(WAYS)}.")
@click.option("--jobs", default=os.cpu_count() or 1, help="Programs at a time.")
@click.option("--limit", default=inf, help="Seconds after which no program is begun.")
@click.option("--store", default="", help="Stores the result under this name.")
def host(first: int, count: int, size: int, ways: str, jobs: int, limit: float, store: str) -> None:
    """Compare COUNT seeds from FIRST with plain C++ at -O0."""
    result, counts = Comparison(ways.split(",")), "nothing compared"
    work = batches(first, count, size)
    for seeds, found, kinds in compare(work, result.ways, jobs, limit):
        result.add(seeds, found, kinds)
        for difference in found:
            click.echo(f"{difference.way}: {difference.seed}: {difference.line[:3000]}")
        counts = f"{len(result.differ)} differ, {len(result.refused)} refused"
        click.echo(f"up to {seeds[-1]}: {counts}", err=True)
    for kind, number in result.kinds.most_common():
        click.echo(f"{number} kernels, {kind}")
    click.echo(f"{result.seeds} seeds, {len(result.ways)} ways: {counts}")
    if store:
        click.echo(result.store(store, first, size))
    sys.exit(bool(result.differ))


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
@click.option("--limit", default=inf, help="Seconds after which no program is begun.")
def gpu(folder: Path, first: int, count: int, jobs: int, limit: float) -> None:
    """Run COUNT seeds from FIRST on this machine's GPU, and store their answers.

    FOLDER keeps the programs.
    """
    click.echo(measure(folder, first, count, jobs, limit))


@main.command()
@click.option("--programs", default=10**6, help="So many programs of a hundred seeds.")
def stored(programs: int) -> None:
    """Compare the stored answers of GPUs with plain C++ at -O0."""
    differ, found = 0, documents()
    for path, document in found:
        count, wrong = compared(document, programs)
        differ += len(wrong)
        click.echo("\n".join([*wrong, f"{path.name}: {count} compared, {len(wrong)} differ"]))
    if not found:
        raise click.ClickException(f"No GPU's answers are stored for version {VERSION}.")
    sys.exit(bool(differ))


@main.command()
@click.argument("numbers", type=int, nargs=-1)
@click.option("--limit", default=300.0, help="The processor's seconds for each.")
@click.option("--ways", default="loops,fibers", help=f"All: {','.join(WAYS)}.")
@click.option("--jobs", default=os.cpu_count() or 1, help="Faults at a time.")
@click.option("--end", default=inf, help="Seconds after which no fault is begun.")
@click.option("--to", type=click.Path(path_type=Path), default=STORED, help="Where to store it.")
def faults(
    numbers: tuple[int, ...], limit: float, ways: str, jobs: int, end: float, to: Path
) -> None:
    """Plant faults in a copy of the package; look for each, and store what it took.

    NUMBERS are places in the list, from 0 on; all of them if none are given.
    """
    planted = [FAULTS[i] for i in numbers or range(len(FAULTS))]
    found = []
    for each in hunts(planted, ways.split(","), limit, jobs, end):
        found.append(each)
        store(found, ways.split(","), limit, to)
        click.echo(each.text())
    sys.exit(any(each.seed is None for each in found))


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@click.option("--ways", default="loops,fibers", help=f"All: {','.join(WAYS)},nvcc.")
@click.option("--jobs", default=os.cpu_count() or 1, help="Programs at a time.")
@click.option("--store", "generator", default="", help="Stores the result: the generator's name.")
def foreign(folder: Path, ways: str, jobs: int, generator: str) -> None:
    """Compare kernels of another generator with plain C++."""
    verdicts = dict[str, str]()
    for name, verdict, messages in compare_foreign(folder, ways.split(","), jobs):
        verdicts[name] = verdict
        click.echo(f"{name}: {verdict}{messages and ': '}{messages[:500]}")
        if generator:
            store_foreign(verdicts, generator, ways.split(","))
    sys.exit(any(each.startswith("differs") for each in verdicts.values()))


if __name__ == "__main__":
    main()
