"""The page on installing lists every extra, with what it brings."""

from __future__ import annotations

import re
import tomllib

from tests.docs.pages import DOCS

EXTRAS = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
PAGE = (DOCS / "install.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", PAGE, re.MULTILINE))


def test_every_extra_is_listed_with_the_packages_that_it_brings() -> None:
    assert list(ROWS) == list(EXTRAS)
    for extra in EXTRAS.keys() - {"dev"}:
        packages = [re.split(r"[\[>=<]", requirement)[0] for requirement in EXTRAS[extra]]
        assert re.findall(r"`([\w-]+)`", ROWS[extra]) == packages


def test_what_is_installed_by_example_exists() -> None:
    for names in re.findall(r'pip install "incrowd\[(.+)\]"', PAGE):
        assert set(names.split(",")) <= EXTRAS.keys()
