"""Colors of the page, in every mode of its reader."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import incrowd.workflows.report

STYLE = (Path(incrowd.workflows.report.__file__).parent / "style.css").read_text(encoding="utf-8")


def colors(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))


def luminance(color: str) -> float:
    parts = [int(color[place : place + 2], 16) / 255.0 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("mode", ["light", "dark", "print"])
def test_text_stands_out_from_its_page(mode: str) -> None:
    """WCAG 2.2, success criterion 1.4.3: a contrast of at least 4.5 to 1."""
    blocks = dict(zip(("light", "dark", "print"), re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL), strict=True))
    found = colors(blocks[mode])
    for ink in ("ink", "faint", "accent", "good", "warn", "bad"):
        for page in ("page", "soft", *(["bad-soft"] if ink in ("bad", "ink") else [])):
            bright, dim = sorted((luminance(found[ink]), luminance(found[page])), reverse=True)
            assert (bright + 0.05) / (dim + 0.05) >= 4.5, f"{ink} on {page}"
