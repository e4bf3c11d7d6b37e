"""What the cache keeps for the next prediction."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudalab.predict import kept


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "cache_dir", lambda _: tmp_path)
    return tmp_path


def test_a_document_is_kept_under_what_it_follows_from(folder):
    name = kept.key("source", 128, ("a", 1))
    assert name not in (kept.key("source", 128, ("a", 2)), kept.key("source", 1, 28, ("a", 1)))
    assert kept.load(name) is None
    kept.save(name, {"rows": [1, 2]})
    assert kept.load(name) == {"rows": [1, 2]}
    assert [path.name for path in folder.iterdir()] == [f"{name}.json"]


def test_a_damaged_document_is_none(folder):
    (folder / "name.json").write_text('{"rows": [1,')
    assert kept.load("name") is None


def test_a_cache_without_room_keeps_nothing(folder, monkeypatch):
    def fails(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fails)
    kept.save("name", {})
    assert list(folder.iterdir()) == []
