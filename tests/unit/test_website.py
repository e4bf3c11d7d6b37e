"""The pages of the site that are made when it is built. MkDocs itself is not needed here."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from cudalab import explain, labs
from tools.website import reference, sources

ROOT = Path(__file__).parents[2]


def test_each_file_has_a_place_of_its_own():
    folders = ("docs", "kernels", "tools", "samples/programs")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    paths += [*sources.DOCUMENTS]
    places = [sources.uri_of(path) for path in paths]
    assert len(set(places)) == len(places) > 100
    assert [sources.path_of(place) for place in places] == paths


def test_a_page_stands_once_in_the_navigation():
    uris = ("commands.md", "performance/README.md", "performance/cpu.md", "performance/scan.md")
    files = [SimpleNamespace(src_uri=uri) for uri in uris]
    nav = [{"Performance": ["performance/README.md", {"CPU": "performance/cpu.md"}, "perf*/*.md"]}]
    assert sources.expanded(nav, files) == [
        {"Performance": ["performance/README.md", {"CPU": "performance/cpu.md"}, uris[3]]}
    ]


@pytest.mark.parametrize(
    ("link", "place"),
    [
        ("README.md", "start.md"),
        (".", "start.md"),
        ("docs/run.md", "run.md"),
        ("docs/profile.png", "profile.png"),
        ("kernels/scan", "kernels/scan/README.md"),
        ("kernels/scan/blelloch.cu", "kernels/scan/blelloch.cu.md"),
        ("tests/broken", "tests/broken/index.md"),
        ("cudalab/explain/banks.py", "explain/banks.md"),
    ],
)
def test_links_lead_to_pages(link, place):
    (target,) = sources.targets(ROOT / "README.md", f"[text]({link}#part)")
    assert sources.uri_of(target) == place


def test_a_source_links_to_its_headers():
    text = sources.text_of(ROOT / "kernels" / "reduce" / "sequential.cu")
    assert "[reduce/parts/reduce_ops.cuh](parts/reduce_ops.cuh)" in text
    assert 'extern "C" __global__' in text


def test_a_folder_lists_its_files():
    text = sources.text_of(ROOT / "kernels")
    assert "* [reduce](reduce): Reduces an array" in text
    assert "* [sequential.cu](sequential.cu)" in sources.text_of(ROOT / "kernels" / "reduce")


def test_commands_have_their_options():
    pages = reference.command_pages()
    assert {f"commands/{name}.md" for name in (*labs.names(), "bench", "check")} <= pages.keys()
    scan = pages["commands/scan.md"]
    for heading in ("## `cudalab scan`", "## `cudalab gen scan`", "## `cudalab verify scan`"):
        assert heading in scan
    assert "| `--kernel FILE.cu` | " in scan
    assert "```sh\ncudalab gen scan" in scan


def test_topics_are_computed():
    pages = reference.topic_pages()
    assert len(pages) == len(explain.TOPICS)
    banks = pages["explain/banks.md"]
    assert "| float s\\[\\], s\\[32 \\* t\\] | 16-way | 32-way |" in banks
    assert "float s[16][17]\nrow 0" in banks
