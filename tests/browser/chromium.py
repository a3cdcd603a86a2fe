"""A real headless Chromium, driven by its command line."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

DARK = "--blink-settings=preferredColorScheme=0"
_MEASURE = """
<!doctype html><meta charset="utf-8"><body style="margin:0">
<iframe id="page" style="border:0;width:{width}px;height:2000px" srcdoc="{page}"></iframe>
<script>
document.getElementById("page").addEventListener("load", () => {{
  const page = document.getElementById("page").contentDocument, view = page.defaultView;
  const found = (() => {{ {script} }})();
  const told = document.createElement("pre");
  told.id = "told";
  told.textContent = JSON.stringify(found);
  document.body.replaceChildren(told);
}});
</script>
"""


def chromium() -> str:
    """Return the browser's path; without one, skip on a developer's machine and fail where all must run."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if (found := shutil.which(name)) is not None:
            return found
    reason = "no Chromium is installed: neither chromium, chromium-browser nor google-chrome was found"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def run(folder: Path, page: Path, *flags: str) -> str:
    """Open a page in a fresh profile, without a network, and return what the browser prints."""
    command = [
        chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
        "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=2000",
        f"--user-data-dir={folder / 'profile'}", *flags, page.as_uri(),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout


def measured(folder: Path, page: str, script: str, width: int = 1100, *flags: str) -> Any:
    """Show a page in a frame of a width and return what a script, which sees it as `page`, finds there."""
    wrapped = folder / "measured.html"
    wrapped.write_text(_MEASURE.format(width=width, page=html.escape(page), script=script), encoding="utf-8")
    printed = run(folder, wrapped, "--dump-dom", f"--window-size={max(width, 500)},2000", *flags)
    told = re.search(r'<pre id="told">(.*?)</pre>', printed, re.DOTALL)
    assert told is not None, printed[:2000]
    return json.loads(html.unescape(told[1]))
