"""Writes the files by which a platform judges submissions: `cudalab grade --make`.

All of them hold cudalab itself, as it is installed here, so that every submission is judged by the
version that the instructor has tried.
"""

import io
import json
import shlex
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

import cudalab
from cudalab.checker.cases import Plan
from cudalab.errors import CudalabError
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.language import source

TESTS = "tests.toml"
STAGES = {"kernel": "its kernels compute the answer", "sanitize": "it has no races"}
SOURCES = (".cu", ".cuh", ".h")
OTTERS_OWN = (
    b"# Otter runs a notebook or one Python file: this one, if only a .cu file is handed in.\n"
)


@dataclass(frozen=True, kw_only=True)
class Course:
    """A lab, and how its submissions are judged."""

    lab: Lab
    words: Sequence[str]  # options of `cudalab check`, except --tests
    tests: Path | None
    plan: Plan  # of these tests, or the public list

    def command(self, tests: str = TESTS) -> list[str]:
        """The command that judges; `tests` is where the instructor's file will be."""
        own = ["--tests", tests] if self.tests else []
        return ["check", self.lab.name, *self.words, *own]

    def files(self) -> Iterator[tuple[str, bytes]]:
        """The instructor's tests, and the inputs that they name."""
        if self.tests is None:
            return
        yield TESTS, self.tests.read_bytes()
        for test in self.plan.tests:
            if test.file is not None:
                try:
                    name = test.file.resolve().relative_to(self.tests.resolve().parent)
                except ValueError:
                    raise CudalabError(
                        f"{test.file}: an input that travels with the tests lies in their folder"
                    ) from None
                yield name.as_posix(), test.file.read_bytes()


def gradescope(course: Course) -> Iterator[tuple[str, bytes]]:
    """The autograder's zip file, which is uploaded as it is."""
    default = registry.default(course.lab, course.lab.complete({}), "cpu").name
    texts = {
        "setup.sh": _text("setup.sh", LAB=course.lab.name, VARIANT=default),
        "python.sh": _text("python.sh"),
        "run_autograder": _text("run_autograder", COMMAND=shlex.join(course.command())),
    }
    files = {name: text.encode() for name, text in texts.items()}
    files |= {"requirements.txt": _requirements(), "cudalab.zip": zipped(package())}
    yield "autograder.zip", zipped([*files.items(), *course.files()])


def _carried(course: Course) -> Iterator[tuple[str, bytes]]:
    """cudalab, the packages that it needs, and the instructor's files."""
    yield "cudalab.zip", zipped(package())
    yield "requirements.txt", _requirements()
    yield from course.files()


def actions(course: Course) -> Iterator[tuple[str, bytes]]:
    """A workflow of GitHub Actions for the repository that students' ones are copied from."""
    folder = ".github/cudalab"
    command = shlex.join(course.command(f"{folder}/{TESTS}"))
    yield ".github/workflows/check.yml", _text("actions.yml", COMMAND=command).encode()
    for name, data in _carried(course):
        yield f"{folder}/{name}", data


def classroom50(course: Course) -> Iterator[tuple[str, bytes]]:
    """An autograder for the teacher's repository: CLASSROOM/autograders/ASSIGNMENT/."""
    text = _text("autograder.txt", LAB=course.lab.name, COMMAND=_words(course))
    yield "autograder.py", text.encode()
    yield from _carried(course)


def _words(course: Course) -> str:
    """The command as a list in Python, with the tests beside the file that holds it."""
    words = [f"str(HERE / {word!r})" if word == TESTS else repr(word) for word in course.command()]
    return f"[{', '.join(words)}]"


def check50(course: Course) -> Iterator[tuple[str, bytes]]:
    """A folder of checks, which check50 calls a slug."""
    tests = list(dict.fromkeys(test.name for test in course.plan.tests if not test.hidden))
    checks = [_check(f"test_{number}", name, name) for number, name in enumerate(tests, 1)]
    if not any(test.hidden for test in course.plan.tests):  # on which these stages depend
        checks += [
            _check(name, title, name, "nothing to look at") for name, title in STAGES.items()
        ]
    text = _text(
        "checks.txt", LAB=course.lab.name, COMMAND=_words(course), CHECKS="\n\n".join(checks)
    )
    packages = _requirements().decode().split()
    settings = ["check50:", "  dependencies:", *(f"    - {json.dumps(one)}" for one in packages)]
    settings += ["  files:", '    - !exclude "*"', *(f'    - !include "*{e}"' for e in SOURCES)]
    yield ".cs50.yaml", ("\n".join(settings) + "\n").encode()
    yield "__init__.py", text.encode()
    for name, data in package():
        yield f"packages/{name}", data
    yield from course.files()


