"""The method partition: what it guarantees, refuses and proposes, with the data unplugged."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from incrowd.core.domain import Categories, Numbers, Provenance, Text, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.text import Prefix
from incrowd.core.loss import Crowd, Pure, Sampled, Sequence, Syntactic
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.partition.method import PrivatePartition

AGE = Column("age", Role.QUASI, Type.INTEGER, Flat(Numbers(0, 99)))
SCHEMA = Schema((AGE, Column("ill", Role.SENSITIVE, hierarchy=Flat(Categories(("flu", "gout"))))))
METHOD = PrivatePartition(Fraction(1, 2), epsilon=Fraction(1), delta=Fraction(1, 10**6), rate=Fraction(1, 10))


def test_the_loss_is_that_of_the_cuts_and_of_the_sampled_suppression() -> None:
    guarantee = METHOD.plan(SCHEMA).guarantee
    assert guarantee.loss == Sequence((Pure(Fraction(1, 2)), Sampled(Fraction(1, 10), Crowd(8))))
    assert METHOD.plan(SCHEMA).numbers["epsilon"] <= Fraction(3, 2)


def test_crowd_blending_is_not_claimed() -> None:
    assert [claim.kind for claim in METHOD.plan(SCHEMA).claims] == ["approximate differential privacy", "k-anonymity"]
    assert METHOD.plan(SCHEMA).claims[1].parameters["columns"] == ["age", "ill"]


def test_what_was_drafted_from_rows_leaves_a_form() -> None:
    drafted = replace(AGE, hierarchy=Flat(Numbers(0, 99), Provenance(derived=True)))
    assert isinstance(METHOD.plan(Schema((drafted,))).guarantee.loss, Syntactic)


@pytest.mark.parametrize(
    "unit", [Unit(adjacency=Adjacency.REPLACE), Unit(Kind.PERSON, column="id", max_rows=2)], ids=["replaced", "people"]
)
def test_units_without_a_proof_are_refused(unit: Unit) -> None:
    schema = Schema((Column("id", Role.IDENTIFIER), *SCHEMA.columns), unit)
    with pytest.raises(InvalidParameter, match="one row that is added or removed"):
        METHOD.plan(schema)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"choosing": Fraction(0)}, "above 0"),
        ({"rate": Fraction(1)}, "secret sample"),
        ({"depth": 0}, "1 to 14"),
        ({"least": 0}, "at least 1"),
    ],
)
def test_settings_without_meaning_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        replace(METHOD, **changes)


def test_quasi_identifiers_that_cannot_be_listed_are_refused() -> None:
    schema = Schema((Column("zip", Role.QUASI, hierarchy=Prefix(Text(), (2,))),))
    with pytest.raises(InvalidParameter, match="too many to cut between"):
        replace(METHOD, levels={"zip": 1}).plan(schema)
