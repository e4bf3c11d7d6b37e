"""The floor plan: what lies where, and who may use what of whom."""

import ast
import os
import re
from pathlib import Path

import pytest

import cudalab
from cudalab import backends, labs

PACKAGE = Path(cudalab.__file__).parent
REPOSITORY = Path(__file__).parents[2]
MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if "cheats" not in path.parts]
MODULES += sorted((REPOSITORY / "tools").glob("*.py"))


def package_of(module: str) -> str:
    """The package right below cudalab in which a module lies: cudalab.bench.suite -> bench."""
    return module.removeprefix("cudalab").removeprefix(".").partition(".")[0]


def test_few_modules_lie_at_the_top():
    top = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    assert len(top) <= 6


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_no_module_uses_a_private_name_of_another_package(path):
    own = path.relative_to(PACKAGE).parts[0] if path.is_relative_to(PACKAGE) else "tools"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    foreign = set()  # modules of other packages, by their names here
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cudalab"):
            if package_of(node.module) == own:
                continue
            private = [name.name for name in node.names if name.name.startswith("_")]
            assert [name for name in private if not name.startswith("__")] == []
            foreign |= {name.asname or name.name for name in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            private = node.attr.startswith("_") and not node.attr.startswith("__")
            assert not (private and node.value.id in foreign), f"line {node.lineno}: {node.attr}"


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


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_no_more_than_four_fields_are_given_by_position(path):
    """Defaults count: whoever reads a call with more cannot tell which value is which."""
    classes = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    assert [node.name for node in classes if positional_fields(node) > MAX_POSITIONAL] == []


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


def literals(tree):
    """All strings of a module but docstrings; those inside of f-strings, too."""
    for node in ast.walk(tree):
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() if ast.get_docstring(node):
                node.body[0] = ast.Pass()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node


def lab_of(path):
    """The lab in whose folder a module lies, or None."""
    parts = path.relative_to(PACKAGE).parts
    return parts[1] if parts[0] == "labs" and parts[1] in labs.names() else None


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if path.is_relative_to(PACKAGE)],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_a_lab_is_named_in_its_own_folder_only(path):
    if path.relative_to(PACKAGE).parts[0] in NAMED_BY:
        return
    others = set(labs.names()) - {lab_of(path)}
    found = literals(ast.parse(path.read_text(encoding="utf-8")))
    assert [(one.lineno, one.value) for one in found if words_of(one.value) & others] == []


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if path.is_relative_to(PACKAGE)],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_nobody_imports_a_lab_but_the_lab_itself(path):
    """Others get it by `labs.get` and ask it what they need."""
    others = [f"cudalab.labs.{name}" for name in labs.names() if name != lab_of(path)]
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            imported |= {f"{node.module}.{name.name}" for name in node.names}
        elif isinstance(node, ast.Import):
            imported |= {name.name for name in node.names}
    assert [one for one in imported for lab in others if f"{one}.".startswith(f"{lab}.")] == []


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
    assert {one.value for one in literals(module)} == {"scan", "/scan", "table"}


def compared(tree):
    """The strings that a module compares with: by ==, by in, and in the cases of a match."""
    for node in ast.walk(tree):
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


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if path.is_relative_to(PACKAGE) and "backends" not in path.parts],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_no_module_asks_for_a_device_by_its_name(path):
    """Devices differ by what they can be asked; their names are keys of the registry."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [found for found in compared(tree) if found[0] in backends.DEVICES] == []


@pytest.mark.parametrize(
    "code",
    ['device == "cuda"', '"cpu" != name', 'name in ("cuda", "cpu")', 'match d:\n case "cpu": ...'],
)
def test_comparisons_with_a_device_s_name_are_seen(code):
    assert {value for value, _ in compared(ast.parse(code))} & set(backends.DEVICES)


def test_workers_know_which_tests_belong_together(request):
    """Or else each of them would compile the same kernels: a pytest may be too new for xdist."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        pytest.skip("one process runs all tests")
    assert request.node.nodeid.endswith("@test_structure")
