"""What a release at chosen levels claims, and what that needs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from incrowd.core.certificate import Claim, Precondition, Status
from incrowd.core.guarantee import Guarantee
from incrowd.methods.crowds.parameters import Parameters

BLIND = "the candidate levels, the recoding rules and the parameters were chosen without looking at the rows"
ENDING = "order by chosen levels"


def private(promise: Guarantee, found: Parameters, choosing: Fraction, epsilon: Any) -> Claim:
    """Return the claim of differential privacy for the choice and the release together."""
    return Claim(
        "approximate differential privacy",
        {
            "k": found.k,
            "rate": str(found.rate),
            "delta": str(found.delta),
            "epsilon": str(epsilon),
            "choosing": str(choosing),
            "adjacency": str(promise.unit.adjacency),
            "max_rows": promise.unit.max_rows,
        },
        str(promise.unit),
        "Li, Qardaji & Su 2010, §4: a private choice of the recoding, then sampled suppression by its tight curve",
        (
            Precondition("every released column belongs to the tuple that is counted", Status.PROVED),
            Precondition("one row moves the worth of every recoding by at most the stated sensitivity", Status.PROVED),
            Precondition("the sample that is released has coins of its own, not those of the choice", Status.PROVED),
            Precondition("no tuple of the written output occurs fewer than k times", Status.CHECKED),
            *(Precondition(text, Status.ASSUMED) for text in sorted(promise.assumes)),
        ),
        (
            "what holds for a whole group: people like you can be described, with or without you",
            "crowd-blending is not claimed: who stands in which crowd hangs on a choice that read the rows",
        ),
    )
