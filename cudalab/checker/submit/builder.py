"""The part of the checker that compiles a whole program. It runs inside the sandbox.

    python -m cudalab.checker.submit.builder DEVICE FILE.cu...

compiles the files in ./source and writes ./program, and built.json: a `Failure`, which is empty if
there was none.
"""

import json
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from cudalab.backends import facts
from cudalab.backends.cuda.nvcc import leave_out_kernels
from cudalab.checker.submit import reports, views
from cudalab.errors import CudalabError
from cudalab.program.build import executable


def main() -> int:
    """Build the program, or report why that failed."""
    device, *files = sys.argv[1:]
    here, failure, found = Path.cwd(), {}, views.Views()
    builds = here / reports.BUILDS
    os.chdir("source")  # so that messages name the files as their author does
    if builds.is_file():
        known = views.from_json(json.loads(builds.read_bytes()))
        for path in sorted(Path().iterdir()):
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
            found.add(views.of_program(text, path.name, known))
    try:
        options = leave_out_kernels() if facts(device).nvcc else ()
        shutil.copy2(executable(files, device, options), here / "program")
    except CudalabError as error:
        failure = reports.failure_of(error)
    built = reports.Built(**failure, **asdict(found))
    (here / reports.BUILT).write_text(json.dumps(asdict(built)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
