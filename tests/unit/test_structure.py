"""The floor plan: what lies where, and who may use what of whom."""

import ast
from pathlib import Path

import pytest

import cudalab

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