def _check(function: str, title: str, name: str, *missing: str) -> str:
    """A check that reads one result of cudalab."""
    arguments = ", ".join(map(repr, [name, *missing]))
    title = title.replace("\\", "\\\\").replace('"', "'")
    lines = ["@check50.check(compiles)", f"def {function}():", f'    """{title}"""']
    return "\n".join([*lines, f"    report({arguments})", ""])


def otter(course: Course) -> Iterator[tuple[str, bytes]]:
    """A file of tests for Otter-Grader, and what it needs beside the submission."""
    points = sum(test.points for test in course.plan.tests)
    cases = [_case(1, "compile", "stages", 0)]
    for number, test in enumerate(course.plan.tests, 2):
        cases.append(_case(number, test.name, "tests", test.points, hidden=test.hidden))
    if course.plan.rules.races == "points":  # a case of its own, which depends on all tests
        hidden = any(test.hidden for test in course.plan.tests)
        races = course.plan.rules.race_cost * points
        cases.append(_case(len(cases) + 1, "sanitize", "stages", races, hidden=hidden))
    text = _text(
        "otter.txt",
        LAB=course.lab.name,
        NAME=repr(course.lab.name),
        COMMAND=_words(course),
        CASES="\n\n".join(cases),
    )
    yield f"tests/{course.lab.name}.py", text.encode()
    yield "upload.py", OTTERS_OWN
    yield from _carried(course)


def _case(number: int, name: str, kind: str, points: float, *, hidden: bool = False) -> str:
    """A case of an Otter test, which reads one result of cudalab."""
    title = STAGES.get(name, "it compiles") if kind == "stages" else name
    head = f"@test_case(name={title!r}, points={points:g}, hidden={hidden})"
    return f"{head}\ndef case_{number}():\n    passes({kind!r}, {name!r})\n"


KINDS = {
    "gradescope": gradescope,
    "actions": actions,
    "classroom50": classroom50,
    "check50": check50,
    "otter": otter,
}


def write(kind: str, folder: Path, course: Course) -> list[Path]:
    """Write the files for a platform; CudalabError if one of them exists already."""
    files = {folder / name: data for name, data in KINDS[kind](course)}
    for path in files:
        if path.exists():
            raise CudalabError(f"{path} already exists; nothing was written")
    for path, data in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as error:
            raise CudalabError(f"{path}: cannot be written: {error.strerror}") from None
    return list(files)


@cache
def package() -> tuple[tuple[str, bytes], ...]:
    """The files of cudalab as it is installed here, with its kernels."""
    own, kernels = Path(cudalab.__file__).parent, source.kernels_dir()
    files = {path: path.relative_to(own.parent) for path in own.rglob("*")}
    files |= {
        path: Path("cudalab/kernels", path.relative_to(kernels)) for path in kernels.rglob("*")
    }
    return tuple(
        (name.as_posix(), path.read_bytes())
        for path, name in sorted(files.items())
        if path.is_file() and "__pycache__" not in name.parts
    )


def zipped(files: Sequence[tuple[str, bytes]]) -> bytes:
    """A zip file; scripts in it can be started."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            info = zipfile.ZipInfo(name)  # of 1980, so that equal contents give equal bytes
            mode = 0o755 if content.startswith(b"#!") else 0o644
            info.external_attr, info.compress_type = mode << 16, zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return data.getvalue()


def _requirements() -> bytes:
    """The packages that cudalab needs, a line for each."""
    lines = [line for line in metadata.requires("cudalab") or () if "extra ==" not in line]
    return "".join(f"{line.partition(';')[0].strip()}\n" for line in lines).encode()


def _text(name: str, **values: str) -> str:
    """A template with its values."""
    text = Path(__file__).with_name("templates").joinpath(name).read_text(encoding="utf-8")
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return text
