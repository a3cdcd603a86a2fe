"""Microdata: what is recounted in its file, and what its steps and claims must say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from incrowd.core.cells import Cells
from incrowd.core.certificate import Certificate, Claim
from incrowd.core.domain import Type
from incrowd.core.schema import Column, Schema
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.local.smallest_class import smallest_class
from incrowd.engines.readers.sources import open_source
from incrowd.methods.outcomes.microdata import Microdata
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.workflows.forms.form import Form, Look, Problem
from incrowd.workflows.forms.microdata import claims, steps

_CROWDS = "crowds in the file"


class _Microdata:
    """One row for each row that was kept; no tuple over all released columns is rare."""

    name = "microdata"
    ending = "order"

    def check_claim(self, claim: Claim, certificate: Certificate) -> Problem | None:
        return claims.check_claim(claim, certificate)

    def check_complete(self, certificate: Certificate) -> Problem | None:
        return claims.check_complete(certificate)

    def check_steps(self, certificate: Certificate) -> Problem | None:
        return steps.check_steps(certificate)

    def looks(self, certificate: Certificate, file: Path) -> Iterator[Look]:
        yield Look(
            "columns in the file",
            steps.check_columns(certificate, file),
            "they are the released ones, and no others",
        )
        smallest, k = (
            smallest_class(file, tuple(map(str, certificate.schema["released"]))),
            suppressed_below(certificate),
        )
        size = "there are no rows" if smallest is None else f"the rarest tuple occurs {smallest} times"
        problem = None
        if smallest is not None and smallest < k:
            problem = Problem(f"{size}, k is {k}")
        elif certificate.evidence.get("smallest class", smallest) != smallest:
            problem = Problem(f"{size}, and the certificate's evidence says otherwise")
        yield Look(_CROWDS, problem, f"{size}, k is {k}")

    def recount(self, certificate: Certificate, outcome: Outcome) -> Problem | None:
        if not isinstance(outcome, Microdata):
            return Problem("it is not microdata")
        counts = outcome.counts.counts
        rare = len(counts) and int(counts.min()) < suppressed_below(certificate)
        return Problem("some tuple occurs too rarely") if rare else None

    def reopen(self, certificate: Certificate, file: Path) -> Microdata:
        return published_rows(certificate, file, {})


def suppressed_below(certificate: Certificate) -> int:
    """Return the k of the suppression step."""
    return next(int(step["k"]) for step in certificate.chain if step.get("step") == "suppress")


def published_rows(certificate: Certificate, file: Path, types: Mapping[str, Type]) -> Microdata:
    """Count the published file, as anyone can; columns are text unless a type is given."""
    names = [str(name) for name in certificate.schema.get("released", ())]
    schema = Schema(tuple(Column(name, type=types.get(name, Type.TEXT)) for name in names))
    return Microdata(LocalEngine().count(open_source(str(file)), Cells.of(schema, {})))


MICRODATA: Form = _Microdata()
