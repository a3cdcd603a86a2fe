"""The steps of tables of counts, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Plain = Mapping[str, Any]


def words_of(plain: Plain) -> tuple[str, str] | None:
    """Return the title and the words of a step of a histogram or a selection; None for other steps.

    >>> words_of({"step": "suppress counts", "k": 5})
    ('Hide small counts', 'Counts below 5 become 0. The others stay exact.')
    """
    words = _WORDS.get(str(plain.get("step")))
    return None if words is None else (words[0], words[1](plain))


def _count(plain: Plain) -> str:
    bins, listed = plain.get("bins"), plain.get("listed")
    told = f"{bins:,} bins" if isinstance(bins, int) else "the bins that occur"
    part = "" if listed == "all" else f" Listed in the release: {listed}."
    return f"Each row falls into one of {told}; how many there are in each is counted.{part}"


def _suppress(plain: Plain) -> str:
    return f"Counts below {plain.get('k')} become 0. The others stay exact."


def _small(plain: Plain) -> str:
    clamp = " and is held between 0 and k − 1" if plain.get("clamp") is True else ""
    return (
        f"Every count below k = {plain.get('k')}, that of empty bins too, gets {plain.get('noise')} noise of scale "
        f"{plain.get('scale')}{clamp}. Counts from k on stay exact."
    )


def _noise(plain: Plain) -> str:
    return (
        f"Every count, that of empty bins too, gets {plain.get('noise')} noise. 95 % of counts are within "
        f"{plain.get('within')} of the truth."
    )


def _threshold(plain: Plain) -> str:
    return f"Bins whose noisy count is below {plain.get('least')} are not listed; the threshold is public."


def _select(plain: Plain) -> str:
    return f"Noise decides among bins that are close. The most common {plain.get('top')} are chosen."


def _counts(plain: Plain) -> str:
    rounds = "" if plain.get("round") == 1 else f" Counts are rounded to multiples of {plain.get('round')}."
    flags = " Exact counts are marked." if plain.get("exact") is True else ""
    return f"Bins are in the order of the {plain.get('by')}, so that their order says nothing.{rounds}{flags}"


def _ranking(plain: Plain) -> str:
    told = "with their noisy counts" if plain.get("counts") is True else "without any counts"
    return f"The chosen bins in order, {told}."


_WORDS: dict[str, tuple[str, Callable[[Plain], str]]] = {
    "count": ("Count", _count),
    "suppress counts": ("Hide small counts", _suppress),
    "noise when small": ("Noise on small counts", _small),
    "noise": ("Noise on every count", _noise),
    "threshold": ("List what is clearly there", _threshold),
    "select": ("Choose the most common", _select),
    "publish counts": ("Publish counts", _counts),
    "publish ranking": ("Publish the winners", _ranking),
}
