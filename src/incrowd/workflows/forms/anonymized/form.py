"""Anonymized tables: what is recounted in the file, and what steps and claims must say."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from incrowd.core.certificate import Certificate, Claim
from incrowd.engines.local.smallest_class import smallest_class
from incrowd.engines.readers.sources import open_source
from incrowd.methods.outcomes.anonymized import Anonymized
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.workflows.forms.anonymized import claims
from incrowd.workflows.forms.anonymized.demanded import loss_of
from incrowd.workflows.forms.anonymized.recounted import Recount
from incrowd.workflows.forms.checks import steps_of
from incrowd.workflows.forms.form import Form, Look, Problem
from incrowd.workflows.forms.microdata.steps import check_columns

_PERSON = "keep rows of each person"
_ENDING = "arrange"


class _Anonymized:
    """One row for each row that was kept; quasi-identifiers show what a whole class has in common."""

    name = "anonymized"
    ending = _ENDING

    def check_claim(self, claim: Claim, certificate: Certificate) -> Problem | None:
        return claims.check_claim(claim, certificate)

    def check_complete(self, certificate: Certificate) -> Problem | None:
        return claims.check_complete(certificate)

    def check_steps(self, certificate: Certificate) -> Problem | None:
        unit, schema = certificate.guarantee.unit, certificate.schema
        names = [str(step.get("step")) for step in certificate.chain]
        if names != [*([_PERSON] if unit.column is not None else []), "recode", "cut", _ENDING]:
            return Problem("these steps are not known here", undecided=True)
        try:
            steps = steps_of(certificate)
            person = steps.get(_PERSON, {"column": unit.column, "rows": unit.max_rows})
            if (person["column"], person["rows"]) != (unit.column, unit.max_rows):
                return Problem("the rows kept of each person are not those of the guarantee's unit")
            if [each["column"] for each in steps["recode"]["columns"]] != list(schema["released"]):
                return Problem("the recoded columns are not the released ones")
            roles = {column["name"]: column["role"] for column in schema["columns"]}
            if [name for name in schema["released"] if roles[name] == "quasi"] != list(steps["cut"]["columns"]):
                return Problem("the columns that are cut are not the quasi-identifiers")
            if certificate.guarantee.loss != loss_of(certificate):
                return Problem("these steps do not give such a guarantee")
        except (KeyError, TypeError):
            return Problem("the steps cannot be read")
        return None

    def looks(self, certificate: Certificate, file: Path) -> Iterator[Look]:
        columns = check_columns(certificate, file)
        yield Look("columns in the file", columns, "they are the released ones, and no others")
        source = open_source(str(file))
        yield from Recount(certificate, source.batches, partial(smallest_class, file)).looks()

    def recount(self, certificate: Certificate, outcome: Outcome) -> Problem | None:
        if not isinstance(outcome, Anonymized):
            return Problem("it is not an anonymized table")
        again = Recount(certificate, lambda _: outcome.batches(), lambda quasi: min(again.sizes(quasi), default=None))
        problems = (look.problem for look in again.looks())
        return next((problem for problem in problems if problem is not None and not problem.undecided), None)

    def reopen(self, certificate: Certificate, file: Path) -> Anonymized:
        return reopened(certificate, file, [str(name) for name in steps_of(certificate)["cut"]["columns"]])


def reopened(certificate: Certificate, file: Path, quasi: list[str]) -> Anonymized:
    """Count the published file, as anyone can; every column is text."""
    names = [str(name) for name in certificate.schema.get("released", ())]
    table = pa.Table.from_batches(
        [
            pa.RecordBatch.from_arrays([c.cast(pa.string()) for c in batch.columns], names=batch.schema.names)
            for batch in open_source(str(file)).batches(names)
        ],
        schema=pa.schema([(name, pa.string()) for name in names]),
    )
    columns, codes = {}, []
    for name in names:
        encoded = table.column(name).combine_chunks().dictionary_encode()
        columns[name] = encoded.dictionary
        codes.append(encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False))
    return Anonymized.of(columns, codes, np.ones(len(table), np.int64), quasi)


ANONYMIZED: Form = _Anonymized()
