"""The Russian documents follow the English ones."""

from __future__ import annotations

import pytest

from tools import results, translations

ENGLISH = "# Title\n\nA sentence.\n\n```sh\nls\n```\n"
OTHER = "<!-- follows a.md, commit abc1234, text {} -->\n# Titel\n\nEin Satz.\n\n```sh\nold\n```\n"


def test_no_translation_is_behind():
    assert not translations.behind()


@pytest.fixture
def pair(tmp_path, monkeypatch):
    """An English document and its translation, both of today."""
    monkeypatch.setattr(results, "ROOT", tmp_path)
    monkeypatch.setattr(translations, "FOLDER", tmp_path / "ru")
    english, other = tmp_path / "a.md", tmp_path / "ru" / "a.md"
    other.parent.mkdir()
    english.write_text(ENGLISH)
    other.write_text(OTHER.format(translations.hash_of_sentences(english)))
    return english, other


def test_a_changed_sentence_is_reported_and_a_changed_block_is_copied(pair):
    english, other = pair
    english.write_text(ENGLISH.replace("ls", "pwd"))
    assert not translations.behind()
    [(path, text)] = translations.pages()
    assert (path, text) == (other, other.read_text().replace("old", "pwd"))
    english.write_text(ENGLISH.replace("A sentence", "Another one"))
    [message] = translations.behind()
    assert message.startswith("a.md is behind: git diff abc1234 -- a.md")


def test_a_missing_block_or_head_is_refused(pair):
    english, other = pair
    english.write_text(ENGLISH * 2)
    with pytest.raises(SystemExit, match=r"a\.md: a\.md has 2 blocks of code"):
        list(translations.pages())
    other.write_text("# Titel\n")
    with pytest.raises(SystemExit, match="does not say which document it follows"):
        translations.behind()
