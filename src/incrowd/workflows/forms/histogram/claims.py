"""Is a claim of a histogram true?  Each kind is derived again and held against the rest of the certificate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from incrowd.core.certificate import Certificate, Claim, Status
from incrowd.core.loss import Crowd, RobustlySampled
from incrowd.core.unit import Adjacency
from incrowd.workflows import rederive
from incrowd.workflows.forms import robust
from incrowd.workflows.forms.checks import TOLERANCE, steps_of, uncharged, whole
from incrowd.workflows.forms.form import Problem
from incrowd.workflows.forms.histogram import noise
from incrowd.workflows.forms.histogram.rederive import blended_delta
from incrowd.workflows.forms.histogram.steps import crowd_loss

_PRIVATE = "approximate differential privacy"
_ZERO_KNOWLEDGE = "zero-knowledge with respect to random sampling"
_ROBUST = "zero-knowledge with respect to robust sampling"
_BLENDING = "crowd-blending"


def check_claim(claim: Claim, certificate: Certificate) -> Problem | None:
    """Return what is wrong with a claim, or None."""
    if claim.unit != str(certificate.guarantee.unit):
        return Problem("it speaks of another unit than the guarantee")
    try:
        if "noise" in steps_of(certificate):
            return noise.check_claim(claim, certificate)
        match claim.kind:
            case "approximate differential privacy" if isinstance(certificate.guarantee.loss, RobustlySampled):
                return robust.check_private(claim.parameters, certificate)
            case "approximate differential privacy":
                return _private(claim.parameters, certificate)
            case "zero-knowledge with respect to robust sampling":
                return robust.check_zero_knowledge(claim.parameters, certificate)
            case "zero-knowledge with respect to robust sampling, as published":
                return robust.check_published(claim.parameters, certificate)
            case "zero-knowledge with respect to random sampling":
                return _zero_knowledge(claim.parameters, certificate)
            case "crowd-blending":
                return _blending(claim.parameters, certificate)
    except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return Problem("its parameters cannot be read")
    return Problem(f"claims of kind {claim.kind!r} are not known here", undecided=True)


def check_complete(certificate: Certificate) -> Problem | None:
    """Return which claim the guarantee carries and the certificate keeps silent about, or states without conditions."""
    assumed = certificate.guarantee.assumes
    if not assumed:
        return Problem("the guarantee assumes nothing, and no promise about people holds without assumptions")
    for kind in _required(certificate):
        stated = [claim for claim in certificate.claims if claim.kind == kind]
        if not stated:
            return Problem(f"the claim {kind!r} belongs to this guarantee and is missing")
        spared = int(kind == _BLENDING and not isinstance(certificate.guarantee.loss, Crowd))  # needs no secret coins
        for claim in stated:
            told = {each.text for each in claim.preconditions if each.status is Status.ASSUMED}
            if len(assumed - told) > spared:
                return Problem(f"the preconditions of {kind!r} leave out what the guarantee assumes")
    return None


def _required(certificate: Certificate) -> tuple[str, ...]:
    unit = certificate.guarantee.unit
    if "noise" in steps_of(certificate):
        return (noise.kind_of(certificate),)
    crowds = (_BLENDING,) if unit.max_rows == 1 else ()
    if isinstance(certificate.guarantee.loss, Crowd):
        return crowds
    if unit.max_rows == 1 and unit.adjacency is Adjacency.ADD_REMOVE:
        biased = isinstance(certificate.guarantee.loss, RobustlySampled)
        return (_PRIVATE, _ROBUST if biased else _ZERO_KNOWLEDGE, *crowds)
    return (_PRIVATE, *crowds)


def _private(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    unit = certificate.guarantee.unit
    if whole(given["max_rows"]) != unit.max_rows or given["adjacency"] != str(unit.adjacency):
        return Problem("its rows of a person, or its adjacency, are not those of the guarantee's unit")
    unlike = _contradiction(given, certificate) or uncharged(given, certificate)
    if unlike is not None or unit.adjacency is Adjacency.ADD_REMOVE:
        return unlike or _beyond(given, unit.max_rows)
    return _replaced(given, unit.max_rows)


def _zero_knowledge(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    unit = certificate.guarantee.unit
    if unit.max_rows > 1 or unit.adjacency is not Adjacency.ADD_REMOVE:
        return Problem("its theorem speaks of units of one row, added or removed, and the guarantee of others")
    return _contradiction(given, certificate) or uncharged(given, certificate) or _beyond(given, 1)


def _blending(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    """Suppression below k is (k, 0)-crowd-blending, noise below k (k, its ε): with k and ε as the steps say."""
    steps = steps_of(certificate)
    small = steps.get("noise when small", {"epsilon": 0, **steps.get("suppress counts", {})})
    if certificate.guarantee.unit.max_rows > 1:
        return Problem("the guarantee says nothing about crowds of people")
    if Fraction(str(given["epsilon"])) != Fraction(str(small["epsilon"])):
        return Problem("its epsilon is not that of the noise on small counts")
    if whole(given["k"]) != whole(small["k"]):
        return Problem("its k is not the k of the steps")
    return None


def _contradiction(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    steps = steps_of(certificate)
    small = steps.get("noise when small", steps.get("suppress counts", {}))
    if whole(given["k"]) != whole(small["k"]):
        return Problem("its k is not the k of the steps")
    if Fraction(str(given["rate"])) != Fraction(str(steps["sample"]["rate"])):
        return Problem("its rate is not the rate of the sampling step")
    if str(given.get("noise", "")) != str(small.get("epsilon", "")):
        return Problem("its noise is not that of the steps")
    if certificate.guarantee.loss != crowd_loss(certificate):
        return Problem("it is not what the guarantee describes")
    return None


def _beyond(given: Mapping[str, Any], rows: int) -> Problem | None:
    """Return that a stated δ is below the derived one, or that only a part of the crowds could be tried."""
    epsilon, claimed = float(Fraction(str(given["epsilon"]))), float(Fraction(str(given["delta"])))
    derived = _person_delta(given, epsilon, rows)
    found = _floor(given, epsilon) if derived is None else derived
    if found > claimed * TOLERANCE:
        return Problem(f"at epsilon {epsilon:.6g} its delta is at least {found:.6g}, and the claim says {claimed:.6g}")
    if derived is None:
        return Problem("the crowds are too many to try one by one; the claim was not derived again", undecided=True)
    return None


def _replaced(given: Mapping[str, Any], rows: int) -> Problem | None:
    """Check a claim for replaced units: as one removed and one added if that is enough, else by what it is at least."""
    epsilon, claimed = float(Fraction(str(given["epsilon"]))), float(Fraction(str(given["delta"])))
    half = _person_delta(given, epsilon / 2.0, rows)
    if half is not None and (1.0 + math.exp(epsilon / 2.0)) * half <= claimed * TOLERANCE:
        return None
    if _floor(given, epsilon) > claimed * TOLERANCE:
        return Problem(f"at epsilon {epsilon:.6g} its delta is larger than the claim says")
    return Problem("that it holds for replaced rows is proved, and was not derived again", undecided=True)


def _person_delta(given: Mapping[str, Any], epsilon: float, rows: int) -> float | None:
    """Return δ for a person, from that of one row at ε/rows: rows are taken away one by one."""
    step = epsilon / rows
    single = _row_delta(given, step)
    return None if single is None else single * sum(math.exp(place * step) for place in range(rows))


def _row_delta(given: Mapping[str, Any], epsilon: float) -> float | None:
    k, rate = whole(given["k"]), Fraction(str(given["rate"]))
    if "noise" in given:
        return blended_delta(k, rate, epsilon, float(Fraction(str(given["noise"]))))
    return rederive.suppression_delta(k, rate, epsilon)


def _floor(given: Mapping[str, Any], epsilon: float) -> float:
    return rederive.suppression_floor(whole(given["k"]), Fraction(str(given["rate"])), epsilon)
