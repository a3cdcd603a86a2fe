"""Take the picture of a report for the landing page, with a browser that needs no screen.

python docs/report.py
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from incrowd.cli.main import main

DOCS = Path(__file__).parent
PICTURE = DOCS / "_static" / "report.png"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def take(browser: str) -> None:
    """Release the invented hospital table in a folder of its own, and photograph its report."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "hospital"
        shutil.copytree(DOCS.parent / "examples" / "hospital", work, ignore=shutil.ignore_patterns(".*", "__*"))
        words = ["release", "--policy", str(work / "policy.yaml"), "--out", str(work / "out")]
        if main(words) != 0:
            sys.exit("the release failed: there is no report to photograph.")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=960,592"]
        page = (work / "out" / "report.html").as_uri()
        command = [browser, *options, f"--screenshot={PICTURE}", page]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603


if __name__ == "__main__":
    found = next((name for name in BROWSERS if shutil.which(name)), None)
    if found is None:
        sys.exit(f"no browser was found: the picture stays as it is. Install one of {', '.join(BROWSERS)}.")
    take(found)
