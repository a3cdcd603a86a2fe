"""The claim about every function that changes slowly: what it states, what it needs and what it leaves open."""

from __future__ import annotations

from incrowd.core.certificate import Claim, Precondition, Status
from incrowd.core.unit import Unit
from incrowd.methods.synthesis.accuracy import Accuracy
from incrowd.methods.synthesis.grid import Grid, Place

KIND = "Lipschitz error"
_THEOREM = (
    "Gehrke, Hay, Lui & Pass 2012, Example 4: |mean over points − mean over rows| ≤ L·moves + 2·B·changed/points for "
    "every function that changes by at most L along a side of the box and lies between −B and B"
)
_ON_TOP = (
    "what sampling, clipping and left-out rows change: the error compares with rows as they were drawn and counted"
)
_INSIDE = "functions that jump, or that tell places inside one cell apart"
_HIDDEN = "how many rows lie in cells with fewer than k: that depends on the rows and is not published"


def slowly_changing(accuracy: Accuracy, grid: Grid, place: Place, unit: Unit) -> Claim:
    """Return the claim; every number in it is known before a row is read.

    Source: Gehrke, Hay, Lui & Pass 2012, Example 4; the proof is with `accuracy`.
    """
    conditions = (
        Precondition("each point stands for a row of its cell, apart from those added or lost", Status.PROVED),
        Precondition("every point of the written output lies where its cell says", Status.CHECKED),
    )
    stated = {"columns": list(grid.names), "place": str(place), **accuracy.to_json()}
    left_open = (_ON_TOP, _INSIDE) if accuracy.likely is not None else (_ON_TOP, _INSIDE, _HIDDEN)
    return Claim(KIND, stated, str(unit), _THEOREM, conditions, left_open)
