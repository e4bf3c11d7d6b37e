"""The part of the checker that compiles a whole program. It runs inside the sandbox.

    python -m cudalab.checker.submit.builder DEVICE FILE.cu...

compiles the files in ./source and writes ./program and compiled.json, or failed.json.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from cudalab.backends import emulated
from cudalab.backends.cuda.nvcc import leave_out_kernels
from cudalab.errors import CudalabError
from cudalab.program.build import executable


def main() -> int:
    """Build the program, or write why that failed."""
    device, *files = sys.argv[1:]
    here = Path.cwd()
    os.chdir("source")  # so that messages name the files as their author does
    try:
        options = () if emulated(device) else leave_out_kernels()
        shutil.copy2(executable(files, device, options), here / "program")
    except CudalabError as error:
        failed = {"error": type(error).__name__, "message": error.message, "hint": error.hint or ""}
        (here / "failed.json").write_text(json.dumps(failed), encoding="utf-8")
        return int(error.exit_code)
    (here / "compiled.json").write_text("{}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
