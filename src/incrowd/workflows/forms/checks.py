"""What the checks of several forms share: amounts that were charged, steps by name, whole numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from incrowd.core.certificate import Certificate, Claim, Status
from incrowd.workflows.forms.form import Problem

TOLERANCE = 1 + 1e-6  # the second route computes with floats, and differences of small numbers cancel


def whole(value: Any) -> int:
    """Return a whole number as it stands in a certificate, or raise TypeError."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("a whole number is needed")
    return value


def steps_of(certificate: Certificate) -> dict[str, Mapping[str, Any]]:
    """Return the steps of a chain by their names."""
    return {str(step.get("step")): step for step in certificate.chain}


def drafted_of(columns: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the columns whose recoding was drafted from rows with nobody vouching for it; strange words count as that.

    >>> drafted_of([{"column": "zip", "provenance": "drafted from rows"}, {"column": "age", "provenance": "declared"}])
    ['zip']
    """
    vouched = "drafted from rows, vouched for by "
    told = [(str(each["column"]), str(each["provenance"])) for each in columns]
    return [name for name, origin in told if origin != "declared" and not origin.startswith(vouched)]


def half_told(claim: Claim, certificate: Certificate) -> Problem | None:
    """Return that a claim about the form of a table leaves out what it rests on or what it leaves open, or None.

    No form of a table means anything unless people can be looked up by some columns only, so something is assumed.
    """
    assumed = certificate.guarantee.assumes
    told = {each.text for each in claim.preconditions if each.status is Status.ASSUMED}
    if not assumed:
        return Problem("the guarantee assumes nothing, and the form of a table means nothing without assumptions")
    if not assumed <= told:
        return Problem(f"the preconditions of {claim.kind!r} leave out what the guarantee assumes")
    if not any(claim.not_protected):
        return Problem(f"the claim {claim.kind!r} does not say what it leaves open")
    return None


def uncharged(given: Mapping[str, Any], certificate: Certificate, *, at_delta: bool = True) -> Problem | None:
    """Return that a claim is not about the ε that was charged, or not at the δ of the guarantee."""
    if Fraction(str(given["epsilon"])) != Fraction(str(certificate.accounting["spent"]["epsilon"])):
        return Problem("its epsilon is not what was charged")
    if at_delta and Fraction(str(given["delta"])) != certificate.guarantee.delta:
        return Problem("its delta is not the delta of the guarantee")
    return None
