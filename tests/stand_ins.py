"""Headers of PTX written out in plain C++, for kernels on a device without the instructions."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from cudalab.language import source

STAND_INS = Path(__file__).parent / "kernels"


def written_out(tmp_path, monkeypatch, *headers):
    """From here on kernels come from a copy with stand-ins for these headers, for any device."""
    folder = tmp_path / "kernels"
    shutil.copytree(source.kernels_dir(), folder)
    for header in headers:
        (place,) = folder.rglob(header)
        shutil.copy(STAND_INS / header, place)
    for path in folder.rglob("*.cu"):
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub("^// requires .*\n", "", text, flags=re.MULTILINE), encoding="utf-8")
    monkeypatch.setattr(source, "_custom_kernels", folder)
