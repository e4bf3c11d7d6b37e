"""Writes the generated parts of README.md: what the code knows is not typed a second time.

python docs/generate.py          rewrite them
python docs/generate.py --check  exit 1 and name the parts that are stale
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the checkout that these documents belong to

from cudalab import labs, registry  # noqa: E402
from cudalab.backends.cpu import CpuBackend  # noqa: E402
from cudalab.errors import ExitCode  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable

README = ROOT / "README.md"
RESULTS = ROOT / "docs" / "results"

_PART = re.compile(
    r"(?P<open><!-- generated: (?P<name>[a-z-]+) -->\n).*?(?P<close><!-- end -->)", re.DOTALL
)
_TARGET = re.compile(r"(?P<relation>[≤≥]) (?P<bound>\d+(?:\.\d+)?)")


def table(columns: list[str], rows: Iterable[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def variants() -> str:
    """One table a lab, from the headers of its kernels."""
    return "\n".join(
        f"`{lab}`: {labs.summary(lab)}\n\n"
        + table(
            ["variant", "what it does", "runs on", "default on"],
            (
                [
                    f"[`{variant.name}`]({variant.label})",
                    variant.summary + restrictions(variant),
                    "cuda" if variant.missing(CpuBackend.features) else "cuda, cpu",
                    ", ".join(variant.default),
                ]
                for variant in registry.variants(labs.get(lab))
            ),
        )
        for lab in labs.names()
    )


def restrictions(variant: registry.Variant) -> str:
    cases = [f"{axis} {', '.join(values)}" for axis, values in variant.applies.items()]
    needs = [f"requires {', '.join(variant.requires)}"] if variant.requires else []
    noted = "; ".join([*cases, *needs])
    return f" ({noted})" if noted else ""


def exit_codes() -> str:
    return table(["exit status", "meaning"], ([str(int(c)), c.meaning] for c in ExitCode))


def figures() -> str:
    """One table for each JSON file of docs/results."""
    found = [results(path) for path in sorted(RESULTS.glob("*.json"))]
    return "\n".join(found) or "No measurement is stored yet.\n"


def results(path: Path) -> str:
    """What one file holds; its form is described in docs/results/README.md."""
    stored = checked(path, json.loads(path.read_text(encoding="utf-8")), FILE_KEYS)
    rows = [row(checked(path, figure, FIGURE_KEYS)) for figure in stored["figures"]]
    driver = f", driver {stored['driver']}" if stored["driver"] else ""
    return f"{stored['device']}{driver}, {stored['date']}, commit `{stored['commit']}`\n\n" + table(
        ["figure", "target", "measured", "how"], rows
    )


FILE_KEYS = {"device": str, "driver": str, "date": str, "commit": str, "figures": list}
FIGURE_KEYS = {"figure": str, "target": str, "measured": (int, float), "unit": str, "how": str}


def checked(path: Path, values: dict[str, Any], keys: dict[str, Any]) -> dict[str, Any]:
    """`values` if it has exactly `keys`, of these types."""
    wrong = sorted(values.keys() ^ keys.keys())
    wrong += [k for k, kind in keys.items() if k in values and not isinstance(values[k], kind)]
    if values.get("target") and not _TARGET.fullmatch(str(values["target"])):
        wrong.append("target")
    if wrong:
        sys.exit(f"{path}: missing, unknown or of the wrong form: {', '.join(wrong)}")
    return values


def row(figure: dict[str, Any]) -> list[str]:
    unit, measured = figure["unit"], figure["measured"]
    target = _TARGET.fullmatch(figure["target"])
    reached = f"{measured:,} {unit}"
    if target is None:
        return [figure["figure"], "", reached, figure["how"]]
    bound = float(target["bound"])
    if measured > bound if target["relation"] == "≤" else measured < bound:
        reached += " (missed)"
    return [figure["figure"], f"{figure['target']} {unit}", reached, figure["how"]]


PARTS = {"variants": variants, "exit-codes": exit_codes, "figures": figures}


def generated(text: str) -> str:
    """`text` with every part between its markers replaced by what the code says today."""

    def part(match: re.Match[str]) -> str:
        return f"{match['open']}\n{PARTS[match['name']]()}\n{match['close']}"

    return _PART.sub(part, text)


def stale_parts(old: str, new: str) -> list[str]:
    pairs = zip(_PART.finditer(old), _PART.finditer(new), strict=True)
    return [was["name"] for was, now in pairs if was[0] != now[0]]


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    old = README.read_text(encoding="utf-8")
    new = generated(old)
    stale = stale_parts(old, new)
    if stale and arguments:
        sys.exit(f"README.md: stale: {', '.join(stale)}: run `python docs/generate.py`")
    README.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
