"""Run programs that others wrote on one device, and record what they print.

python -m tools.world --device cpu SOURCES RECORD
python -m tools.world --device cuda SOURCES RECORD      needs nvcc, and only Python's own library
python -m tools.world.compare CPU_RECORD CUDA_RECORD    stores docs/results/world/programs.json

SOURCES has a folder for each set of programs.toml, with its repository at the commit named there.
"""

import argparse
from pathlib import Path

from tools.world.programs import chosen
from tools.world.run import run

LIMIT_S = {"cpu": 60, "cuda": 20}


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.world")
    parser.add_argument("--device", choices=("cpu", "cuda"), required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--budget", type=float, default=1e9, help="seconds; begin none after them")
    parser.add_argument("--limit", type=int, help="seconds; 60 on the CPU device, 20 on a GPU")
    parser.add_argument("--only", default="", help="a part of the set and the name")
    parser.add_argument(
        "--verdicts", default="", help="those of the stored table that are run, in this order: A,B"
    )
    parser.add_argument("sources", type=Path)
    parser.add_argument("record", type=Path)
    given = parser.parse_args()
    run(
        given.device,
        given.sources,
        given.record,
        jobs=given.jobs,
        budget_s=given.budget,
        limit_s=given.limit or LIMIT_S[given.device],
        chosen=chosen(given.only, [each for each in given.verdicts.split(",") if each]),
    )


if __name__ == "__main__":
    main()
