"""JSON on stdout is one document and nothing else, whatever a command or a program prints.

`command.cudalab` validates each document that a test makes a command write; here are the commands
whose documents no other test asks for.
"""

from __future__ import annotations

import json
import re

import click
import documents
import jsonschema
import pytest
from command import cudalab

from cudalab import explain, labs
from cudalab.backends import DEVICES
from cudalab.cli import documents as cli_documents
from cudalab.cli.app import cli
from cudalab.system import records
from tools.website import schemas

PRINTS = """#include <cstdio>
__global__ void fill(int *to) { to[threadIdx.x] = 1; printf("kernel\\n"); }
int main() {
    int *to;
    cudaMalloc(&to, 4 * sizeof(int));
    fill<<<1, 4>>>(to);
    cudaDeviceSynchronize();
    cudaFree(to);
    puts("program");
    return 0;
}
"""


def written(*words, status=0):
    """The document on stdout, and stderr."""
    done = cudalab(*words, "--json", "-")
    assert done.returncode == status, done.stderr.decode()
    return documents.checked(done.stdout), done.stderr.decode()


WITHOUT = {  # commands that have no result, and why
    "show": "prints a file",
    "new": "writes a file",
    "learn": "a conversation",
    "watch": "a conversation; `check` judges the same file",
}


def commands():
    """All commands by name, those about a lab with `reduce`: the option --json of each, or None."""
    top = click.Context(cli)
    for name in cli.list_commands(top):
        command = cli.get_command(top, name)
        words, shown = (name,), command
        if isinstance(command, click.Group):
            words, shown = (name, "reduce"), command.get_command(click.Context(command), "reduce")
        options = shown.get_params(click.Context(shown))
        yield " ".join(words), next((one for one in options if "--json" in one.opts), None)


def test_there_is_one_way_to_ask_for_it_and_every_command_has_it():
    found = {name: option for name, option in commands() if option}
    assert {name for name, option in commands() if not option} == set(WITHOUT)
    assert all(option.type.allow_dash and not option.is_flag for option in found.values())


def test_every_command_s_document_has_a_schema():
    """A new command's document is listed for its schema, which `documents.checked` then demands."""
    listed = " ".join(made.command for made in schemas.DOCUMENTS)
    words = set(re.findall(r"cudalab (\w+)", listed))
    named = {name.split()[0] for name, option in commands() if option}
    assert named - set(labs.names()) <= words
    kinds = {made.kind for made in schemas.DOCUMENTS}
    own = {one for one in vars(cli_documents).values() if hasattr(one, "schema")}
    assert own <= kinds


def test_an_inventory(tmp_path):
    def listed(*words):
        document, _ = written(*words)
        assert cudalab(*words, "--json", tmp_path / "kept.json").stdout
        assert json.loads((tmp_path / "kept.json").read_text()) == document
        return document

    assert [one["name"] for one in listed("list")["labs"]] == list(labs.names())
    assert listed("list", "radixsort")["variants"][0]["devices"] == list(DEVICES)
    assert [one["name"] for one in listed("explain")["topics"]] == list(explain.TOPICS)
    host = listed("device")["devices"][-1]
    assert host["properties"]["max_block"] == [1024, 1024, 64]


def test_exercises():
    words = ("exercises", "--device", "cpu", "--size", "8", "--seed", "3")
    document, _ = written(*words)
    assert (document["device"], document["emulated"], document["seed"]) == ("cpu", True, 3)
    one = document["exercises"][0]
    assert (one["title"], one["size"]) == ("dot product", "8")
    assert all(time["median_ms"] > 0 and not time["failure"] for time in one["times"])


def test_a_lab_from_its_input_to_its_verdict(tmp_path):
    source, answer = tmp_path / "in.bin", tmp_path / "out.bin"
    made, _ = written("gen", "reduce", "--n", "1000", "--seed", "3", "-o", source)
    assert (made["bytes"], made["size"], made["seed"]) == (source.stat().st_size, "1,000", 3)
    ran, _ = written("reduce", "--device", "cpu", "-i", source, "-o", answer)
    assert (ran["input_bytes"], ran["answer_bytes"]) == (made["bytes"], answer.stat().st_size)
    assert [one["launches"] for one in ran["stages"] if one["launches"]]
    *parts, total = (one["ms"] for one in ran["stages"])
    assert ran["stages"][-1]["name"] == "total"
    assert sum(parts) == pytest.approx(total, abs=0.01)
    right, _ = written("verify", "reduce", source, answer)
    assert (right["correct"], right["elements"]) == (True, 1)
    answer.write_bytes(b"\1\2\3\4")
    wrong, said = written("verify", "reduce", source, answer, status=3)
    assert not wrong["correct"]
    assert f"Error: {wrong['message']}" in said


@pytest.mark.parametrize("words", [("gen", "reduce", "--n", "4"), ("reduce", "-i", __file__)])
def test_binary_data_and_json_do_not_share_stdout(words):
    done = cudalab(*words, "--json", "-")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"stdout is for the binary data\nHint: name a file with -o" in done.stderr


def test_a_program_s_own_output_goes_to_stderr(tmp_path):
    program = tmp_path / "prints.cu"
    program.write_text(PRINTS)
    document, said = written("run", "--device", "cpu", "--sanitize", program)
    assert document["clean"]
    assert said.count("kernel\n") == 4
    assert "program\n" in said
    assert "observed" not in said  # the document stands in the place of the report


def test_tables_give_way():
    words = ("bench", "reduce", "--device", "cpu", "--n", "64,100", "--variants", "serial")
    document, _ = written(*words, "--time-limit", "0.02")
    assert [one["size"] for one in document["tables"]] == ["64", "100"]
    done = cudalab(*words, "--json", "-", "--csv", "-")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"stdout is for --json already" in done.stderr
    done = cudalab("report", "reduce", "--json", "-")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"stdout is for the report" in done.stderr


# The schemas ---------------------------------------------------------------------------------


def test_a_schema_refuses_what_is_not_documented():
    """Else a valid document would say nothing."""
    made = next(one for one in schemas.DOCUMENTS if one.kind.__name__ == "Verified")
    document = json.loads(
        records.text(
            made.kind(
                lab="reduce", case={"op": "sum"}, correct=True, elements=1, message="", hint=""
            )
        )
    )
    documents.checked(json.dumps(document))
    for key, value in (("elements", "1"), ("case", []), ("schema", "cudalab-gen/1"), ("new", 1)):
        with pytest.raises(jsonschema.ValidationError):
            documents.validator("cudalab-verify/1").validate(document | {key: value})
    with pytest.raises(jsonschema.ValidationError):
        documents.validator("cudalab-verify/1").validate({"schema": "cudalab-verify/1"})


def test_what_json_cannot_say_is_never_written():
    with pytest.raises(ValueError, match="nan"):
        records.text({"ratio": float("nan")})
    with pytest.raises(AssertionError, match="Infinity is not JSON"):
        documents.checked('{"a": Infinity}')


def test_each_schema_is_of_the_draft_that_it_names():
    for made in schemas.DOCUMENTS:
        name = schemas.name_of(made)
        assert documents.validator(name).schema["properties"]["schema"] == {"const": name}
    assert sorted(schemas.FOLDER.iterdir()) == sorted(map(schemas.path_of, schemas.DOCUMENTS))
