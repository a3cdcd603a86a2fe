from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS

_REMOTE = re.compile(
    r"""<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=["'](?:https?:)?//[^"']*""", re.IGNORECASE
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("html")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-b",
        "html",
        "-d",
        str(out / "trees"),
        str(DOCS),
        str(out / "html"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1000, check=False)
    assert done.returncode == 0, done.stderr
    return out / "html"


def test_the_documentation_builds_without_a_warning(built: Path) -> None:
    assert (built / "index.html").is_file()


def test_no_page_loads_anything_from_a_network(built: Path) -> None:
    pages = list(built.rglob("*.html"))
    assert len(pages) > 10
    for page in pages:
        assert _REMOTE.findall(page.read_text(encoding="utf-8")) == [], page.name


def test_no_style_sheet_loads_anything_from_a_network(built: Path) -> None:
    for sheet in built.rglob("*.css"):
        assert not re.search(
            r"url\(['\"]?(?:https?:)?//|@import\s+(?:url\()?['\"]?(?:https?:)?//", sheet.read_text(encoding="utf-8")
        ), sheet.name
