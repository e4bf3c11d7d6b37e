"""Put files of the repository on the site: README.md, the ladders, and whatever a page links to.

The site mirrors the repository, with `docs/` as its root. A source file that is linked to becomes
a page with its text, and a folder becomes a page with the names of its files, so that no link
leads out of the site.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
START = "start.md"  # README.md; the home page is one of its own
TOPICS = ROOT / "cudalab" / "explain"  # a link to a module is one to the page that it computes
DOCUMENTS = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md")
LANGUAGES = {
    **dict.fromkeys((".cu", ".cuh"), "cuda"),
    **dict.fromkeys((".h", ".cpp"), "cpp"),
    ".py": "python",
    ".toml": "toml",
    ".json": "json",
    ".txt": "text",
}
NOT_SEARCHED = "---\nsearch:\n  exclude: true\nhide:\n  - toc\n---\n"

_LINK = re.compile(r"(?<=\]\()(?!https?:|#)(?P<path>[^)\s#]+)(?P<anchor>#[^)\s]*)?(?=\))")
_PICTURE = re.compile(
    r"<picture>\s*<source [^>]*srcset=\"(?P<dark>[^\"]+)\">\s*"
    r"<img alt=\"(?P<alt>[^\"]+)\" src=\"(?P<light>[^\"]+)\">\s*</picture>"
)
_INCLUDE = re.compile(r'^#include "([\w./]+)"', re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents outside `docs/`, and all that is linked to."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - an extra

    ladders = sorted((ROOT / "kernels").glob("*/README.md"))
    waiting = [DOCS / file.src_uri for file in files.documentation_pages()]
    waiting = [path for path in waiting if path.is_file()] + [*DOCUMENTS, *ladders]
    added = set(waiting)
    while waiting:
        path = waiting.pop(0)
        text = text_of(path)
        if not files.get_file_from_path(uri_of(path)):
            files.append(File.generated(config, uri_of(path), content=text))
        linked = set(filter(is_page, targets(path, text)))
        waiting += sorted(linked - added)
        added |= linked
    config.nav = expanded(config.nav, files)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Let the page's links lead to pages of the site instead of files of the repository."""
    path = path_of(page.file.src_uri)
    if path.name == "README.md" and path.is_relative_to(ROOT / "kernels"):
        page.meta["hide"] = ["toc"]  # the tables of a ladder are wide

    def link(match: re.Match[str]) -> str:
        target = document((path.parent / match["path"]).resolve())
        if not target.exists():
            return match[0]
        here = Path(page.file.src_uri).parent
        return os.path.relpath(uri_of(target), here) + (match["anchor"] or "")

    pictures = r"![\g<alt>](\g<light>#only-light)\n![\g<alt>](\g<dark>#only-dark)"
    return _LINK.sub(link, _PICTURE.sub(pictures, markdown))


def targets(path: Path, text: str) -> Iterator[Path]:
    """The files and folders of the repository that a page links to."""
    folder = path if path.is_dir() else path.parent
    for match in _LINK.finditer(text):
        target = document((folder / match["path"]).resolve())
        if target.exists() and target.is_relative_to(ROOT):
            yield target


def document(path: Path) -> Path:
    """The README.md of a folder that has one, and otherwise the path itself."""
    readme = path / "README.md"
    return readme if readme.is_file() else path


def is_page(path: Path) -> bool:
    """Whether a file is a page of the site; data and pictures of `docs/` are only copied."""
    return path.is_dir() or path.suffix == ".md" or not path.is_relative_to(DOCS)


def is_readable(path: Path) -> bool:
    """Whether a folder or file has a page of its own; bytes such as samples have none."""
    return path.is_dir() or path.suffix in (".md", *LANGUAGES)


def uri_of(path: Path) -> str:
    """The place of a file or folder on the site, such as `kernels/scan/blelloch.cu.md`."""
    if path == ROOT / "README.md":
        return START
    if path.parent == TOPICS:
        return f"explain/{path.stem}.md"
    base = DOCS if path.is_relative_to(DOCS) else ROOT
    if path.is_dir():
        return (path / "index.md").relative_to(base).as_posix()
    suffix = ".md" if path.suffix != ".md" and is_page(path) else ""
    return path.relative_to(base).as_posix() + suffix


def path_of(uri: str) -> Path:
    """The file or folder whose page is at this place; the reverse of `uri_of`."""
    if uri == START:
        return ROOT / "README.md"
    for base in (DOCS, ROOT):
        for name in (uri, uri.removesuffix(".md")):
            if (base / name).is_file():
                return base / name
    return ROOT / uri


def text_of(path: Path) -> str:
    """The Markdown of a file's or a folder's page."""
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT).as_posix()
    if path.is_dir():
        lines = [
            f"* [{entry.name}]({entry.name}){summary_of(entry)}"
            if is_readable(entry)
            else f"* {entry.name}"
            for entry in sorted(path.iterdir())
            if entry.name[0] not in "._"
        ]
        return NOT_SEARCHED + f"# {name}/\n\n" + "\n".join(lines) + "\n"
    code = path.read_text(encoding="utf-8")
    fence = f'``````{LANGUAGES.get(path.suffix, "text")} linenums="1"'
    included = ", ".join(f"[{label}]({place})" for label, place in includes(path, code))
    return (
        NOT_SEARCHED
        + f"# {path.name}\n\n`{name}`\n\n"
        + (f"It includes {included}.\n\n" if included else "")
        + f"{fence}\n{code}``````\n"
    )


def summary_of(folder: Path) -> str:
    """What the README.md of a folder says first, if it has one."""
    readme = document(folder)
    if not readme.is_file() or readme == folder:
        return ""
    _, first, *_ = readme.read_text(encoding="utf-8").split("\n\n")
    return f": {first}"


def includes(path: Path, code: str) -> Iterator[tuple[str, str]]:
    """The headers in `kernels/` that a kernel includes, and the links to them."""
    for name in _INCLUDE.findall(code):
        for folder in (path.parent, ROOT / "kernels"):
            if (folder / name).is_file():
                yield name, os.path.relpath(folder / name, path.parent)
                break


def expanded(nav: Any, files: Files) -> Any:
    """The navigation with the pages that match in the place of each pattern, such as `*.md`.

    A page that is named beside a pattern stands in its own place only.
    """
    if isinstance(nav, dict):
        return {title: expanded(entry, files) for title, entry in nav.items()}
    if isinstance(nav, list):
        named = {page for entry in nav for page in _named(entry)}
        matched = [
            [
                file.src_uri
                for file in files
                if fnmatch.fnmatch(file.src_uri, entry) and file.src_uri not in named
            ]
            if isinstance(entry, str) and "*" in entry
            else [expanded(entry, files)]
            for entry in nav
        ]
        return [entry for entries in matched for entry in entries]
    return nav


def _named(entry: Any) -> list[str]:
    """The page that an entry of the navigation names, with or without a title."""
    pages = entry.values() if isinstance(entry, dict) else [entry]
    return [page for page in pages if isinstance(page, str) and "*" not in page]
