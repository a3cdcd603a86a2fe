"""Tables of item sets: what is recounted in the file, and what steps and claims must say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from incrowd.core.certificate import Certificate, Claim
from incrowd.core.loss import Syntactic
from incrowd.engines.readers.sources import open_source
from incrowd.methods.outcomes.itemsets import ItemTable
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.workflows.forms.anonymized.form import reopened
from incrowd.workflows.forms.checks import drafted_of, half_told, steps_of, whole
from incrowd.workflows.forms.form import Form, Look, Problem
from incrowd.workflows.forms.itemsets.again import Asked, Baskets, baskets_of, rarest
from incrowd.workflows.forms.microdata.form import MICRODATA
from incrowd.workflows.forms.microdata.steps import check_columns

_KIND = "k^m-anonymity"
_ENDING = "arrange sets"
_CUT = "cut items"
_TOLD = ("k", "m", "items", "separator", "columns")


class _Itemsets:
    """One row for each row that was kept; items show what the cut of their hierarchy has in their place."""

    name = "itemsets"
    ending = _ENDING

    def check_claim(self, claim: Claim, certificate: Certificate) -> Problem | None:
        if claim.kind == "pseudonymization":
            return MICRODATA.check_claim(claim, certificate)
        if claim.kind != _KIND:
            return Problem(f"claims of kind {claim.kind!r} are not known here", undecided=True)
        if claim.unit != str(certificate.guarantee.unit):
            return Problem("it speaks of another unit than the guarantee")
        try:
            return _contradiction(claim.parameters, certificate)
        except (KeyError, TypeError, ValueError):
            return Problem("its parameters cannot be read")

    def check_complete(self, certificate: Certificate) -> Problem | None:
        stated = [claim for claim in certificate.claims if claim.kind == _KIND]
        if not stated:
            return Problem(f"the claim {_KIND!r} belongs to this guarantee and is missing")
        return next(filter(None, (half_told(claim, certificate) for claim in stated)), None)

    def check_steps(self, certificate: Certificate) -> Problem | None:
        schema = certificate.schema
        if [str(step.get("step")) for step in certificate.chain] != ["recode", _CUT, _ENDING]:
            return Problem("these steps are not known here", undecided=True)
        try:
            steps = steps_of(certificate)
            if certificate.guarantee.unit.column is not None:
                return Problem("items of one person stand in one row: the unit has no column")
            if [each["column"] for each in steps["recode"]["columns"]] != list(schema["released"]):
                return Problem("the recoded columns are not the released ones")
            roles = {column["name"]: column["role"] for column in schema["columns"]}
            quasi = [name for name in schema["released"] if roles[name] == "quasi"]
            cut = steps[_CUT]
            if cut["items"] not in quasi or [n for n in quasi if n != cut["items"]] != list(cut["columns"]):
                return Problem("the columns of the cut are not the quasi-identifiers")
            if certificate.guarantee.loss != _loss(certificate):
                return Problem("these steps do not give such a guarantee")
        except (KeyError, TypeError):
            return Problem("the steps cannot be read")
        return None

    def looks(self, certificate: Certificate, file: Path) -> Iterator[Look]:
        columns = check_columns(certificate, file)
        yield Look("columns in the file", columns, "they are the released ones, and no others")
        for claim in certificate.claims:
            if claim.kind == _KIND and columns is None:
                asked = Asked.of(claim.parameters)
                rows = open_source(str(file)).batches([*asked.columns, asked.items])
                problem, found = _recounted(claim.parameters, baskets_of(rows, asked))
                yield Look(f"{_KIND} of {asked.items} in the file", problem, found)

    def recount(self, certificate: Certificate, outcome: Outcome) -> Problem | None:
        if not isinstance(outcome, ItemTable):
            return Problem("it is not a table of item sets")
        stated = [claim.parameters for claim in certificate.claims if claim.kind == _KIND]
        found = (_recounted(told, baskets_of(outcome.batches(), Asked.of(told)))[0] for told in stated)
        return next((problem for problem in found if problem is not None), None)

    def reopen(self, certificate: Certificate, file: Path) -> ItemTable:
        cut = steps_of(certificate)[_CUT]
        asked = Asked.of(cut)
        return ItemTable(
            reopened(certificate, file, list(asked.columns)), asked.items, asked.separator, whole(cut["m"])
        )


def _contradiction(given: Mapping[str, Any], certificate: Certificate) -> Problem | None:
    cut, loss = steps_of(certificate)[_CUT], certificate.guarantee.loss
    if any(given[name] != cut[name] for name in _TOLD):
        return Problem("it is not what the steps demand")
    if whole(given["k"]) < 1 or whole(given["m"]) < 1:
        return Problem("k and m below 1 say nothing")
    if loss != _loss(certificate):
        return Problem("it is not what the guarantee says")
    return None


def _recounted(given: Mapping[str, Any], baskets: Baskets) -> tuple[Problem | None, str]:
    k, m = whole(given["k"]), whole(given["m"])
    found = rarest(baskets, m)
    if found is None:
        return None, "there are no rows"
    text = f"the rarest combination of up to {m} items occurs in {found} rows, k is {k}"
    return (Problem(text) if found < k else None), text


def _loss(certificate: Certificate) -> Syntactic:
    """Return the loss of a table that meets what the cut demands."""
    steps = steps_of(certificate)
    drafted = drafted_of(steps["recode"]["columns"])
    told = (("k", str(whole(steps[_CUT]["k"]))), ("m", str(whole(steps[_CUT]["m"]))))
    return Syntactic(_KIND, (*told, *([("drafted from rows", ", ".join(drafted))] if drafted else [])))


ITEMSETS: Form = _Itemsets()
