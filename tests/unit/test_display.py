"""Tables on screens that are too narrow for them, and on a stdout that lacks characters."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from io import StringIO

import pytest

from cudalab.errors import CudalabError
from cudalab.output import code, listing, prose, terminal
from cudalab.output.grid import Column, Grid
from cudalab.output.listing import Cell

HEADS = ("variant", "summary", "devices")
ROW = ("interleaved_strided", "The same tree, the first threads work", "cuda, cpu")


def wide(columns):
    """A table of results over so many sizes, of numbers that may not be cut."""
    sizes = [f"{10_000 + i:,}" for i in range(columns)]
    return Grid(
        "times",
        [Column("variant", right=False), *map(Column, sizes)],
        [["interleaved_strided", *(f"{1_000_000 + i:,}" for i in range(columns))]],
        notes=["a note"],
    )


def test_rows_become_paragraphs_where_a_table_has_no_room(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    terminal.table("reduce", HEADS, [ROW])
    assert "┃ variant" in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "50")
    terminal.table("reduce", HEADS, [ROW])
    assert capsys.readouterr().out.split("\n") == [
        "reduce",
        "interleaved_strided",
        "  summary: The same tree, the first threads work",
        "  devices: cuda, cpu",
        "",
    ]


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_number_is_cut(monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    terminal.grid(wide(20))
    out = capsys.readouterr().out
    assert all(len(line) <= width for line in out.splitlines())
    assert "…" not in out
    assert all(f"{10_000 + i:,}" in out and f"{1_000_000 + i:,}" in out for i in range(20))
    assert out.count("interleaved_strided") == out.count("variant") > 1
    assert out.count("a note") == 1


def test_what_fits_is_one_table():
    assert terminal.parts_that_fit(wide(3), [0, 1, 2, 3], 80) == [[0, 1, 2, 3]]
    assert terminal.parts_that_fit(wide(3), [0, 2], 10) == [[0, 2]]
    assert terminal.parts_that_fit(wide(3), [0, 1, 2, 3], 40) == [[0, 1], [0, 2], [0, 3]]


def test_characters_that_stdout_lacks_are_written_in_others():
    program = (
        "from cudalab.output import terminal;"
        "terminal.lines(['12 µs ± 3 %, 10⁹/s, 1.5 × …, Größe'])"  # noqa: RUF001
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "12 us +- 3 %, 10^9/s, 1.5 x ., Gr??e\n"


def test_a_closed_stdout_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(CudalabError, match="stdout is closed"):
        terminal.console()


VERDICTS = [
    ("ok", "compile", "", "compiled for the CPU device"),
    ("FAILED", "  less than a block", "200 uniform", "wrong answer: 1 of 1 elements"),
]


def test_verdicts_are_sentences_where_columns_have_no_room(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    terminal.verdict("reduce", VERDICTS, [], [])
    assert "FAILED    less than a block  200 uniform" in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "40")
    terminal.verdict("reduce", VERDICTS, [], [])
    assert capsys.readouterr().out.splitlines()[1:5] == [
        "ok     compile: compiled for the CPU",
        "         device",
        "FAILED   less than a block: 200 uniform:",
        "         wrong answer: 1 of 1 elements",
    ]


def test_code_stands_below_a_margin_that_leaves_no_room(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    wide = listing.Row((Cell("   1 "), Cell("3 sectors of 4, conflicts 8")), 1)
    narrow = listing.Row((Cell("   2 "), Cell(" " * 27)), 2)
    code.listing(listing.Listing("a.cu", "line", [wide, narrow]), "out[i] = x[i];\nreturn out;\n")
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()[2:5]] == [
        "   1 3 sectors of 4, conflicts 8", "      out[i] = x[i];", "   2  return out;"
    ]  # fmt: skip


# A pipe and a terminal ----------------------------------------------------------------------------

LONG = ", ".join(["an answer that was never written"] * 5)


def shown():
    """Everything that the commands print is made of these."""
    terminal.table("title", ["name", "text"], [["a", LONG], ["bb", "short"]])
    terminal.grid(wide(20))
    terminal.lines([LONG])
    terminal.properties("device", {"name": LONG, "cores": 1234})
    command = "cudalab sanitize reduce --kernel my.cu --n 200 --dist uniform --seed '1 --2'"
    terminal.verdict(
        f"reduce: {LONG}",
        [("ok", "compile", "", "compiled"), ("FAILED", "correct", "n = 3", LONG)],
        [("many blocks", [LONG, f"see: {command}", f"  {command} > in.bin"])],
        [Cell(LONG)],
    )


def test_a_pipe_gets_whole_lines_without_padding(monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS", raising=False)
    shown()
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line != line.rstrip()] == []
    assert sum(LONG in line for line in lines) == 7
    assert not any(frame in line for line in lines for frame in "┃│━─\\")
    (row,) = (line for line in lines if line.startswith("interleaved_strided"))
    assert all(f"{1_000_000 + i:,}" in row for i in range(20))


@pytest.mark.parametrize("width", [60, 80])
def test_a_terminal_gets_no_longer_lines_than_it_has_room_for(monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    shown()
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    *_, copied = out.partition("    cudalab sanitize")[1:]
    first = ("cudalab sanitize" + copied).partition("in.bin")[0] + "in.bin"
    assert first.count("\\\n") >= 1  # a shell reads on there
    assert shlex.split(first.replace("\\\n", ""))[-4:] == ["--seed", "1 --2", ">", "in.bin"]


def test_sentences_are_wrapped_for_a_terminal_and_whole_in_a_pipe(monkeypatch):
    text = "  a list: one, two, three\nand the next line"
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys, "stdout", StringIO())
    assert prose.filled(text) == text
    monkeypatch.setenv("COLUMNS", "17")
    assert prose.filled(text, 2) == "  a list: one,\n    two, three\nand the next line"
    monkeypatch.setenv("COLUMNS", "200")
    assert prose.columns() == prose.MAX_WIDTH


def test_a_line_of_code_goes_on_below_itself():
    text = "out[i] = in[i] + 1;  // a remark"
    assert code._quoted(7, text, 1000).plain == f"        7 | {text}"
    assert code._quoted(7, text, 32).plain.splitlines() == [
        "        7 | out[i] = in[i] + 1;",
        "              // a remark",
    ]
