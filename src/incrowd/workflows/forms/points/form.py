"""Points as a form: what is looked at in their file, and what their steps and claims must say."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from incrowd.core.certificate import Certificate, Claim
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.methods.outcomes.points import Points
from incrowd.methods.synthesis.accuracy import Accuracy
from incrowd.workflows.forms.checks import steps_of, whole
from incrowd.workflows.forms.form import Form, Look, Problem
from incrowd.workflows.forms.points import claims, steps
from incrowd.workflows.forms.points.contents import Contents, contents, grid_of, place_of


class _Points:
    """One row for each point, in the order of the cells."""

    name = "points"
    ending = "place points"

    def check_claim(self, claim: Claim, certificate: Certificate) -> Problem | None:
        return claims.check_claim(claim, certificate)

    def check_complete(self, certificate: Certificate) -> Problem | None:
        return claims.check_complete(certificate)

    def check_steps(self, certificate: Certificate) -> Problem | None:
        return steps.check_steps(certificate)

    def looks(self, certificate: Certificate, file: Path) -> Iterator[Look]:
        found, names = contents(certificate, file), grid_of(certificate).names
        strange = None if found.names == names else Problem("the columns are not the coordinates of the grid")
        yield Look("columns in the file", strange, "they are the coordinates, and no others")
        if strange is None:
            yield Look("places of the points", _places(found), "each lies where its cell says, in the order of cells")
            told = f"{found.total:,} points in {len(found.keys):,} cells"
            yield Look("points in each cell", _crowds(certificate, found.counts), told)

    def recount(self, certificate: Certificate, outcome: Outcome) -> Problem | None:
        if not isinstance(outcome, Points):
            return Problem("it is not a table of points")
        if outcome.grid.to_json() != steps_of(certificate)["grid"]["columns"]:
            return Problem("its grid is not the one of the steps")
        if outcome.place != place_of(certificate) or np.any(outcome.keys[1:] <= outcome.keys[:-1]):
            return Problem("its points are not placed as the steps say")
        return _crowds(certificate, outcome.counts)

    def reopen(self, certificate: Certificate, file: Path) -> Points:
        found = contents(certificate, file)
        return Points(grid_of(certificate), found.keys, found.counts, _accuracy(certificate))


def _places(found: Contents) -> Problem | None:
    if found.misplaced:
        return Problem("some point is missing, outside the box, or not where a cell puts its points")
    return None if found.ordered else Problem("the points are not in the order of their cells")


def _crowds(certificate: Certificate, counts: NDArray[np.int64]) -> Problem | None:
    """Return that a cell has too few points, or that the evidence counts others; below k noise gives any number."""
    suppressed, evidence = steps_of(certificate).get("suppress counts"), certificate.evidence
    if np.any(counts < (1 if suppressed is None else whole(suppressed["k"]))):
        return Problem("some cell has fewer points than k")
    if (evidence.get("rows"), evidence.get("cells with points")) != (int(counts.sum()), len(counts)):
        return Problem("there are not as many points or cells as the certificate's evidence says")
    return None


def _accuracy(certificate: Certificate) -> Accuracy:
    """Return the numbers of the claim about functions, as they stand in the certificate."""
    stated = next((each.parameters for each in certificate.claims if each.kind == claims.KIND), {})
    expected, likely = (stated.get(name) for name in (claims.EXPECTED, claims.LIKELY))
    return Accuracy(
        Decimal(str(stated.get(claims.MOVES, "Infinity"))),
        None if expected is None else Decimal(str(expected)),
        None if likely is None else Decimal(str(likely)),
    )


POINTS: Form = _Points()
