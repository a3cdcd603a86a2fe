"""The histogram as a form: what is looked at in its file, and what its steps and claims must say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from incrowd.core.certificate import Certificate, Claim
from incrowd.methods.outcomes.histogram import Histogram
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.workflows.forms.form import Form, Look, Problem
from incrowd.workflows.forms.histogram import claims, contents, steps


class _Histogram:
    """One row for each bin."""

    name = "histogram"
    ending = "publish counts"

    def check_claim(self, claim: Claim, certificate: Certificate) -> Problem | None:
        return claims.check_claim(claim, certificate)

    def check_complete(self, certificate: Certificate) -> Problem | None:
        return claims.check_complete(certificate)

    def check_steps(self, certificate: Certificate) -> Problem | None:
        return steps.check_steps(certificate)

    def looks(self, certificate: Certificate, file: Path) -> Iterator[Look]:
        yield from _looks(certificate, contents.read(file))

    def recount(self, certificate: Certificate, outcome: Outcome) -> Problem | None:
        if not isinstance(outcome, Histogram):
            return Problem("it is not a histogram")
        return next((look.problem for look in _looks(certificate, outcome.table) if look.problem is not None), None)

    def reopen(self, certificate: Certificate, file: Path) -> Histogram:  # noqa: ARG002 - other forms need it
        return Histogram(contents.read(file))


def _looks(certificate: Certificate, table: pa.Table) -> Iterator[Look]:
    strange = contents.check_columns(certificate, table.column_names)
    yield Look("columns in the file", strange, "they are the released ones and the counts, and no others")
    if strange is None:
        rows = f"{table.num_rows:,} bins"
        yield Look(
            "bins in the file", contents.check_bins(certificate, table), f"{rows}, as the declaration lists them"
        )
        yield Look(
            "counts in the file", contents.check_counts(certificate, table), "all are such as these steps can give"
        )


HISTOGRAM: Form = _Histogram()
