"""The floor plan: what lies where, and who may use what of whom."""

import ast
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import cudalab
from cudalab import backends, labs
from cudalab.backends.cpu.compiler import flags
from cudalab.language.source import HEADERS
from cudalab.program import runtime

PACKAGE = Path(cudalab.__file__).parent
REPOSITORY = Path(__file__).parents[2]
EVERYTHING_OPTIONAL = (
    *("cudaGraphLaunch", "cudaStreamBeginCapture", "cuInit(0)", "cudaMallocAsync", "tex2D"),
    *(f"#include <{name}>" for name in ("cublas_v2.h", "cublasLt.h", "mma.h", "curand.h")),
)
MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if "cheats" not in path.parts]
MODULES += sorted((REPOSITORY / "tools").rglob("*.py"))


def package_of(module: str) -> str:
    """The package right below cudalab in which a module lies: cudalab.bench.suite -> bench."""
    return module.removeprefix("cudalab").removeprefix(".").partition(".")[0]


def test_few_modules_lie_at_the_top():
    top = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    assert len(top) <= 6


def test_the_runtime_is_in_folders_that_can_be_surveyed():
    folders = [folder for folder in flags.RUNTIME.rglob("*") if folder.is_dir()]
    sizes = {folder: sum(path.is_file() for path in folder.iterdir()) for folder in folders}
    assert {folder: size for folder, size in sizes.items() if size > 25} == {}
    assert [path.name for path in flags.RUNTIME.iterdir() if path.is_file()] == []


def test_what_is_optional_of_the_runtime_is_built_only_where_it_is_named():
    optional = {path.stem for path in flags.RUNTIME.glob("optional/*/*.cpp")}
    assert optional == set(runtime.used(EVERYTHING_OPTIONAL))
    assert runtime.used(["#include <cuda_runtime.h>\nint main() { cudaMalloc(0, 0); }"]) == ()


def test_the_names_of_cuda_s_headers_are_those_of_the_runtime_s_files():
    folders = {Path(folder) for folder in flags.for_programs()[1::2]} - {flags.OF_SAMPLES}
    files = {
        path.relative_to(folder).as_posix()
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file()
    }
    ours = {name for name in files if name.startswith(("cudalab", "aliases/"))}
    assert files - ours == HEADERS


def private_names(path, nodes):
    """What is used of the private names of another package."""
    own = path.relative_to(PACKAGE).parts[0] if path.is_relative_to(PACKAGE) else "tools"
    foreign = set()  # modules of other packages, by their names here
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cudalab"):
            if package_of(node.module) == own:
                continue
            yield from (name.name for name in node.names if is_private(name.name))
            foreign |= {name.asname or name.name for name in node.names}
    for node in (node for node in nodes if isinstance(node, ast.Attribute)):
        named = isinstance(node.value, ast.Name) and node.value.id in foreign
        if named and is_private(node.attr):
            yield f"line {node.lineno}: {node.attr}"


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


MAX_POSITIONAL = 4


def positional_fields(node):
    """How many fields of a dataclass a caller may give by position; 0 for other classes."""
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    decorator = next((text for text in decorators if text.startswith("dataclass")), "kw_only=True")
    if "kw_only=True" in decorator:
        return 0
    count = 0
    for field in (each for each in node.body if isinstance(each, ast.AnnAssign)):
        if ast.unparse(field.annotation) == "KW_ONLY":
            break
        assigned = ast.unparse(field.value) if field.value else ""
        count += "init=False" not in assigned
    return count


def classes_of_many_fields(_, nodes):
    """Classes with more fields that are given by position than a reader can tell apart.

    Defaults count: whoever reads a call cannot tell which value is which.
    """
    classes = (node for node in nodes if isinstance(node, ast.ClassDef))
    return [node.name for node in classes if positional_fields(node) > MAX_POSITIONAL]


def test_the_count_of_fields_that_are_given_by_position():
    def count(body, decorator="@dataclass"):
        return positional_fields(ast.parse(f"{decorator}\nclass C:\n{body}").body[0])

    five = "".join(f"    {name}: int = 0\n" for name in "abcde")
    assert count(five) == count(five, "@dataclass(frozen=True)") == 5
    assert count(five, "@dataclass(frozen=True, kw_only=True)") == 0
    assert count("    a: int\n    _: KW_ONLY\n" + five) == 1
    assert count("    a: int\n    b: int = field(init=False)\n") == 1


# The topics and exercises of `explain` are of certain labs; `cudalab.sort` is one of them.
NAMED_BY = {"explain", "python"}


