"""Draws the pictures of the documents again.

    python -m tools.website.pictures            # needs chromium for docs/profile*.png

docs/profile.png and docs/profile-dark.png are a page of `cudalab profile` in a browser.
docs/assets/roofline.svg has the times that docs/results keeps, and bytes that the CPU device
counts.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from cudalab.bench import document
from cudalab.bench.charts import roofline
from cudalab.microscope.document import from_json
from cudalab.output import svg

DOCS = Path(__file__).parents[2] / "docs"
TIMES = DOCS / "results" / "bench" / "nvidia-h200.json"
PROFILED = ["reduce", "--n", "65536", "--blocks", "256"]
LADDER = ["matmul", "--variants", "all", "--n", "256", "--blocks", "8"]
SIZE = "1280,1130"  # of the window, in pixels of the page


def main() -> None:
    """Draw all of them."""
    with tempfile.TemporaryDirectory() as folder:
        page, counts = Path(folder, "page.html"), Path(folder, "counts.json")
        profile(*PROFILED, "--html", str(page))
        screenshot(page, DOCS / "profile.png", dark=False)
        screenshot(page, DOCS / "profile-dark.png", dark=True)
        profile(*LADDER, "--json", str(counts))
        draw_roofline(counts, DOCS / "assets" / "roofline.svg")


def profile(*words: str) -> None:
    """Run `cudalab profile`."""
    command = [sys.executable, "-m", "cudalab", "profile", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def screenshot(page: Path, target: Path, *, dark: bool) -> None:
    """A picture of a page in a window, with 1.25 pixels for each of the page's."""
    command = ["chromium", "--headless=new", "--no-sandbox", "--hide-scrollbars"]
    command += [f"--window-size={SIZE}", "--force-device-scale-factor=1.25"]
    command += [f"--blink-settings=preferredColorScheme={0 if dark else 1}"]
    command += [f"--screenshot={target}", page.as_uri()]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def draw_roofline(counts: Path, target: Path) -> None:
    """The ladder at the largest size of which there are times."""
    times = document.load(TIMES)
    counted = from_json(json.loads(counts.read_text(encoding="utf-8")))
    tables = [one for one in times.tables if (one.lab, one.case) == (counted.lab, counted.case)]
    chart = roofline(tables[-1], times.environment, counted)
    target.write_text(svg.file([chart]), encoding="utf-8")


if __name__ == "__main__":
    main()
