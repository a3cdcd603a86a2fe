"""Tables in privately chosen boxes: what steps and claims must say; the file is looked at as microdata is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from incrowd.core.certificate import Certificate, Claim
from incrowd.core.loss import Crowd, Loss, Pure, Sampled, Sequence, Syntactic
from incrowd.methods.outcomes.anonymized import Anonymized, Partitioned
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.workflows.forms.anonymized.form import reopened
from incrowd.workflows.forms.checks import TOLERANCE, drafted_of, steps_of, uncharged, whole
from incrowd.workflows.forms.chosen.form import CHOSEN, delta_with_choice
from incrowd.workflows.forms.form import Form, Look, Problem
from incrowd.workflows.forms.microdata.form import MICRODATA

_PRIVATE = "approximate differential privacy"
_PERSON = "keep rows of each person"
_ENDING = "arrange by chosen cuts"
_STEPS = ["choose cuts", "sample", "recode", "suppress", _ENDING]


class _Partitioned:
    """One row for each sampled row that was kept, in boxes that a private look at the rows cut."""

    name = "partitioned"
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
        return CHOSEN.check_complete(certificate)

    def check_steps(self, certificate: Certificate) -> Problem | None:
        unit, schema = certificate.guarantee.unit, certificate.schema
        names = [str(step.get("step")) for step in certificate.chain]
        if names != [*([_PERSON] if unit.column is not None else []), *_STEPS]:
            return Problem("these steps are not known here", undecided=True)
        try:
            steps = steps_of(certificate)
            person = steps.get(_PERSON, {"column": unit.column, "rows": unit.max_rows})
            if (person["column"], person["rows"]) != (unit.column, 1):
                return Problem("the rows kept of each person are not those of the guarantee's unit")
            if [each["column"] for each in steps["recode"]["columns"]] != list(schema["released"]):
                return Problem("the recoded columns are not the released ones")
            roles = {column["name"]: column["role"] for column in schema["columns"]}
            quasi = [name for name in schema["released"] if roles[name] == "quasi"]
            if whole(steps["choose cuts"]["depth"]) < 1 or list(steps["choose cuts"]["columns"]) != quasi:
                return Problem("the columns that are cut are not the quasi-identifiers")
            if certificate.guarantee.loss != _loss(steps):
                return Problem("these steps do not give such a guarantee")
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            return Problem("the steps cannot be read")
        return None

    def looks(self, certificate: Certificate, file: Path) -> Iterator[Look]:
        return MICRODATA.looks(certificate, file)

    def recount(self, certificate: Certificate, outcome: Outcome) -> Problem | None:
        if not isinstance(outcome, Partitioned):
            return Problem("it is not a table in boxes")
        k = whole(steps_of(certificate)["suppress"]["k"])
        return (
            Problem("some tuple occurs too rarely") if len(outcome.counts) and int(outcome.counts.min()) < k else None
        )

    def reopen(self, certificate: Certificate, file: Path) -> Anonymized:
        return reopened(certificate, file, [str(name) for name in certificate.schema.get("released", ())])


def _loss(steps: Mapping[str, Mapping[str, Any]]) -> Loss:
    """Return the loss that the steps have; where rules were drafted from rows, nothing but the form is left."""
    k = whole(steps["suppress"]["k"])
    drafted = drafted_of(steps["recode"]["columns"])
    if drafted:
        return Syntactic("k-anonymity", (("k", str(k)), ("drafted from rows", ", ".join(drafted))))
    choosing, rate = (Fraction(str(value)) for value in (steps["choose cuts"]["epsilon"], steps["sample"]["rate"]))
    return Sequence((Pure(choosing), Sampled(rate, Crowd(k))))


def _private(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    k, rate, choosing = whole(given["k"]), Fraction(str(given["rate"])), Fraction(str(given["choosing"]))
    unit, loss = certificate.guarantee.unit, Sequence((Pure(choosing), Sampled(rate, Crowd(k))))
    if (given["max_rows"], unit.max_rows) != (1, 1) or {given["adjacency"], str(unit.adjacency)} != {"add-remove"}:
        return Problem("it is proved for units of one row, added or removed, and for no others")
    if loss != certificate.guarantee.loss or loss != _loss(steps_of(certificate)):
        return Problem("it is not what the guarantee and the steps describe")
    unlike = uncharged(given, certificate)
    if unlike is not None:
        return unlike
    epsilon, claimed = float(Fraction(str(given["epsilon"]))), float(Fraction(str(given["delta"])))
    found = delta_with_choice(k, rate, epsilon, float(choosing), 1)
    if found is None:
        return Problem("the crowds are too many to try one by one; the claim was not derived again", undecided=True)
    if found > claimed * TOLERANCE:
        return Problem(f"at epsilon {epsilon:.6g} its delta is {found:.6g}, and the claim says {claimed:.6g}")
    return None


PARTITIONED: Form = _Partitioned()
