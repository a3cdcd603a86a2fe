"""Composition: exact losses on the same rows, added up into the plainest loss that says the same."""

from __future__ import annotations

from fractions import Fraction

from incrowd.core.loss import Approximate, Laplace, Loss, Pure, Sequence, ZeroConcentrated
from incrowd.errors import InvalidParameter


def together(losses: tuple[Loss, ...]) -> Loss:
    """Return the loss of all: ρ adds up, and so do ε and δ of the rest; one alone stays as it is.

    >>> together((Laplace(Fraction(1)), Pure(Fraction(1, 2))))
    Pure(epsilon=Fraction(3, 2))
    >>> together((ZeroConcentrated(Fraction(1)), Approximate(Fraction(0), Fraction(1, 9)))).parts[0]
    ZeroConcentrated(rho=Fraction(1, 1))
    """
    if len(losses) == 1:
        return losses[0]
    concentrated = [loss.rho for loss in losses if isinstance(loss, ZeroConcentrated)]
    stated = [_stated(loss) for loss in losses if not isinstance(loss, ZeroConcentrated)]
    epsilon, delta = sum((each for each, _ in stated), Fraction(0)), sum((each for _, each in stated), Fraction(0))
    plain: Loss = Approximate(epsilon, delta) if delta else Pure(epsilon)
    if not concentrated:
        return plain
    spent = ZeroConcentrated(sum(concentrated, Fraction(0)))
    return Sequence((spent, plain)) if stated else spent


def _stated(loss: Loss) -> tuple[Fraction, Fraction]:
    match loss:
        case Pure(epsilon):
            return epsilon, Fraction(0)
        case Laplace(scale, sensitivity):
            return sensitivity / scale, Fraction(0)
        case Approximate(epsilon, delta):
            return epsilon, delta
    raise InvalidParameter("only losses with an exact epsilon and delta add up to one.")
