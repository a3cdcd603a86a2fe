"""The selection as a form: what is looked at in its file, and what its steps and claim must say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from incrowd.core.certificate import Certificate, Claim, Status
from incrowd.core.loss import Laplace, Loss, Pure
from incrowd.core.unit import Adjacency
from incrowd.methods.outcomes.histogram import COUNT
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.methods.outcomes.selection import RANK, Selection
from incrowd.workflows.forms.checks import steps_of, uncharged, whole
from incrowd.workflows.forms.form import Form, Look, Problem
from incrowd.workflows.forms.histogram import contents
from incrowd.workflows.forms.histogram.noise import strays
from incrowd.workflows.forms.histogram.steps import check_bins, check_start

_KIND = "pure differential privacy"
_NOISE = {"laplace": "integer Laplace", "permute-and-flip": "permute-and-flip"}


class _Selection:
    """One row for each winner."""

    name = "selection"
    ending = "publish ranking"

    def check_claim(self, claim: Claim, certificate: Certificate) -> Problem | None:
        try:
            return _check_claim(claim, certificate)
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            return Problem("its parameters cannot be read")

    def check_complete(self, certificate: Certificate) -> Problem | None:
        stated = [claim for claim in certificate.claims if claim.kind == _KIND]
        told = [{each.text for each in claim.preconditions if each.status is Status.ASSUMED} for claim in stated]
        if not stated or not certificate.guarantee.assumes:
            return Problem(f"the claim {_KIND!r}, with what it assumes, belongs to this guarantee and is missing")
        if any(certificate.guarantee.assumes - each for each in told):
            return Problem(f"the preconditions of {_KIND!r} leave out what the guarantee assumes")
        return None

    def check_steps(self, certificate: Certificate) -> Problem | None:
        try:
            steps = steps_of(certificate)
            problem = check_start(certificate, ["select", "publish ranking"]) or check_bins(steps) or _noise(steps)
            if problem is not None or certificate.guarantee.loss == _loss(certificate):
                return problem
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            return Problem("the steps cannot be read")
        return Problem("these steps do not give such a guarantee")

    def looks(self, certificate: Certificate, file: Path) -> Iterator[Look]:
        yield from _looks(certificate, contents.read(file))

    def recount(self, certificate: Certificate, outcome: Outcome) -> Problem | None:
        if not isinstance(outcome, Selection):
            return Problem("it is not a selection")
        return next((look.problem for look in _looks(certificate, outcome.table) if look.problem is not None), None)

    def reopen(self, certificate: Certificate, file: Path) -> Selection:  # noqa: ARG002 - other forms need it
        return Selection(contents.read(file))


def _check_claim(claim: Claim, certificate: Certificate) -> Problem | None:
    given, unit, select = claim.parameters, certificate.guarantee.unit, steps_of(certificate)["select"]
    if claim.kind != _KIND:
        return Problem(f"claims of kind {claim.kind!r} are not known here", undecided=True)
    if (claim.unit, whole(given["max_rows"]), given["adjacency"]) != (str(unit), unit.max_rows, str(unit.adjacency)):
        return Problem("it speaks of another unit than the guarantee")
    if (_NOISE[str(given["noise"])], str(given["scale"])) != (select["noise"], str(select["scale"])):
        return Problem("its noise or its scale are not those of the steps")
    unlike = uncharged(given, certificate, at_delta=False)
    if unlike is None and certificate.guarantee.loss != _loss(certificate):
        return Problem("it is not what the guarantee describes")
    if unlike is None and Fraction(str(given["epsilon"])) < _epsilon(certificate) * (1 - Fraction(1, 10**12)):
        return Problem(f"its epsilon is {float(_epsilon(certificate)):.6g} at least")
    return unlike


def _noise(steps: Mapping[str, Mapping[str, Any]]) -> Problem | None:
    """Return that winners come from a sample, or that counts are further off than the steps say."""
    select = steps["select"]
    if Fraction(str(steps["sample"]["rate"])) != 1:
        return Problem("winners are chosen among all rows, and the steps say otherwise")
    if select["noise"] == "integer Laplace" and strays(select, whole(select["within"])):
        return Problem("more than 5 % of counts lie further from the truth than the steps say")
    return None


def _epsilon(certificate: Certificate) -> Fraction:
    """Return ε from the scale: counts move by at most so many rows in total, for a replaced person by twice that.

    For one winner by exponential noise, a person moves the winner's lead by so many rows if all counts rise together,
    and by twice that if one may fall while another rises: the same numbers.
    """
    unit, scale = certificate.guarantee.unit, Fraction(str(steps_of(certificate)["select"]["scale"]))
    return unit.max_rows * (1 if unit.adjacency is Adjacency.ADD_REMOVE else 2) / scale


def _loss(certificate: Certificate) -> Loss:
    select, unit = steps_of(certificate)["select"], certificate.guarantee.unit
    if select["noise"] == "integer Laplace" and unit.max_rows == 1 and unit.adjacency is Adjacency.ADD_REMOVE:
        return Laplace(Fraction(str(select["scale"])))
    return Pure(_epsilon(certificate))


def _looks(certificate: Certificate, table: pa.Table) -> Iterator[Look]:
    steps = steps_of(certificate)
    counts = [COUNT] if steps["publish ranking"]["counts"] is True else []
    strange = table.column_names != [RANK, *certificate.schema.get("released", ()), *counts]
    problem = Problem("the columns are not those that the certificate says are released") if strange else None
    yield Look("columns in the file", problem, "they are the released ones and the ranks, and no others")
    if not strange:
        yield Look("ranks in the file", _ranks(steps, table), "each is there once, with a bin of the declaration")


def _ranks(steps: Mapping[str, Mapping[str, Any]], table: pa.Table) -> Problem | None:
    ranks = [int(str(rank)) for rank in table[RANK].to_pylist()]
    if ranks != list(range(1, whole(steps["select"]["top"]) + 1)):
        return Problem("the ranks are not those that were asked for")
    columns = [contents.codes_of(table[str(told["column"])], told) for told in steps["count"]["columns"]]
    if any(size < 0 for _, size, _ in columns):
        return Problem("some label is not one of those that the certificate lists")
    if len(set(zip(*(codes.tolist() for codes, _, _ in columns), strict=True))) != len(ranks):
        return Problem("some bin is there twice")
    if COUNT in table.column_names and np.any(np.diff(table[COUNT].to_numpy()) > 0):
        return Problem("the counts are not in the order of the ranks")
    return None


SELECTION: Form = _Selection()
