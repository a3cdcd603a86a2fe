"""Slices: what they guarantee, what they refuse, and what each table holds."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from incrowd.core.domain import Categories, Provenance
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.tree import tree
from incrowd.core.loss import Crowd, Pure, Sampled, Sequence, Syntactic
from incrowd.core.schema import Column, Missing, Role, Schema
from incrowd.core.table import Table
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.errors import InvalidParameter, Refused, SampleReused
from incrowd.methods.anonymity.safe import Safe
from incrowd.methods.anonymity.slicing.method import Slicing
from incrowd.noise.system import SystemCoins
from incrowd.workflows.policy.policy import load_policy
from tests.coins import ScriptedCoins, SeededCoins
from tests.policies import PEOPLE, changed, tuples
from tests.tables import Batches, text_table

SEX = Column("sex", Role.QUASI, hierarchy=Flat(Categories(("F", "M"))))
CITY = Column("city", Role.QUASI, hierarchy=tree({"north": ["Oslo", "Bergen"], "south": ["Rome"]}))
ILL = Column("ill", Role.SENSITIVE, hierarchy=Flat(Categories(("flu", "none"))), missing=Missing.DROP)
SCHEMA = Schema((SEX, CITY, ILL))
DELTA, HALF = Fraction(1, 10**4), Fraction(1, 2)
GIVEN = Slicing((("sex", "ill"), ("city",)), delta=DELTA, rate=HALF, k=20, levels={"city": 1})
AUTO = Slicing("auto", delta=DELTA, rate=HALF, k=20, levels={"city": 1}, choosing=HALF, size=2)
ROWS = text_table(
    {"sex": ["F", "M", "F", "M"] * 100, "city": ["Oslo", "Rome"] * 200, "ill": ["flu", "none", "flu", None] * 100}
)


def table(rows: pa.Table = ROWS, schema: Schema = SCHEMA) -> Table:
    return Table(schema, Batches(rows), LocalEngine())


def epsilon(method: Slicing, schema: Schema = SCHEMA) -> Decimal:
    return Decimal(method.plan(schema).numbers["epsilon"])


def test_every_table_is_charged() -> None:
    row = Sampled(HALF, Crowd(20))
    assert GIVEN.plan(SCHEMA).guarantee.loss == Sequence((row, row))
    assert AUTO.plan(SCHEMA).guarantee.loss == Sequence((Pure(HALF), row, row))
    assert replace(GIVEN, sample="joint").plan(SCHEMA).guarantee.loss == row
    assert epsilon(GIVEN) < epsilon(AUTO)
    assert epsilon(replace(GIVEN, sample="joint")) < epsilon(GIVEN)


def test_crowds_are_claimed_of_tables_alone_and_of_nothing_that_was_chosen() -> None:
    alone = "crowd-blending, each table alone"
    kinds = {
        name: [claim.kind for claim in method.plan(SCHEMA).claims]
        for name, method in {"given": GIVEN, "auto": AUTO, "joint": replace(GIVEN, sample="joint")}.items()
    }
    assert kinds["given"] == ["approximate differential privacy", alone, "k-anonymity"]
    assert kinds["auto"] == ["approximate differential privacy", "k-anonymity"]
    assert "crowd-blending" in kinds["joint"]
    assert alone not in kinds["joint"]
    several = Schema((Column("id", Role.IDENTIFIER), SEX, CITY, ILL), Unit(Kind.PERSON, column="id", max_rows=2))
    assert alone not in [claim.kind for claim in replace(GIVEN, k=60).plan(several).claims]


def test_what_was_drafted_from_rows_leaves_the_form_only() -> None:
    drafted = Flat(Categories(("F", "M"), Provenance(derived=True)))
    schema = Schema((replace(SEX, hierarchy=drafted), CITY, ILL))
    assert isinstance(GIVEN.plan(schema).guarantee.loss, Syntactic)
    assert [claim.kind for claim in GIVEN.plan(schema).claims] == ["k-anonymity"]
    assert GIVEN.plan(schema).settings == {"tables": 2, "k": 20}


def test_each_table_is_the_safe_release_of_its_columns() -> None:
    sliced = GIVEN.release(table(), ScriptedCoins(range(0, 400, 2)))
    assert [table.schema.names for table in sliced.tables] == [["sex", "ill"], ["city"]]
    for part in sliced.tables:
        schema = Schema(tuple(column for column in SCHEMA.columns if column.name in part.schema.names))
        safe = Safe({"city": 1} if "city" in part.schema.names else {}, delta=DELTA, rate=HALF, k=20)
        assert tuples(part.to_arrow()) == tuples(
            safe.release(table(schema=schema), ScriptedCoins(range(0, 400, 2))).to_arrow()
        )


def test_a_column_may_stand_for_its_own_group() -> None:
    assert replace(GIVEN, groups=(("ill", "sex"), "city")).named_groups(SCHEMA) == (("sex", "ill"), ("city",))
    assert replace(GIVEN, groups=("ill", "sex", "city")).tables(SCHEMA) == 3


def test_a_row_that_one_table_leaves_out_is_in_the_other() -> None:
    everyone = ScriptedCoins(range(400))
    first, second = GIVEN.release(table(), everyone).tables
    assert (len(first), len(second)) == (300, 400)


def test_tables_of_one_release_are_its_marginals() -> None:
    joint = replace(GIVEN, sample="joint")
    whole = Safe({"city": 1}, delta=DELTA, rate=HALF, k=20).release(table(), SeededCoins(4)).to_arrow()
    sliced = joint.release(table(), SeededCoins(4))
    for part in sliced.tables:
        assert tuples(part.to_arrow()) == tuples(whole.select(part.schema.names))


def test_columns_that_go_together_stay_together() -> None:
    rows = text_table(
        {"sex": ["F", "M"] * 200, "city": ["Oslo", "Rome"] * 200, "ill": ["flu", "flu", "none", "none"] * 100}
    )
    for _ in range(5):
        sliced = replace(AUTO, choosing=Fraction(4)).release(table(rows), SystemCoins())
        assert {tuple(part.schema.names) for part in sliced.tables} == {("sex", "city"), ("ill",)}


def test_a_shared_sample_is_refused_with_what_it_betrays() -> None:
    for spelled in ("shared", "same", "one"):
        with pytest.raises(SampleReused, match=rf"sample: {spelled} is refused.*probability 0\.145 at every epsilon"):
            replace(GIVEN, sample=spelled)
    with pytest.raises(Refused, match="sample: fresh"):
        load_policy(
            changed(
                PEOPLE,
                release__method="slicing",
                release__groups=[["sex"], ["age", "zip"]],
                release__sample="shared",
            )
        )


def test_the_probability_in_the_refusal_is_that_of_the_counterexample() -> None:
    """The one is drawn, and at least two of the twelve: then F is shown, and z1 is shown smaller or not at all."""
    rate = Fraction(1, 5)
    few = sum((math.comb(12, n) * rate**n * (1 - rate) ** (12 - n) for n in range(2)), Fraction(0))
    with pytest.raises(SampleReused, match=f"probability {float(rate * (1 - few)):.3f} at every epsilon"):
        replace(GIVEN, sample="shared")


BAD: list[tuple[dict[str, Any], str]] = [
    ({"groups": (("sex",), ("city",))}, "exactly one of two or more groups"),
    ({"groups": (("sex", "ill", "city"),)}, "exactly one of two or more groups"),
    ({"groups": (("sex", "ill"), ("city", "sex"))}, "exactly one of two or more groups"),
    ({"groups": (("sex", "ill", "city"), ())}, "exactly one of two or more groups"),
    ({"groups": (("sex", "ill"), ("citi",))}, "Did you mean 'city'"),
    ({"groups": "some"}, "each a list of columns; or auto"),
    ({"sample": "some"}, "is not fresh"),
    ({"rate": Fraction(1)}, "below 1"),
    ({"choosing": HALF}, "that are given need neither"),
    ({"size": 2}, "that are given need neither"),
    ({"groups": "auto"}, "needs choosing"),
    ({"groups": "auto", "choosing": Fraction(0), "size": 2}, "an epsilon above 0"),
    ({"groups": "auto", "choosing": HALF, "size": 3}, "at least 2 and below that"),
    ({"k": 0}, "k of at least 1"),
]


@pytest.mark.parametrize(("change", "why"), BAD)
def test_what_makes_no_sense_is_refused_before_a_row_is_read(change: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        replace(GIVEN, **change).plan(SCHEMA)


def test_identifiers_are_in_no_group_and_no_column_is_called_slice() -> None:
    schema = Schema((Column("id", Role.IDENTIFIER), SEX, CITY, ILL))
    with pytest.raises(InvalidParameter, match="'id' is an identifier"):
        replace(GIVEN, groups=(("sex", "ill"), ("city", "id"))).plan(schema)
    named = Schema((SEX, replace(CITY, name="slice")))
    with pytest.raises(InvalidParameter, match="'slice' numbers the tables"):
        replace(GIVEN, groups=(("sex",), ("slice",)), levels={}).plan(named)


def test_free_text_is_released_in_no_table() -> None:
    schema = Schema((SEX, Column("note", Role.QUASI)))
    with pytest.raises(InvalidParameter, match="free text"):
        replace(GIVEN, groups=(("sex",), ("note",)), levels={}).plan(schema)


def test_replaced_rows_cost_more() -> None:
    replaced = Schema((SEX, CITY, ILL), Unit(adjacency=Adjacency.REPLACE))
    assert epsilon(GIVEN, replaced) > epsilon(GIVEN)
