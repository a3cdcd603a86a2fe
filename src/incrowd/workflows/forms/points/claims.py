"""Is a claim of released points true?  Those about people are a histogram's; the one about functions is here."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from incrowd.core.certificate import Certificate, Claim
from incrowd.workflows.forms.checks import TOLERANCE, steps_of, whole
from incrowd.workflows.forms.form import Problem
from incrowd.workflows.forms.histogram import claims as histogram
from incrowd.workflows.forms.points import slowly_changing

KIND = "Lipschitz error"
MOVES = "points move at most"
EXPECTED = "points added or lost, expected at most"
LIKELY = "points added or lost, 19 times in 20 at most"


def check_claim(claim: Claim, certificate: Certificate) -> Problem | None:
    """Return what is wrong with a claim, or None."""
    if claim.kind != KIND:
        return histogram.check_claim(claim, certificate)
    if claim.unit != str(certificate.guarantee.unit):
        return Problem("it speaks of another unit than the guarantee")
    try:
        return _moves(claim.parameters, certificate) or _changes(claim.parameters, certificate)
    except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return Problem("its parameters cannot be read")


def check_complete(certificate: Certificate) -> Problem | None:
    """Return which claim the guarantee carries and the certificate keeps silent about, or None."""
    if not any(claim.kind == KIND for claim in certificate.claims):
        return Problem(f"the claim {KIND!r} belongs to this release and is missing")
    return histogram.check_complete(certificate)


def _moves(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    steps = steps_of(certificate)
    columns, place = steps["grid"]["columns"], steps["place points"]["at"]
    if list(given["columns"]) != [told["column"] for told in columns] or given["place"] != place:
        return Problem("it speaks of other columns or places than the steps")
    if Fraction(str(given[MOVES])) ** 2 < slowly_changing.moved_squared(columns, str(place)):
        return Problem("points can lie further from what they stand for than it says")
    return None


def _changes(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    steps = steps_of(certificate)
    small = steps.get("noise when small")
    if small is None:
        return Problem("nothing public bounds how many points suppression drops") if LIKELY in given else None
    number = slowly_changing.cells(steps["grid"]["columns"])
    found = slowly_changing.changed(number, whole(small["k"]), Fraction(str(small["epsilon"])))
    if found is None:
        return Problem("the sums of such noise are too long; the claim was not derived again", undecided=True)
    stated = (float(Fraction(str(given[EXPECTED]))), float(Fraction(str(given[LIKELY]))))
    if any(derived > told * TOLERANCE for derived, told in zip(found, stated, strict=True)):
        return Problem(f"noise changes up to {found[0]:.6g} points on average, {found[1]:.6g} 19 times in 20")
    return None
