"""Recounted: each claim held against what the output shows of it: it holds, is broken, or is left open."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pyarrow as pa

from incrowd.core.certificate import Certificate, Claim
from incrowd.workflows.forms.anonymized import classes, shares
from incrowd.workflows.forms.anonymized.demanded import KINDS, OF_ALL_ROWS, OF_COLUMN, OF_PEOPLE, left_out, type_of
from incrowd.workflows.forms.anonymized.estimates import unique_share
from incrowd.workflows.forms.checks import steps_of, whole
from incrowd.workflows.forms.form import Look, Problem

Reader = Callable[[list[str]], Iterable[pa.RecordBatch]]
"""Reads some columns of the output."""
_OPEN = "; rows that were left out count too, so the file alone does not decide it"
_DISTANT = "; how far its values are apart is not told, so the file alone does not decide it"


@dataclass
class Recount:
    """Counts an output again, each sensitive column once; the only thing here that remembers."""

    certificate: Certificate
    reader: Reader
    smallest: Callable[[tuple[str, ...]], int | None]
    counted: dict[str, classes.Classes] = field(default_factory=dict)

    def looks(self) -> Iterable[Look]:
        """Hold every claim about the form against the output."""
        for claim in self.certificate.claims:
            if claim.kind in KINDS:
                problem, found = self._held(claim)
                about = f" of {claim.parameters['sensitive']}" if "sensitive" in claim.parameters else ""
                yield Look(f"{claim.kind}{about} in the file", problem, found)

    def _held(self, claim: Claim) -> tuple[Problem | None, str]:
        if claim.kind in OF_PEOPLE:
            text = "it compares with a population, which is not here: the file alone does not show it"
            return Problem(text, undecided=True), text
        if claim.kind in OF_COLUMN:
            counted = self._classes(str(claim.parameters["sensitive"]))
            return self._compared(claim, counted) if claim.kind in OF_ALL_ROWS else _DIVERSE[claim.kind](claim, counted)
        quasi = tuple(str(name) for name in claim.parameters["columns"])
        if claim.kind == "k-anonymity":
            k = whole(claim.parameters["k"])
            return _at_least(self.smallest(quasi), k, "the smallest class has {} rows, k is {}")
        return _TOGETHER[claim.kind](claim.parameters, self.sizes(quasi))

    def sizes(self, quasi: Sequence[str]) -> list[int]:
        """Return how many rows each class has."""
        counted = self._over(quasi[:-1], quasi[-1])
        return [times for values in counted.values() for times in values.values()]

    def _compared(self, claim: Claim, counted: classes.Classes) -> tuple[Problem | None, str]:
        given, cut = claim.parameters, steps_of(self.certificate)["cut"]
        column = str(given["sensitive"])
        hidden = shares.Hidden(left_out(cut), frozenset(given.get("harmless", ())))
        if claim.kind == "t-closeness":
            places = cut.get("places", {}).get(column, {})
            measure = shares.measure_of(given["distance"], counted, type_of(self.certificate, column), places)
            found = shares.closeness(counted, Fraction(given["t"]), measure, hidden)
            text = f"the farthest class is {found.most:.6g} from all rows of the file, t is {given['t']}"
        elif claim.kind == "δ-disclosure privacy":
            found = shares.disclosure(counted, float(Fraction(given["disclosure"])), hidden)
            text = f"the largest logarithm of a ratio of shares is {found.most:.6g}, δ is {given['disclosure']}"
        else:
            most = _most(float(Fraction(given["beta"])), enhanced=claim.kind.startswith("enhanced"))
            found = shares.likeness(counted, most, hidden)
            text = f"the share of a value grows in a class by a factor of 1 + {found.most:.6g}, β is {given['beta']}"
        if found.verdict is shares.Verdict.HOLDS:
            return None, text
        broken = found.verdict is shares.Verdict.BROKEN
        return Problem(text if broken else text + (_OPEN if hidden.left_out else _DISTANT), undecided=not broken), text

    def _classes(self, column: str) -> classes.Classes:
        if column not in self.counted:
            self.counted[column] = self._over(steps_of(self.certificate)["cut"]["columns"], column)
        return self.counted[column]

    def _over(self, quasi: Iterable[str], column: str) -> classes.Classes:
        names = [str(name) for name in quasi]
        return classes.classes_of(self.reader([*names, column]), names, column)


def _most(beta: float, *, enhanced: bool) -> Callable[[float], float]:
    """Return the greatest share that a value may have in a class, from its share in all rows."""
    if not enhanced:
        return lambda share: share * (1 + beta)
    return lambda share: share * (1 + min(beta, -math.log(share))) if share else 0.0


def _at_least(found: float | None, least: int | Fraction, words: str) -> tuple[Problem | None, str]:
    text = "there are no rows that count" if found is None else words.format(found, least)
    short = found is not None and found < float(least) * (1 - shares.SLACK)
    return (Problem(text) if short else None), text


def _at_most(found: float | Fraction | None, most: Fraction, words: str) -> tuple[Problem | None, str]:
    text = "there are no rows that count" if found is None else words.format(f"{float(found):.6g}", most)
    beyond = found is not None and found > float(most) + shares.SLACK
    return (Problem(text) if beyond else None), text


def _harmless(claim: Claim) -> frozenset[str]:
    return frozenset(claim.parameters.get("harmless", ()))


def _distinct(claim: Claim, counted: classes.Classes) -> tuple[Problem | None, str]:
    found = classes.distinct(counted, _harmless(claim))
    return _at_least(found, whole(claim.parameters["l"]), "the least diverse class shows {} values, l is {}")


def _entropy(claim: Claim, counted: classes.Classes) -> tuple[Problem | None, str]:
    found = classes.least_entropy(counted, _harmless(claim))
    return _at_least(found, Fraction(claim.parameters["l"]), "e to the least entropy is {}, l is {}")


def _recursive(claim: Claim, counted: classes.Classes) -> tuple[Problem | None, str]:
    found = classes.greatest_ratio(counted, whole(claim.parameters["l"]), _harmless(claim))
    words = "the most frequent value of a class is at most {} times the rest, c is {}"
    c = Fraction(claim.parameters["c"])
    _, text = _at_most(found, c, words)
    return (Problem(text) if found is not None and found >= float(c) * (1 - 1e-12) else None), text


def _average(given: Mapping[str, Any], sizes: list[int]) -> tuple[Problem | None, str]:
    return _at_most(classes.average_risk(sizes), Fraction(given["limit"]), "the average risk is {}, its limit is {}")


def _unique(given: Mapping[str, Any], sizes: list[int]) -> tuple[Problem | None, str]:
    found = unique_share(sizes, whole(given["among"]), str(given["estimate"])) if sizes else None
    if sizes and found is None:
        text = "there are more rows than people from whom they could come"
        return Problem(text), text
    words = "a share of {} of the rows is unique by the estimate, its limit is {}"
    return _at_most(found, Fraction(given["limit"]), words)


_DIVERSE: dict[str, Callable[[Claim, classes.Classes], tuple[Problem | None, str]]] = {
    "distinct l-diversity": _distinct,
    "entropy l-diversity": _entropy,
    "recursive (c,l)-diversity": _recursive,
}
_TOGETHER: dict[str, Callable[[Mapping[str, Any], list[int]], tuple[Problem | None, str]]] = {
    "average risk": _average,
    "population uniqueness": _unique,
}
