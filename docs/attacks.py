"""Bring the pages of the attacks up to date with their docstrings: `python docs/attacks.py`."""

from __future__ import annotations

import re
from pathlib import Path

from incrowd.attacks import attack_names, attack_of
from incrowd.attacks.answers import averaging, reconstruction

FOLDER = Path(__file__).parent / "reference" / "attacks"
_HEADINGS = {
    "Knows": "What is known",
    "Success": "When it succeeds",
    "Baseline": "Baseline",
    "Meaningless": "When it is meaningless",
    "Source": "Source",
}
_ON_ANSWERS = {"averaging": averaging, "reconstruction": reconstruction}


def pages() -> dict[str, str]:
    """Return the page of every attack by its name."""
    published = {name: _page(name, attack_of(name).__doc__ or "", _command(name)) for name in attack_names()}
    answers = {name: _page(name, attack.__doc__ or "", _call(name)) for name, attack in _ON_ANSWERS.items()}
    return published | answers


def _page(name: str, docstring: str, use: str) -> str:
    words = " ".join(docstring.split())
    parts = re.split(r"(?:^|(?<=[.)]) )(Knows|Success|Baseline|Source): |(?<=[.)]) (?=Meaningless )", words)
    sections = {"": parts[0]}
    place = 1
    while place < len(parts):
        heading, text = parts[place], parts[place + 1]
        sections[heading or "Meaningless"] = text
        place += 2
    lines = [f"# {name}", "", sections.pop(""), ""]
    for heading, title in _HEADINGS.items():
        text = sections[heading].removeprefix("Meaningless ")
        lines += [f"## {title}", "", text[:1].upper() + text[1:], ""]
    return "\n".join([*lines, "## Use", "", use, ""])


def _command(name: str) -> str:
    return f"`incrowd attack RELEASE --against DATA --control FILE --attack {name}`; see {{doc}}`../../how-to/attack`."


def _call(name: str) -> str:
    return (
        f"From Python, on a query service: `incrowd.attacks.answers.{name}`; it does not apply to a published table. "
        "See {doc}`../../how-to/attack`."
    )


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, page in pages().items():
        (FOLDER / f"{name}.md").write_text(page, encoding="utf-8")
