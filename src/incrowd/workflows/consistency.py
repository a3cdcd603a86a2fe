"""Does a certificate contradict itself, or the ledger?  Steps, guarantee and accounting must tell one story."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from incrowd.core.certificate import Certificate
from incrowd.core.loss import Syntactic
from incrowd.workflows.claims import Problem

if TYPE_CHECKING:
    from incrowd.accounting.bookkeeping.standing import Standing
    from incrowd.accounting.ledger import Ledger

_PERSON = "keep rows of each person"
_STEPS = ["sample", "recode", "suppress", "order"]


def check_steps(certificate: Certificate) -> Problem | None:
    """Return where the steps contradict the guarantee or the schema, or None."""
    unit, schema = certificate.guarantee.unit, certificate.schema
    try:
        names = [str(step["step"]) for step in certificate.chain]
        if names != ([_PERSON] if unit.column is not None else []) + _STEPS:
            return Problem("these steps are not known here", undecided=True)
        steps = {str(step["step"]): step for step in certificate.chain}
        recoded = list(steps["recode"]["columns"])
        drafted = [each["column"] for each in recoded if each["provenance"] == "drafted from rows"]
        if unit.column is not None and (steps[_PERSON]["column"], steps[_PERSON]["rows"]) != (
            unit.column,
            unit.max_rows,
        ):
            return Problem("the rows kept of each person are not those of the guarantee's unit")
        if [each["column"] for each in recoded] != list(schema["released"]):
            return Problem("the recoded columns are not the released ones")
    except (KeyError, TypeError):
        return Problem("the steps cannot be read")
    if ", ".join(drafted) != _drafted(certificate):
        return Problem("what was drafted from rows is not what the guarantee says")
    return None


def check_accounting(certificate: Certificate) -> Problem | None:
    """Return why the amounts cannot be what this release cost, or None."""
    try:
        spent = {name: Decimal(certificate.accounting["spent"][name]) for name in ("epsilon", "delta")}
        total = {name: Decimal(certificate.accounting["total"][name]) for name in ("epsilon", "delta")}
        releases = int(certificate.accounting["releases"])
        private = [claim for claim in certificate.claims if claim.kind == "approximate differential privacy"]
        claimed = Decimal(str(private[0].parameters["epsilon"])) if private else Decimal("Infinity")
    except (KeyError, TypeError, ValueError, InvalidOperation):
        return Problem("the amounts cannot be read")
    if spent["epsilon"] != claimed or (private and spent["delta"] < certificate.guarantee.delta):
        return Problem("what was charged is not what the claim costs")
    if any(total[name] < spent[name] for name in spent):
        return Problem("the total is smaller than what this release spent")
    if releases < 1 or (releases == 1 and total != spent):
        return Problem("the total is not that of the releases counted")
    return None


def standing_at(ledger: Ledger, dataset: str, sequence: int) -> Standing:
    """Return how a dataset stood right after an entry, as the entries up to that one tell."""
    from incrowd.accounting.bookkeeping.datasets import known_dataset, standing_of
    from incrowd.store.link import Key, text_of

    told: dict[str, Any] = {}
    for link in ledger.chain.links():
        told.update(link.sets)
        if link.sequence == sequence:
            break

    def value(key: Key) -> Any:
        return told.get(text_of(key))

    return standing_of(value, known_dataset(value, dataset))


def _drafted(certificate: Certificate) -> str:
    loss = certificate.guarantee.loss
    return dict(loss.parameters).get("drafted from rows", "") if isinstance(loss, Syntactic) else ""
