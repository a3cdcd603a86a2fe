"""The pages of the documentation, and the fenced blocks in them."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
_BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    return sorted(DOCS.rglob("*.md"))


def blocks(page: Path, language: str) -> list[str]:
    found = _BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [match["body"] for match in found if match["language"] == language]


def name(page: Path) -> str:
    return str(page.relative_to(DOCS))
