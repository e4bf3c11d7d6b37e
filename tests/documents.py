"""What commands print, whichever test calls them.

JSON: strictly JSON, one document, and as its schema says. In a pipe, lines without blanks at the
end.
"""

import json
from functools import cache
from itertools import pairwise
from pathlib import Path

from cudalab import labs

SCHEMAS = Path(__file__).parent.parent / "cudalab" / "schemas"


@cache
def validator(name):
    """The validator of a schema such as cudalab-bench/1."""
    import jsonschema  # noqa: PLC0415 - for few runs

    path = SCHEMAS / f"{name.removeprefix('cudalab-').replace('/', '-')}.json"
    schema = json.loads(path.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def _refuse(word):
    raise AssertionError(f"{word} is not JSON")


def checked(text, command=None):
    """The document in a text, which is valid; `command` is a part of its schema's name."""
    document = json.loads(text, parse_constant=_refuse)
    validator(document["schema"]).validate(document)
    assert command is None or document["schema"].startswith(f"cudalab-{command}/")
    return document


def check_run(words, stdout, cwd):
    """Check the document of a command with --json, wherever it has written one."""
    words = [str(word) for word in words]
    if "--" in words:
        words = words[: words.index("--")]
    for option, file in pairwise(words):
        if option != "--json":
            continue
        path = Path(cwd or Path.cwd(), file)
        if file != "-" and path.is_file():
            checked(path.read_text())
        elif file == "-" and stdout:
            checked(stdout)


# Commands whose stdout is a program's, a file's or a lab's answer: not theirs to trim.
_OTHERS = {"run", "show", "gen", *labs.names()}


def check_lines(words, stdout):
    """Check that a command pads no line of what it prints, but for tables with a frame."""
    text = stdout if isinstance(stdout, str) else stdout.decode(errors="replace")
    if words and words[0] not in _OTHERS and not {"\x1b", "\0", "│"} & set(text):
        padded = [line for line in text.splitlines() if line != line.rstrip()]
        assert not padded, padded[:3]