def words_of(text):
    """The parts of a name or a path; none of a sentence, whose words may be anything."""
    text = text.strip()
    return set() if re.search(r"[\s<]", text) else set(re.split(r"[/.:,]", text))


def literals(nodes):
    """All strings of a module but docstrings; those inside of f-strings, too."""
    docstrings = set()
    for node in nodes:
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() if ast.get_docstring(node):
                docstrings.add(node.body[0].value)
    constants = (node for node in nodes if isinstance(node, ast.Constant))
    yield from (one for one in constants if isinstance(one.value, str) and one not in docstrings)


def lab_of(path):
    """The lab in whose folder a module lies, or None."""
    parts = path.relative_to(PACKAGE).parts
    return parts[1] if parts[0] == "labs" and parts[1] in labs.names() else None


def labs_by_name(path, nodes):
    """Labs that are named outside of their own folder."""
    if path.is_relative_to(PACKAGE) and path.relative_to(PACKAGE).parts[0] not in NAMED_BY:
        others = set(labs.names()) - {lab_of(path)}
        for one in literals(nodes):
            if words_of(one.value) & others:
                yield f"line {one.lineno}: {one.value}"


def imported_labs(path, nodes):
    """Imports of labs by others, who get them by `labs.get` and ask them what they need."""
    if not path.is_relative_to(PACKAGE):
        return []
    others = [f"cudalab.labs.{name}" for name in labs.names() if name != lab_of(path)]
    imported = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            imported |= {f"{node.module}.{name.name}" for name in node.names}
        elif isinstance(node, ast.Import):
            imported |= {name.name for name in node.names}
    return [one for one in imported for lab in others if f"{one}.".startswith(f"{lab}.")]


def test_a_name_is_found_in_names_and_paths_and_not_in_sentences():
    found = [
        name
        for text in ("scan", "scan/parts/x.cuh", "labs.scan", "a scan of it", "<scan>", "scans")
        for name in words_of(text) & {"scan"}
    ]
    assert found == ["scan"] * 3
    module = ast.parse(
        '"""scan"""\ndef f(x):\n    "scan"\n    return "scan" + f"{x}/scan"\ng("table")'
    )
    assert {one.value for one in literals([*ast.walk(module)])} == {"scan", "/scan", "table"}


def compared(nodes):
    """The strings that a module compares with: by ==, by in, and in the cases of a match."""
    for node in nodes:
        sides = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            sides = [node.value]
        for side in sides:
            parts = side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side]
            yield from (
                (part.value, part.lineno) for part in parts if isinstance(part, ast.Constant)
            )


def devices_by_name(path, nodes):
    """Comparisons with a device's name: devices differ by what they can be asked."""
    if path.is_relative_to(PACKAGE) and "backends" not in path.parts:
        return [found for found in compared(nodes) if found[0] in backends.DEVICES]
    return []


@pytest.mark.parametrize("name", backends.DEVICES)
def test_a_device_says_the_same_before_and_after_its_module_is_loaded(name):
    assert backends.DEVICES[name].load().facts is backends.facts(name)


@pytest.mark.parametrize(
    "code",
    ['device == "cuda"', '"cpu" != name', 'name in ("cuda", "cpu")', 'match d:\n case "cpu": ...'],
)
def test_comparisons_with_a_device_s_name_are_seen(code):
    assert {value for value, _ in compared(ast.walk(ast.parse(code)))} & set(backends.DEVICES)


RULES = (private_names, classes_of_many_fields, labs_by_name, imported_labs, devices_by_name)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_a_module_keeps_the_rules(path):
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    assert {rule.__name__: list(rule(path, nodes)) for rule in RULES} == {
        rule.__name__: [] for rule in RULES
    }


def test_workers_know_which_tests_belong_together(request):
    """Or else each of them would compile the same kernels: a pytest may be too new for xdist."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        pytest.skip("one process runs all tests")
    assert request.node.nodeid.endswith("@test_structure")


@pytest.mark.skipif(
    not (REPOSITORY / ".git").exists() or not shutil.which("git"), reason="no clone of git"
)
def test_nothing_that_was_built_is_in_the_repository():
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=True
    )
    paths = [REPOSITORY / name for name in listed.stdout.decode().split("\0") if name]
    assert not {path.suffix for path in paths} & {".o", ".so", ".gch", ".pyc"}
    assert [path for path in paths if path.is_file() and path.stat().st_size > 1 << 20] == []
