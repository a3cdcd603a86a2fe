"""Statements of a shop, as tools write them: 95 of 100 that can be answered are, and advice for others is answered."""

from __future__ import annotations

from fractions import Fraction

from bench.statements.__main__ import outcome, statements


def test_nearly_all_statements_of_a_shop_are_answered() -> None:
    listed = statements()
    answerable = [statement for statement in listed if not statement.rightly]
    answered = [statement for statement in answerable if not outcome(statement.sql)]
    assert len(listed) >= 175
    assert len(answered) >= Fraction(95, 100) * len(answerable)


def test_what_is_refused_has_a_nearest_statement_that_is_answered() -> None:
    for statement in statements():
        assert bool(outcome(statement.sql)) == bool(statement.instead), statement.sql
        for sql in statement.instead:
            assert outcome(sql) == "", sql
