"""Microdata at chosen levels: what its steps and its claims must say; its file is looked at as other microdata is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from incrowd.core.certificate import Certificate, Claim, Status
from incrowd.core.loss import Crowd, Grouped, Loss, Pure, Sampled, Sequence, Syntactic
from incrowd.methods.outcomes.microdata import Microdata
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.workflows import rederive
from incrowd.workflows.forms.checks import TOLERANCE, drafted_of, steps_of, uncharged, whole
from incrowd.workflows.forms.form import Form, Look, Problem
from incrowd.workflows.forms.microdata.form import MICRODATA

_PRIVATE = "approximate differential privacy"
_PERSON = "keep rows of each person"
_ENDING = "order by chosen levels"
_HIGH = Fraction(9, 10)  # above it adding can show more than removing, and the two were not told apart here
_STEPS = ["sample", "recode", "suppress", _ENDING]


class _Chosen:
    """One row for each row that was kept, at levels that a private selection chose."""

    name = "chosen microdata"
    ending = _ENDING

    def check_claim(self, claim: Claim, certificate: Certificate) -> Problem | None:
        if claim.kind != _PRIVATE:
            return MICRODATA.check_claim(claim, certificate)
        if claim.unit != str(certificate.guarantee.unit):
            return Problem("it speaks of another unit than the guarantee")
        try:
            return _private(claim.parameters, certificate)
        except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
            return Problem("its parameters cannot be read")

    def check_complete(self, certificate: Certificate) -> Problem | None:
        drafted = isinstance(certificate.guarantee.loss, Syntactic)
        for kind in ("k-anonymity",) if drafted else (_PRIVATE, "k-anonymity"):
            stated = [claim for claim in certificate.claims if claim.kind == kind]
            if not stated or not all(claim.preconditions for claim in stated):
                return Problem(f"the claim {kind!r} belongs to this guarantee and is missing, or has no preconditions")
            told = [{each.text for each in claim.preconditions if each.status is Status.ASSUMED} for claim in stated]
            if kind == _PRIVATE and not all(certificate.guarantee.assumes <= each for each in told):
                return Problem(f"the preconditions of {kind!r} leave out what the guarantee assumes")
        if not drafted and not certificate.guarantee.assumes:
            return Problem("the guarantee assumes nothing, and no promise about crowds holds without assumptions")
        return None

    def check_steps(self, certificate: Certificate) -> Problem | None:
        unit, schema = certificate.guarantee.unit, certificate.schema
        names = [str(step.get("step")) for step in certificate.chain]
        if names != ["choose levels", *([_PERSON] if unit.column is not None else []), *_STEPS]:
            return Problem("these steps are not known here", undecided=True)
        try:
            steps = steps_of(certificate)
            person = steps.get(_PERSON, {"column": unit.column, "rows": unit.max_rows})
            if (person["column"], person["rows"]) != (unit.column, unit.max_rows):
                return Problem("the rows kept of each person are not those of the guarantee's unit")
            if [each["column"] for each in steps["recode"]["columns"]] != list(schema["released"]):
                return Problem("the recoded columns are not the released ones")
            if drafted_of(steps["recode"]["columns"]):
                held = _drafted(certificate, steps)
            else:
                held = certificate.guarantee.loss == _loss(steps, unit.max_rows)
            return _insensitive(steps, unit.max_rows) if held else Problem("these steps do not give such a guarantee")
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            return Problem("the steps cannot be read")

    def looks(self, certificate: Certificate, file: Path) -> Iterator[Look]:
        return MICRODATA.looks(certificate, file)

    def recount(self, certificate: Certificate, outcome: Outcome) -> Problem | None:
        return MICRODATA.recount(certificate, outcome)

    def reopen(self, certificate: Certificate, file: Path) -> Microdata:
        reopened = MICRODATA.reopen(certificate, file)
        if not isinstance(reopened, Microdata):
            raise TypeError("microdata reopens as microdata")
        return reopened


def _loss(steps: Mapping[str, Mapping[str, Any]], rows: int) -> Loss:
    row = Sampled(Fraction(str(steps["sample"]["rate"])), Crowd(whole(steps["suppress"]["k"])))
    return Sequence((Pure(Fraction(str(steps["choose levels"]["epsilon"]))), Grouped(rows, row) if rows > 1 else row))


def _insensitive(steps: Mapping[str, Mapping[str, Any]], rows: int) -> Problem | None:
    """Return that one person can move the worth of a recoding by more than the step of the choice says.

    The n-th row of a cell adds rate·(P[B ≥ k] + k·P[B = k − 1]) expected rows, B of the n − 1 others being sampled;
    worths count them in 2^16 steps each, times 2^12 for the details.  Near n = k/rate this is largest.
    """
    k, rate = whole(steps["suppress"]["k"]), float(Fraction(str(steps["sample"]["rate"])))
    near = range(max(0, math.floor((k - 1) / rate) - 2), math.ceil(k / rate) + 3)
    added = max(rate * (_at_least(k, n, rate) + k * (_at_least(k - 1, n, rate) - _at_least(k, n, rate))) for n in near)
    least = 2**12 * math.floor(2**16 * added * (1.0 - 1e-9)) * rows
    if whole(steps["choose levels"]["sensitivity"]) < least:
        return Problem("one person can move the worth of a recoding by more than the steps say")
    return None


def _at_least(k: int, n: int, rate: float) -> float:
    """Return the chance that at least k of n are sampled."""
    from scipy.stats import binom

    return float(binom.sf(k - 1, n, rate))


def _drafted(certificate: Certificate, steps: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether the guarantee is the one that is left where rules were drafted from rows, and names them."""
    drafted = drafted_of(steps["recode"]["columns"])
    told = Syntactic("k-anonymity", (("k", str(steps["suppress"]["k"])), ("drafted from rows", ", ".join(drafted))))
    return bool(drafted) and certificate.guarantee.loss == told


