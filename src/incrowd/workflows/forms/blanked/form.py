"""Tables with missing cells: what is recounted in the file, and what steps and claims must say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from incrowd.core.certificate import Certificate, Claim
from incrowd.core.loss import Syntactic
from incrowd.engines.readers.sources import open_source
from incrowd.methods.outcomes.blanked import Blanked
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.workflows.forms.anonymized.form import reopened
from incrowd.workflows.forms.blanked.again import fewest_alike, fewest_matching, tuples_of
from incrowd.workflows.forms.checks import drafted_of, half_told, steps_of, whole
from incrowd.workflows.forms.form import Form, Look, Problem
from incrowd.workflows.forms.microdata.form import MICRODATA
from incrowd.workflows.forms.microdata.steps import check_columns

_PERSON = "keep rows of each person"
_CELLS = "leave out cells"
_ENDING = "arrange with missing cells"
_WHOLE = {"value": "k-anonymity", "matches": "k-anonymity with wildcards"}
_SUBSETS = {"value": "k-anonymity of subsets", "matches": "k-anonymity of subsets with wildcards"}
_KINDS = (*_WHOLE.values(), *_SUBSETS.values())


class _Blanked:
    """One row for each row that was kept; some cells of the quasi-identifiers are missing."""

    name = "blanked"
    ending = _ENDING

    def check_claim(self, claim: Claim, certificate: Certificate) -> Problem | None:
        if claim.kind == "pseudonymization":
            return MICRODATA.check_claim(claim, certificate)
        if claim.kind not in _KINDS:
            return Problem(f"claims of kind {claim.kind!r} are not known here", undecided=True)
        if claim.unit != str(certificate.guarantee.unit):
            return Problem("it speaks of another unit than the guarantee")
        try:
            return _contradiction(claim, certificate)
        except (KeyError, TypeError, ValueError):
            return Problem("its parameters cannot be read")

    def check_complete(self, certificate: Certificate) -> Problem | None:
        try:
            wanted = _wanted(certificate)
        except (KeyError, TypeError, ValueError):
            return Problem("the steps cannot be read")
        for kind, size in wanted:
            stated = [
                claim for claim in certificate.claims if (claim.kind, claim.parameters.get("size")) == (kind, size)
            ]
            if not stated:
                return Problem(f"the claim {kind!r} belongs to this guarantee and is missing")
            untold = next(filter(None, (half_told(claim, certificate) for claim in stated)), None)
            if untold is not None:
                return untold
        return None

    def check_steps(self, certificate: Certificate) -> Problem | None:
        unit, schema = certificate.guarantee.unit, certificate.schema
        names = [str(step.get("step")) for step in certificate.chain]
        if names != [*([_PERSON] if unit.column is not None else []), "recode", _CELLS, _ENDING]:
            return Problem("these steps are not known here", undecided=True)
        try:
            steps = steps_of(certificate)
            person = steps.get(_PERSON, {"column": unit.column, "rows": unit.max_rows})
            if (person["column"], person["rows"]) != (unit.column, unit.max_rows):
                return Problem("the rows kept of each person are not those of the guarantee's unit")
            if [each["column"] for each in steps["recode"]["columns"]] != list(schema["released"]):
                return Problem("the recoded columns are not the released ones")
            roles = {column["name"]: column["role"] for column in schema["columns"]}
            if [name for name in schema["released"] if roles[name] == "quasi"] != list(steps[_CELLS]["columns"]):
                return Problem("the columns whose cells are left out are not the quasi-identifiers")
            if certificate.guarantee.loss != _loss(certificate):
                return Problem("these steps do not give such a guarantee")
        except (KeyError, TypeError, ValueError):
            return Problem("the steps cannot be read")
        return None

    def looks(self, certificate: Certificate, file: Path) -> Iterator[Look]:
        columns = check_columns(certificate, file)
        yield Look("columns in the file", columns, "they are the released ones, and no others")
        if columns is None:
            quasi = _quasi(certificate)
            yield from _counted(certificate, tuples_of(open_source(str(file)).batches(quasi), quasi))

    def recount(self, certificate: Certificate, outcome: Outcome) -> Problem | None:
        if not isinstance(outcome, Blanked):
            return Problem("it is not a table with missing cells")
        looks = _counted(certificate, tuples_of(outcome.batches(), _quasi(certificate)))
        return next((look.problem for look in looks if look.problem is not None), None)

    def reopen(self, certificate: Certificate, file: Path) -> Blanked:
        read = reopened(certificate, file, _quasi(certificate))
        return Blanked(read.names, read.values, read.keys, read.counts, read.quasi)


def _quasi(certificate: Certificate) -> list[str]:
    return [str(name) for name in steps_of(certificate)[_CELLS]["columns"]]


def _counted(certificate: Certificate, tuples: pa.Table) -> Iterator[Look]:
    """Count every claim about the columns again."""
    for claim in certificate.claims:
        if claim.kind not in _KINDS:
            continue
        k, size = whole(claim.parameters["k"]), claim.parameters.get("size")
        if claim.kind in (_WHOLE["value"], _SUBSETS["value"]):
            found, words = fewest_alike(tuples, size), "the rarest combination occurs {} times, k is {}"
        else:
            found, words = fewest_matching(tuples, k, size), "{} rows or more match each row, k is {}"
        text = "there are no rows" if found is None else words.format(found, k)
        about = "" if size is None else f" of any {size}"
        problem = Problem(text) if found is not None and found < k else None
        yield Look(f"{claim.kind}{about} in the file", problem, text)


def _sizes(until: Mapping[str, Any]) -> dict[int | None, int]:
    """Return how many rows must agree, by the size of a subset; None stands for all columns."""
    found: dict[int | None, int] = {None: whole(until["k"])}
    for name, k in until.items():
        if name != "k":
            size = int(name.removeprefix("k of any "))
            if name != f"k of any {size}":
                raise ValueError("a demand that is not known here")
            found[size] = whole(k)
    return found


def _wanted(certificate: Certificate) -> list[tuple[str, int | None]]:
    """Return which claims belong to the steps: their kinds, and the sizes of subsets; beside these, k of 1 is none."""
    step = steps_of(certificate)[_CELLS]
    kinds, sizes = (_WHOLE[step["missing"]], _SUBSETS[step["missing"]]), _sizes(step["until"])
    return [
        (kinds[size is not None], size) for size, k in sizes.items() if size is not None or k > 1 or len(sizes) == 1
    ]


def _contradiction(claim: Claim, certificate: Certificate) -> Problem | None:
    step, given = steps_of(certificate)[_CELLS], claim.parameters
    size = given.get("size")
    if (claim.kind, size) not in _wanted(certificate):
        return Problem("it is not what the steps demand")
    if list(given["columns"]) != list(step["columns"]):
        return Problem("it does not speak of all quasi-identifiers")
    k, rows = whole(given["k"]), certificate.guarantee.unit.max_rows
    if k != _sizes(step["until"])[size]:
        return Problem("it is not what the steps demand")
    if k < 1 or (size is not None and not 1 <= whole(size) <= len(step["columns"])):
        return Problem("k below 1 says nothing, and subsets have from one column to all of them")
    if certificate.guarantee.loss != _loss(certificate):
        return Problem("it is not what the guarantee says")
    if given.get("people") != (-(-k // rows) if rows > 1 else None):
        return Problem("k counts rows, and its number of people does not follow from it")
    return None


def _loss(certificate: Certificate) -> Syntactic:
    """Return the loss of a table that meets what the steps demand."""
    steps = steps_of(certificate)
    drafted, until = drafted_of(steps["recode"]["columns"]), steps[_CELLS]["until"]
    _sizes(until)
    told = [(str(name), str(k)) for name, k in until.items()]
    return Syntactic(
        _WHOLE[steps[_CELLS]["missing"]],
        (*told, *([("drafted from rows", ", ".join(drafted))] if drafted else [])),
    )


BLANKED: Form = _Blanked()
