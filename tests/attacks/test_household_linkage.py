"""Members that many others equal find their household together."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

from incrowd.attacks.finding import AttackVerdict
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.records.households import _assigned, household_linkage
from incrowd.attacks.records.linkage import linkage
from incrowd.errors import InvalidParameter
from tests.attacks.crowds import pseudonymized


def census(households: int, seed: int, mark: str) -> pa.Table:
    """Return households of four: decades of age and sexes that many share, and incomes that nobody knows."""
    chance = np.random.default_rng(seed)
    number = 4 * households
    return pa.table(
        {
            "ménage": np.char.add(mark, np.repeat(np.arange(households), 4).astype(str)),
            "âge": chance.integers(0, 9, number).astype(str),
            "sexe": chance.choice(["F", "M"], number),
            "revenu": chance.integers(0, 40, number).astype(str),
        }
    )


PEOPLE, OUTSIDERS, STRANGERS = (census(120, seed, mark) for seed, mark in ((1, "a"), (2, "b"), (3, "c")))
KNOWLEDGE = Knowledge(PEOPLE, ("âge", "sexe"), "revenu", person="ménage")


def test_a_household_is_found_whose_members_alone_are_not() -> None:
    published = PublishedTable(pseudonymized(PEOPLE, "ménage", 4), masks={})
    alone = linkage(published, KNOWLEDGE, OUTSIDERS)
    together = household_linkage(published, KNOWLEDGE, OUTSIDERS)
    assert alone.success.estimate < 0.05
    assert together.success.estimate > 0.5
    assert together.verdict is AttackVerdict.LEAK
    assert together.control is not None
    assert together.control.estimate < 0.05
    assert "only one can be this person's, by all 4 members" in together.story[1]


def test_a_table_of_other_households_betrays_nobody() -> None:
    found = household_linkage(PublishedTable(pseudonymized(STRANGERS, "ménage", 4)), KNOWLEDGE, OUTSIDERS)
    assert found.verdict is AttackVerdict.NOT_FOUND
    assert found.success.estimate < 0.05


def test_households_that_are_not_in_both_tables_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="--person"):
        household_linkage(PublishedTable(PEOPLE.drop_columns(["ménage"])), KNOWLEDGE, None)


def test_members_are_assigned_as_trying_every_order_finds() -> None:
    chance = np.random.default_rng(2)
    for _ in range(200):
        fitting = [set(np.flatnonzero(chance.random(4) < 0.4).tolist()) for _ in range(4)]
        slow = any(all(row in own for row, own in zip(order, fitting, strict=True)) for order in permutations(range(4)))
        assert _assigned(fitting, range(4)) == slow
