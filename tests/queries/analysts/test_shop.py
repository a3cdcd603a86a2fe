"""Statements of a shop, as tools write them: 95 of 100 that can be answered are answered."""

from __future__ import annotations

from fractions import Fraction

from bench.statements.__main__ import RIGHTLY, outcome, statements


def test_nearly_all_statements_of_a_shop_are_answered() -> None:
    refusals = {sql: outcome(sql) for _, sql in statements()}
    answerable = [sql for sql in refusals if not (refusals[sql] and any(mark in sql.lower() for mark in RIGHTLY))]
    answered = [sql for sql in answerable if not refusals[sql]]
    assert len(refusals) >= 150
    assert len(answered) >= Fraction(95, 100) * len(answerable)
