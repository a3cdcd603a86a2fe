"""What the steps of an answer cost, derived a second time from scales and widths, without the accountants."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from incrowd.core.certificate import Certificate
from incrowd.core.loss import Sampled
from incrowd.core.unit import Adjacency, Unit
from incrowd.workflows.forms.answer.tails import chance_of
from incrowd.workflows.forms.checks import TOLERANCE, whole

Step = Mapping[str, Any]
_SAMPLE, _BOUND, _GROUP, _ADD, _NOISE, _LEAST, _PICK = (
    "sample",
    "bound what one unit contributes",
    "group",
    "add up",
    "noise",
    "threshold",
    "pick",
)


@dataclass(frozen=True)
class Cost:
    """ε of what is pure, ρ of what is Gaussian, δ of thresholds; of one question or of several.

    `squares` sums ε² over the pure parts: each is worth ε²/2 as ρ (Bun & Steinke 2016, Proposition 1.4).
    """

    pure: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    hidden: Fraction = Fraction(0)
    squares: Fraction = Fraction(0)

    @classmethod
    def of_pure(cls, epsilon: Fraction) -> Cost:
        """Return the cost of one pure part."""
        return cls(pure=epsilon, squares=epsilon**2)

    def plus(self, other: Cost) -> Cost:
        """Return the cost of both on the same rows."""
        return Cost(
            self.pure + other.pure, self.rho + other.rho, self.hidden + other.hidden, self.squares + other.squares
        )

    def epsilon(self, delta: Fraction) -> float:
        """Return an ε that holds at δ, whatever the rows: pure parts add theirs to that of the Gaussian part."""
        if not self.rho:
            return float(self.pure)
        return float(self.pure) + gaussian_epsilon(float(self.rho), float(delta - self.hidden))


def questions_of(certificate: Certificate) -> list[list[Step]]:
    """Return the steps of each question; those of a batch carry its number."""
    numbers = sorted({int(step.get("of", 1)) for step in certificate.chain})
    return [[step for step in certificate.chain if int(step.get("of", 1)) == number] for number in numbers]


def cost_of(certificate: Certificate) -> Cost:
    """Return what all steps cost together; steps that cannot be read raise."""
    total, loss = Cost(), certificate.guarantee.loss
    rates = [Fraction(str(step["rate"])) for step in certificate.chain if step["step"] == _SAMPLE]
    if rates != ([loss.rate] if isinstance(loss, Sampled) else []):
        raise ValueError("the sample is not that of the guarantee")
    for steps in questions_of(certificate):
        total = total.plus(_question(steps, certificate.guarantee.unit))
    return total


def gaussian_epsilon(rho: float, delta: float) -> float:
    """Return the ε at δ of ρ-zero-concentrated privacy, by trying many orders.

    Source: Canonne, Kamath & Steinke 2020, Proposition 12: δ ≤ e^((α−1)(αρ−ε)) (1 − 1/α)^α / (α − 1) for every α > 1.

    >>> round(gaussian_epsilon(0.01, 1e-6), 3)
    0.622
    """
    orders = 1.0 + np.geomspace(1e-6, 1e9, 400_001)
    found = orders * rho + (orders * np.log1p(-1.0 / orders) - np.log(orders - 1.0) - math.log(delta)) / (orders - 1.0)
    return max(0.0, float(found.min()))


def _question(steps: Sequence[Step], unit: Unit) -> Cost:
    named = {str(step["step"]): step for step in steps}
    reach = named[_BOUND]
    rows, groups = whole(reach["rows"]), whole(reach["groups"])
    cost = Cost()
    if _NOISE in named:
        cost = cost.plus(_noise(named[_ADD], named[_NOISE], (rows, groups)))
    if _LEAST in named:
        cost = cost.plus(Cost(hidden=_hidden(named, (rows, groups))))
    elif not isinstance(named[_GROUP]["groups"], int):
        raise ValueError("groups that nobody listed need a threshold")
    for step in steps:
        if step["step"] == _PICK:
            cost = cost.plus(Cost.of_pure(_pick(step, rows, unit.adjacency)))
    return _sampled(cost, named, unit) if _SAMPLE in named else cost


def _sampled(cost: Cost, named: Mapping[str, Step], unit: Unit) -> Cost:
    """Return ln(1 + rate (e^ε − 1)) for ε on a sample with a coin for each row: what a row that is a unit loses."""
    rate, pure = Fraction(str(named[_SAMPLE]["rate"])), float(cost.pure)
    alone = unit == Unit() and len(named["understand"]["tables"]) == 1
    if (
        not alone
        or cost.rho
        or cost.hidden
        or not 0 < rate < 1
        or not str(named[_SAMPLE]["design"]).startswith("Poisson")
    ):
        raise ValueError("a sample goes with pure noise, and with rows that are units of their own")
    inside = math.log1p(float(rate) * math.expm1(pure)) if pure < 700 else pure
    return Cost.of_pure(Fraction(inside))


def _hidden(named: Mapping[str, Step], reach: tuple[int, int]) -> Fraction:
    """Return δ of a threshold: that somebody alone in up to all of a unit's groups reaches it in any of them."""
    step, statistics = named[_LEAST], named[_ADD]["statistics"]
    delta, place = Fraction(str(step["delta"])), whole(step["on"])
    counted = statistics[place]["of"]
    if counted not in ("people", "rows"):
        raise ValueError("a threshold is one on people or rows")
    beyond = whole(step["least"]) - (1 if counted == "people" else reach[0])
    if beyond < 1 or chance_of(named[_NOISE], place, beyond) * reach[1] > float(delta) * TOLERANCE:
        raise ValueError("the threshold is too low for its delta")
    return delta


def _noise(add: Step, noise: Step, reach: tuple[int, int]) -> Cost:
    """Return the cost of noisy sums: one unit moves the vectors by so many rows' widths in total."""
    widths, rows = [whole(each["width"]) for each in add["statistics"]], whole(add["rows"])
    people = all(each["of"] == "people" for each in add["statistics"])
    if rows < (reach[1] if people else reach[0]) or min(widths) < 1:
        raise ValueError("the sums are moved by fewer rows than a unit has")
    if noise["noise"] == "integer Gaussian":
        scales = [Fraction(str(scale)) for scale in noise["scales"]]
        moved = [Fraction(rows * width) / scale for width, scale in zip(widths, scales, strict=True)]
        return Cost(rho=sum((each**2 for each in moved), Fraction(0)) / 2)
    scale = Fraction(str(noise["scale"]))
    if noise["noise"] == "integer Laplace" and len(widths) == 1:
        return Cost.of_pure(Fraction(rows * widths[0]) / scale)
    if noise["noise"] != "integer cube" or [whole(width) for width in noise["widths"]] != widths:
        raise ValueError("the noise is not made for these sums")
    return Cost.of_pure(Fraction(rows * whole(noise["fine"])) / scale)


def _pick(step: Step, rows: int, adjacency: Adjacency) -> Fraction:
    """Return ε of a pick: e^(gap / scale) less likely, where a unit moves every score by its sensitivity at most.

    Scores may move against each other, which counts twice; counts of values rise together when someone is added.
    """
    sensitivity = whole(step["sensitivity"])
    if step["kind"] == "quantile":
        at = Fraction(str(step["at"]))
        least = max(at.denominator - at.numerator, at.numerator) * rows
        together = False
    else:
        least, together = rows, step["kind"] == "mode" and adjacency is Adjacency.ADD_REMOVE
    if sensitivity < least:
        raise ValueError("a unit moves the scores further than the steps say")
    return Fraction((1 if together else 2) * sensitivity) / Fraction(str(step["scale"]))
