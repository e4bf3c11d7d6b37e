"""The side of the checker that compiles a whole program: runs inside the sandbox.

    python -m cudalab.checker.builder DEVICE FILE.cu...

leaves ./program and compiled.json in the working directory, or failed.json.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from cudalab.cli_run import build
from cudalab.errors import CudalabError


def main() -> int:
    """Build, or say why not."""
    device, *files = sys.argv[1:]
    try:
        shutil.copy2(build(tuple(files), device, (), ()), "program")
    except CudalabError as error:
        said = {"error": type(error).__name__, "message": error.message, "hint": error.hint or ""}
        Path("failed.json").write_text(json.dumps(said), encoding="utf-8")
        return int(error.exit_code)
    Path("compiled.json").write_text("{}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
