"""Compare seeds with the reference: `python -m tests.oracle FIRST COUNT [BATCH [WAY …]]`.

`python -m tests.oracle show SEED` prints the smallest program of a seed;
`python -m tests.oracle write FOLDER FIRST COUNT BATCH` writes programs for a GPU's nvcc.
"""

import sys
from pathlib import Path

import click

from tests.oracle.programs import cuda_program
from tests.oracle.runner import WAYS, differences

if sys.argv[1] == "show":
    click.echo(cuda_program([int(sys.argv[2])]))
elif sys.argv[1] == "write":
    start, count, size = map(int, sys.argv[3:6])
    for begin in range(start, start + count, size):
        seeds = list(range(begin, min(begin + size, start + count)))
        Path(sys.argv[2], f"{begin}.cu").write_text(cuda_program(seeds))
else:
    start, count = map(int, sys.argv[1:3])
    size = int(sys.argv[3]) if len(sys.argv) > 3 else 50
    wrong = 0
    for begin in range(start, start + count, size):
        seeds = list(range(begin, min(begin + size, start + count)))
        for way, seed, line in differences(seeds, sys.argv[4:] or list(WAYS)):
            wrong += 1
            click.echo(
                f"{way}: {line[:2000]}" if line[0] != "r" else f"{way}: {seed} {line[:2000]}"
            )
    click.echo(f"{wrong} of {count} differ or are refused")
    sys.exit(bool(wrong))
