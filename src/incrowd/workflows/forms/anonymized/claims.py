"""Is a claim about the form of a table true?  Each is held against the steps, the guarantee and, by looks, the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from incrowd.core.certificate import Certificate, Claim, Status
from incrowd.core.domain import Type
from incrowd.core.loss import Syntactic
from incrowd.workflows.forms.anonymized.demanded import (
    KINDS,
    OF_COLUMN,
    OF_PEOPLE,
    OF_TABLE,
    expected,
    key_of,
    left_out,
    shown,
    type_of,
)
from incrowd.workflows.forms.checks import half_told, steps_of, whole
from incrowd.workflows.forms.form import Problem
from incrowd.workflows.forms.microdata.form import MICRODATA

_COUNTED = "the written output was counted again"
_BESIDE = frozenset({"columns", "sensitive", "harmless", "distance", "people"})


def check_claim(claim: Claim, certificate: Certificate) -> Problem | None:
    """Return what in a claim contradicts the steps or the guarantee, or None."""
    if claim.kind == "pseudonymization":
        return MICRODATA.check_claim(claim, certificate)
    if claim.kind not in KINDS:
        return Problem(f"claims of kind {claim.kind!r} are not known here", undecided=True)
    if claim.unit != str(certificate.guarantee.unit):
        return Problem("it speaks of another unit than the guarantee")
    try:
        return _contradiction(claim, certificate) or _hidden(claim, certificate)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return Problem("its parameters cannot be read")


def check_complete(certificate: Certificate) -> Problem | None:
    """Return which demand of the steps no claim speaks of, or which claim says less than the guarantee assumes."""
    try:
        demanded = list(expected(steps_of(certificate)["cut"]))
    except (KeyError, TypeError):
        return Problem("the steps cannot be read")
    for kind, column in demanded:
        stated = [
            claim for claim in certificate.claims if (claim.kind, claim.parameters.get("sensitive")) == (kind, column)
        ]
        if not stated:
            return Problem(f"the claim {kind!r} belongs to this guarantee and is missing")
        untold = next(filter(None, (half_told(claim, certificate) for claim in stated)), None)
        if untold is not None:
            return untold
    return None


def _contradiction(claim: Claim, certificate: Certificate) -> Problem | None:
    cut, given, loss = steps_of(certificate)["cut"], claim.parameters, certificate.guarantee.loss
    until, column = cut["until"], given.get("sensitive")
    names = OF_TABLE.get(claim.kind) or OF_COLUMN[claim.kind]
    if list(given["columns"]) != list(cut["columns"]) or not set(given) <= {*names, *_BESIDE}:
        return Problem("it does not speak of all quasi-identifiers, or of more than them")
    if (column is None) != (claim.kind in OF_TABLE) or (column is not None and column not in cut["sensitive"]):
        return Problem("it speaks of a column that the steps do not call sensitive")
    for parameter, name in names.items():
        key = key_of(until, name, column)
        if until[key] != given[parameter]:
            return Problem("it is not what the steps demand")
        if not isinstance(loss, Syntactic) or dict(loss.parameters).get(key) != str(given[parameter]):
            return Problem("it is not what the guarantee says")
    if list(given.get("harmless", [])) != list(until.get(f"harmless of {column}", [])):
        return Problem("it calls other values harmless than the steps do")
    rows = certificate.guarantee.unit.max_rows
    people = -(-whole(given["k"]) // rows) if claim.kind == "k-anonymity" and rows > 1 else None
    if given.get("people") != people:
        return Problem("k counts rows, and its number of people does not follow from it")
    return _distance(claim, certificate) or _VALUES[claim.kind](given)


def _distance(claim: Claim, certificate: Certificate) -> Problem | None:
    given = claim.parameters
    if claim.kind != "t-closeness":
        return Problem("it has a distance, and nothing to measure by it") if "distance" in given else None
    column, until = str(given["sensitive"]), steps_of(certificate)["cut"]["until"]
    named = until.get(f"distance of {column}")
    if named is not None:
        return None if given["distance"] == named else Problem("its distance is not the one that the steps name")
    ordered = type_of(certificate, column) in (Type.INTEGER, Type.DECIMAL, Type.DATE)
    if given["distance"] not in ("equal", "ordered") or (given["distance"] == "ordered" and not ordered):
        return Problem("values of that type have no such distance")
    return None


def _hidden(claim: Claim, certificate: Certificate) -> Problem | None:
    """Return that a claim cannot be counted again from the file, or that it says the opposite and is wrong."""
    counted = any(each.text == _COUNTED and each.status is Status.CHECKED for each in claim.preconditions)
    can = shown(claim, certificate)
    if counted != can:
        return Problem("what it says of counting the output again is not what the steps allow")
    if can:
        return None
    if claim.kind in OF_PEOPLE:
        return Problem("it agrees with the steps; the population is not here to count it again", undecided=True)
    if left_out(steps_of(certificate)["cut"]):
        return Problem("it agrees with the steps; rows that were left out count too and are not here", undecided=True)
    return Problem("it agrees with the steps; how far its values are apart is not told here", undecided=True)


def _at_least_one(name: str) -> Callable[[Mapping[str, Any]], Problem | None]:
    return lambda given: None if Fraction(given[name]) >= 1 else Problem(f"{name} below 1 says nothing")


def _positive(name: str) -> Callable[[Mapping[str, Any]], Problem | None]:
    return lambda given: None if Fraction(given[name]) > 0 else Problem(f"{name} is above 0")


def _share(name: str) -> Callable[[Mapping[str, Any]], Problem | None]:
    return lambda given: None if 0 <= Fraction(given[name]) <= 1 else Problem(f"{name} lies between 0 and 1")


def _presence(given: Mapping[str, Any]) -> Problem | None:
    inside = 0 <= Fraction(given["least"]) <= Fraction(given["most"]) <= 1
    return None if inside else Problem("presence lies between 0 and 1, the least not above the most")


_VALUES: dict[str, Callable[[Mapping[str, Any]], Problem | None]] = {
    "k-anonymity": _at_least_one("k"),
    "k-map": _at_least_one("k"),
    "δ-presence": _presence,
    "average risk": _share("limit"),
    "population uniqueness": _share("limit"),
    "distinct l-diversity": _at_least_one("l"),
    "entropy l-diversity": _at_least_one("l"),
    "recursive (c,l)-diversity": lambda given: _positive("c")(given) or _at_least_one("l")(given),
    "t-closeness": _share("t"),
    "β-likeness": _positive("beta"),
    "enhanced β-likeness": _positive("beta"),
    "δ-disclosure privacy": _positive("disclosure"),
}