def _private(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    k, rate, rows = whole(given["k"]), Fraction(str(given["rate"])), whole(given["max_rows"])
    steps, unit, choosing = steps_of(certificate), certificate.guarantee.unit, Fraction(str(given["choosing"]))
    row = Sampled(rate, Crowd(k))
    loss = Sequence((Pure(choosing), Grouped(rows, row) if rows > 1 else row))
    if rows != unit.max_rows or given["adjacency"] != str(unit.adjacency):
        return Problem("its unit is not that of the guarantee")
    if loss != certificate.guarantee.loss or loss != _loss(steps, rows):
        return Problem("it is not what the guarantee and the steps describe")
    unlike = uncharged(given, certificate)
    if unlike is not None:
        return unlike
    if given["adjacency"] != "add-remove":
        return Problem("for replaced rows the claim was not derived again", undecided=True)
    epsilon, claimed = float(Fraction(str(given["epsilon"]))), float(Fraction(str(given["delta"])))
    found = delta_with_choice(k, rate, epsilon, float(choosing), rows)
    if found is None:
        return Problem("the crowds are too many to try one by one; the claim was not derived again", undecided=True)
    if found > claimed * TOLERANCE:
        return Problem(f"at epsilon {epsilon:.6g} its delta is {found:.6g}, and the claim says {claimed:.6g}")
    return None


def delta_with_choice(k: int, rate: Fraction, epsilon: float, choosing: float, rows: int) -> float | None:
    """Return δ of the choice and the release together at ε, or None if it cannot be tried.

    The choice tells no more than one bit that is right with chance e^c/(1 + e^c), c being its ε.  If it is right, ε − c
    is left for the release, if it is wrong ε + c: δ = (e^c·δ(ε − c) + δ(ε + c))/(1 + e^c).  For people with several
    rows the sum rule is used: δ(ε − c).
    """
    if epsilon < choosing or rate > _HIGH:
        return None
    if rows > 1:
        return rederive.person_delta(k, rate, epsilon - choosing, rows)
    right = rederive.suppression_delta(k, rate, epsilon - choosing)
    wrong = rederive.suppression_delta(k, rate, epsilon + choosing)
    if right is None or wrong is None:
        return None
    odds = math.exp(choosing)
    return (odds * right + wrong) / (1.0 + odds)


CHOSEN: Form = _Chosen()
