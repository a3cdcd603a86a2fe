"""The answer as a form: what is looked at in its file, and what its steps and claim must say."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.certificate import Certificate, Claim, Status
from incrowd.methods.outcomes.answer import AnswerTable
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.workflows.forms.answer.rederive import Cost, cost_of, questions_of
from incrowd.workflows.forms.checks import TOLERANCE, uncharged, whole
from incrowd.workflows.forms.form import Form, Look, Problem

_PRIVATE = ("pure differential privacy", "approximate differential privacy")
_CONCENTRATED = "zero-concentrated differential privacy"
_FIRST = ["understand", "bound what one unit contributes", "group"]
_MIDDLE = ["add up", "noise", "threshold", "pick"]
_LAST = "answer"
_UNREADABLE = (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError)


class _Answer:
    """One row for each group."""

    name = "answer"
    ending = _LAST

    def check_claim(self, claim: Claim, certificate: Certificate) -> Problem | None:
        try:
            return _check_claim(claim, certificate)
        except _UNREADABLE:
            return Problem("its parameters, or the steps it rests on, cannot be read")

    def check_complete(self, certificate: Certificate) -> Problem | None:
        stated = [claim for claim in certificate.claims if claim.kind in (*_PRIVATE, _CONCENTRATED)]
        told = [{each.text for each in claim.preconditions if each.status is Status.ASSUMED} for claim in stated]
        if not stated or not certificate.guarantee.assumes:
            return Problem("the claim of differential privacy, with what it assumes, is missing")
        if any(certificate.guarantee.assumes - each for each in told):
            return Problem("the preconditions leave out what the guarantee assumes")
        return None

    def check_steps(self, certificate: Certificate) -> Problem | None:
        try:
            for steps in questions_of(certificate):
                names = [str(step["step"]) for step in steps]
                names = [name for place, name in enumerate(names) if (place, name) != (1, "sample")]
                middle = [_MIDDLE.index(name) for name in names[len(_FIRST) : -1]]
                if names[: len(_FIRST)] != _FIRST or names[-1] != _LAST or middle != sorted(middle):
                    return Problem("the steps are not those of an answer, in their order")
            cost_of(certificate)
        except _UNREADABLE:
            return Problem("the steps cannot be read, or contradict each other")
        return None

    def looks(self, certificate: Certificate, file: Path) -> Iterator[Look]:
        yield from _looks(certificate, _read(file))

    def recount(self, certificate: Certificate, outcome: Outcome) -> Problem | None:
        if not isinstance(outcome, AnswerTable):
            return Problem("it is not an answer")
        return next((look.problem for look in _looks(certificate, outcome.table) if look.problem is not None), None)

    def reopen(self, certificate: Certificate, file: Path) -> AnswerTable:  # noqa: ARG002 - other forms need it
        return AnswerTable(_read(file))


def _check_claim(claim: Claim, certificate: Certificate) -> Problem | None:
    given, unit = claim.parameters, certificate.guarantee.unit
    if claim.kind not in (*_PRIVATE, _CONCENTRATED):
        return Problem(f"claims of kind {claim.kind!r} are not known here", undecided=True)
    if (claim.unit, whole(given["max_rows"]), given["adjacency"]) != (str(unit), unit.max_rows, str(unit.adjacency)):
        return Problem("it speaks of another unit than the guarantee")
    cost, delta = cost_of(certificate), certificate.guarantee.delta
    if claim.kind == _CONCENTRATED:
        return _check_rho(claim, cost)
    if (claim.kind == _PRIVATE[0]) != (delta == 0) or cost.hidden > delta or (cost.rho and cost.hidden >= delta):
        return Problem("its delta is not that of the steps")
    if float(Fraction(str(given["epsilon"]))) * TOLERANCE < cost.epsilon(delta):
        return Problem(f"its epsilon is {cost.epsilon(delta):.6g} at least")
    return uncharged(given, certificate, at_delta=delta > 0)


def _check_rho(claim: Claim, cost: Cost) -> Problem | None:
    """Return that ρ is smaller than the steps cost."""
    needed = float(cost.rho + cost.squares / 2)
    stated = float(Fraction(str(claim.parameters["rho"])))
    return Problem(f"its rho is {needed:.6g} at least") if stated * TOLERANCE < needed else None


def _looks(certificate: Certificate, table: pa.Table) -> Iterator[Look]:
    strange = table.column_names != list(certificate.schema.get("released", ()))
    problem = Problem("the columns are not those that the certificate says are released") if strange else None
    yield Look("columns in the file", problem, "they are those that were asked for, and their intervals")
    yield Look("intervals in the file", _intervals(table), "each runs from its lower end to its upper")


def _intervals(table: pa.Table) -> Problem | None:
    for name in table.column_names:
        ends = [f"{name}_low", f"{name}_high"]
        if not set(ends) <= set(table.column_names):
            continue
        low, high = (pc.cast(table[each], pa.float64()) for each in ends)
        if not pc.all(pc.fill_null(pc.less_equal(low, high), True)).as_py():
            return Problem(f"an interval of {name!r} ends before it begins")
    return None


def _read(file: Path) -> pa.Table:
    if file.suffix == ".parquet":
        from pyarrow import parquet as pq

        with pq.ParquetFile(file) as opened:
            return opened.read()
    from pyarrow import csv

    parse = csv.ParseOptions(delimiter="\t" if file.suffix == ".tsv" else ",", newlines_in_values=True)
    return csv.read_csv(file, parse_options=parse)


ANSWER: Form = _Answer()
