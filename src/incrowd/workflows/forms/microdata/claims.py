"""Is a claim true?  Each kind is derived again from its parameters and held against the rest of the certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from incrowd.core.certificate import Certificate, Claim, Status
from incrowd.core.loss import Crowd, Grouped, Loss, RobustlySampled, Sampled, Syntactic
from incrowd.core.unit import Adjacency
from incrowd.workflows import rederive
from incrowd.workflows.forms import robust
from incrowd.workflows.forms.checks import TOLERANCE, steps_of, uncharged, whole
from incrowd.workflows.forms.form import Problem

_TOO_MANY = "the crowds are too many to try one by one; the claim was not derived again"
_PRIVATE = "approximate differential privacy"
_ZERO_KNOWLEDGE = "zero-knowledge with respect to random sampling"
_ROBUST = "zero-knowledge with respect to robust sampling"
_BLENDING = "crowd-blending"
_ANONYMITY = "k-anonymity"


def check_claim(claim: Claim, certificate: Certificate) -> Problem | None:
    """Return what is wrong with a claim, or None."""
    check = _CHECKS.get(claim.kind)
    if check is None:
        return Problem(f"claims of kind {claim.kind!r} are not known here", undecided=True)
    if claim.unit != str(certificate.guarantee.unit):
        return Problem("it speaks of another unit than the guarantee")
    try:
        return check(claim.parameters, certificate)
    except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return Problem("its parameters cannot be read")


def check_complete(certificate: Certificate) -> Problem | None:
    """Return which claim the guarantee carries and the certificate keeps silent about, or states without conditions."""
    assumed, loss = certificate.guarantee.assumes, certificate.guarantee.loss
    if not isinstance(loss, Syntactic) and not assumed:
        return Problem("the guarantee assumes nothing, and no promise about crowds holds without assumptions")
    # crowds need no secret coins
    spared = {_PRIVATE: 0, _ZERO_KNOWLEDGE: 0, _ROBUST: 0, _BLENDING: int(isinstance(loss, Sampled | RobustlySampled))}
    for kind in _required(certificate):
        stated = [claim for claim in certificate.claims if claim.kind == kind]
        if not stated:
            return Problem(f"the claim {kind!r} belongs to this guarantee and is missing")
        for claim in stated:
            told = {each.text for each in claim.preconditions if each.status is Status.ASSUMED}
            if not claim.preconditions or (kind in spared and len(assumed - told) > spared[kind]):
                return Problem(f"the preconditions of {kind!r} leave out what the guarantee assumes")
            if not any(claim.not_protected):
                return Problem(f"the claim {kind!r} does not say what it leaves open")
    return None


def _required(certificate: Certificate) -> tuple[str, ...]:
    """Return the kinds of claims that a guarantee of sampled suppression carries, for its loss and its unit."""
    loss, unit = certificate.guarantee.loss, certificate.guarantee.unit
    loss = loss.inner if isinstance(loss, Grouped) else loss
    anonymous = (_ANONYMITY,) if unit.max_rows == 1 else ()  # crowds of rows are not crowds of people
    if isinstance(loss, Sampled) and unit.max_rows == 1 and unit.adjacency is Adjacency.ADD_REMOVE:
        return (_PRIVATE, _ZERO_KNOWLEDGE, _BLENDING, *anonymous)
    if isinstance(loss, RobustlySampled) and unit.adjacency is Adjacency.ADD_REMOVE:
        return (_PRIVATE, _ROBUST, _BLENDING, *anonymous)
    if isinstance(loss, Sampled | RobustlySampled):
        return (_PRIVATE, *anonymous)
    return (_BLENDING, *anonymous) if isinstance(loss, Crowd) else anonymous


def _private(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    if isinstance(certificate.guarantee.loss, RobustlySampled):
        return contradiction(certificate, whole(given["k"])) or robust.check_private(given, certificate)
    k, rate, rows = whole(given["k"]), Fraction(given["rate"]), whole(given["max_rows"])
    if rows != certificate.guarantee.unit.max_rows:
        return Problem("its rows of a person are not those of the guarantee's unit")
    row: Loss = Sampled(rate, Crowd(k))
    unlike = contradiction(certificate, k, rate, Grouped(rows, row) if rows > 1 else row) or uncharged(
        given, certificate
    )
    if given["adjacency"] != str(certificate.guarantee.unit.adjacency):
        return Problem("its adjacency is not that of the guarantee")
    if unlike is not None or given["adjacency"] == "add-remove":
        return unlike or _beyond(given, k, rate, lambda epsilon: rederive.person_delta(k, rate, epsilon, rows))
    return _beyond(given, k, rate, lambda epsilon: rederive.replaced_delta(k, rate, epsilon, rows)) or Problem(
        "no pair of crowds that was tried breaks it; that none can is proved, and was not derived again", undecided=True
    )


def _zero_knowledge(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    k, rate = whole(given["k"]), Fraction(given["rate"])
    unlike = _not_single(certificate, k, rate) or uncharged(given, certificate)
    return unlike or _beyond(given, k, rate, lambda epsilon: rederive.suppression_delta(k, rate, epsilon))


def _published(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    k, rate = whole(given["k"]), Fraction(given["rate"])
    unlike = _not_single(certificate, k, rate) or uncharged(given, certificate, at_delta=False)
    return unlike or _differs(given, k, rate, lambda epsilon: rederive.theorem1_delta(k, rate, epsilon))


def _smooth(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    k, rate = whole(given["k"]), Fraction(given["rate"])
    unlike = _not_single(certificate, k, rate) or uncharged(given, certificate, at_delta=False)
    return unlike or _differs(given, k, rate, lambda epsilon: rederive.smooth_delta(k, rate, epsilon))


def _blending(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    """Suppression below k is (k, 0)-crowd-blending; and k is what the steps say."""
    if Fraction(str(given["epsilon"])) != 0:
        return Problem("suppression is (k, 0)-crowd-blending; another epsilon has no proof here")
    if isinstance(certificate.guarantee.loss, Grouped | Syntactic) or certificate.guarantee.unit.max_rows > 1:
        return Problem("the guarantee says nothing about crowds of people")
    return contradiction(certificate, whole(given["k"]))


def _anonymity(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    if list(given["columns"]) != list(certificate.schema.get("released", [])):
        return Problem("it does not speak of all released columns")
    return contradiction(certificate, whole(given["k"]))


def _beyond(given: Mapping[str, Any], k: int, rate: Fraction, delta: Callable[[float], float | None]) -> Problem | None:
    """Return that a stated δ is below the derived one, or that only a part of the crowds could be tried."""
    epsilon, claimed = float(Fraction(str(given["epsilon"]))), float(Fraction(str(given["delta"])))
    derived = delta(epsilon)
    found = rederive.suppression_floor(k, rate, epsilon) if derived is None else derived
    if found > claimed * TOLERANCE:
        least = "at least " if derived is None else ""
        return Problem(f"at epsilon {epsilon:.6g} its delta is {least}{found:.6g}, and the claim says {claimed:.6g}")
    return Problem(_TOO_MANY, undecided=True) if derived is None else None


def _differs(
    given: Mapping[str, Any], k: int, rate: Fraction, delta: Callable[[float], float | None]
) -> Problem | None:
    """Return that a stated δ is not the formula's, from above or from below."""
    epsilon, claimed = float(Fraction(str(given["epsilon"]))), float(Fraction(str(given["delta"])))
    found = delta(epsilon)
    below = _beyond(given, k, rate, lambda _: found)
    if below is None and found is not None and claimed > found * TOLERANCE:
        return Problem(f"at epsilon {epsilon:.6g} its delta is {found:.6g}, and the claim says {claimed:.6g}")
    return below


