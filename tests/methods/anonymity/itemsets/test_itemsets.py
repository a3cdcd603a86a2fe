"""The method: what it refuses, what it reads, and how sets are shown."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

from incrowd.core.domain import Categories, Numbers, Text, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.text import Prefix
from incrowd.core.hierarchy.tree import tree
from incrowd.core.loss import Syntactic
from incrowd.core.schema import Column, Missing, Outside, Role, Schema
from incrowd.core.steps.rows import DRAFTED
from incrowd.core.table import Table
from incrowd.core.unit import Kind, Unit
from incrowd.engines.local.engine import LOCAL
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.full_domain import FullDomain
from incrowd.methods.anonymity.itemsets.check import ItemTable
from incrowd.methods.anonymity.itemsets.method import Itemsets
from tests.coins import ScriptedCoins
from tests.plans import steps_json

ILL = Column("ill", Role.QUASI, hierarchy=tree({"lungs": ["flu", "cough"], "heart": ["attack"]}), separator=";")
SEX = Column("sex", Role.QUASI, hierarchy=Flat(Categories(("F", "M"))))
PAID = Column("paid", Role.SENSITIVE, Type.INTEGER, Flat(Numbers(0, 9)))


def released(method: Itemsets, schema: Schema, **columns: object) -> ItemTable:
    return method.release(Table(schema, LOCAL.open(pa.table(columns)), LOCAL), ScriptedCoins([]))


def test_each_class_is_looked_at_on_its_own_and_rows_are_in_order() -> None:
    found = released(
        Itemsets(2, 2),
        Schema((PAID, SEX, ILL)),
        sex=["M", "F", "F", "M", "M"],
        ill=["flu", "attack;flu", "cough;attack", "cough", None],
        paid=[5, 1, 3, 2, 4],
    )
    assert found.to_arrow().to_pylist() == [
        {"paid": 1, "sex": "F", "ill": "lungs;attack"},
        {"paid": 2, "sex": "M", "ill": "lungs"},
        {"paid": 3, "sex": "F", "ill": "lungs;attack"},
        {"paid": 4, "sex": "M", "ill": None},
        {"paid": 5, "sex": "M", "ill": "lungs"},
    ]


def test_small_classes_and_lonely_items_are_left_out() -> None:
    schema = Schema((SEX, ILL))
    lonely = released(Itemsets(2, 1), schema, sex=["F", "M", "M", "M"], ill=["flu", "flu", None, None])
    assert lonely.to_arrow().to_pylist() == [{"sex": "M", "ill": None}] * 2
    assert len(released(Itemsets(2, 1), schema, sex=["F"], ill=["flu"])) == 0


def test_evidence_tells_how_many_rows_are_like_no_other() -> None:
    found = released(Itemsets(2, 1), Schema((ILL,)), ill=["flu;attack", "flu", "attack", "flu;attack", None])
    told = found.evidence(Unit(), private=False)
    assert (told["rows"], told["items shown"], told["largest set"]) == (5, 2, 2)
    assert (told["smallest support"], told["unique rows"]) == (3, 3)


def test_rules_of_the_schema_are_kept() -> None:
    dropping = Schema((replace(ILL, outside=Outside.DROP, missing=Missing.DROP),))
    found = released(Itemsets(1, 1), dropping, ill=["flu", "gout;flu", None, ""])
    assert found.to_arrow().column("ill").to_pylist() == ["flu", None]
    kept = released(Itemsets(1, 1), Schema((ILL,)), ill=["gout;flu"])
    assert kept.to_arrow().column("ill").to_pylist() == ["flu;other"]


def test_steps_say_what_becomes_of_missing_sets() -> None:
    for column, words in ((ILL, None), (replace(ILL, missing=Missing.DROP), "drop")):
        recode, cut, last = steps_json(Itemsets(2, 2), Schema((SEX, column)))
        assert [each.get("missing") for each in recode["columns"]] == ["class", words]
        assert (cut["items"], cut["columns"], last["step"]) == ("ill", ["sex"], "arrange sets")


def test_lists_and_text_come_to_the_same() -> None:
    texts = ["flu;attack", "attack;flu", "cough", None, ""]
    lists = [None if text is None else [each for each in text.split(";") if each] for text in texts]
    schema, method = Schema((ILL,)), Itemsets(2, 2)
    assert released(method, schema, ill=texts).to_arrow().equals(released(method, schema, ill=lists).to_arrow())


@pytest.mark.parametrize(
    ("schema", "levels", "words"),
    [
        (Schema((SEX,)), {}, "the policy has 0"),
        (Schema((ILL, replace(ILL, name="had"))), {}, "the policy has 2"),
        (Schema((replace(ILL, role=Role.SENSITIVE),)), {}, "give 'ill' the role quasi"),
        (Schema((ILL,)), {"ill": 1}, "are searched for"),
        (Schema((ILL, Column("note", Role.SENSITIVE))), {}, "free text"),
        (Schema((ILL, Column("zip", Role.QUASI, hierarchy=Prefix(Text(), (2,))))), {"zip": 1}, "must be declared"),
        (
            Schema((ILL, Column("id", Role.IDENTIFIER)), Unit(Kind.PERSON, column="id")),
            {},
            "leave the unit's column out",
        ),
    ],
)
def test_schemas_it_cannot_keep_a_guarantee_for_are_refused(schema: Schema, levels: dict[str, int], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        Itemsets(2, 2, levels=levels).plan(schema)


def test_strange_parameters_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="m must be at least 1"):
        Itemsets(2, 0)
    with pytest.raises(InvalidParameter, match="from 0 to 1"):
        Itemsets(2, 2, suppression=Fraction(3, 2))


def test_other_methods_refuse_a_set_valued_column() -> None:
    with pytest.raises(InvalidParameter, match="use the method itemsets"):
        FullDomain(2).plan(Schema((SEX, ILL)))


def test_a_column_drafted_from_rows_is_told() -> None:
    from incrowd.core.domain import Provenance

    drafted = replace(ILL, hierarchy=tree({"lungs": ["flu"]}, Provenance(derived=True)))
    loss = Itemsets(2, 2).plan(Schema((drafted,))).guarantee.loss
    assert isinstance(loss, Syntactic)
    assert DRAFTED in dict(loss.parameters)
