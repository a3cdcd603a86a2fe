"""Claims: their conditions and what they leave open, each once, with the claims that it belongs to."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from incrowd.core.claims.claim import Claim, Precondition, Status

Item = TypeVar("Item", bound=Hashable)

MEANING = {
    Status.PROVED: ("✓ proved", "follows from how the program works"),
    Status.CHECKED: ("✓ checked", "was tested on this release"),
    Status.ASSUMED: ("○ assumed", "only people can know; whoever signs takes it on"),
}
"""How it is known that a condition holds, as a sign and in words."""


@dataclass(frozen=True)
class Remark:
    """A sentence, and which claims it belongs to; a condition has a status too."""

    sentence: str
    claims: str
    status: Status | None = None


def gaps(claims: tuple[Claim, ...]) -> list[Remark]:
    """Return what claims do not protect."""
    stated = ((gap, place) for place, claim in enumerate(claims, 1) for gap in claim.not_protected)
    return [Remark(sentence(gap), words) for gap, words in _once(stated, len(claims))]


def conditions(claims: tuple[Claim, ...]) -> list[Remark]:
    """Return what claims rest on: what is proved first, what is assumed last."""
    stated = ((each, place) for place, claim in enumerate(claims, 1) for each in claim.preconditions)
    found: list[tuple[Precondition, str]] = list(_once(stated, len(claims)))
    found.sort(key=lambda item: list(Status).index(item[0].status))
    return [Remark(sentence(each.text), words, each.status) for each, words in found]


def assumptions(claims: tuple[Claim, ...]) -> list[str]:
    """Return what whoever signs takes on."""
    return [sentence(text) for text in dict.fromkeys(text for claim in claims for text in claim.assumed)]


def sentence(words: str) -> str:
    """Return words as a sentence.

    >>> sentence("what holds for a group")
    'What holds for a group.'
    """
    return f"{words[:1].upper()}{words[1:]}" + ("" if words.endswith((".", "!", "?")) else ".")


def _once(items: Iterable[tuple[Item, int]], of: int) -> Iterator[tuple[Item, str]]:
    """Yield each item once, in order, with the numbers of the claims that it belongs to."""
    found: dict[Item, list[int]] = {}
    for item, place in items:
        found.setdefault(item, []).append(place)
    for item, places in found.items():
        yield item, _numbers(places, of)


def _numbers(places: list[int], of: int) -> str:
    if len(places) == of:
        return "all claims"
    if len(places) > 2 and places[-1] - places[0] == len(places) - 1:
        return f"claims {places[0]} to {places[-1]}"
    return f"claim{'s' if len(places) > 1 else ''} {', '.join(map(str, places))}"