def _not_single(certificate: Certificate, k: int, rate: Fraction) -> Problem | None:
    """Return that a theorem about one sampled row, added or removed, does not speak of this unit, or of these steps."""
    unit = certificate.guarantee.unit
    if unit.max_rows > 1 or unit.adjacency is not Adjacency.ADD_REMOVE:
        return Problem("its theorem speaks of units of one row, added or removed, and the guarantee of others")
    return contradiction(certificate, k, rate, Sampled(rate, Crowd(k)))


def contradiction(
    certificate: Certificate, k: int, rate: Fraction | None = None, loss: Loss | None = None
) -> Problem | None:
    """Return what in the steps or in the guarantee contradicts the parameters of a claim."""
    steps = steps_of(certificate)
    if whole(steps["suppress"]["k"]) != k:
        return Problem("its k is not the k of the suppression step")
    if rate is not None and Fraction(str(steps["sample"]["rate"])) != rate:
        return Problem("its rate is not the rate of the sampling step")
    promised = certificate.guarantee.loss
    if loss is not None and promised != loss:
        return Problem("it is not what the guarantee describes")
    crowd = promised.inner if isinstance(promised, Grouped) else promised
    crowd = crowd.inner if isinstance(crowd, Sampled | RobustlySampled) else crowd
    if isinstance(crowd, Crowd) and crowd.k != k:
        return Problem("its k is not the k of the guarantee")
    if isinstance(crowd, Syntactic) and dict(crowd.parameters).get("k") != str(k):
        return Problem("its k is not the k of the guarantee")
    return None


def _pseudonymous(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    """Check that the recoding step puts a pseudonym in the named columns."""
    steps = steps_of(certificate)
    rules = {str(column["column"]): str(column["rule"]) for column in steps["recode"]["columns"]}
    if any("keyed pseudonym" not in rules.get(str(name), "") for name in given["columns"]):
        return Problem("the recoding step does not put a pseudonym in these columns")
    return None


_CHECKS: dict[str, Callable[[Mapping[str, Any], Certificate], Problem | None]] = {
    _PRIVATE: _private,
    "approximate differential privacy, as published": _published,
    _ZERO_KNOWLEDGE: _zero_knowledge,
    "f-smooth differential privacy": _smooth,
    _BLENDING: _blending,
    _ANONYMITY: _anonymity,
    "pseudonymization": _pseudonymous,
    _ROBUST: robust.check_zero_knowledge,
    f"{_ROBUST}, as published": robust.check_published,
}
