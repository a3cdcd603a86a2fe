"""Is a claim about the form of a table true?  Each is held against the steps, the guarantee and, by looks, the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from incrowd.core.certificate import Certificate, Claim, Status
from incrowd.core.domain import Type
from incrowd.core.loss import Syntactic
from incrowd.engines.smallest import smallest_class
from incrowd.workflows.forms.anonymized import classes
from incrowd.workflows.forms.checks import steps_of, whole
from incrowd.workflows.forms.form import Problem
from incrowd.workflows.forms.microdata.form import MICRODATA

_SLACK = 1e-9
_UNTIL = {"k-anonymity": "k", "distinct l-diversity": "l", "entropy l-diversity": "entropy l", "t-closeness": "t"}
KINDS = tuple(_UNTIL)
"""The claims about the form of a table."""
DEMANDS = tuple(_UNTIL.values())
"""What a cutting step can demand of every class, in the order in which the guarantee names it."""


def check_claim(claim: Claim, certificate: Certificate) -> Problem | None:
    """Return what in a claim contradicts the steps or the guarantee, or None."""
    if claim.kind == "pseudonymization":
        return MICRODATA.check_claim(claim, certificate)
    if claim.kind not in _UNTIL:
        return Problem(f"claims of kind {claim.kind!r} are not known here", undecided=True)
    if claim.unit != str(certificate.guarantee.unit):
        return Problem("it speaks of another unit than the guarantee")
    try:
        return _contradiction(claim, certificate)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return Problem("its parameters cannot be read")


def check_complete(certificate: Certificate) -> Problem | None:
    """Return which demand of the steps no claim speaks of, or which claim says less than the guarantee assumes."""
    try:
        cut = steps_of(certificate)["cut"]
        demanded = [
            (kind, column) for kind, name in _UNTIL.items() if name in cut["until"] for column in _about(kind, cut)
        ]
    except (KeyError, TypeError):
        return Problem("the steps cannot be read")
    for kind, column in demanded:
        stated = [
            claim for claim in certificate.claims if (claim.kind, claim.parameters.get("sensitive")) == (kind, column)
        ]
        if not stated:
            return Problem(f"the claim {kind!r} belongs to this guarantee and is missing")
        for claim in stated:
            told = {each.text for each in claim.preconditions if each.status is Status.ASSUMED}
            if not claim.preconditions or not certificate.guarantee.assumes <= told:
                return Problem(f"the preconditions of {kind!r} leave out what the guarantee assumes")
            if not claim.not_protected:
                return Problem(f"the claim {kind!r} does not say what it leaves open")
    return None


def recounted(claim: Claim, certificate: Certificate, file: Path) -> tuple[Problem | None, str]:
    """Count a claim again in the written file: what is wrong with it, and what was found."""
    given = claim.parameters
    quasi = tuple(map(str, given["columns"]))
    if claim.kind == "k-anonymity":
        found: float | None = smallest_class(file, quasi)
        return _short(found, whole(given["k"]), "the smallest class has {} rows, k is {}")
    sensitive = str(given["sensitive"])
    counted = classes.read_classes(file, quasi, sensitive)
    return measured(claim, counted, type_of(certificate, sensitive))


def measured(claim: Claim, counted: classes.Classes, kind: Type | None) -> tuple[Problem | None, str]:
    """Hold what was counted against a claim about a sensitive column."""
    given = claim.parameters
    if claim.kind == "distinct l-diversity":
        found: float | None = classes.distinct(counted)
        return _short(found, whole(given["l"]), "the least diverse class shows {} values, l is {}")
    if claim.kind == "entropy l-diversity":
        found = classes.least_entropy(counted)
        return _short(found, Fraction(given["l"]), "e to the least entropy is {}, l is {}")
    farthest = classes.farthest(counted, kind if given["distance"] == "ordered" else None)
    text = f"the farthest class is {float(farthest or 0):.6g} from the whole table, t is {given['t']}"
    beyond = farthest is not None and float(farthest) > float(Fraction(given["t"])) + _SLACK
    return (Problem(text) if beyond else None), text


def _short(found: float | None, least: int | Fraction, words: str) -> tuple[Problem | None, str]:
    text = "there are no rows" if found is None else words.format(found, least)
    short = found is not None and found < float(least) * (1 - _SLACK)
    return (Problem(text) if short else None), text


def _contradiction(claim: Claim, certificate: Certificate) -> Problem | None:
    cut, given, loss = steps_of(certificate)["cut"], claim.parameters, certificate.guarantee.loss
    name = _UNTIL[claim.kind]
    stated = given["l"] if name == "entropy l" else given[name]
    if list(given["columns"]) != list(cut["columns"]):
        return Problem("it does not speak of all quasi-identifiers")
    if cut["until"][name] != stated:
        return Problem("it is not what the steps demand")
    if not isinstance(loss, Syntactic) or dict(loss.parameters).get(name) != str(stated):
        return Problem("it is not what the guarantee says")
    rows = certificate.guarantee.unit.max_rows
    if claim.kind == "k-anonymity" and given.get("people") != (-(-whole(stated) // rows) if rows > 1 else None):
        return Problem("k counts rows, and its number of people does not follow from it")
    if claim.kind != "k-anonymity" and given["sensitive"] not in cut["sensitive"]:
        return Problem("it speaks of a column that the steps do not call sensitive")
    if claim.kind == "t-closeness":
        ordered = type_of(certificate, str(given["sensitive"])) in (Type.INTEGER, Type.DECIMAL, Type.DATE)
        if given["distance"] not in ("equal", "ordered") or (given["distance"] == "ordered" and not ordered):
            return Problem("values of that type have no such distance")
    return _VALUES[claim.kind](given)


def _about(kind: str, cut: Mapping[str, Any]) -> list[str | None]:
    return [None] if kind == "k-anonymity" else list(cut["sensitive"])


def type_of(certificate: Certificate, name: str) -> Type | None:
    """Return the declared type of a column, or None."""
    types = {str(column["name"]): str(column["type"]) for column in certificate.schema.get("columns", ())}
    return Type(types[name]) if name in types else None


def _at_least_one(name: str) -> Callable[[Mapping[str, Any]], Problem | None]:
    return lambda given: None if Fraction(given[name]) >= 1 else Problem(f"{name} below 1 says nothing")


_VALUES: dict[str, Callable[[Mapping[str, Any]], Problem | None]] = {
    "k-anonymity": _at_least_one("k"),
    "distinct l-diversity": _at_least_one("l"),
    "entropy l-diversity": _at_least_one("l"),
    "t-closeness": lambda given: None if 0 <= Fraction(given["t"]) <= 1 else Problem("t lies between 0 and 1"),
}
