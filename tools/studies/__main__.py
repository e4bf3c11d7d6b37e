"""Run one of the studies, or list them.

python -m tools.studies [NAME [WORD...]]
"""

import ast
import sys
from importlib import import_module
from pathlib import Path


def summaries() -> dict[str, str]:
    """The first line of each study that has commands, by its name."""
    modules = sorted(Path(__file__).parent.glob("[a-z]*.py"))
    texts = {path.stem: path.read_text(encoding="utf-8") for path in modules}
    return {
        name: (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
        for name, text in texts.items()
        if "\ndef main(" in text
    }


def main(name: str = "", *words: str) -> int | None:
    """Run the study with its words."""
    studies = summaries()
    if name not in studies:
        print(__doc__, *(f"{each:16} {summary}" for each, summary in studies.items()), sep="\n")
        return 2 if name else 0
    status: int | None = import_module(f"tools.studies.{name}").main(*words)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
