"""Is a claim about several tables true?  Derived again from its parameters, and held against the steps."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from incrowd.core.certificate import Certificate, Claim, Status
from incrowd.core.loss import Grouped, Sampled, Syntactic
from incrowd.workflows import rederive
from incrowd.workflows.files import tables_of
from incrowd.workflows.forms.checks import TOLERANCE, uncharged, whole
from incrowd.workflows.forms.form import Problem
from incrowd.workflows.forms.microdata.form import MICRODATA
from incrowd.workflows.forms.sliced.composed import slices_delta
from incrowd.workflows.forms.sliced.steps import Told

_PRIVATE = "approximate differential privacy"
_ANONYMITY = "k-anonymity"
_ALONE = "crowd-blending, each table alone"


def check_claim(claim: Claim, certificate: Certificate) -> Problem | None:
    """Return what is wrong with a claim, or None; one release that was split claims what microdata claims."""
    if claim.unit != str(certificate.guarantee.unit):
        return Problem("it speaks of another unit than the guarantee")
    try:
        if claim.kind == _ANONYMITY and whole(claim.parameters["tables"]) != tables_of(certificate):
            return Problem("it speaks of another number of tables")
        if claim.kind == _ALONE:
            return _alone(claim.parameters, certificate)
        if claim.kind == _PRIVATE and not _split(certificate):
            return _private(claim.parameters, certificate)
    except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return Problem("its parameters cannot be read")
    if claim.kind not in (_ANONYMITY, "pseudonymization") and not _split(certificate):
        return Problem("such a claim does not hold for several tables together")
    return MICRODATA.check_claim(claim, certificate)


def check_complete(certificate: Certificate) -> Problem | None:
    """Return which claim the guarantee carries and the certificate keeps silent about, or states without conditions."""
    if _split(certificate):
        return MICRODATA.check_complete(certificate)
    assumed, drafted = certificate.guarantee.assumes, isinstance(certificate.guarantee.loss, Syntactic)
    for kind in (_ANONYMITY,) if drafted else (_PRIVATE, _ANONYMITY):
        stated = [claim for claim in certificate.claims if claim.kind == kind]
        if not stated or not all(claim.preconditions and any(claim.not_protected) for claim in stated):
            return Problem(f"the claim {kind!r} is missing, or says not what it rests on, or not what it leaves open")
        told = [{each.text for each in claim.preconditions if each.status is Status.ASSUMED} for claim in stated]
        if kind == _PRIVATE and not all(assumed <= each for each in told):
            return Problem(f"the preconditions of {kind!r} leave out what the guarantee assumes")
    if not drafted and not assumed:
        return Problem("the guarantee assumes nothing, and no promise about crowds holds without assumptions")
    return None


def _split(certificate: Certificate) -> bool:
    """Whether all tables were computed from one release, with nothing chosen."""
    loss = certificate.guarantee.loss
    return isinstance(loss.inner if isinstance(loss, Grouped) else loss, Sampled)


def _alone(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    told = Told.of(certificate)
    if Fraction(str(given["epsilon"])) != 0 or whole(given["k"]) != told.k:
        return Problem("its k is not the k of the suppression step, or it has an epsilon")
    if told.choosing is not None or certificate.guarantee.unit.max_rows > 1:
        return Problem("the guarantee says nothing about crowds of people")
    return Problem("nothing but the form of the output is left") if _drafted(certificate) else None


def _drafted(certificate: Certificate) -> bool:
    return isinstance(certificate.guarantee.loss, Syntactic)


def _private(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    told, unit = Told.of(certificate), certificate.guarantee.unit
    choosing = Fraction(str(given["choosing"])) if "choosing" in given else None
    stated = (whole(given["k"]), Fraction(str(given["rate"])), whole(given["samples"]), choosing)
    if stated != (told.k, told.rate, told.samples, told.choosing) or told.loss(unit.max_rows) != (
        certificate.guarantee.loss
    ):
        return Problem("it is not what the guarantee and the steps describe")
    if whole(given["max_rows"]) != unit.max_rows or given["adjacency"] != str(unit.adjacency):
        return Problem("its unit is not that of the guarantee")
    unlike = uncharged(given, certificate)
    if unlike is not None:
        return unlike
    if given["adjacency"] != "add-remove":
        return Problem("for replaced rows the claim was not derived again", undecided=True)
    epsilon, claimed = float(Fraction(str(given["epsilon"]))), float(Fraction(str(given["delta"])))
    derived = _delta(told, unit.max_rows, epsilon)
    found = rederive.suppression_floor(told.k, told.rate, epsilon) if derived is None else derived
    if found > claimed * TOLERANCE:
        least = "at least " if derived is None else ""  # one table shows no more than all of them
        return Problem(f"at epsilon {epsilon:.6g} its delta is {least}{found:.6g}, and the claim says {claimed:.6g}")
    if derived is None:
        return Problem("the crowds are too many to try one by one; the claim was not derived again", undecided=True)
    return None


def _delta(told: Told, rows: int, epsilon: float) -> float | None:
    """Return δ of all tables and of the choice at ε; for people with several rows by the sum rule."""
    choosing = float(told.choosing or 0)
    if rows == 1:
        return slices_delta(told.k, told.rate, told.samples, epsilon, choosing)
    if epsilon < choosing:
        return None
    each = rederive.person_delta(told.k, told.rate, (epsilon - choosing) / told.samples, rows)
    return None if each is None else told.samples * each
