"""What analysts of a few trades ask: most of it is answered, the rest refused before a row is read."""

from __future__ import annotations

from fractions import Fraction

from incrowd.errors import IncrowdError
from incrowd.queries.language import understand
from incrowd.queries.measurement import measurement
from incrowd.queries.question import Terms
from tests.queries.analysts.trades import STATEMENTS, TRADES

SHARE = Fraction(94, 190)
"""The share of the statements that is answered."""
TERMS = Terms(epsilon=Fraction(1), delta=Fraction(1, 10**6))


def _answered(sql: str) -> bool:
    """Return whether a question is planned, with its price; anything but a refusal is a fault."""
    try:
        question = understand(sql, TRADES)
        unit = next(TRADES[name].unit for name in question.tables if TRADES[name].private)
        return bool(measurement(question, unit, TERMS).plan.claims)
    except IncrowdError:
        return False


def test_most_statements_of_analysts_are_answered() -> None:
    assert len(set(STATEMENTS)) == len(STATEMENTS) >= 150
    assert Fraction(sum(map(_answered, STATEMENTS)), len(STATEMENTS)) >= SHARE
