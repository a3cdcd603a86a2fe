"""Units of privacy say whom they protect."""

from collections.abc import Callable

import pytest

from incrowd.core.unit import Adjacency, ExtraRowsRule, Kind, Unit
from incrowd.errors import InvalidParameter

MORE = {"kind": "person", "adjacency": "add-remove", "column": "id", "max_rows": 1}


def test_units_read_as_sentences() -> None:
    assert str(Unit(adjacency=Adjacency.REPLACE)) == "one row, replaced"
    assert str(Unit(Kind.PERSON, column="id")) == "one person (id, one row), added or removed"


@pytest.mark.parametrize(
    "make",
    [
        lambda: Unit(Kind.PERSON),
        lambda: Unit(Kind.ROW, column="id"),
        lambda: Unit(Kind.ROW, max_rows=2),
        lambda: Unit(Kind.ROW, more=ExtraRowsRule.DROP),
        lambda: Unit(Kind.PERSON, column="id", max_rows=0),
    ],
)
def test_units_that_mean_nothing_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidParameter):
        make()


@pytest.mark.parametrize(
    "plain", [{}, {"kind": "planet", "adjacency": "add-remove"}, {"kind": "row"}, MORE | {"more": "keep"}]
)
def test_an_unknown_unit_is_refused(plain: dict[str, str]) -> None:
    with pytest.raises(InvalidParameter):
        Unit.from_json(plain)


@pytest.mark.parametrize("more", [None, *ExtraRowsRule])
def test_a_unit_says_what_becomes_of_people_with_more_rows_and_is_read_again(more: ExtraRowsRule | None) -> None:
    unit = Unit(Kind.PERSON, column="id", more=more)
    assert unit.to_json() == MORE | ({} if more is None else {"more": str(more)})
    assert Unit.from_json(unit.to_json()) == unit
    assert unit.single == (more is not None)


def test_crowds_of_rows_are_crowds_of_people_only_where_nobody_has_a_second_row() -> None:
    assert Unit().single
    assert not Unit(Kind.PERSON, column="id", max_rows=2, more=ExtraRowsRule.DROP).single
    assert not Unit(Kind.NODE).single


def test_units_protect_the_same_whatever_becomes_of_people_with_more_rows() -> None:
    assert Unit(Kind.PERSON, column="id", more=ExtraRowsRule.DROP).protects_as(Unit(Kind.PERSON, column="id"))
    assert not Unit(Kind.PERSON, column="id", max_rows=2).protects_as(Unit(Kind.PERSON, column="id"))
