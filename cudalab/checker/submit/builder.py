"""The part of the checker that compiles a whole program. It runs inside the sandbox.

    python -m cudalab.checker.submit.builder DEVICE FILE.cu...

compiles the files in ./source and writes ./program, and built.json: a `Failure`, which is empty if
there was none.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from cudalab.backends import emulated
from cudalab.backends.cuda.nvcc import leave_out_kernels
from cudalab.checker.submit import reports
from cudalab.errors import CudalabError
from cudalab.program.build import executable


def main() -> int:
    """Build the program, or report why that failed."""
    device, *files = sys.argv[1:]
    here, failure = Path.cwd(), reports.Failure()
    os.chdir("source")  # so that messages name the files as their author does
    try:
        options = () if emulated(device) else leave_out_kernels()
        shutil.copy2(executable(files, device, options), here / "program")
    except CudalabError as error:
        failure = reports.Failure(**reports.failure_of(error))
    (here / reports.BUILT).write_text(json.dumps(asdict(failure)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
