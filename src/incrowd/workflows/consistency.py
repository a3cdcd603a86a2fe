"""Does a certificate contradict itself, its folder, or the ledger?  All of them must tell one story."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.core.certificate import Certificate
from incrowd.workflows.files import FORMATS, names_of, tables_of
from incrowd.workflows.forms.form import Problem

if TYPE_CHECKING:
    from incrowd.accounting.ledger.ledger import Ledger
    from incrowd.accounting.ledger.standing import Standing

_BESIDE = ("certificate.json", "report.html")
_CONCENTRATED = "zero-concentrated differential privacy"
_PRIVATE = ("pure differential privacy", "approximate differential privacy")


def check_outputs(certificate: Certificate) -> Problem | None:
    """Return that a certificate names more tables than those it speaks of, or something else."""
    names, tables = tuple(output.get("name") for output in certificate.outputs), tables_of(certificate)
    if tables == 1 and len(names) > 1:
        return Problem("the certificate names several files, and its claims speak of one table")
    if tables == 0:
        return Problem("the steps do not say how many tables there are")
    known = [names_of(tables, form) for form in FORMATS]
    if names and names not in known:
        shown = " or ".join(", ".join(each) for each in known)
        return Problem(f"such a release is {shown}, and the certificate names other files")
    return None


def check_folder(certificate: Certificate, folder: Path, named: Collection[str] = ()) -> Problem | None:
    """Return that a release's folder holds what neither its certificate nor the caller named, or None."""
    known = {*_BESIDE, *named, *(output.get("name") for output in certificate.outputs)}
    strange = sorted(each.name for each in folder.iterdir() if each.name not in known)
    if not strange:
        return None
    return Problem(f"the certificate does not speak of {', '.join(map(repr, strange))}: do not pass that on with it")


def check_accounting(certificate: Certificate) -> Problem | None:
    """Return why the amounts cannot be what this release cost, or None."""
    try:
        spent = {name: Decimal(certificate.accounting["spent"][name]) for name in ("epsilon", "delta")}
        total = {name: Decimal(certificate.accounting["total"][name]) for name in ("epsilon", "delta")}
        releases = int(certificate.accounting["releases"])
        private = [claim for claim in certificate.claims if claim.kind in _PRIVATE]
        claimed = Decimal(str(private[0].parameters["epsilon"])) if private else _without_epsilon(certificate)
    except (KeyError, TypeError, ValueError, InvalidOperation):
        return Problem("the amounts cannot be read")
    if any(each.is_nan() for each in (*spent.values(), *total.values(), claimed)):
        return Problem("an amount is not a number")
    if spent["epsilon"] != claimed or (private and spent["delta"] < certificate.guarantee.delta):
        return Problem("what was charged is not what the claim costs")
    if any(total[name] < spent[name] for name in spent):
        return Problem("the total is smaller than what this release spent")
    if releases < 1 or (releases == 1 and total != spent):
        return Problem("the total is not that of the releases counted")
    return None


def _without_epsilon(certificate: Certificate) -> Decimal:
    """Return what a claim without ε costs: nothing more where an account paid that was carved out before."""
    return Decimal(0 if any(claim.kind == _CONCENTRATED for claim in certificate.claims) else "Infinity")


def standing_at(ledger: Ledger, dataset: str, sequence: int) -> Standing:
    """Return how a dataset stood right after an entry, as the entries up to that one tell."""
    from incrowd.accounting.ledger.datasets import known_dataset, standing_of
    from incrowd.store.link import Key, text_of

    told: dict[str, Any] = {}
    for link in ledger.chain.links():
        told.update(link.sets)
        if link.sequence == sequence:
            break

    def value(key: Key) -> Any:
        return told.get(text_of(key))

    return standing_of(value, known_dataset(value, dataset))
