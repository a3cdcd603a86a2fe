"""Is a claim true?  Each kind is derived again from its parameters and held against the rest of the certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from incrowd.core.certificate import Certificate, Claim
from incrowd.core.loss import Crowd, Grouped, Loss, Sampled, Syntactic
from incrowd.workflows import rederive

_TOLERANCE = 1 + 1e-6  # the second route computes with floats, and differences of small numbers cancel
_TOO_MANY = "the crowds are too many to try one by one; the claim was not derived again"


@dataclass(frozen=True)
class Problem:
    """Why a claim does not hold, or why it could not be decided."""

    text: str
    undecided: bool = False


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


def _private(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    k, rate, rows = int(given["k"]), Fraction(given["rate"]), int(given["max_rows"])
    row: Loss = Sampled(rate, Crowd(k))
    unlike = _unlike(certificate, k, rate, Grouped(rows, row) if rows > 1 else row) or _uncharged(given, certificate)
    if given["adjacency"] != str(certificate.guarantee.unit.adjacency):
        return Problem("its adjacency is not that of the guarantee")
    if unlike is not None or given["adjacency"] == "add-remove":
        return unlike or _beyond(given, lambda epsilon: rederive.person_delta(k, rate, epsilon, rows))
    return _beyond(given, lambda epsilon: rederive.replaced_delta(k, rate, epsilon, rows)) or Problem(
        "no pair of crowds that was tried breaks it; that none can is proved, and was not derived again", undecided=True
    )


def _zero_knowledge(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    k, rate = int(given["k"]), Fraction(given["rate"])
    unlike = _unlike(certificate, k, rate, Sampled(rate, Crowd(k))) or _uncharged(given, certificate)
    return unlike or _beyond(given, lambda epsilon: rederive.suppression_delta(k, rate, epsilon))


def _published(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    k, rate = int(given["k"]), Fraction(given["rate"])
    unlike = _unlike(certificate, k, rate, Sampled(rate, Crowd(k))) or _uncharged(given, certificate, at_delta=False)
    return unlike or _differs(given, lambda epsilon: rederive.theorem1_delta(k, rate, epsilon))


def _smooth(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    k, rate = int(given["k"]), Fraction(given["rate"])
    unlike = _unlike(certificate, k, rate, Sampled(rate, Crowd(k))) or _uncharged(given, certificate, at_delta=False)
    return unlike or _differs(given, lambda epsilon: rederive.smooth_delta(k, rate, epsilon))


def _blending(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    """Suppression below k is (k, 0)-crowd-blending; and k is what the steps say."""
    if Fraction(str(given["epsilon"])) != 0:
        return Problem("suppression is (k, 0)-crowd-blending; another epsilon has no proof here")
    if isinstance(certificate.guarantee.loss, Grouped | Syntactic):
        return Problem("the guarantee says nothing about crowds of people")
    return _unlike(certificate, int(given["k"]), None)


def _anonymity(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    if list(given["columns"]) != list(certificate.schema.get("released", [])):
        return Problem("it does not speak of all released columns")
    return _unlike(certificate, int(given["k"]), None)


def _beyond(given: Mapping[str, Any], delta: Callable[[float], float | None]) -> Problem | None:
    epsilon, claimed = float(Fraction(str(given["epsilon"]))), float(Fraction(str(given["delta"])))
    found = delta(epsilon)
    if found is None:
        return Problem(_TOO_MANY, undecided=True)
    if found > claimed * _TOLERANCE:
        return Problem(f"at epsilon {epsilon:.6g} its delta is {found:.6g}, and the claim says {claimed:.6g}")
    return None


def _differs(given: Mapping[str, Any], delta: Callable[[float], float | None]) -> Problem | None:
    """Return that a stated δ is not the formula's, from above or from below."""
    epsilon, claimed = float(Fraction(str(given["epsilon"]))), float(Fraction(str(given["delta"])))
    found = delta(epsilon)
    if found is None:
        return Problem(_TOO_MANY, undecided=True)
    if found > claimed * _TOLERANCE or claimed > found * _TOLERANCE:
        return Problem(f"at epsilon {epsilon:.6g} its delta is {found:.6g}, and the claim says {claimed:.6g}")
    return None


def _uncharged(given: Mapping[str, Any], certificate: Certificate, *, at_delta: bool = True) -> Problem | None:
    """Return that a claim is not about the ε that was charged, or not at the δ of the guarantee."""
    if Fraction(str(given["epsilon"])) != Fraction(str(certificate.accounting["spent"]["epsilon"])):
        return Problem("its epsilon is not what was charged")
    if at_delta and Fraction(str(given["delta"])) != certificate.guarantee.delta:
        return Problem("its delta is not the delta of the guarantee")
    return None


def _unlike(certificate: Certificate, k: int, rate: Fraction | None, loss: Loss | None = None) -> Problem | None:
    """Return what in the steps or in the guarantee contradicts the parameters of a claim."""
    steps = {str(step.get("step")): step for step in certificate.chain}
    if int(steps["suppress"]["k"]) != k:
        return Problem("its k is not the k of the suppression step")
    if rate is not None and Fraction(str(steps["sample"]["rate"])) != rate:
        return Problem("its rate is not the rate of the sampling step")
    promised = certificate.guarantee.loss
    if loss is not None and promised != loss:
        return Problem("it is not what the guarantee describes")
    crowd = promised.inner if isinstance(promised, Grouped) else promised
    crowd = crowd.inner if isinstance(crowd, Sampled) else crowd
    if isinstance(crowd, Crowd) and crowd.k != k:
        return Problem("its k is not the k of the guarantee")
    if isinstance(crowd, Syntactic) and dict(crowd.parameters).get("k") != str(k):
        return Problem("its k is not the k of the guarantee")
    return None


def _pseudonymous(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    """Check that the recoding step puts a pseudonym in the named columns."""
    steps = {str(step.get("step")): step for step in certificate.chain}
    rules = {str(column["column"]): str(column["rule"]) for column in steps["recode"]["columns"]}
    if any("keyed pseudonym" not in rules.get(str(name), "") for name in given["columns"]):
        return Problem("the recoding step does not put a pseudonym in these columns")
    return None


_CHECKS: dict[str, Callable[[Mapping[str, Any], Certificate], Problem | None]] = {
    "approximate differential privacy": _private,
    "approximate differential privacy, as published": _published,
    "zero-knowledge with respect to random sampling": _zero_knowledge,
    "f-smooth differential privacy": _smooth,
    "crowd-blending": _blending,
    "k-anonymity": _anonymity,
    "pseudonymization": _pseudonymous,
}
