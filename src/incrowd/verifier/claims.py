"""Claims: the numbers of an accountant, compared with those of the slow accountant."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from incrowd.core.claims import privacy
from incrowd.core.claims.claim import Claim
from incrowd.core.loss import RobustlySampled
from incrowd.core.steps.step import ClaimBasis
from incrowd.core.unit import Adjacency
from incrowd.verifier.check import Problem
from incrowd.verifier.slow_accountant import concentration, derive
from incrowd.verifier.slow_accountant.crowds import smooth_delta, suppression_floor, theorem1_delta, theorem2
from incrowd.verifier.slow_accountant.laws import TOLERANCE

DERIVED = (privacy.Private, privacy.SampledCrowd, privacy.Surveyed, privacy.Concentrated)
"""Claims whose numbers follow from the loss of the guarantee; those of other claims a method's own check derives."""
_NOT_DERIVED = Problem("its numbers are not recomputed here", undecided=True)
_TOO_MANY = Problem("there are too many crowds to try each one; the claim was not recomputed", undecided=True)
_REPLACED = Problem("no tried pair of crowds breaks it; the proof that none can was not recomputed", undecided=True)


def check_numbers(claim: Claim, basis: ClaimBasis) -> Problem | None:
    """Return that a number of a claim is not what the loss of the guarantee has, or could not be derived; or None.

    What a guarantee costs is not stated below what is derived; a published formula is stated as it is.
    """
    match claim:
        case privacy.PurePrivacy():
            return _below(claim.epsilon, Fraction(0), basis)
        case privacy.ApproximatePrivacy() | privacy.ZeroKnowledge() | privacy.RobustZeroKnowledge():
            return _below(claim.epsilon, claim.delta, basis)
        case privacy.Concentrated():
            return _concentrated(claim.rho, basis)
        case privacy.PublishedTheorem():
            return _published(claim)
        case privacy.Smooth():
            return _unlike(claim.delta, smooth_delta(claim.k, claim.rate, float(claim.epsilon)), "delta")
        case privacy.RobustTheorem():
            return _robust(claim, basis)
    return None


def _below(epsilon: Decimal | Fraction, delta: Fraction, basis: ClaimBasis) -> Problem | None:
    """Return that a stated δ is below the derived one, or that only a part of what can happen could be tried."""
    derived = derive(basis.guarantee.loss, basis.unit, epsilon, delta)
    if derived is None:
        return _NOT_DERIVED
    if derived.delta > float(delta) * TOLERANCE:
        least = "" if derived.whole else "at least "
        return Problem(
            f"at epsilon {float(epsilon):.6g} its delta is {least}{derived.delta:.6g}, but the claim says "
            f"{float(delta):.6g}"
        )
    if derived.whole:
        return None
    return _REPLACED if basis.unit.adjacency is Adjacency.REPLACE else _TOO_MANY


def _concentrated(rho: Fraction, basis: ClaimBasis) -> Problem | None:
    needed = concentration(basis.guarantee.loss)
    if needed is None:
        return _NOT_DERIVED
    return Problem(f"its rho is {float(needed):.6g} at least") if float(rho) * TOLERANCE < float(needed) else None


def _published(claim: privacy.PublishedTheorem) -> Problem | None:
    epsilon = float(claim.epsilon)
    derived = theorem1_delta(claim.k, claim.rate, epsilon)
    if derived is not None:
        return _unlike(claim.delta, derived, "delta")
    least = suppression_floor(claim.k, claim.rate, epsilon)
    return Problem(f"its delta is at least {least:.6g}") if least > claim.delta * TOLERANCE else _TOO_MANY


def _robust(claim: privacy.RobustTheorem, basis: ClaimBasis) -> Problem | None:
    loss = basis.guarantee.loss
    if not isinstance(loss, RobustlySampled):
        return Problem("its theorem assumes a biased sample, but the guarantee has none")
    epsilon, delta = theorem2(loss)
    return _unlike(claim.epsilon, epsilon, "epsilon") or _unlike(claim.delta, delta, "delta")


def _unlike(claimed: float, derived: float, name: str) -> Problem | None:
    """Return that a number is not the formula's, from above or from below."""
    near = derived <= claimed * TOLERANCE and claimed <= derived * TOLERANCE
    return None if near else Problem(f"its {name} is {derived:.6g} by the formula, but the claim says {claimed:.6g}")
