from __future__ import annotations

import pytest

from incrowd.core.domain import Categories, Dates, Numbers, Provenance, Text, Type
from incrowd.core.hierarchy.flat import Flat, flat
from incrowd.core.hierarchy.text import Prefix
from incrowd.core.hierarchy.tree import TreeHierarchy
from incrowd.core.schema import Column, Missing, Outside, Role, Schema, written_as
from incrowd.core.unit import Kind, Unit
from incrowd.errors import InvalidParameter


@pytest.mark.parametrize("kind", list(Type))
def test_a_column_without_a_hierarchy_has_that_of_its_type(kind: Type) -> None:
    assert Column("x", type=kind).hierarchy == flat(kind)


def test_values_outside_go_to_the_nearest_end_if_there_are_ends() -> None:
    assert Column("x", type=Type.INTEGER).rule_outside is Outside.ENDS
    assert Column("x", type=Type.DATE).rule_outside is Outside.ENDS
    assert Column("x").rule_outside is Outside.OTHER
    assert Column("x", type=Type.INTEGER, outside=Outside.DROP).rule_outside is Outside.DROP


def test_only_a_declared_domain_has_a_class_for_what_is_outside() -> None:
    assert not Column("x").has_other
    assert Column("x", hierarchy=Flat(Categories(("a",)))).has_other
    assert not Column("x", hierarchy=Flat(Categories(("a",))), outside=Outside.DROP).has_other
    assert Column("x", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 9)), outside=Outside.OTHER).has_other


def test_a_row_can_be_left_out_only_where_a_rule_says_so() -> None:
    assert not Column("x").may_drop
    assert Column("x", missing=Missing.DROP).may_drop
    assert Column("x", outside=Outside.DROP).may_drop


def test_categories_have_no_ends() -> None:
    with pytest.raises(InvalidParameter, match="have no ends"):
        Column("x", hierarchy=Flat(Categories(("a",))), outside=Outside.ENDS)


def test_the_domain_is_of_the_type_of_the_column() -> None:
    with pytest.raises(InvalidParameter, match="of type decimal, but its domain is of type integer"):
        Column("x", type=Type.DECIMAL, hierarchy=Flat(Numbers(0, 9)))
    with pytest.raises(InvalidParameter, match="consists of dates"):
        Column("x", hierarchy=Flat(Dates()))


def test_categories_are_written_as_their_type_writes_them() -> None:
    with pytest.raises(InvalidParameter, match=r"not written as values of type integer are: '05', 'x'"):
        Column("x", type=Type.INTEGER, hierarchy=TreeHierarchy((("5", "low"), ("05", "low"), ("x", "low"))))
    Column("x", type=Type.INTEGER, hierarchy=TreeHierarchy((("5", "low"), ("6", "low"))))
    with pytest.raises(InvalidParameter, match="'yes'"):
        Column("x", type=Type.BOOLEAN, hierarchy=Flat(Categories(("yes", "false"))))


def test_what_stands_for_missing_values_is_a_value() -> None:
    ages = Flat(Numbers(0, 99))
    assert Column("x", type=Type.INTEGER, hierarchy=ages, missing="7").fill == "7"
    assert Column("x", missing="drop").fill is None
    assert Column("x", missing="drop").may_drop
    with pytest.raises(InvalidParameter, match="outside the declared domain"):
        Column("x", type=Type.INTEGER, hierarchy=ages, missing="100")


def test_a_schema_names_what_is_wrong_with_it() -> None:
    with pytest.raises(InvalidParameter, match="at least one column"):
        Schema(())
    with pytest.raises(InvalidParameter, match="more than once: 'zip'"):
        Schema((Column("zip"), Column("zip")))
    with pytest.raises(InvalidParameter, match="needs a name"):
        Column("")
    with pytest.raises(InvalidParameter, match="Did you mean 'diagnosis'"):
        Schema((Column("diagnosis"),))["diagnose"]
    with pytest.raises(InvalidParameter, match="There are 'zip'"):
        Schema((Column("zip"),))["height"]


def test_the_column_that_tells_people_apart_is_an_identifier() -> None:
    unit = Unit(Kind.PERSON, column="id")
    assert Schema((Column("id", Role.IDENTIFIER), Column("zip")), unit).unit is unit
    with pytest.raises(InvalidParameter, match="its role must be identifier"):
        Schema((Column("id"), Column("zip")), unit)
    with pytest.raises(InvalidParameter, match="no column 'id'"):
        Schema((Column("zip"),), unit)


def test_identifiers_are_not_released() -> None:
    schema = Schema((Column("id", Role.IDENTIFIER), Column("zip", Role.QUASI), Column("note")))
    assert [column.name for column in schema.released] == ["zip", "note"]
    assert schema.names == ("id", "zip", "note")


def test_what_was_drafted_from_rows_is_named_until_a_source_is() -> None:
    draft, public = Provenance(derived=True), Provenance(derived=True, public="national zip list")
    schema = Schema(
        (
            Column("id", Role.IDENTIFIER, hierarchy=Prefix(Text(), (3,), draft)),
            Column("a", hierarchy=Prefix(Text(), (3,), draft)),
            Column("b", hierarchy=Flat(Categories(("x",), draft))),
            Column("c", hierarchy=Prefix(Text(), (3,), public)),
            Column("d"),
        )
    )
    assert schema.drafted == ("a", "b")


@pytest.mark.parametrize(
    ("value", "kind", "written"),
    [("5.0", Type.INTEGER, "5"), ("1.50", Type.DECIMAL, "1.5"), ("Yes", Type.BOOLEAN, "true"), ("x", Type.DATE, None)],
)
def test_a_value_has_one_way_of_writing(value: str, kind: Type, written: str | None) -> None:
    assert written_as(value, kind) == written
