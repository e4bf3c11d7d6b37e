"""What the tests of the checker share."""

from __future__ import annotations

import os

import pytest
from checking import SORT


@pytest.fixture(autouse=True)
def open_folders(tmp_path):
    """As root each run may be a user of its own, and pytest's folders are root's alone."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o055)


@pytest.fixture
def sort(tmp_path):
    """A program in Python that sorts as radixsort does."""
    path = tmp_path / "sort.py"
    path.write_text(SORT)
    return path
