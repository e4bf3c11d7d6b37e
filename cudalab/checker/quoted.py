"""What a report quotes, without the grader's paths: compilers and Python print where files lie.

A student may read a report. Where cudalab, Python, their packages and temporary files lie on the
machine that judges is nobody's business, and no reader can open them.
"""

import re
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from cudalab.checker.verdicts import Report
from cudalab.system.cache import base_dir

_COMMAND = re.compile(r"\s*see: ")  # its words are those of whoever called the checker
# A precompiled header names the files of the installation that has made it, which may be another.
_RUNTIME = re.compile(r"/[^\s:'\"]*/(?=cudalab/backends/cpu/runtime/)")
_BUILD = re.compile(r"(?:(?:cache/cudalab/)?\w+/)?build-\w+/")


def without_paths(report: Report) -> Report:
    """The report whose texts name the grader's files by what they are, from its packages on."""
    stages = [
        replace(
            one,
            says=quotable(one.says),
            details=_all(one.details),
            findings=[
                replace(
                    row,
                    what=quotable(row.what),
                    detail=quotable(row.detail),
                    file=row.file if row.line else "",
                )
                for row in one.findings
            ],
        )
        for one in report.stages
    ]
    tests = [
        replace(
            one,
            says=quotable(one.says),
            details=_all(one.details),
            notes=_all(one.notes),
            stderr="\n".join(_all(one.stderr.split("\n"))),
        )
        for one in report.tests
    ]
    return replace(report, stages=stages, tests=tests)


def _all(lines: Iterable[str]) -> list[str]:
    return [line if _COMMAND.match(line) else quotable(line) for line in lines]


def quotable(text: str) -> str:
    """A text without the folders in which the grader's own files lie."""
    text = _RUNTIME.sub("", text)
    # The folders of packages, of cudalab, of Python and of the cache; inner ones come first.
    places = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib")}
    places |= {Path(one) for one in sys.path if one.endswith("-packages")}
    places |= {Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[2], base_dir()}
    places |= {one.resolve() for one in places}
    system = {Path("/"), Path("/usr")}  # where they lie is no secret
    for folder in sorted(map(str, places - system), key=len, reverse=True):
        text = text.replace(f"{folder}/", "")
    box = rf"{re.escape(tempfile.gettempdir())}/cudalab-\w+-\w+"
    text = re.sub(rf"{box}/", "", text)
    return _BUILD.sub("", re.sub(box, ".", text))
